"""Add a batch to a version in place, through the journal; the version's own tree clusters the rows."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.choose import RowSource, WriterFor, as_spark_writes
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import keys_for
from dbt_zorder.progress import Clock, report_phase
from dbt_zorder.request import BuildRequest, readable_partitions
from dbt_zorder.spark.catalog import TableInfo, describe, location_of
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.files import delete_path, list_files
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.arrow_store import read_local
from dbt_zorder.stats.collect import collect_path
from dbt_zorder.stats.listing import below_uri, list_data
from dbt_zorder.stats.store import read_stats, stats_path, write_stats
from dbt_zorder.stats.summary import add_up, gather
from dbt_zorder.tables.build import written
from dbt_zorder.tables.parquet import journal
from dbt_zorder.tables.parquet.analyze import analyzed, measure_again
from dbt_zorder.tables.parquet.buckets.bucket_files import with_buckets
from dbt_zorder.tables.parquet.build import write_data
from dbt_zorder.tables.parquet.changed_files import check_same_files
from dbt_zorder.tables.parquet.conflicts import check_base, verify
from dbt_zorder.tables.parquet.plan_batch import columns_with_stats, plan_batch
from dbt_zorder.tables.parquet.state import ParquetState, read_state_or_layout
from dbt_zorder.tables.parquet.stats_view import refresh_stats
from dbt_zorder.tables.report import AppendReport
from dbt_zorder.tables.version import version_of

_LOG = logging.getLogger("dbt_zorder")

_MOST_STATS_FILES = 16
"""Every batch adds a stats file; above this number, the next batch merges them into one."""


def append(
    spark: SparkSession,
    df: DataFrame,
    request: BuildRequest,
    *,
    overwrite: bool = False,
    before: Mapping[str, int] | None = None,
    info: TableInfo | None = None,
    state: ParquetState | None = None,
) -> AppendReport:
    """Add a batch to the version that a table is served from.

    A failure before the journal entry is ready leaves the table unchanged. After that, the batch is in the table's
    journal, and the next run completes it. The journal must have been recovered before ``df`` was analysed.

    Args:
        spark: the session.
        df: rows with exactly the table's columns and types.
        request: the model's settings; its spec has the table's partition columns.
        overwrite: replace every partition that the batch has rows of.
        before: the table's files when ``df``, which may read them, was analysed; by default the current files.
        info: current catalog description of the table, if just read.
        state: state of the version, if just read.

    Raises:
        BuildError: rows were lost, or another run changed the table meanwhile.
    """
    info = info or describe(spark, request.table)
    assert info is not None
    statistics = analyzed(spark, request.table, info)
    clock = Clock()
    with clock.phase("sample"):
        before = list_data(spark, info.location) if before is None else before
        state = state or read_state_or_layout(spark, info.location, df.schema, request.spec)
    rows, placed = with_buckets(readable_partitions(df, request), request)
    commit = EntryCommit(rows, placed, info, state, overwrite)
    is_ready = False
    try:
        with written(rows, placed, commit, clock) as done:
            if done is None:
                return AppendReport(0, 0, 0, 0, clock.seconds, state.if_with_stats)
            entry = commit.entry
            assert entry is not None
            report_phase("write")  # a run that was cancelled during the write ends here
            with clock.phase("stats"):
                files = _stage_stats(spark, entry, df, columns_with_stats(df, done.layout, request, state), state)
                summary = add_up(files, [])
                verify(done.counted, done.layout.rows, summary)
                adds = sorted(below_uri(entry.version_path, path) for path in files.column("file_path").to_pylist())
                plan = _plan(spark, entry, adds, before, overwrite=overwrite)
            with clock.phase("swap"):
                check_base(spark, request.table, info)
                check_same_files(spark, info.location, before, str(request.table))
                journal.make_ready(spark, entry, plan)
                is_ready = True
    except BaseException:
        if commit.entry is not None and not is_ready:
            with contextlib.suppress(Exception):  # the next run deletes the rest
                journal.close_entry(spark, commit.entry)
            journal.leave_entry(commit.entry)
        raise
    with clock.phase("swap"):
        complete(spark, request, info, entry, plan)
        measure_again(spark, request.table, statistics, df.columns, partitioned=bool(info.partition_columns))
    after = state.after(files, set(plan.removes)).if_with_stats
    return AppendReport(summary.rows, summary.files, summary.bytes, len(plan.removes), clock.seconds, after)


@dataclass
class EntryCommit:
    """A batch for a version: files in a journal entry that are moved in once the entry is ready.

    Attributes:
        df, request, info: the batch, the model's settings, and the table's description.
        state: state of the version.
        overwrite: whether the batch consists of whole partitions.
        entry: the journal entry, once it is open.
    """

    df: DataFrame
    request: BuildRequest
    info: TableInfo
    state: ParquetState
    overwrite: bool
    entry: journal.JournalEntry | None = None
    by_spark: bool = False
    counts_first: bool = True

    def open(self) -> tuple[Sequence[Key], WriterFor]:
        """Return the clustering columns and the writer of the version's files."""
        # whole partitions get a layout of their own, by the model's settings
        layout = None if self.overwrite else self.state.layout
        keys = keys_for(self.df, self.request.spec) if layout is None else layout.keys
        return keys, as_spark_writes(self.df.sparkSession, self.request, self.info.location)

    def lay_out(self, source: RowSource) -> Layout | None:
        """Return the layout, which assigns each row to a file; None if there are no rows."""
        known = source.known
        if known == 0:
            return None
        layout = plan_batch(source.for_batch_plan, self.request, self.state, fresh=self.overwrite, known=known)
        return layout if layout.rows else None

    def write(self, source: RowSource, layout: Layout) -> None:
        """Open an entry and write the files into it."""
        self.entry = journal.open_entry(self.df.sparkSession, self.info.location)
        write_data(source, layout, self.request, self.entry.data)

    def settle(self) -> None:
        """Do nothing: no reader sees the files yet."""


