"""A batch of an incremental model: how it goes in, what its columns make of the table, and what is there after it.

What is the same for a table in Parquet and for one in Delta Lake or Iceberg.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructType

from dbt_zorder.engine.keep_result import staged
from dbt_zorder.errors import BuildError, ColumnError, ConfigError, LostRowsError
from dbt_zorder.layout.partitions import null_if_unnamed
from dbt_zorder.request import BuildRequest, check_names, names_only, partition_columns
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.tables.report import AppendReport, BuildReport, IncrementReport
from dbt_zorder.tables.rewrite_policy import Overlap
from dbt_zorder.tables.schema_change import compare, conform, target_schema
from dbt_zorder.tables.two_step_swap import restore_if_interrupted

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class Batch:
    """How a batch goes into its table.

    Attributes:
        overwrite: replace the partitions that it has rows of; without partitions, the whole table.
        on_schema_change: one of ``schema_change.MODES``.
        may_rewrite: build the table anew when that is due.
    """

    overwrite: bool = False
    on_schema_change: str = "ignore"
    may_rewrite: bool = True


def table_of(spark: SparkSession, table: TableName) -> TableInfo:
    """Return what the catalog says of the table that a batch is for.

    Raises:
        BuildError: it is not there, or has become a view: a table of the batch alone would lack all rows before it.
    """
    info = describe(spark, table)
    if info is None:
        restore_if_interrupted(spark, table)  # another run may be in the midst of its swap
        info = describe(spark, table)
    if info is None or info.is_view:
        msg = (
            f"{table} {'is not there any more' if info is None else 'is a view by now'}, though it was a table when "
            "this run began: its query is of a batch alone, so nothing was built. Run the model again, with "
            "--full-refresh if the table was dropped on purpose."
        )
        raise BuildError(msg)
    return info


def schemas(spark: SparkSession, df: DataFrame, request: BuildRequest, batch: Batch) -> tuple[StructType, StructType]:
    """Return the columns that a table has, and those that it has after a batch.

    Raises:
        ColumnError: two columns of the query have one name.
        SchemaChangeError: ``on_schema_change`` does not allow the columns that the query has.
    """
    check_names(df)
    existing = spark.table(request.table.sql).schema
    sensitive = case_sensitive(spark)

    def serves(columns: StructType) -> bool:
        return names_only(columns, request, sensitive=sensitive)

    mode = batch.on_schema_change
    return existing, target_schema(df.schema, existing, mode, sensitive=sensitive, serves=serves)


def same_partitions(spark: SparkSession, info: TableInfo, request: BuildRequest, schema: StructType) -> bool:
    """Tell whether a table is parted as its model says by now."""
    wanted = [column.name for column in partition_columns(spark, schema, request)]
    return wanted == list(info.partition_columns)


def check_parts(spark: SparkSession, info: TableInfo, request: BuildRequest, schema: StructType, batch: Batch) -> None:
    """Check that a batch which replaces partitions replaces those that the table has, so that it holds them whole.

    A batch of one day has not the other days of its month: a table that is parted by months now would lose them.

    Raises:
        ConfigError: the table has other partitions than its model by now.
    """
    if batch.overwrite and info.partition_columns and not same_partitions(spark, info, request, schema):
        old, new = ", ".join(info.partition_columns), ", ".join(request.spec.partition_by)
        msg = (
            f"{request.table} is partitioned by {old}, and its model by {new} now. A run that replaces partitions "
            f"would lose the rows of a partition by {new} that this batch lacks, so nothing was changed: run the model "
            f"with --full-refresh, or set partition_by back to {old}."
        )
        raise ConfigError(msg)


@contextlib.contextmanager
def naming_left_out(df: DataFrame, schema: StructType, request: BuildRequest, batch: Batch) -> Iterator[None]:
    """Let what is wrong with a column, while the block runs, tell of those that the query has and its table does not.

    Args:
        df: the query.
        schema: of the table after the batch.
        request: of the model.
        batch: how its rows go in.

    Raises:
        ColumnError: as the block; the message says which columns ``on_schema_change`` leaves out.
    """
    try:
        yield
    except ColumnError as exc:
        sensitive = case_sensitive(df.sparkSession)
        left_out = [column.name for column in compare(df.schema, schema, sensitive=sensitive).added]
        if not left_out or not names_only(df.schema, request, sensitive=sensitive):
            raise
        msg = (
            f"{exc} {request.table} does not have the query's new columns ({', '.join(left_out)}), which "
            f"on_schema_change '{batch.on_schema_change}' leaves out: set it to 'append_new_columns', or run the model "
            "with --full-refresh."
        )
        raise ColumnError(msg) from exc


@contextlib.contextmanager
def rows_after(
    spark: SparkSession, rows: DataFrame, schema: StructType, request: BuildRequest, batch: Batch
) -> Iterator[DataFrame]:
    """Give the rows of a table after a batch, in the columns of ``schema``, for as long as the block runs.

    Where the batch replaces partitions it is asked twice, for them and for its rows, so it is kept if a second answer
    could cost much, or be another one.
    """
    kept = conform(spark.table(request.table.sql), schema)
    if not batch.overwrite:
        yield kept.unionAll(rows)
        return
    with staged(rows) as held:
        rows = held.rows
        columns = partition_columns(spark, schema, request)
        empty_is_null = request.file_format != "iceberg"
        values = [
            null_if_unnamed(column.sql) if empty_is_null and isinstance(column.data_type, StringType) else column.sql
            for column in columns
        ]
        replaced = rows.select(*(f.expr(value).alias(f"p{n}") for n, value in enumerate(values))).distinct()
        same = " AND ".join(f"kept.{column.sql} <=> replaced.p{n}" for n, column in enumerate(columns))
        kept = kept.alias("kept").join(replaced.alias("replaced"), f.expr(same), "left_anti")
        yield kept.unionAll(rows)


def after_batch(
    report: AppendReport,
    table: TableName,
    version: str,
    measured: Callable[[], Overlap],
    rewritten: Callable[[], BuildReport] | None,
) -> IncrementReport:
    """Look at a table after a batch, and lay it out anew if that is due; neither can fail the run any more.

    Args:
        report: what the batch did.
        table: its table, for messages.
        version: of the table now.
        measured: measures the table.
        rewritten: lays it out anew; None if that is not wanted.
    """
    try:
        overlap = measured()
    except Exception as exc:  # the batch is in; figures are not worth failing for
        _LOG.warning("the stats of %s could not be read after the append: %s", table, in_one_line(exc))
        return IncrementReport(report, None, None, version)
    _LOG.debug("%s: a point query reads %.2f times what it would after a rewrite", table, overlap.ratio)
    if not (report.files and rewritten is not None and overlap.is_due):
        return IncrementReport(report, None, overlap.now, version)
    try:
        built = rewritten()
    except LostRowsError:
        raise
    except Exception as exc:  # the batch is in: a run that fails now would be run again, and add it twice
        _LOG.warning(
            "the rows of this run are in %s; it was due to be built anew, which failed and is left to the next run: %s",
            table,
            in_one_line(exc),
        )
        return IncrementReport(report, None, overlap.now, version)
    return IncrementReport(report, built, built.summary, built.version)
