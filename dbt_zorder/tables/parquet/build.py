"""Build a version of a z-ordered table, step by step; before the swap, readers see no change."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from dbt_zorder.engine.choose import RowSource, WriterFor, as_spark_writes
from dbt_zorder.engine.file_size import sized_layout
from dbt_zorder.engine.plan import make_plan
from dbt_zorder.engine.spark.descent import apply_layout, as_they_come
from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import keys_for
from dbt_zorder.progress import Clock, report_phase
from dbt_zorder.request import (
    BuildRequest,
    bloom_options,
    bloom_sizes,
    check,
    partition_columns,
    readable_partitions,
)
from dbt_zorder.spark.catalog import NEXT_SUFFIX, PREVIOUS_SUFFIX, TableInfo, TableName, describe
from dbt_zorder.spark.catalog_id import catalog_id, was_moved
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.conf import OPEN_FILES, open_files, settings
from dbt_zorder.spark.files import delete_empty, delete_path, has_client
from dbt_zorder.spark.location import is_same_place, is_within
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.plain_names import check_folder
from dbt_zorder.stats.collect import collect_path
from dbt_zorder.stats.schema import STATS_SUFFIX
from dbt_zorder.stats.store import write_stats
from dbt_zorder.stats.summary import Summary, add_up, gather
from dbt_zorder.tables.build import warn_of_many, written
from dbt_zorder.tables.parquet.analyze import Analyzed, analyze_again, analyzed
from dbt_zorder.tables.parquet.buckets.bucket_files import check_ids, name_buckets, with_buckets
from dbt_zorder.tables.parquet.buckets.bucket_number import numbered, with_version_row_bytes
from dbt_zorder.tables.parquet.buckets.bucket_split import split_figures, split_layout
from dbt_zorder.tables.parquet.changed_files import watch
from dbt_zorder.tables.parquet.conflicts import beside_vacuum, check_base, check_served, check_version, verify
from dbt_zorder.tables.parquet.partition_discovery import let_folders_tell
from dbt_zorder.tables.parquet.plan_batch import columns_with_stats, plan_batch
from dbt_zorder.tables.parquet.retention.deletions import collect_old, delete_unserved
from dbt_zorder.tables.parquet.retention.foreign_files import delete_around, sorted_out
from dbt_zorder.tables.parquet.retention.ownership import Owner, identified, served_owner
from dbt_zorder.tables.parquet.retention.replacements import forget_replaced, note_replaced
from dbt_zorder.tables.parquet.retention.surroundings import check_former, check_root, goes_with, why_not_deletable
from dbt_zorder.tables.parquet.saved_layout import write_tree
from dbt_zorder.tables.parquet.shared_files import SharedFiles
from dbt_zorder.tables.parquet.state import ParquetState
from dbt_zorder.tables.parquet.stats_view import publish_stats
from dbt_zorder.tables.parquet.swap import Definition, definition_for, publish
from dbt_zorder.tables.report import BuildReport, buckets_text
from dbt_zorder.tables.reserved import check_free
from dbt_zorder.tables.two_step_swap import following_of, restore_if_interrupted
from dbt_zorder.tables.version import Marker, home_of, new_version, root_of, version_of, write_marker

_LOG = logging.getLogger("dbt_zorder")


def build(
    spark: SparkSession,
    df: DataFrame,
    request: BuildRequest,
    guard: Callable[[], None] | None = None,
    info: TableInfo | None = None,
    shared: SharedFiles | None = None,
    split: ParquetState | None = None,
) -> BuildReport:
    """Write the result of a query as a new version of a table, and swap it in.

    A failure before the swap leaves the table unchanged; a failure after it leaves the new version served.

    Args:
        spark: the session.
        df: the query.
        request: settings of the table.
        guard: called just before the swap; an error that it raises abandons the build. The default checks whether
            another run has added rows to the replaced version. Callers with an earlier listing pass their own guard.
        info: current catalog description of the table, if just read.
        shared: files of the current version that are part of the new one as well. The rows of the query are then
            clustered by that version's saved layout.
        split: state of the current version, with its saved layout, if its files are split by more buckets. ``df`` then
            reads that version in the session of ``session_for_split``.

    Raises:
        ColumnError, ConfigError: nothing was read or written, because the request does not fit the query; its root lies
            in a folder that is deleted with the old table; another table lies in a folder of this one, or in one that
            this build deletes; or the name of a helper is taken.
        BuildError: rows or files were lost, another run changed the table meanwhile, or the catalog refused.
    """
    df = as_text(df)
    check(df, request)
    if request.spec.partition_by:
        let_folders_tell(spark)
    if info is None:
        restore_if_interrupted(spark, request.table)
    base = info or describe(spark, request.table)
    check_free(spark, request.table, PREVIOUS_SUFFIX, NEXT_SUFFIX, STATS_SUFFIX)
    statistics = analyzed(spark, request.table, base)
    root = root_of(spark, request.table, request.location_root)
    check_folder(spark, root)
    _check_outside_managed(root, base, request)
    owner = None
    if base is not None and version_of(base.location):
        owner = served_owner(spark, request.table, base.location)
    check_root(spark, request.table, root, request.location_root, owner.roots if owner else ())
    check_former(spark, request.table, base)
    if owner is not None and owner.refused:
        _LOG.warning(
            "%s gets a version of its own, and what it was served from stays as it is: %s %s",
            request.table,
            owner.location,
            owner.refused,
        )
    guard = guard or watch(spark, request.table, base)
    state = split if shared is None else shared.state
    clock = Clock()
    with numbered(df, request, base, clock) as (query, settled):
        definition, path = definition_for(query, settled), f"{root}/{new_version()}"
        rows, placed = with_buckets(readable_partitions(query, settled), settled)
        kind = VersionCommit if split is None else SplitCommit
        commit = kind(rows, placed, definition, base, path, owner, state)
        report = _carry_out(spark, commit, query, settled, guard, shared, statistics, clock)
    before, is_chosen = 0 if base is None else base.bucket_count, settled is not request
    buckets = buckets_text(before, definition.buckets, chosen=is_chosen)
    return replace(report, splits=split is not None, buckets=buckets)


def _carry_out(
    spark: SparkSession,
    commit: VersionCommit,
    df: DataFrame,
    request: BuildRequest,
    guard: Callable[[], None],
    shared: SharedFiles | None,
    statistics: Analyzed | None,
    clock: Clock,
) -> BuildReport:
    """Write a new version, check it, and swap it in.

    Args:
        spark, df, request, guard, shared: as for ``build``, with a number of buckets.
        commit: the new version.
        statistics: statistics that the table has in the catalog.
        clock: measures the phases.
    """
    definition, base, path, owner = commit.definition, commit.base, commit.path, commit.owner
    root, _, version = path.rpartition("/")
    try:
        with written(commit.df, commit.request, commit, clock) as done:
            assert done is not None
            report_phase("write")  # a run that was cancelled during the write ends here
            with beside_vacuum(spark, request.table, path), clock.phase("stats"):
                columns = columns_with_stats(df, done.layout, request, commit.state)
                keys = [key for key in done.layout.keys if key.column in columns]
                stats = collect_path(spark, path, df.schema, columns, version)
                if shared is not None:
                    shared.link(path)
                    stats = shared.with_stats(stats, path)
                stats = write_stats(stats, path)
                file_stats = gather(stats, keys)
                summary = add_up(file_stats, keys)
                written_now = summary if shared is None else add_up(shared.without(file_stats, path), keys)
                verify(done.counted, done.layout.rows, written_now)
                write_tree(spark, path, *commit.saved(done.layout, summary))
        with clock.phase("swap"):
            check_version(spark, path, file_stats)
            if definition.buckets:
                check_ids(file_stats.column("file_path").to_pylist(), definition.buckets)
            guard()
            forget_replaced(spark, path)
            # nothing may come between the last check and the swap
            publish(spark, request.table, definition, path, check_base(spark, request.table, base))
            check_served(spark, request.table, base, path)
    except BaseException:
        _discard(spark, request.table, path)
        raise
    with clock.phase("swap"):
        if owner is not None and not owner.refused:
            note_replaced(spark, owner.location, version)
        try:
            publish_stats(spark, request.table, path, stats.schema)
        except Exception as exc:
            # the version is served: a failed run would be repeated and add a batch twice
            _LOG.warning(
                "%s is built, but its stats relation could not be registered: %s", request.table, in_one_line(exc)
            )
        names, partitioned = definition.schema.names, bool(definition.partition_by)
        analyze_again(spark, request.table, statistics, names, partitioned=partitioned)
        collected = _collect(spark, base, request, root, version)
    return BuildReport(version, summary, clock.seconds, collected, None if shared is None else written_now)


@dataclass
class VersionCommit:
    """A new version of a table: files in a folder of their own that readers see once it is swapped in.

    Attributes:
        df, request: the query and the settings of the table.
        definition: the table's new definition in the catalog.
        base: catalog description of the table before; None if it did not exist.
        path: folder of the version.
        owner: owner of the version that is served; None if dbt-zorder did not make that version.
        state: state of the version whose layout clusters the rows, as it shares files with this one, or its files are
            split; None if the rows get a layout of their own.
    """

    df: DataFrame
    request: BuildRequest
    definition: Definition
    base: TableInfo | None
    path: str
    owner: Owner | None
    state: ParquetState | None = None
    by_spark: bool = False
    counts_first: bool = False

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Mark the folder as a version; return the clustering columns and the writer of its files."""
        spark = self.df.sparkSession
        marker = _marker(spark, self.request, self.definition, self.path, self.owner)
        write_marker(spark, self.path, marker)
        layout = None if self.state is None else self.state.layout
        keys = keys_for(self.df, self.request.spec) if layout is None else layout.keys
        return keys, as_spark_writes(spark, self.request, self.path)

    def lay_out(self, source: RowSource) -> Layout | None:
        """Return the layout of the rows, with the measured row size of the previous version if there is one."""
        request, spec = self.request, self.request.spec
        if self.state is not None:
            return plan_batch(source.for_batch_plan, request, self.state, fresh=False, known=source.known)
        spec = with_version_row_bytes(spec, self.df, self.base)
        sized = spec if source.rows is None else source.rows.with_row_bytes(spec)
        plan = make_plan(source.query, sized, source.known)
        layout = sized_layout(source, plan, spec, self.path, partial(write_rows, request))
        if source.rows is None:
            warn_of_many(layout, request.table)
        return layout

    def write(self, source: RowSource, layout: Layout) -> None:
        """Write the files.

        Raises:
            BuildError: a vacuum deletes the folder meanwhile.
        """
        with beside_vacuum(self.df.sparkSession, self.request.table, self.path):
            write_data(source, layout, self.request, self.path)

    def settle(self) -> None:
        """Do nothing: no reader sees the version yet."""

    def saved(self, layout: Layout, summary: Summary) -> tuple[Layout, Summary]:
        """Return the layout and figures to save: those of the version with which it shares files, else its own."""
        if self.state is not None and self.state.layout is not None and self.state.tree is not None:
            return self.state.layout, self.state.tree.built
        return layout, summary