def complete(
    spark: SparkSession, request: BuildRequest, info: TableInfo, entry: journal.JournalEntry, plan: journal.MovePlan
) -> None:
    """Carry out an entry that is ready, and refresh the session's view of the table.

    Raises:
        BuildError: the entry was not carried out in full, and the next run completes it; or the table has a new
            version.
    """
    try:
        journal.carry_out(spark, entry, plan)
    except Exception as exc:
        msg = (
            f"The batch for {request.table} is written and safe in its journal, but could not be moved into place: "
            f"{exc}. Readers may see a part of it; the next run of the model completes it first."
        )
        raise BuildError(msg) from exc
    finally:
        journal.leave_entry(entry)
        try:
            spark.catalog.refreshTable(request.table.sql)
        except Exception as exc:
            _LOG.warning("the session may still list the old files of %s: %s", request.table, in_one_line(exc))
    # the batch is committed: a run that failed because a catalog does not answer would be repeated and add it twice
    location = info.location
    try:
        location = location_of(spark, request.table)
    except Exception as exc:
        _LOG.warning(
            "the batch is in %s, but where that is served from could not be asked: %s", request.table, in_one_line(exc)
        )
    if location != info.location:
        msg = (
            f"Another run gave {request.table} a new version while this batch was moved into the one before: its rows "
            "are not in the table. Run the model again."
        )
        raise BuildError(msg)
    try:
        refresh_stats(spark, request.table, info.location)
    except Exception as exc:
        _LOG.warning("the stats relation of %s could not be registered anew: %s", request.table, in_one_line(exc))


def _stage_stats(
    spark: SparkSession,
    entry: journal.JournalEntry,
    df: DataFrame,
    columns: Sequence[ResolvedColumn],
    state: ParquetState,
) -> pa.Table:
    """Write the stats of the staged files under their final paths; return them in the form of ``gather``."""
    version = version_of(entry.version_path)
    written = write_stats(collect_path(spark, entry.data, df.schema, columns, version, entry.hidden_part), entry.path)
    return gather(written, [key for key in state.keys if key.column in columns])


def _plan(
    spark: SparkSession, entry: journal.JournalEntry, adds: Sequence[str], before: Mapping[str, int], *, overwrite: bool
) -> journal.MovePlan:
    touched = {path.rpartition("/")[0] for path in adds}
    removes = sorted(path for path in before if path.rpartition("/")[0] in touched) if overwrite else []
    old_stats = _stats_files(spark, entry.version_path)
    replaced = _merge_stats(spark, entry, set(removes)) if removes or len(old_stats) >= _MOST_STATS_FILES else False
    return journal.MovePlan(adds, removes, _stats_files(spark, entry.path), old_stats if replaced else [])


def _stats_files(spark: SparkSession, location: str) -> list[str]:
    return [name for name in list_files(spark, stats_path(location)) if name[0] not in "._"]


def _merge_stats(spark: SparkSession, entry: journal.JournalEntry, removes: set[str]) -> bool:
    """Merge the stats of all files that stay into the entry's stats; return False without readable old ones."""
    if _merge_here(spark, entry, removes):
        return True
    try:
        old = read_stats(spark, entry.version_path)
        new = read_stats(spark, entry.path).to(old.schema)
        paths = [row[0] for row in old.select("file_path").collect()]
    except Exception:  # files without stats are always read; the next build collects them
        return False
    gone = [path for path in paths if below_uri(entry.version_path, path) in removes]
    staying = old.where(~f.col("file_path").isin(gone)) if gone else old
    # cached, because the merged stats replace the entry's own
    merged = staying.unionByName(new).cache()
    try:
        merged.count()
        write_stats(merged, entry.path)
    finally:
        merged.unpersist()
    return True


def _merge_here(spark: SparkSession, entry: journal.JournalEntry, removes: set[str]) -> bool:
    """Do the same in this process; return False if Spark must do it."""
    old, new = (read_local(spark, stats_path(path)) for path in (entry.version_path, entry.path))
    if old is None or new is None or old.schema != new.schema:
        return False
    stays = [below_uri(entry.version_path, path) not in removes for path in old.rows["file_path"].to_pylist()]
    rows = pa.concat_tables([old.rows.filter(pa.array(stays, pa.bool_())), new.rows])
    delete_path(spark, stats_path(entry.path))
    write_stats(replace(new, rows=rows), entry.path)
    return True
