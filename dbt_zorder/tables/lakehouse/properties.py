"""Compute the properties of a Delta Lake or Iceberg table.

These are the user's properties, and those that keep statistics of the z-order columns.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.files import exists
from dbt_zorder.tables.lakehouse.format import Format

_LOG = logging.getLogger("dbt_zorder")


def table_properties(
    form: Format,
    df: DataFrame,
    table: TableName,
    request: BuildRequest,
    keys: Sequence[ResolvedColumn],
    *,
    is_new: bool,
) -> dict[str, str]:
    """Return a table's properties: the user's, the comment, z-order statistics, and a new table's location.

    Raises:
        ConfigError: the user's properties leave a z-order column without statistics.
    """
    found = dict(request.properties)
    if request.location_root and is_new:  # an existing table stays where it is
        found["location"] = _place(df.sparkSession, table, request, request.location_root.rstrip("/"))
    if request.comment:
        found["comment"] = request.comment
    return {**found, **form.statistics(df, request, keys)}


def _place(spark: SparkSession, table: TableName, request: BuildRequest, root: str) -> str:
    """Return the folder of a new table: that of its final name, even while it has a temporary one."""
    place = f"{root}/{request.table.identifier}"
    if table == request.table or not exists(spark, place):
        return place
    beside = f"{root}/{table.identifier}"
    _LOG.warning("%s is put into %s, since there are other files in %s", request.table, beside, place)
    return beside


def check_kept(missing: Sequence[ResolvedColumn], request: BuildRequest, given: str) -> None:
    """Check that a user's properties leave no z-order column without statistics.

    Args:
        missing: the z-order columns without statistics.
        request: the settings of the model.
        given: the property that excludes them.

    Raises:
        ConfigError: at least one column is missing.
    """
    if missing:
        msg = (
            f"The table property {given} keeps no statistics of '{missing[0].name}', which zorder_by names: no reader "
            f"could skip a file of {request.table} by it. Leave the property out, or add the column."
        )
        raise ConfigError(msg)
