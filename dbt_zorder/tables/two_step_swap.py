"""A swap by two catalog calls: the table is moved aside, and the next one into its place.

What is moved aside is dropped last, so that a swap cut short can be undone: by the run itself, or by whoever next asks
for the table.
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
"""How long a table that is not there may be between the two calls of a run that is alive."""


def following_of(table: TableName) -> TableName:
    """Return the name under which the next entry of a table is made."""
    return TableName(table.schema, table.identifier + NEXT_SUFFIX)


def previous_of(table: TableName) -> TableName:
    """Return the name under which the entry of a table waits until the next one has taken its place."""
    return TableName(table.schema, table.identifier + PREVIOUS_SUFFIX)


def swap_in(spark: SparkSession, table: TableName) -> None:
    """Put the entry that ``following_of`` names in the place of a table or view; for a moment there is none.

    Raises:
        Exception: as the catalog does; the table is as it was, or ``restore_if_interrupted`` will find it.
    """
    restore_if_interrupted(spark, table)  # what a run has left there would be in the way
    check_free(spark, table, PREVIOUS_SUFFIX)
    try:
        mark_helper(spark, table)
        _rename(spark, table, previous_of(table))
        _rename(spark, following_of(table), table)
    except BaseException:
        with contextlib.suppress(Exception):  # the next to ask for the table tries again
            if not restore_if_interrupted(spark, table, patience=0):
                unmark_helper(spark, table)
        raise
    _drop(spark, previous_of(table))


def restore_if_interrupted(spark: SparkSession, table: TableName, patience: float | None = None) -> bool:
    """Undo a swap that was cut short between its two calls, or drop what one that was done has left.

    What somebody else has made by that name stays as it is.

    Args:
        spark: the session.
        table: which may not be there.
        patience: seconds that another run is given to complete its swap; by default two.

    Returns:
        True if the table was not there and is now.
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
            with contextlib.suppress(Exception):  # a mark that stays does no harm
                unmark_helper(spark, table)
            spark.sql(f"REFRESH TABLE {table.sql}")
            return True
        time.sleep(0.1)
    after, now = describe(spark, previous), describe(spark, table)
    # another run that swaps just now may have moved its table there meanwhile
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
