"""Who knows a table's partitions: the folders of its version, never the catalog, which a swap does not tell of them."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.spark.catalog import TableInfo
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.tables.version import version_of

_LOG = logging.getLogger("dbt_zorder")
BY_CATALOG = "spark.sql.hive.manageFilesourcePartitions"
"""With it Spark asks the catalog which partitions a table has, of one that was made meanwhile."""


def let_folders_tell(spark: SparkSession) -> None:
    """Let Spark take the partitions of a table from its folders, in a session that has been set to ask the catalog.

    With ``true``, Spark's own default, a table that is made over a folder has no partitions until somebody registers
    them, so no rows, and one that is moved keeps those of before.

    Raises:
        ConfigError: the session does not let the setting be changed.
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
    """Do so before a partitioned table of ours is read, which may have been made while the setting was true."""
    if info is not None and info.partition_columns and version_of(info.location):
        let_folders_tell(spark)


def folders_tell(spark: SparkSession) -> bool:
    """Tell whether Spark takes partitions from folders in a session."""
    return str(spark.conf.get(BY_CATALOG, "true")).lower() == "false"
