"""Check, before a DataFrame replaces a table, that the table still matches what the DataFrame may have read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame

from dbt_zorder.errors import BuildError, MissingVersionError, ZorderError
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.location import is_within
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.listing import below_uri
from dbt_zorder.tables.parquet.changed_files import check_unchanged
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.version import read_marker, roots_of

_LOG = logging.getLogger("dbt_zorder")


def as_read(df: DataFrame, table: TableName, info: TableInfo) -> Callable[[], None] | None:
    """Return a function that checks that a table of versions still has its current files; None without a listing.

    A batch that a killed run left in the table's journal is completed first.

    Args:
        df: the new rows of the table.
        table: name of the table.
        info: catalog description of the table.

    Raises:
        BuildError: ``df`` reads the table from before files that exist now were added.
    """
    spark = df.sparkSession
    try:
        before = begin(spark, table, info)
    except Exception as exc:  # its folder is gone, so any new version is an improvement
        if isinstance(exc, ZorderError) and not isinstance(exc, MissingVersionError):
            raise
        _LOG.debug("the files of %s could not be listed: %s", table, in_one_line(exc))
        return None
    if before is None:
        return None
    roots = roots_of(info.location, read_marker(spark, info.location))
    # files of a version that is not served have no path below the location
    read = {below_uri(info.location, file) for file in df.inputFiles() if any(is_within(file, root) for root in roots)}
    later = before.keys() - read
    if read and later:
        msg = (
            f"The DataFrame reads the table as it was before {len(later)} of its {len(before)} files came, whose rows "
            "would be lost. Nothing was changed: refresh the table, make the DataFrame anew, and save that."
        )
        raise BuildError(msg)
    return partial(check_unchanged, spark, table, before)