@dataclass
class SplitCommit(VersionCommit):
    """A new version with the rows of the one before, whose files are split by more buckets; see ``bucket_split``."""

    by_spark: bool = True

    def lay_out(self, source: RowSource) -> Layout:
        """Mark the folder as a version, and return the layout of its rows."""
        self.open()
        assert self.state is not None
        assert self.state.layout is not None
        return split_layout(self.df, self.state.layout, self._now, self.definition.buckets)

    def write(self, source: RowSource, layout: Layout) -> None:
        """Write the parts of each file; see ``VersionCommit.write``."""
        spark = self.df.sparkSession
        with beside_vacuum(spark, self.request.table, self.path):
            file_writer(self.df, layout, self.request).parquet(self.path)
            name_buckets(spark, self.path)

    def saved(self, layout: Layout, summary: Summary) -> tuple[Layout, Summary]:
        """Return the layout of the rows, and the figures that the last whole build would have with split files."""
        assert self.state is not None
        assert self.state.tree is not None
        return layout, split_figures(self.state.tree.built, self.definition.buckets // self._now)

    @property
    def _now(self) -> int:
        """Number of buckets of the version before."""
        assert self.base is not None
        return self.base.bucket_count


def write_data(source: RowSource, layout: Layout, request: BuildRequest, path: str) -> None:
    """Write the clustered rows to ``path``: from this process if it has them, else one file per Spark partition."""
    spark = source.query.sparkSession
    if source.rows is None or not source.rows.write(spark, layout, path):
        write_rows(request, layout, source.for_spark, path)
    if request.hash_index is not None:
        name_buckets(spark, path)


def write_rows(request: BuildRequest, layout: Layout, rows: DataFrame, path: str) -> None:
    """Let Spark cluster, sort and write the rows of a layout, or of a subset of its files."""
    spark = rows.sparkSession
    opened, asked = open_files(spark), {}
    clustered = apply_layout(rows, layout, opened)
    if request.spec.partition_by and opened and not as_they_come(layout, opened):
        asked[OPEN_FILES] = "0"  # Spark sees that the rows are sorted, and does not sort them again
    with settings(spark, asked):
        file_writer(clustered, layout, request).parquet(path)


def file_writer(rows: DataFrame, layout: Layout, request: BuildRequest) -> DataFrameWriter:
    """Return Spark's writer of rows that lie as the layout wants them, with the options of the request."""
    # a session limit on rows per file would split files again
    blooms = bloom_sizes(rows, request, layout), bloom_options(rows, request)
    writer = rows.write.mode("append").option("maxRecordsPerFile", 0)
    writer = writer.options(**{**blooms[0], **request.options, **blooms[1]})
    if not request.spec.partition_by:
        return writer
    # by the query's spelling: Spark would name the folders as they are spelled here
    return writer.partitionBy(*(column.name for column in partition_columns(rows.sparkSession, rows.schema, request)))


def _marker(
    spark: SparkSession,
    request: BuildRequest,
    definition: Definition,
    path: str,
    owner: Owner | None,
) -> Marker:
    root, _, version = path.rpartition("/")
    own = owner if owner is not None and not owner.refused else None
    return Marker(
        version=version,
        table=str(request.table),
        base=version_of(own.location) if own else "",
        created_at=datetime.now(timezone.utc).isoformat(),
        zorder_by=list(request.spec.by),
        former_roots=[one for one in dict.fromkeys(own.roots if own else ()) if not is_same_place(one, root)],
        schema=definition.schema.json(),
        partition_by=list(definition.partition_by),
        bucket_by=list(definition.bucket_by),
        buckets=definition.buckets,
        table_id=identified(spark, own),
        catalog=catalog_id(spark),
        home=home_of(spark, path),
    )


def _check_outside_managed(root: str, base: TableInfo | None, request: BuildRequest) -> None:
    """Check that versions do not lie in the folder of a managed table, which is deleted with that table.

    Raises:
        ConfigError: they would.
    """
    if base is not None and base.kind == "MANAGED" and is_within(root, base.location):
        msg = (
            f"{request.table}: location_root is '{request.location_root}', which lies in the folder of the table as it "
            f"is now, {base.location}. That folder is deleted once the new table replaces it, so name another one."
        )
        raise ConfigError(msg)


def _discard(spark: SparkSession, table: TableName, path: str) -> None:
    """Delete the files of a failed build, unless the table leads there, or will once an interrupted swap is undone."""
    with contextlib.suppress(Exception):
        now = describe(spark, table) or describe(spark, following_of(table))
        if has_client(spark) and version_of(path) != version_of(now.location if now else ""):
            delete_unserved(spark, path)
            if now is None:
                delete_empty(spark, path.rsplit("/", 1)[0])  # fails if the folder contains a version of another run


def _collect(
    spark: SparkSession, base: TableInfo | None, request: BuildRequest, root: str, version: str
) -> Sequence[str]:
    """Delete what the swap replaced; a failure is a warning, because the new version is served."""
    try:
        if not request.leaves_replaced:
            _drop_replaced(spark, base, request.table, root)
        return collect_old(spark, root, version, request.keep_versions, request.grace_hours)
    except Exception as exc:
        _LOG.warning(
            "%s is built, but not all of its old versions could be deleted; zorder_vacuum tries again: %s",
            request.table,
            in_one_line(exc),
        )
        return []


def _drop_replaced(spark: SparkSession, base: TableInfo | None, table: TableName, root: str) -> None:
    """Delete the folder of a managed table that a version replaced, as dropping that table would have done.

    The folder stays, with a warning, if another table may have rows there.
    """
    if base is None or not goes_with(table, base) or not has_client(spark) or is_within(root, base.location):
        return
    why = "this session's metastore was moved or copied, so that another one may know the folder as well"
    if not was_moved(spark):
        why = why_not_deletable(spark, table, base)
    if why:
        _LOG.warning(
            "%s is built, and the folder that it had before stays, %s: %s. Delete it by hand if nothing needs it.",
            table,
            base.location,
            why,
        )
        return
    ours, foreign = sorted_out(spark, base.location, base.provider)
    if foreign:
        delete_around(spark, base.location, ours, foreign)
    else:
        delete_path(spark, base.location)
