"""The table of a format that is to get the files of this process; or why Spark is to write them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import BuildError
from dbt_zorder.request import BuildRequest, partition_columns
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import answers_for
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.lakehouse.format import NOTHING, Carried, Format
from dbt_zorder.tables.lakehouse.sink import EmptyTable, FormatFiles

_ANOTHER = "another catalog answers to its name"


def made_files(
    form: Format,
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
        form: of the table.
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
    spark = df.sparkSession
    if not answers_for(spark, table.schema, form.sink.catalog):
        return _ANOTHER
    told, parts = _told(form, request, whole=True, token=token), _parts(spark, df.schema, request)
    return form.sink.made(spark, table, df.schema, parts, wanted, told, is_new=is_new, before=before)


def make_empty(
    empty: EmptyTable, df: DataFrame, table: TableName, request: BuildRequest, wanted: Mapping[str, str]
) -> str:
    """Make a table without rows, and return by what it is told from one that another run makes.

    Args:
        df: rows like those that it is to have.
        table: where.
        request: of the model.
        wanted: properties that it is to have.
    """
    spark = df.sparkSession
    return empty.make(spark, table, request.table, df.schema, _parts(spark, df.schema, request), wanted)


def filled_files(
    form: Format, empty: EmptyTable, df: DataFrame, table: TableName, request: BuildRequest, token: str, made: str
) -> FormatFiles | str:
    """Return what takes the files of a table that was made without rows; or why only Spark can write them.

    Args:
        form: of the table.
        df: the rows.
        table: its name until it is done.
        request: of the model.
        token: by which the commit is found again.
        made: by what it is told from one that another run made.

    Raises:
        BuildError: it is another one.
    """
    spark = df.sparkSession
    check_made(empty, spark, table, request.table, made)
    return empty.filled(spark, table, _parts(spark, df.schema, request), _told(form, request, whole=True, token=token))


def check_made(empty: EmptyTable, spark: SparkSession, table: TableName, wanted: TableName, made: str) -> None:
    """Find out whether a new table is still the one that this run made.

    Raises:
        BuildError: another run has made one in its place.
    """
    if empty.id_of(spark, table) != made:
        msg = f"Another run builds {wanted} at the same time; this build is abandoned. Run it again."
        raise BuildError(msg)


def added_files(
    form: Format, df: DataFrame, request: BuildRequest, *, replaces: bool, state: FormatState | None = None
) -> FormatFiles | str:
    """Return what takes files of a batch that this process writes; or in a few words why only Spark can write it.

    Args:
        form: of the table.
        df: the rows.
        request: of the model.
        replaces: the batch replaces partitions.
        state: of the table, if it was just looked at; None for that of now.
    """
    spark, told = df.sparkSession, _told(form, request, whole=False)
    if not answers_for(spark, request.table.schema, form.sink.catalog):
        return _ANOTHER
    parts = _parts(spark, df.schema, request)
    return form.sink.standing(spark, request.table, parts, told, state=state, replaces_parts=replaces)


def same_rows_files(form: Format, df: DataFrame, request: BuildRequest, before: str) -> FormatFiles | str:
    """Return what takes files in place of those of a version, whose rows they have; or why only Spark can write them.

    Args:
        form: of the table.
        df: the rows.
        request: of the model, parted as its table is.
        before: the version.
    """
    spark, told = df.sparkSession, _told(form, request, whole=True)
    if not answers_for(spark, request.table.schema, form.sink.catalog):
        return _ANOTHER
    return form.sink.standing(spark, request.table, _parts(spark, df.schema, request), told, before)


def _parts(spark: SparkSession, schema: StructType, request: BuildRequest) -> list[str]:
    """Return the names of the columns that a table is to be parted by."""
    return [column.name for column in partition_columns(spark, schema, request)]


def _told(form: Format, request: BuildRequest, *, whole: bool, token: str = "") -> dict[str, str]:
    """Return what the model's options, and a commit that lays out all of a table, say besides how to write."""
    given = {name: value for name, value in request.options.items() if name not in form.options}
    return {**given, **(form.whole_note(token) if whole else {})}
