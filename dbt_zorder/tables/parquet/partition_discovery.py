"""Make Spark find the partitions of a table in its folders, never in the catalog.

A swap does not register partitions in the catalog.
"""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.spark.catalog import TableInfo
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.tables.version import version_of

_LOG = logging.getLogger("dbt_zorder")
BY_CATALOG = "spark.sql.hive.manageFilesourcePartitions"
"""If true, Spark asks the catalog for the partitions of tables that are created from then on."""


def let_folders_tell(spark: SparkSession) -> None:
    """Make this session find the partitions of tables in their folders.

    With ``true``, Spark's own default, a table created over a folder has no partitions, and so no rows, until they are
    registered. A table that is moved keeps its former partitions.

    Raises:
        ConfigError: the session does not allow a change of the setting.
    """
    if folders_tell(spark):
        return
    reason = ""
    try:
        spark.conf.set(BY_CATALOG, "false")
    except Exception as exc:
        reason = f": {in_one_line(exc)}"
    if not folders_tell(spark):
        msg = (
            f"{BY_CATALOG} is true in this session and cannot be changed{reason}. A partitioned table with zorder_by "
            "would have no rows there: set it to false where the session is opened, or leave out partition_by."
        )
        raise ConfigError(msg)
    _LOG.warning(
        "%s was true in this session and is false from now on: a partitioned table with zorder_by would have no rows",
        BY_CATALOG,
    )


def let_folders_tell_of(spark: SparkSession, info: TableInfo | None) -> None:
    """Do so before reading a partitioned table of versions, which may date from when the setting was true."""
    if info is not None and info.partition_columns and version_of(info.location):
        let_folders_tell(spark)


def folders_tell(spark: SparkSession) -> bool:
    """Return whether the session finds partitions in folders."""
    return str(spark.conf.get(BY_CATALOG, "true")).lower() == "false"
