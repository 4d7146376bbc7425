"""Properties of a table in Delta Lake or Iceberg: the user's, and those by which z-order columns keep statistics."""

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
    """Return the properties of a table: the user's, comment, statistics of the z-order columns, and a new one's place.

    Raises:
        ConfigError: the user's leave a z-order column without statistics.
    """
    found = dict(request.properties)
    if request.location_root and is_new:  # a table that is there stays where it is
        found["location"] = _place(df.sparkSession, table, request, request.location_root.rstrip("/"))
    if request.comment:
        found["comment"] = request.comment
    return {**found, **form.statistics(df, request, keys)}


def _place(spark: SparkSession, table: TableName, request: BuildRequest, root: str) -> str:
    """Return the folder of a new table: its name's own, also where it is written under another name to be renamed."""
    place = f"{root}/{request.table.identifier}"
    if table == request.table or not exists(spark, place):
        return place
    beside = f"{root}/{table.identifier}"
    _LOG.warning("%s is put into %s, since there are other files in %s", request.table, beside, place)
    return beside


def check_kept(missing: Sequence[ResolvedColumn], request: BuildRequest, given: str) -> None:
    """Check that a user's properties leave no z-order column without statistics.

    Args:
        missing: z-order columns without statistics.
        request: of the model.
        given: the property that leaves them out.

    Raises:
        ConfigError: it leaves one out.
    """
    if missing:
        msg = (
            f"The table property {given} keeps no statistics of '{missing[0].name}', which zorder_by names: no reader "
            f"could skip a file of {request.table} by it. Leave the property out, or add the column."
        )
        raise ConfigError(msg)
