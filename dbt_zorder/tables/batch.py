"""Add a batch of an incremental model: check it, derive the table's columns, and decide on a rewrite after it.

Parquet, Delta Lake and Iceberg tables share this module.
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
from dbt_zorder.request import BuildRequest, check_names, has_all_columns, partition_columns
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.tables.merge import Merge
from dbt_zorder.tables.report import AppendReport, BuildReport, IncrementReport
from dbt_zorder.tables.rewrite_policy import Overlap
from dbt_zorder.tables.schema_change import compare, conform, target_schema
from dbt_zorder.tables.two_step_swap import restore_if_interrupted

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class Batch:
    """How a batch goes into its table.

    Attributes:
        overwrite: replace the partitions that the batch has rows of; the whole table if it has no partitions.
        on_schema_change: one of ``schema_change.MODES``.
        may_rewrite: rebuild the table when that is due.
        merge: how rows are matched with those of the table; None if they are only added.
    """

    overwrite: bool = False
    on_schema_change: str = "ignore"
    may_rewrite: bool = True
    merge: Merge | None = None


def describe_existing(spark: SparkSession, table: TableName) -> TableInfo:
    """Return the catalog's description of the table that a batch is for.

    Raises:
        BuildError: the table no longer exists, or is a view. A table built of the batch alone would lack all earlier
            rows.
    """
    info = describe(spark, table)
    if info is None:
        restore_if_interrupted(spark, table)  # another run may be between the two calls of its swap
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
    """Return the table's columns before and after a batch.

    Raises:
        ColumnError: two columns of the query have the same name.
        SchemaChangeError: ``on_schema_change`` does not allow the query's columns.
    """
    check_names(df)
    existing = spark.table(request.table.sql).schema
    sensitive = case_sensitive(spark)

    def serves(columns: StructType) -> bool:
        return has_all_columns(columns, request, sensitive=sensitive)

    mode = batch.on_schema_change
    return existing, target_schema(df.schema, existing, mode, sensitive=sensitive, serves=serves)


def same_partitions(spark: SparkSession, info: TableInfo, request: BuildRequest, schema: StructType) -> bool:
    """Return whether the table has the partition columns that its model asks for now."""
    wanted = [column.name for column in partition_columns(spark, schema, request)]
    return wanted == list(info.partition_columns)


def check_parts(spark: SparkSession, info: TableInfo, request: BuildRequest, schema: StructType, batch: Batch) -> None:
    """Check that a batch that replaces partitions contains each of them in full.

    A batch of one day lacks the other days of its month. A table now partitioned by month would lose them.

    Raises:
        ConfigError: the table's partition columns differ from those of its model.
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
    """Add the query's new columns that the table lacks to any column error raised in the block.

    Args:
        df: the query.
        schema: columns of the table after the batch.
        request: the model's settings.
        batch: how the rows are added.

    Raises:
        ColumnError: the block raised it; the message lists the columns that ``on_schema_change`` leaves out.
    """
    try:
        yield
    except ColumnError as exc:
        sensitive = case_sensitive(df.sparkSession)
        left_out = [column.name for column in compare(df.schema, schema, sensitive=sensitive).added]
        if not left_out or not has_all_columns(df.schema, request, sensitive=sensitive):
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
    """Yield the rows of a table after a batch, in the columns of ``schema``.

    A batch that replaces partitions is read twice: for the partitions and for the rows. Its result is therefore cached
    if a second run could be expensive or differ.
    """
    kept = conform(spark.table(request.table.sql), schema)
    if not batch.overwrite:
        yield kept.unionAll(rows)
        return
    with staged(rows) as copy:
        rows = copy.rows
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
    split: Callable[[], BuildReport] | None = None,
) -> IncrementReport:
    """Measure a table after a batch, and rewrite it if that is due, or else split its files if that is wanted.

    A failure of any of these is only logged.

    Args:
        report: result of the batch.
        table: the table's name, for messages.
        version: version of the table now.
        measured: function that measures the table.
        rewritten: function that rewrites the table; None if no rewrite is wanted.
        split: function that splits the table's files by more buckets; None if the model asks for no others.

    Raises:
        LostRowsError: the rewrite replaced a commit of another run.
    """
    try:
        overlap = measured()
    except Exception as exc:  # the batch is committed; figures are not worth a failed run
        _LOG.warning("the stats of %s could not be read after the append: %s", table, in_one_line(exc))
        return IncrementReport(report, None, None, version)
    _LOG.debug("%s: a point query reads %.2f times what it would after a rewrite", table, overlap.ratio)
    change = rewritten if report.files and rewritten is not None and overlap.is_due else split
    if change is None:
        return IncrementReport(report, None, overlap.now, version)
    try:
        built = change()
    except LostRowsError:
        raise
    except Exception as exc:  # the batch is committed: a failed run would be repeated and add it twice
        _LOG.warning(
            "the rows of this run are in %s; it was due to be %s, which failed and is left to the next run: %s",
            table,
            "split by more buckets" if change is split else "built anew",
            in_one_line(exc),
        )
        return IncrementReport(report, None, overlap.now, version)
    return IncrementReport(report, built, built.summary, built.version)
