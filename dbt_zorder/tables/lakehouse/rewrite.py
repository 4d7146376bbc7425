"""Rewrite the layout of a Delta Lake or Iceberg table with our kernel, or with the format's own command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.choose import RowSource, WriterFor
from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import keys_for
from dbt_zorder.progress import Clock
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, describe
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.build import write
from dbt_zorder.tables.lakehouse.build import measured, summary_of
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.lakehouse.lost_commits import interrupted
from dbt_zorder.tables.lakehouse.sink import FileTarget, write_files, writer_for
from dbt_zorder.tables.lakehouse.state import current_version, read_state
from dbt_zorder.tables.lakehouse.targets import rewrite_target
from dbt_zorder.tables.report import BuildReport, OptimizeReport

NATIVE = "native"


def rewrite(
    spark: SparkSession, form: Format, request: BuildRequest, how: str = "auto", info: TableInfo | None = None
) -> BuildReport:
    """Rewrite a table's layout from its own rows, in one commit that changes no row.

    Args:
        spark: the session.
        form: the format of the table.
        request: the settings of the model.
        how: ``native`` for the format's own command, anything else for our kernel.
        info: the catalog's entry of the table, where it was just read.

    Raises:
        BuildError: another commit came in between; the table has the rows of both.
    """
    info = info or own_table(spark, request)
    clock = Clock()
    keys = keys_for(spark.table(request.table.sql), request.spec)
    if how == NATIVE:
        with clock.phase("write"):
            form.rewrite_natively(spark, request, [key.column.sql for key in keys])
    else:
        _rewrite(spark, form, request, info, clock)
    with clock.phase("stats"):
        summary = summary_of(spark, request, keys)
    return BuildReport(current_version(spark, form.name, request.table), summary, clock.seconds, [])


def optimize(spark: SparkSession, form: Format, request: BuildRequest, how: str, *, dry_run: bool) -> OptimizeReport:
    """Rewrite a table's layout, or report the effect of a rewrite; see ``parquet.rewrite.optimize``.

    Raises:
        ZorderError: there is no such table, or its format is not the model's.
        BuildError: another commit came in between; the table has the rows of both.
    """
    info = own_table(spark, request)
    report = OptimizeReport.of(request.table, read_state(spark, form, request).overlap(request.spec))
    return report if dry_run else report.done(rewrite(spark, form, request, how, info))


def own_table(spark: SparkSession, request: BuildRequest) -> TableInfo:
    """Return the catalog's entry of a table in the model's format.

    Raises:
        ZorderError: the table does not exist, or has another format.
    """
    return check_own(describe(spark, request.table), request)


def check_own(info: TableInfo | None, request: BuildRequest) -> TableInfo:
    """Check that a table has the model's format, and return its catalog entry.

    Raises:
        ZorderError: the table does not exist, or has another format.
    """
    if info is None or info.provider != request.file_format:
        state = "does not exist" if info is None else f"is {info.provider or 'a view'}"
        msg = (
            f"{request.table} {state}, and its model has file_format '{request.file_format}': build it anew, with "
            "--full-refresh if it is incremental."
        )
        raise ZorderError(msg)
    return info


@dataclass
class RewriteCommit:
    """A commit that replaces a table's files by others with the same rows.

    Attributes:
        form, info: the format of the table, and its catalog entry.
        request: the settings of the model, partitioned as the table is.
        rows: the rows of the table.
        before: the version of these rows.
    """

    form: Format
    request: BuildRequest
    info: TableInfo
    rows: DataFrame
    before: str
    counts_first: bool = False

    @property
    def by_spark(self) -> bool:
        """Whether only the format itself can replace files.

        It is checked first, because analysing a Delta scan lasts a quarter of a second.
        """
        return not self.form.sink.rewrites

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Return the clustering keys, and a factory of the writer for the table."""
        return keys_for(self.rows, self.request.spec), writer_for(self._target)

    def lay_out(self, source: RowSource) -> Layout | None:
        """Assign rows to files."""
        spec = measured(self.request.spec, self.rows, self.info, self.request)
        return plan_layout(source.query, spec, source.known)

    def write(self, source: RowSource, layout: Layout) -> None:
        """Write and commit the files.

        Raises:
            BuildError: another commit came in between.
        """
        spark, form, request = self.rows.sparkSession, self.form, self.request
        try:
            if write_files(spark, source, layout, self._target, self.rows.schema) is None:
                form.rewrite_by_spark(apply_layout(source.for_spark, layout), request, self.info, self.before)
        except Exception as exc:
            if form.sink.rewrites and current_version(spark, form.name, request.table) != self.before:
                raise interrupted(request.table) from exc
            raise

    def settle(self) -> None:
        """Do nothing: the commit itself detects concurrent commits."""

    def _target(self) -> FileTarget | str:
        return rewrite_target(self.form, self.rows, self.request, self.before)


def _rewrite(spark: SparkSession, form: Format, request: BuildRequest, info: TableInfo, clock: Clock) -> None:
    spark.sql(f"REFRESH TABLE {request.table.sql}")
    before = current_version(spark, form.name, request.table)
    if not before:
        msg = (
            f"{request.table} has no snapshot, so there is nothing to lay out: no rows were written to it yet, or only "
            "to a branch (spark.wap.branch)."
        )
        raise ZorderError(msg)
    rows = spark.table(request.table.sql)
    parts = [quote_name(name) for name in info.partition_columns]
    kept = replace(request, spec=replace(request.spec, partition_by=parts))
    write(rows, kept, RewriteCommit(form, kept, info, rows, before), clock)
