"""Finding out, before a table is replaced by a DataFrame, whether it is still what the DataFrame may have read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame

from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.location import is_within
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.listing import below_uri
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.listing import check_unchanged
from dbt_zorder.tables.version import read_marker, roots_of

_LOG = logging.getLogger("dbt_zorder")


def as_read(df: DataFrame, table: TableName, info: TableInfo) -> Callable[[], None] | None:
    """Return what finds out whether a table of versions still has the files that it has now; None where nothing does.

    A batch that a killed run has left in the table's journal is completed first.

    Args:
        df: what is to be in it.
        table: its name.
        info: what the catalog says of it.

    Raises:
        BuildError: ``df`` reads it as it was before files came that are there now.
    """
    spark = df.sparkSession
    try:
        before = begin(spark, table, info)
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
