"""A table of Delta Lake or Iceberg laid out anew: by our kernel, or by the format's own command."""

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
from dbt_zorder.tables.lakehouse.sink import FormatFiles, put_files, writer_for
from dbt_zorder.tables.lakehouse.state import read_standing, version_of
from dbt_zorder.tables.lakehouse.targets import same_rows_files
from dbt_zorder.tables.report import BuildReport, OptimizeReport

NATIVE = "native"


def rewrite(
    spark: SparkSession, form: Format, request: BuildRequest, how: str = "auto", info: TableInfo | None = None
) -> BuildReport:
    """Lay a table out anew from its own rows, in one commit that changes none of them.

    Args:
        spark: the session.
        form: of the table.
        request: of the model.
        how: ``native`` for the format's own command, anything else for our kernel.
        info: what the catalog says of the table, where that was just asked.

    Raises:
        BuildError: another commit came in between; the table has all rows of both.
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
    return BuildReport(version_of(spark, form.name, request.table), summary, clock.seconds, [])


def optimize(spark: SparkSession, form: Format, request: BuildRequest, how: str, *, dry_run: bool) -> OptimizeReport:
    """Lay a table out anew, or tell what that would do; see ``parquet.rewrite.optimize``.

    Raises:
        ZorderError: there is no such table, or it is of another format than the model.
        BuildError: as ``rewrite``.
    """
    info = own_table(spark, request)
    report = OptimizeReport.of(request.table, read_standing(spark, form, request).overlap(request.spec))
    return report if dry_run else report.done(rewrite(spark, form, request, how, info))


def own_table(spark: SparkSession, request: BuildRequest) -> TableInfo:
    """Return what the catalog says of a table that is of the model's format.

    Raises:
        ZorderError: there is none, or it is of another.
    """
    return check_own(describe(spark, request.table), request)


def check_own(info: TableInfo | None, request: BuildRequest) -> TableInfo:
    """Find out whether a table is of the model's format, and return what the catalog says of it.

    Raises:
        ZorderError: there is none, or it is of another.
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
    """A table whose files are replaced by others of the same rows, in one commit.

    Attributes:
        form, request, info: of the table; the request is parted as the table is.
        rows: of the table.
        before: the version that they are of.
    """

    form: Format
    request: BuildRequest
    info: TableInfo
    rows: DataFrame
    before: str
    counts_first: bool = False

    @property
    def by_spark(self) -> bool:
        """Whether only the format itself replaces files; to ask what a scan of Delta is takes a quarter of a second."""
        return not self.form.sink.rewrites

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Return the clustering columns, and what writes files of the table."""
        return keys_for(self.rows, self.request.spec), writer_for(self._target)

    def lay_out(self, holding: RowSource) -> Layout | None:
        """Return which row goes into which file."""
        spec = measured(self.request.spec, self.rows, self.info, self.request)
        return plan_layout(holding.source, spec, holding.known)

    def write(self, holding: RowSource, layout: Layout) -> None:
        """Write and commit the files.

        Raises:
            BuildError: another commit came in between.
        """
        spark, form, request = self.rows.sparkSession, self.form, self.request
        try:
            if put_files(spark, holding, layout, self._target, self.rows.schema) is None:
                form.rewrite_by_spark(apply_layout(holding.for_spark, layout), request, self.info, self.before)
        except Exception as exc:
            if form.sink.rewrites and version_of(spark, form.name, request.table) != self.before:
                raise interrupted(request.table) from exc
            raise

    def settle(self) -> None:
        """Do nothing: the commit found out by itself whether another one came in between."""

    def _target(self) -> FormatFiles | str:
        return same_rows_files(self.form, self.rows, self.request, self.before)


def _rewrite(spark: SparkSession, form: Format, request: BuildRequest, info: TableInfo, clock: Clock) -> None:
    spark.sql(f"REFRESH TABLE {request.table.sql}")
    before = version_of(spark, form.name, request.table)
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
