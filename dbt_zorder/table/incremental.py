"""One run of an incremental model over a table that is there: added in place where possible, else a new version."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructType

from dbt_zorder.catalog import TableInfo, TableName, describe
from dbt_zorder.columns import case_sensitive, resolve_all
from dbt_zorder.errors import BuildError, ColumnError, LostRowsError, ZorderError
from dbt_zorder.layout.staging import staged
from dbt_zorder.stats.formats import FORMATS
from dbt_zorder.table.append import AppendReport, append
from dbt_zorder.table.aside import bring_back
from dbt_zorder.table.build import BuildReport, build
from dbt_zorder.table.files import has_client
from dbt_zorder.table.listing import check_unchanged, list_data
from dbt_zorder.table.optimize import recover, rewrite
from dbt_zorder.table.overlap import Overlap, measure, measure_standing
from dbt_zorder.table.request import NULL_PARTITION, BuildRequest, check, check_names
from dbt_zorder.table.schema_change import add_columns_sql, compare, conform, keeps, target_schema
from dbt_zorder.table.standing import Standing, known_standing
from dbt_zorder.table.summary import Summary
from dbt_zorder.table.version import Marker, is_anothers, read_marker, version_of, write_marker

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


@dataclass(frozen=True)
class IncrementReport:
    """What an incremental run did.

    Attributes:
        appended: what the batch did; None if the table was built anew with it.
        built: the build, if there was one: with the batch, or after it because it was due.
        table: figures of the table now; None if it has no stats.
        version: that is served now.
    """

    appended: AppendReport | None
    built: BuildReport | None
    table: Summary | None
    version: str

    @classmethod
    def of_build(cls, report: BuildReport) -> IncrementReport:
        """Return what a run did that built the table with its batch."""
        return cls(None, report, report.summary, report.version)


def begin(spark: SparkSession, table: TableName) -> Mapping[str, int] | None:
    """Complete what a failed run has left, and return the table's files; None if it is no Parquet table.

    To be called before the query of a batch is analysed: it may read the table, and must see all of it. One that is
    none of ours yet is listed too: with rows that somebody adds while it is taken over, its folder would go.
    """
    info = recover(spark, table)
    found = list_data(spark, info.location) if info is not None and info.provider == "parquet" else None
    if info is not None and not info.is_view:
        # the session keeps the listing of a table that it has read, which may be older than this one
        spark.sql(f"REFRESH TABLE {table.sql}")
    return found


def increment(
    spark: SparkSession,
    df: DataFrame,
    request: BuildRequest,
    batch: Batch,
    before: Mapping[str, int] | None = None,
) -> IncrementReport:
    """Add a query's rows to a table, as an incremental model does.

    In place, through the journal, where the table is one of ours and keeps its columns and partitions. Otherwise a new
    version is built of the rows that are there and those of the batch, and swapped in by one catalog call.

    Args:
        spark: the session.
        df: the query.
        request: the model's settings.
        batch: how its rows go in.
        before: what ``begin`` returned.

    Raises:
        ColumnError, ConfigError: the request does not fit the query; nothing was read or written.
        SchemaChangeError: ``on_schema_change`` does not allow the columns that the query has.
        BuildError: as ``build`` and ``append``; also if the table is not there any more.
    """
    info = table_of(spark, request.table)
    partitioned = bool(request.spec.partition_by)
    if batch.overwrite and not partitioned:
        return IncrementReport.of_build(build(spark, conform(df, schemas(spark, df, request, batch)[1]), request))
    if info.provider != "parquet":
        keep = f"set file_format: {info.provider} to keep it, or " if info.provider in FORMATS else ""
        msg = (
            f"{request.table} is a {info.provider} table, and the model's file_format is 'parquet', the default: {keep}"
            "run the model with --full-refresh to replace it."
        )
        raise ZorderError(msg)
    existing, schema = schemas(spark, df, request, batch)
    in_place = bool(version_of(info.location)) and has_client(spark) and keeps(existing, schema)
    rows = conform(df, schema)
    marker = read_marker(spark, info.location) if in_place else None
    # what is moved into the version of another table would be in that one as well
    if (
        not in_place
        or not same_partitions(spark, info, request, schema)
        or is_anothers(spark, request.table, info.location, marker)
    ):
        return IncrementReport.of_build(_build_with(spark, rows, schema, request, batch, before))
    standing = known_standing(spark, info.location, schema, request.spec)
    # the weights are those of the model's columns, which need not be the table's any more
    spec = replace(request.spec, by=_by(spark, standing, request, schema), weights=None)
    check_kept(df, rows, replace(request, spec=spec), batch)
    added = schema.fields[len(existing.fields) :]
    if added:
        comments = {column.name.lower(): request.comment_of(column.name) for column in added}
        spark.sql(add_columns_sql(request.table.sql, added, comments))
        rows = conform(df, spark.table(request.table.sql).schema)
    _renew_marker(spark, info, marker, spark.table(request.table.sql).schema if added else existing)
    report = append(spark, rows, request, overwrite=batch.overwrite, before=before, info=info, standing=standing)
    return after_batch(
        report,
        request.table,
        version_of(info.location),  # else the append has failed
        lambda: _measured(spark, info, request, report),
        (lambda: rewrite(spark, request)) if batch.may_rewrite else None,
    )


def table_of(spark: SparkSession, table: TableName) -> TableInfo:
    """Return what the catalog says of the table that a batch is for.

    Raises:
        BuildError: it is not there, or has become a view: a table of the batch alone would lack all rows before it.
    """
    info = describe(spark, table)
    if info is None:
        bring_back(spark, table)  # another run may be in the midst of its swap
        info = describe(spark, table)
    if info is None or info.is_view:
        msg = (
            f"{table} {'is not there any more' if info is None else 'is a view by now'}, though it was a table when "
            "this run began: its query is of a batch alone, so nothing was built. Run the model again, with "
            "--full-refresh if the table was dropped on purpose."
        )
        raise BuildError(msg)
    return info


def check_kept(df: DataFrame, rows: DataFrame, request: BuildRequest, batch: Batch) -> None:
    """Do what ``check`` does for the rows of a batch, which may lack columns that its query has.

    Raises:
        ColumnError, ConfigError: as ``check``; where the table lacks a new column, the message says why.
    """
    try:
        check(rows, request)
    except ColumnError as exc:
        left_out = [name for name in df.columns if name.lower() not in {kept.lower() for kept in rows.columns}]
        if not left_out:
            raise
        msg = (
            f"{exc} {request.table} does not have the query's new columns ({', '.join(left_out)}), which "
            f"on_schema_change '{batch.on_schema_change}' leaves out: set it to 'append_new_columns', or run the model "
            "with --full-refresh."
        )
        raise ColumnError(msg) from exc


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
        _LOG.warning("the stats of %s could not be read after the append: %s", table, exc)
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
            exc,
        )
        return IncrementReport(report, None, overlap.now, version)
    return IncrementReport(report, built, built.summary, built.version)


def _build_with(
    spark: SparkSession,
    rows: DataFrame,
    schema: StructType,
    request: BuildRequest,
    batch: Batch,
    before: Mapping[str, int] | None,
) -> BuildReport:
    """Build a new version of the rows that are there and those of a batch."""
    with rows_after(spark, rows, schema, request, batch) as state:
        return build(spark, state, request, lambda: check_unchanged(spark, request.table, before))


def schemas(spark: SparkSession, df: DataFrame, request: BuildRequest, batch: Batch) -> tuple[StructType, StructType]:
    """Return the columns that a table has, and those that it has after a batch.

    Raises:
        ColumnError: two columns of the query have one name.
        SchemaChangeError: ``on_schema_change`` does not allow the columns that the query has.
    """
    check_names(df)
    existing = spark.table(request.table.sql).schema
    change = compare(df.schema, existing, sensitive=case_sensitive(spark))
    return existing, target_schema(change, existing, batch.on_schema_change)


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
    with staged(rows) as rows:
        sensitive = case_sensitive(spark)
        columns = resolve_all(request.spec.partition_by, schema, sensitive=sensitive)
        empty_is_null = request.file_format != "iceberg"
        values = [
            f"nullif(nullif({column.sql}, ''), '{NULL_PARTITION}')"
            if empty_is_null and isinstance(column.data_type, StringType)
            else column.sql
            for column in columns
        ]
        replaced = rows.select(*(f.expr(value).alias(f"p{n}") for n, value in enumerate(values))).distinct()
        same = " AND ".join(f"kept.{column.sql} <=> replaced.p{n}" for n, column in enumerate(columns))
        kept = kept.alias("kept").join(replaced.alias("replaced"), f.expr(same), "left_anti")
        yield kept.unionAll(rows)


def _renew_marker(spark: SparkSession, info: TableInfo, marker: Marker | None, schema: StructType) -> None:
    """Let a version's marker know columns that were added, also by a run that died then: a rollback restores them."""
    if (
        marker is not None
        and marker.schema
        and len(StructType.fromJson(json.loads(marker.schema)).fields) != len(schema)
    ):
        write_marker(spark, info.location, replace(marker, schema=schema.json()), renew=True)


