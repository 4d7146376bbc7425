"""Finding out, before a table is replaced by a DataFrame, whether it is still what the DataFrame may have read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.files import has_client
from dbt_zorder.spark.location import is_within
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.listing import below_uri
from dbt_zorder.stats.table_state import FORMATS, state_of
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.listing import check_unchanged
from dbt_zorder.tables.parquet.version import read_marker, roots_of, version_of
from dbt_zorder.tables.two_step_swap import bring_back

_LOG = logging.getLogger("dbt_zorder")


def guard_of(df: DataFrame, table: TableName, info: TableInfo | None, before: str | None) -> Callable[[], None] | None:
    """Return what finds out whether a table is still what it was; None where nothing tells.

    Args:
        df: what is to be in it.
        table: its name.
        info: what has that name; None if nothing has.
        before: its version, as of ``version_now``, where it is in Delta Lake or Iceberg.

    Raises:
        BuildError: ``df`` reads it as it was before files came that are there now.
    """
    spark = df.sparkSession
    if info is None:
        return partial(_check_absent, spark, table)
    if info.provider in FORMATS:
        return None if before is None else partial(_check_version, spark, table, info.provider, before)
    return _as_read(df, table, info) if version_of(info.location) and has_client(spark) else None


def _check_absent(spark: SparkSession, table: TableName) -> None:
    bring_back(spark, table)
    if describe(spark, table) is not None:
        msg = "Another run has made the table meanwhile, so that this one was given up and changed nothing."
        raise BuildError(msg)


def version_now(spark: SparkSession, table: TableName, provider: str) -> str | None:
    """Return the version of a table of Delta Lake or Iceberg, None if its metadata cannot be read."""
    try:
        return state_of(spark, provider, table).version
    except Exception as exc:  # whatever is built is better
        _LOG.debug("the version of %s could not be read: %s", table, in_one_line(exc))
        return None


def _check_version(spark: SparkSession, table: TableName, provider: str, before: str) -> None:
    if version_now(spark, table, provider) != before:
        msg = "Another run has changed the table meanwhile, so that this one was given up and changed nothing."
        raise BuildError(msg)


def _as_read(df: DataFrame, table: TableName, info: TableInfo) -> Callable[[], None] | None:
    """Return the same for a table of versions, by its files.

    A batch that a killed run has left in the table's journal is completed first.

    Raises:
        BuildError: as ``guard_of``.
    """
    spark = df.sparkSession
    try:
        before = begin(spark, table)
    except ZorderError:
        raise
    except Exception as exc:  # its folder is gone: whatever is built is better
        _LOG.debug("the files of %s could not be listed: %s", table, in_one_line(exc))
        return None
    if before is None:
        return None
    roots = roots_of(info.location, read_marker(spark, info.location))
    # those of another version than the one that is served have no path below it
    read = {below_uri(info.location, file) for file in df.inputFiles() if any(is_within(file, root) for root in roots)}
    later = before.keys() - read
    if read and later:
        msg = (
            f"The DataFrame reads the table as it was before {len(later)} of its {len(before)} files came, whose rows "
            "would be lost. Nothing was changed: refresh the table, make the DataFrame anew, and save that."
        )
        raise BuildError(msg)
    return partial(check_unchanged, spark, table, before)
