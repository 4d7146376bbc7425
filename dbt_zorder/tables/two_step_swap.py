"""Swap a table by two catalog calls: rename the current entry, then rename the next one to the table's name.

The previous entry is dropped last. An interrupted swap can therefore be undone, by the same run or by the next one that
opens the table.
"""

from __future__ import annotations

import contextlib
import logging
import time

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import NEXT_SUFFIX, PREVIOUS_SUFFIX, TableName, describe
from dbt_zorder.tables.metastore import rename_entry
from dbt_zorder.tables.reserved import check_free, is_helper, mark_helper, unmark_helper

_LOG = logging.getLogger("dbt_zorder")
_PATIENCE_SECONDS = 2.0
"""Longest time that a table may be missing between the two calls of a live run."""


def following_of(table: TableName) -> TableName:
    """Return the name under which the next entry of a table is created."""
    return TableName(table.schema, table.identifier + NEXT_SUFFIX)


def previous_of(table: TableName) -> TableName:
    """Return the name of a table's previous entry until the next one has replaced it."""
    return TableName(table.schema, table.identifier + PREVIOUS_SUFFIX)


def swap_in(spark: SparkSession, table: TableName) -> None:
    """Replace a table or view by the entry that ``following_of`` names; for a moment the table is missing.

    Raises:
        Exception: the catalog's own error; the table is unchanged, or ``restore_if_interrupted`` will restore it.
    """
    restore_if_interrupted(spark, table)  # an entry left by another run would block the rename
    check_free(spark, table, PREVIOUS_SUFFIX)
    moved = False
    try:
        with contextlib.suppress(Exception):  # Hive refuses any change of partitions whose types it does not know
            mark_helper(spark, table)
        _rename(spark, table, previous_of(table))
        moved = True
        _rename(spark, following_of(table), table)
    except BaseException:
        with contextlib.suppress(Exception):  # the next run that opens the table tries again
            if not restore_if_interrupted(spark, table, patience=0):
                if moved and describe(spark, table) is None:  # it could not be marked
                    _rename(spark, previous_of(table), table)
                unmark_helper(spark, table)
        raise
    _drop(spark, previous_of(table))


def restore_if_interrupted(spark: SparkSession, table: TableName, patience: float | None = None) -> bool:
    """Undo a swap that was interrupted between its two calls, or drop the previous entry of a finished one.

    A relation that something else made under that name stays.

    Args:
        spark: the session.
        table: name of the table, which may be missing.
        patience: seconds to wait for another run to complete its swap; by default two.

    Returns:
        True if the table was missing and is restored.
    """
    previous = previous_of(table)
    if not spark.catalog.tableExists(previous.sql):
        return False
    before = describe(spark, previous)
    if before is None or not is_helper(spark, table, previous, before):
        return False
    until = time.monotonic() + (_PATIENCE_SECONDS if patience is None else patience)
    while describe(spark, table) is None:
        if time.monotonic() >= until:
            _LOG.warning("%s was moved aside by a run that ended before its swap did, and is put back", table)
            _rename(spark, previous, table)
            with contextlib.suppress(Exception):  # a remaining mark does no harm
                unmark_helper(spark, table)
            spark.sql(f"REFRESH TABLE {table.sql}")
            return True
        time.sleep(0.1)
    after, now = describe(spark, previous), describe(spark, table)
    # another run may just have moved its table there
    if after is not None and now is not None and before.location == after.location:
        _drop(spark, previous)
    return False


def _rename(spark: SparkSession, table: TableName, to: TableName) -> None:
    try:
        spark.sql(f"ALTER {_kind(spark, table)} {table.sql} RENAME TO {to.sql}")
    except Exception:
        found = describe(spark, table)
        if found is None or found.kind != "EXTERNAL" or not rename_entry(spark, table, to):
            raise


def _drop(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"DROP {_kind(spark, table)} IF EXISTS {table.sql}")


def _kind(spark: SparkSession, table: TableName) -> str:
    info = describe(spark, table)
    return "TABLE" if info is None else info.keyword