def same_partitions(spark: SparkSession, info: TableInfo, request: BuildRequest, schema: StructType) -> bool:
    """Tell whether a table is parted as its model says by now."""
    sensitive = case_sensitive(spark)
    wanted = [column.name for column in resolve_all(request.spec.partition_by, schema, sensitive=sensitive)]
    return wanted == list(info.partition_columns)


def _measured(spark: SparkSession, info: TableInfo, request: BuildRequest, report: AppendReport) -> Overlap:
    """Measure a table after a batch by what is known of its files, or else by its stats."""
    if report.standing is not None and report.standing.files is not None:
        return measure_standing(report.standing, request.spec)
    return measure(spark, request.table, info, request.spec)


def _by(spark: SparkSession, standing: Standing, request: BuildRequest, schema: StructType) -> list[str]:
    """Return the columns that a version is clustered by, and say so if the model names others by now."""
    wanted = list(request.spec.by)
    tree = standing.tree
    if tree is None or tree.layout is None:
        return wanted
    keys = [key.column for key in tree.layout.keys]
    if resolve_all(wanted, schema, sensitive=case_sensitive(spark)) != keys:
        _LOG.warning(
            "zorder_by of %s changed from %s to %s: what is appended stays clustered as the table is; the change takes "
            "effect when the table is built anew (--full-refresh, zorder_optimize, or by itself when that is due)",
            request.table, ", ".join(tree.by), ", ".join(wanted),
        )  # fmt: skip
    return [key.sql for key in keys]
