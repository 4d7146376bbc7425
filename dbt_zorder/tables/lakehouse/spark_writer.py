"""How a clustered query is written into a format so that nothing moves its rows again, and its statistics are kept."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from dbt_zorder.errors import BuildError, ConfigError
from dbt_zorder.request import BuildRequest, partition_columns
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.jvm import has_jvm
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.table_state import FORMATS, FormatState
from dbt_zorder.tables.delta.kept_properties import NOTHING, Carried, set_properties
from dbt_zorder.tables.delta.new_table import delta_id, make_delta
from dbt_zorder.tables.delta.sink import standing_delta
from dbt_zorder.tables.lakehouse.sink import FormatFiles, to_be_added_to, to_be_made

_LOG = logging.getLogger("dbt_zorder")

WHOLE = "whole"
"""What a commit says that laid out all of a table."""

TOKEN = "dbt_zorder.token"
"""In the summary of an Iceberg snapshot: by which the commit is found again."""

LAST_NATIVE = "dbt_zorder.last-native-layout"
"""Property of an Iceberg table: the snapshot that its own command last laid out, which takes no note of ours."""

_CATALOG = "spark.sql.catalog.spark_catalog"
NOTE = "dbt_zorder"
"""Under what a commit says so."""
_NEVER_ROLLED = 1 << 50
_OPTIONS = {
    "delta": {"optimizeWrite": "false"},
    "iceberg": {
        # neither shuffled nor sorted by the table's own order, one file a partition and task however large
        "use-table-distribution-and-ordering": "false",
        "distribution-mode": "none",
        "fanout-enabled": "true",
        "target-file-size-bytes": str(_NEVER_ROLLED),
    },
}

_UNLESS_GIVEN: dict[str, dict[str, str]] = {"delta": {"maxRecordsPerFile": "0"}, "iceberg": {}}
"""A limit of the session would cut files apart."""


def options(request: BuildRequest, *, whole: bool, token: str = "") -> dict[str, str]:
    """Return the writer options of a format, and with ``whole`` the note by which its log knows a whole layout.

    Args:
        request: of the model.
        whole: the write lays out all of the table.
        token: by which the commit is found again.
    """
    ours = _OPTIONS[request.file_format]
    return {**_UNLESS_GIVEN[request.file_format], **request.options, **ours, **_note(request, whole=whole, token=token)}


def _note(request: BuildRequest, *, whole: bool, token: str) -> dict[str, str]:
    """Return the options by which a commit that lays out all of a table says so, none of any other."""
    if not whole:
        return {}
    if request.file_format == "delta":
        return {"userMetadata": json.dumps({NOTE: WHOLE, "token": token})}
    return {f"snapshot-property.{NOTE}": WHOLE, f"snapshot-property.{TOKEN}": token}


def is_whole(note: str | None) -> bool:
    """Tell whether the note of a Delta commit is that of a whole layout."""
    return note is not None and f'"{NOTE}": "{WHOLE}"' in note


def writer(
    df: DataFrame, table: TableName, request: BuildRequest, *, whole: bool = False, token: str = ""
) -> DataFrameWriterV2:
    """Return a writer that leaves the rows of ``df`` where they are."""
    made = df.writeTo(table.sql).using(request.file_format)
    for name, value in options(request, whole=whole, token=token).items():
        made = made.option(name, value)
    return made


def create(
    df: DataFrame,
    table: TableName,
    request: BuildRequest,
    wanted: Mapping[str, str],
    *,
    token: str = "",
    kept: Carried = NOTHING,
) -> None:
    """Create a table of the rows of ``df``, or replace one of the same format, in one commit.

    Args:
        df: the rows.
        table: where.
        request: of the model.
        wanted: properties that it is to have, as of ``table_properties``.
        token: by which the commit is found again.
        kept: of the table that is there.
    """
    made = writer(df, table, request, whole=True, token=token)
    if kept.in_place:
        set_properties(df.sparkSession, table, wanted)
        made.overwrite(f.lit(True))
        return
    for name, value in {**kept.properties, **wanted}.items():
        made = made.tableProperty(name, value)
    partitions = partition_columns(df.sparkSession, df.schema, request)
    if partitions:
        made = made.partitionedBy(*(f.col(_parsed_again(column.name)) for column in partitions))
    made.createOrReplace()


def made_files(
    df: DataFrame,
    table: TableName,
    request: BuildRequest,
    wanted: Mapping[str, str],
    *,
    is_new: bool,
    token: str = "",
    kept: Carried = NOTHING,
    before: str | None = None,
) -> FormatFiles | str:
    """Return what takes files that this process writes in place of ``create``; or in a few words why only Spark can.

    Args:
        df: the rows.
        table: where.
        request: of the model.
        wanted: properties that the table is to have.
        is_new: there is no table of this format by that name.
        token: by which the commit is found again.
        kept: of the table that is there.
        before: version of the table whose rows are in the query; None if they need not be.
    """
    if kept != NOTHING:
        return "it keeps what others have made of it"
    spark, told = df.sparkSession, _told(request, whole=True, token=token)
    parts = _parts(spark, df.schema, request)
    return to_be_made(spark, request.file_format, table, df.schema, parts, wanted, told, is_new=is_new, before=before)


def make_empty(df: DataFrame, table: TableName, request: BuildRequest, wanted: Mapping[str, str]) -> str:
    """Make a Delta table without rows, and return by what it is told from one that another run makes.

    Args:
        df: rows like those that it is to have.
        table: where.
        request: of the model.
        wanted: properties that it is to have.
    """
    spark = df.sparkSession
    return make_delta(spark, table, request.table, df.schema, _parts(spark, df.schema, request), wanted)


def filled_files(df: DataFrame, table: TableName, request: BuildRequest, token: str, made: str) -> FormatFiles | str:
    """Return what takes the files of a Delta table that was made without rows; or why only Spark can write them.

    Args:
        df: the rows.
        table: its name until it is done.
        request: of the model.
        token: by which the commit is found again.
        made: by what it is told from one that another run made.

    Raises:
        BuildError: it is another one.
    """
    spark = df.sparkSession
    check_made(spark, table, request.table, made)
    parts = _parts(spark, df.schema, request)
    return standing_delta(spark, table, parts, _told(request, whole=True, token=token))


def check_made(spark: SparkSession, table: TableName, wanted: TableName, made: str) -> None:
    """Find out whether a new table is still the one that this run made.

    Raises:
        BuildError: another run has made one in its place.
    """
    if delta_id(spark, table) != made:
        msg = f"Another run builds {wanted} at the same time; this build is abandoned. Run it again."
        raise BuildError(msg)


def added_files(
    df: DataFrame, request: BuildRequest, *, replaces: bool, state: FormatState | None = None
) -> FormatFiles | str:
    """Return what takes files of a batch that this process writes; or in a few words why only Spark can write it.

    Args:
        df: the rows.
        request: of the model.
        replaces: the batch replaces partitions.
        state: of the table, if it was just looked at; None for that of now.
    """
    spark, told = df.sparkSession, _told(request, whole=False)
    parts = _parts(spark, df.schema, request)
    return to_be_added_to(spark, request.file_format, request.table, parts, told, state=state, replaces_parts=replaces)


def same_rows_files(df: DataFrame, request: BuildRequest, before: str) -> FormatFiles | str:
    """Return what takes files in place of those of a version, whose rows they have; or why only Spark can write them.

    Args:
        df: the rows.
        request: of the model, parted as its table is.
        before: the version.
    """
    spark, told = df.sparkSession, _told(request, whole=True)
    parts = _parts(spark, df.schema, request)
    return to_be_added_to(spark, request.file_format, request.table, parts, told, before)


def _parts(spark: SparkSession, schema: StructType, request: BuildRequest) -> list[str]:
    """Return the names of the columns that a table is to be parted by."""
    return [column.name for column in partition_columns(spark, schema, request)]


def _told(request: BuildRequest, *, whole: bool, token: str = "") -> dict[str, str]:
    """Return what the model's options, and a commit that lays out all of a table, say besides how to write."""
    given = {name: value for name, value in request.options.items() if name not in _OPTIONS[request.file_format]}
    return {**given, **_note(request, whole=whole, token=token)}


def _parsed_again(name: str) -> str:
    """Return a column's name for ``partitionedBy``, which parses the name of what it was given as SQL once more.

    Spark itself puts one with a dot into backticks by then.
    """
    return quote_name(name) if "." in name else quote_name(quote_name(name))


def check_session(spark: SparkSession, request: BuildRequest) -> None:
    """Find out whether a session can write a format at all: Spark's own catalog replaces no table.

    Raises:
        ConfigError: it was not set up for that.
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
