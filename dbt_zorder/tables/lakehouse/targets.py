"""Find the target table for files of this process, or the reason why Spark must write them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import BuildError
from dbt_zorder.request import BuildRequest, partition_columns
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import answers_for
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.lakehouse.format import NOTHING_KEPT, Format, KeptProperties
from dbt_zorder.tables.lakehouse.sink import EmptyTable, FileTarget

_ANOTHER = "another catalog answers to its name"


def build_target(
    form: Format,
    df: DataFrame,
    table: TableName,
    request: BuildRequest,
    wanted: Mapping[str, str],
    *,
    is_new: bool,
    token: str = "",
    kept: KeptProperties = NOTHING_KEPT,
    before: str | None = None,
) -> FileTarget | str:
    """Return the target of files that replace ``create``, or a short reason why only Spark can write them.

    Args:
        form: the format of the table.
        df: the rows.
        table: the name of the table.
        request: the settings of the model.
        wanted: the properties of the new table.
        is_new: whether no table of this format has the name.
        token: the text that identifies the commit in the log.
        kept: the properties that survive from the existing table.
        before: the version whose rows are in the query; None if the query need not contain them.
    """
    if kept != NOTHING_KEPT:
        return "it keeps what others have made of it"
    spark = df.sparkSession
    if not answers_for(spark, table.schema, form.sink.catalog):
        return _ANOTHER
    options, parts = _writer_options(form, request, whole=True, token=token), _parts(spark, df.schema, request)
    return form.sink.build_target(spark, table, df.schema, parts, wanted, options, is_new=is_new, before=before)


def make_empty(
    empty: EmptyTable, df: DataFrame, table: TableName, request: BuildRequest, wanted: Mapping[str, str]
) -> str:
    """Create a table without rows, and return the id that distinguishes it from one of another run.

    Args:
        empty: the format's steps for an empty table.
        df: rows with the table's schema.
        table: the name of the table.
        request: the settings of the model.
        wanted: the properties of the new table.
    """
    spark = df.sparkSession
    return empty.make(spark, table, request.table, df.schema, _parts(spark, df.schema, request), wanted)


def filled_target(
    form: Format, empty: EmptyTable, df: DataFrame, table: TableName, request: BuildRequest, token: str, made: str
) -> FileTarget | str:
    """Return the target of files for a table that was created empty, or why only Spark can write them.

    Args:
        form: the format of the table.
        empty: the format's steps for an empty table.
        df: the rows.
        table: the temporary name of the table.
        request: the settings of the model.
        token: the text that identifies the commit in the log.
        made: the id of the table that this run created.

    Raises:
        BuildError: another run's table has the name.
    """
    spark = df.sparkSession
    check_made(empty, spark, table, request.table, made)
    return empty.filled_target(
        spark, table, _parts(spark, df.schema, request), _writer_options(form, request, whole=True, token=token)
    )


def check_made(empty: EmptyTable, spark: SparkSession, table: TableName, wanted: TableName, made: str) -> None:
    """Check that a new table is still the one that this run created.

    Raises:
        BuildError: another run created a table in its place.
    """
    if empty.id_of(spark, table) != made:
        msg = f"Another run builds {wanted} at the same time; this build is abandoned. Run it again."
        raise BuildError(msg)


def batch_target(
    form: Format, df: DataFrame, request: BuildRequest, *, replaces: bool, state: FormatState | None = None
) -> FileTarget | str:
    """Return the target of a batch's files, or a short reason why only Spark can write them.

    Args:
        form: the format of the table.
        df: the rows.
        request: the settings of the model.
        replaces: whether the batch replaces partitions.
        state: the state of the table, if it was just read; None to read it now.
    """
    spark, options = df.sparkSession, _writer_options(form, request, whole=False)
    if not answers_for(spark, request.table.schema, form.sink.catalog):
        return _ANOTHER
    parts = _parts(spark, df.schema, request)
    return form.sink.existing_target(spark, request.table, parts, options, state=state, replaces_parts=replaces)


def rewrite_target(form: Format, df: DataFrame, request: BuildRequest, before: str) -> FileTarget | str:
    """Return the target of files that replace a version's files with the same rows, or why only Spark can.

    Args:
        form: the format of the table.
        df: the rows.
        request: the settings of the model, partitioned as its table is.
        before: the version.
    """
    spark, options = df.sparkSession, _writer_options(form, request, whole=True)
    if not answers_for(spark, request.table.schema, form.sink.catalog):
        return _ANOTHER
    return form.sink.existing_target(spark, request.table, _parts(spark, df.schema, request), options, before)


def _parts(spark: SparkSession, schema: StructType, request: BuildRequest) -> list[str]:
    """Return the names of the table's partition columns."""
    return [column.name for column in partition_columns(spark, schema, request)]


def _writer_options(form: Format, request: BuildRequest, *, whole: bool, token: str = "") -> dict[str, str]:
    """Return the model's writer options that the format does not set itself, and the note of a whole layout."""
    given = {name: value for name, value in request.options.items() if name not in form.options}
    return {**given, **(form.whole_layout_note(token) if whole else {})}
