"""Write a clustered query with Spark's writer, without another shuffle and with statistics."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.errors import ConfigError
from dbt_zorder.request import BuildRequest, partition_columns
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.jvm import has_jvm
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.lakehouse.format import NOTHING_KEPT, Format, KeptProperties

_LOG = logging.getLogger("dbt_zorder")


_CATALOG = "spark.sql.catalog.spark_catalog"


def options(form: Format, request: BuildRequest, *, whole: bool, token: str = "") -> dict[str, str]:
    """Return the writer options of a format; ``whole`` adds the note of a whole layout to its log.

    Args:
        form: the format of the table.
        request: the settings of the model.
        whole: whether the write lays out the whole table.
        token: the text that identifies the commit in the log.
    """
    note = form.whole_layout_note(token) if whole else {}
    return {**form.defaults, **request.options, **form.options, **note}


def writer(
    form: Format, df: DataFrame, table: TableName, request: BuildRequest, *, whole: bool = False, token: str = ""
) -> DataFrameWriterV2:
    """Return a writer that does not move the rows of ``df``."""
    made = df.writeTo(table.sql).using(form.name)
    for name, value in options(form, request, whole=whole, token=token).items():
        made = made.option(name, value)
    return made


def create(
    form: Format,
    df: DataFrame,
    table: TableName,
    request: BuildRequest,
    wanted: Mapping[str, str],
    *,
    token: str = "",
    kept: KeptProperties = NOTHING_KEPT,
) -> None:
    """Create a table from the rows of ``df``, or replace one of the same format, in one commit.

    Args:
        form: the format of the table.
        df: the rows.
        table: the name of the table.
        request: the settings of the model.
        wanted: the table's properties, from ``table_properties``.
        token: the text that identifies the commit in the log.
        kept: the properties that survive from the existing table.
    """
    made = writer(form, df, table, request, whole=True, token=token)
    if kept.in_place:
        form.set_properties(df.sparkSession, table, wanted)
        made.overwrite(f.lit(True))
        return
    for name, value in {**kept.properties, **wanted}.items():
        made = made.tableProperty(name, value)
    partitions = partition_columns(df.sparkSession, df.schema, request)
    if partitions:
        made = made.partitionedBy(*(f.col(_parsed_again(column.name)) for column in partitions))
    made.createOrReplace()


def _parsed_again(name: str) -> str:
    """Quote a column's name for ``partitionedBy``, which parses its argument as SQL a second time.

    Spark itself has quoted a name with a dot by then.
    """
    return quote_name(name) if "." in name else quote_name(quote_name(name))


def check_session(spark: SparkSession, request: BuildRequest) -> None:
    """Check that a session can write a format: Spark's own catalog cannot replace a table.

    Raises:
        ConfigError: the session is not configured for the format.
    """
    if not has_jvm(spark):
        msg = (
            f"file_format '{request.file_format}' with zorder_by needs a session in dbt's own process, and this one is "
            "Spark Connect's: leave out one of the two, or set zorder_skip: true."
        )
        raise ConfigError(msg)
    catalog = str(spark.conf.get(_CATALOG, None) or "").lower()
    others = [name for name in FORMATS if name != request.file_format and f".{name}." in catalog]
    if not catalog or others:
        state = f"is set up for {others[0]}" if others else f"is not set up for it ({_CATALOG} is not set)"
        msg = (
            f"file_format is '{request.file_format}', and this Spark session {state}: give the target in profiles.yml "
            f"'zorder_formats: [{request.file_format}]', or the format's own settings in server_side_parameters."
        )
        raise ConfigError(msg)
