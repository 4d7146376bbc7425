"""A table of Delta Lake or Iceberg laid out anew: by our kernel, or by the format's own command."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.choose import Holding, hold_rows
from dbt_zorder.engine.keep_result import staged
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.errors import BuildError, LostRowsError, ZorderError
from dbt_zorder.layout.plan import plan_layout
from dbt_zorder.layout.spec import keys_for
from dbt_zorder.progress import Clock
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, describe
from dbt_zorder.spark.sql import quote_name, quote_string
from dbt_zorder.tables.lakehouse.build import measured, summary_of
from dbt_zorder.tables.lakehouse.history import commit_of, version_of
from dbt_zorder.tables.lakehouse.sink import put_files, writer_for
from dbt_zorder.tables.lakehouse.spark_writer import LAST_NATIVE, options, same_rows_files, writer
from dbt_zorder.tables.lakehouse.state import read_format
from dbt_zorder.tables.report import BuildReport, OptimizeReport

NATIVE = "native"


def rewrite_format(spark: SparkSession, request: BuildRequest, how: str = "auto") -> BuildReport:
    """Lay a table out anew from its own rows, in one commit that changes none of them.

    Args:
        spark: the session.
        request: of the model.
        how: ``native`` for the format's own command, anything else for our kernel.

    Raises:
        BuildError: another commit came in between; the table has all rows of both.
    """
    info = own_format(spark, request)
    clock = Clock()
    keys = keys_for(spark.table(request.table.sql), request.spec)
    if how == NATIVE:
        with clock.phase("write"):
            spark.sql(native_command(request, [key.column.sql for key in keys])).collect()
            if request.file_format == "iceberg":
                made = version_of(spark, request.file_format, request.table)
                spark.sql(f"ALTER TABLE {request.table.sql} SET TBLPROPERTIES ('{LAST_NATIVE}' = '{made}')")
    else:
        _rewrite(spark, request, info, clock)
    with clock.phase("stats"):
        summary = summary_of(spark, request, keys)
    return BuildReport(version_of(spark, request.file_format, request.table), summary, clock.seconds, [])


def optimize_format(spark: SparkSession, request: BuildRequest, how: str, *, dry_run: bool) -> OptimizeReport:
    """Lay a table out anew, or tell what that would do; see ``table.optimize``.

    Raises:
        ZorderError: there is no such table, or it is of another format than the model.
        BuildError: as ``rewrite_format``.
    """
    own_format(spark, request)
    report = OptimizeReport.of(request.table, read_format(spark, request).overlap(request.spec))
    return report if dry_run else report.done(rewrite_format(spark, request, how))


def own_format(spark: SparkSession, request: BuildRequest) -> TableInfo:
    """Return what the catalog says of a table that is of the model's format.

    Raises:
        ZorderError: there is none, or it is of another.
    """
    return check_format(describe(spark, request.table), request)


def check_format(info: TableInfo | None, request: BuildRequest) -> TableInfo:
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


def native_command(request: BuildRequest, columns: Sequence[str]) -> str:
    """Return the statement by which a format z-orders a table itself, by columns that are quoted already."""
    listed_columns = ", ".join(columns)
    if request.file_format == "delta":
        return f"OPTIMIZE {request.table.sql} ZORDER BY ({listed_columns})"
    arguments = {
        "table": str(request.table),
        "strategy": "sort",
        "sort_order": f"zorder({listed_columns})",
    }
    listed = ", ".join(f"{name} => {quote_string(value)}" for name, value in arguments.items())
    return f"CALL spark_catalog.system.rewrite_data_files({listed}, options => map('rewrite-all', 'true'))"


def _rewrite(spark: SparkSession, request: BuildRequest, info: TableInfo, clock: Clock) -> None:
    spark.sql(f"REFRESH TABLE {request.table.sql}")
    before = version_of(spark, request.file_format, request.table)
    if not before:
        msg = (
            f"{request.table} has no snapshot, so there is nothing to lay out: no rows were written to it yet, or only "
            "to a branch (spark.wap.branch)."
        )
        raise ZorderError(msg)
    rows = spark.table(request.table.sql)
    parts = [quote_name(name) for name in info.partition_columns]
    kept = replace(request, spec=replace(request.spec, partition_by=parts))
    find = partial(same_rows_files, rows, kept, before)
    with contextlib.ExitStack() as until_written:
        holding = Holding(rows)
        if request.file_format == "iceberg":  # to ask what a scan of Delta is takes a quarter of a second
            with clock.phase("query"):
                held = until_written.enter_context(staged(rows))
                keys = keys_for(rows, kept.spec)
                holding = until_written.enter_context(hold_rows(held, kept, keys, writer_for(find)))
        with clock.phase("sample"):
            layout = plan_layout(holding.source, measured(spark, kept.spec, rows, info, kept), holding.known)
            holding.known = None  # the keys of all rows
        with clock.phase("write"):
            try:
                if put_files(spark, holding, layout, find, rows.schema) is None:
                    _rewrite_by_spark(spark, apply_layout(holding.for_spark, layout), request, info, before)
            except Exception as exc:
                if request.file_format == "iceberg" and version_of(spark, "iceberg", request.table) != before:
                    raise _interrupted(request) from exc
                raise


def _rewrite_by_spark(
    spark: SparkSession, clustered: DataFrame, request: BuildRequest, info: TableInfo, before: str
) -> None:
    if request.file_format == "delta":
        _rewrite_delta(spark, clustered, request, info, before)
        return
    made = writer(clustered, request.table, request, whole=True)
    # Iceberg itself refuses the commit if anything was added since that snapshot
    made = made.option("isolation-level", "serializable").option("validate-from-snapshot-id", before)
    made.overwrite(f.lit(True))


def _rewrite_delta(
    spark: SparkSession, clustered: DataFrame, request: BuildRequest, info: TableInfo, before: str
) -> None:
    """Overwrite a Delta table by its own rows, and take that back if rows came in since they were read.

    Delta's overwrite removes what the table holds when the write begins; a commit between the reading of ``before`` and
    that moment would be lost. The log tells upon which version the overwrite is based. If it is another one, the
    version before the overwrite is restored, unless somebody has written upon it meanwhile: then a person must decide.
    """
    if version_of(spark, "delta", request.table) != before:
        raise _interrupted(request)
    token = uuid.uuid4().hex
    made = clustered.write.format("delta").mode("overwrite").option("dataChange", "false")
    made.options(**options(request, whole=True, token=token)).save(info.location)
    ours, base, latest = commit_of(spark, request.table, token)
    if base == int(before):
        return
    if latest == ours:
        spark.sql(f"RESTORE TABLE {request.table.sql} TO VERSION AS OF {ours - 1}").collect()
        raise _interrupted(request)
    msg = (
        f"{request.table}: version {ours} laid the table out anew without the rows of versions {int(before) + 1} to "
        f"{ours - 1}, which came in just then, and version {latest} is written upon it. They are in VERSION AS OF "
        f"{ours - 1}: add them again from there."
    )
    raise LostRowsError(msg)


def _interrupted(request: BuildRequest) -> BuildError:
    msg = (
        f"Another run changed {request.table} while it was laid out anew; its rows are kept, and the layout is left to "
        "the next run."
    )
    return BuildError(msg)
