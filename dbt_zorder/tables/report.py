"""Report what a build, a batch or a rewrite did: in figures, and in the line that ``dbt run`` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbt_zorder.humanize import counted, size_text
from dbt_zorder.progress import add_seconds
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.rewrite_policy import Overlap, TableState


@dataclass(frozen=True)
class BuildReport:
    """The result of a build.

    Attributes:
        version: name of the version that is served now.
        summary: files, rows and bytes, and the number of files that a point query reads.
        seconds: duration of each phase: query, sample, write, stats, swap. A query that is not cached also runs in
            later phases.
        collected: names of the old versions that were deleted.
        written: figures of the files that the build wrote; None if it wrote all of them.
        splits: whether the files of the version before were split by more buckets, each by itself.
        buckets: number of buckets as text, where it differs from that of the table before or was chosen by the build.
    """

    version: str
    summary: Summary
    seconds: Mapping[str, float]
    collected: Sequence[str]
    written: Summary | None = None
    splits: bool = False
    buckets: str = ""

    @property
    def change(self) -> str:
        """Return what was done to a table after its batch."""
        return ", ".join(filter(None, ["files split" if self.splits else "table rewritten", self.buckets]))


@dataclass(frozen=True)
class AppendReport:
    """The result of a batch that was added to a version.

    Attributes:
        rows, files, bytes: size of the batch; a MERGE does not report its number of rows.
        removed: number of files that the batch replaced.
        seconds: duration of each phase: query, sample, write, stats, swap.
        state: state of the version after the batch; None if its stats cannot be read, or the format keeps its own.
    """

    rows: int | None
    files: int
    bytes: int
    removed: int
    seconds: Mapping[str, float]
    state: TableState | None = None


@dataclass(frozen=True)
class MergeReport:
    """What a merge did to the rows and the files of its table.

    Attributes:
        inserted: number of rows that were added, also in place of deleted ones.
        updated: number of matched rows that got a new value.
        unchanged: number of matched rows whose values are the same as before.
        deleted: number of rows that ``delete+insert`` removed.
        rewritten: number of files that were replaced, because a row in them changed.
        shared: number of files that stayed.
    """

    inserted: int
    updated: int
    unchanged: int
    deleted: int
    rewritten: int = 0
    shared: int = 0

    @property
    def changed(self) -> int:
        """Number of rows that the merge changed."""
        return self.inserted + self.updated + self.deleted

    def __str__(self) -> str:
        counts = {"inserted": self.inserted, "updated": self.updated, "unchanged": self.unchanged}
        counts["deleted"] = self.deleted
        return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "no rows"


@dataclass(frozen=True)
class IncrementReport:
    """The result of an incremental run.

    Attributes:
        appended: result of the batch; None if the table was rebuilt together with it.
        built: result of the build, if the run built the table: with the batch, or after it because a rewrite was due or
            the model asks for more buckets.
        table: figures of the table now; None if it has no stats, or if no rows came and the format was not asked.
        version: version that is served now.
        merged: what a merge did; None if the batch was only added.
    """

    appended: AppendReport | None
    built: BuildReport | None
    table: Summary | None
    version: str
    merged: MergeReport | None = None

    @classmethod
    def of_build(cls, report: BuildReport) -> IncrementReport:
        """Return the result of a run that built the table together with its batch."""
        return cls(None, report, report.summary, report.version)


@dataclass(frozen=True)
class OptimizeReport:
    """The effect of a rewrite of the whole table, done or only planned.

    Attributes:
        table: name of the table.
        files, bytes: size of the table before; the rewrite reads and writes all of it.
        files_after: number of files that the rewrite makes, or is expected to make.
        touched: number of files that an equality query reads now, by clustering column.
        touched_after: the same number after the rewrite.
        version: the new version; empty for a dry run.
        buckets: number of buckets by which the files are split; 0 if the rows are clustered anew.
        left: folder of another writer's files that the table had before; they stay there.
        is_due: whether there is anything to do.
    """

    table: str
    files: int
    bytes: int
    files_after: int
    touched: Mapping[str, float]
    touched_after: Mapping[str, float]
    version: str = ""
    buckets: int = 0
    left: str = ""
    is_due: bool = True

    @classmethod
    def of(cls, table: TableName, found: Overlap) -> OptimizeReport:
        """Return the expected effect of a rewrite."""
        now = found.now
        return cls(str(table), now.files, now.bytes, found.files_after, now.point_query_files, found.touched_after)

    @classmethod
    def of_split(cls, table: TableName, found: Overlap, buckets: int, times: int) -> OptimizeReport:
        """Return the expected effect of a split of each file into ``times`` files, for so many buckets."""
        now = found.now
        touched = {column: mean * times for column, mean in now.point_query_files.items()}
        return replace(cls.of(table, found), files_after=now.files * times, touched_after=touched, buckets=buckets)

    def done(self, after: BuildReport) -> OptimizeReport:
        """Return the actual effect of the rewrite."""
        figures = after.summary
        return replace(self, files_after=figures.files, touched_after=figures.point_query_files, version=after.version)

    def __str__(self) -> str:
        if not self.is_due:
            return f"{self.table}: nothing to do, as a rewrite of its {counted(self.files, 'file')} would gain little."
        was = "was" if self.files == 1 else "were"
        verb = "split" if self.buckets else "rewritten"
        done = f"{was} {verb} into" if self.version else f"would be {verb} into about"
        aim = f", for {self.buckets} buckets" if self.buckets else ""
        size = size_text(self.bytes)
        head = f"{self.table}: {counted(self.files, 'file')} of {size} {done} {self.files_after:,}{aim}."
        parts = [
            f"  a point query on {column} {'read' if self.version else 'reads'} {self._touched(column)} "
            f"files, {'and reads' if self.version else 'and would read about'} {after:,.1f}"
            for column, after in self.touched_after.items()
        ]
        hint = [] if self.version else ["Nothing was changed; to do it, add dry_run: false."]
        if self.left:
            hint = [f"Its former files stay in {self.left}. Delete them once no query reads them."]
        return "\n".join([head, *parts, *hint])

    def _touched(self, column: str) -> str:
        """Return the number of files read now; all of them if the column has no stats yet."""
        return f"{self.touched.get(column, float(self.files)):,.1f}"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, with a readable ``text``."""
        figures = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**figures, "touched": dict(self.touched), "touched_after": dict(self.touched_after), "text": str(self)}


@dataclass(frozen=True)
class Verified:
    """The result of a verification.

    Attributes:
        table: name of the table.
        files: number of data files that Spark lists.
        rows: number of rows in the table, counted.
        findings: one sentence for each fault; empty if there is none.
    """

    table: TableName
    files: int
    rows: int
    findings: Sequence[str]

    def __str__(self) -> str:
        head = f"{self.table}: {counted(self.files, 'file')}, {counted(self.rows, 'row')}, "
        if not self.findings:
            return head + "listing, stats and footers agree"
        return "\n  ".join([f"{head}{counted(len(self.findings), 'finding')}", *self.findings])


@dataclass(frozen=True)
class Outcome:
    """The result of a run on one table; ``str()`` returns it as one line.

    Attributes:
        line: for example ``16 files, point query on a reads 4 of 16, b 4 of 16``.
        rows: number of rows written; None if the format does not report it.
        files, bytes: size of the data written.
        point_query_files: mean number of files of the whole table that an equality query reads, by clustering column.
        version: version that is served now: the name of its folder, or the format's own identifier.
        seconds: duration by phase: query, sample, write, stats, swap. A query that is not cached also runs in later
            phases.
        appended: whether rows were added to the existing ones; None if the table was built.
        replaced: number of files in the partitions that a batch replaced; None if the table was built.
        rewritten: whether the table was written once more after a batch, because a rewrite was due or the model asks
            for more buckets; None if it was built.
        merged: what a merge did to rows and files; None if rows were only added.
    """

    line: str
    rows: int | None
    files: int
    bytes: int
    point_query_files: Mapping[str, float]
    version: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    appended: bool | None = None
    replaced: int | None = None
    rewritten: bool | None = None
    merged: MergeReport | None = None

    def __str__(self) -> str:
        return self.line

    @classmethod
    def of_build(cls, report: BuildReport) -> Outcome:
        """Return the outcome of a build."""
        summary = report.summary
        return cls(
            line=", ".join(filter(None, [table_line(summary.files, summary.point_query_files), report.buckets])),
            rows=summary.rows,
            files=summary.files,
            bytes=summary.bytes,
            point_query_files=dict(summary.point_query_files),
            version=report.version,
            seconds=dict(report.seconds),
        )

    @classmethod
    def of_increment(cls, report: IncrementReport) -> Outcome:
        """Return the outcome of a batch, including the rewrite that it made due."""
        batch, built, table, merged = report.appended, report.built, report.table, report.merged
        if batch is None:
            assert built is not None
            now = cls.of_build(built)
            if merged is not None:
                line = f"{merged}, all rows written anew, {now.line}"
                return replace(now, line=line, rows=merged.changed, appended=False, rewritten=False, merged=merged)
            what = "built anew with the new rows" if built.summary.rows else "built anew"
            return replace(now, line=f"{what}, {now.line}", appended=False, rewritten=False)
        change = built.change if built is not None else ""
        if merged is None:
            line = append_line(batch.rows, batch.files, batch.removed, table, change)
        else:
            line = merge_line(merged, batch.files, table, change)
        return cls(
            line=line,
            rows=batch.rows if merged is None else merged.changed,
            files=batch.files + (built.summary.files if built else 0),
            bytes=batch.bytes + (built.summary.bytes if built else 0),
            point_query_files=dict(table.point_query_files) if table else {},
            version=report.version,
            seconds=add_seconds(batch.seconds, built.seconds if built else {}),
            appended=True,
            replaced=batch.removed,
            rewritten=built is not None,
            merged=merged,
        )


def buckets_text(before: int, now: int, *, chosen: bool) -> str:
    """Return ``8 buckets in place of 4``, or ``4 buckets`` if the build chose that number; else an empty text."""
    if before and now and before != now:
        return f"{now} buckets in place of {before}"
    return f"{now} buckets" if chosen else ""


def merge_line(merged: MergeReport, files: int, table: Summary | None, change: str = "") -> str:
    """Return ``3 inserted, 1 updated, 2 of 16 files replaced by 3, now 17 files, point query on ...``."""
    if not merged.changed:
        return f"{merged}, nothing written"
    before = merged.rewritten + merged.shared
    parts = [str(merged), f"{merged.rewritten} of {counted(before, 'file')} replaced by {files}"]
    if change:
        parts.append(change)
    if table is not None:
        parts.append("now " + table_line(table.files, table.point_query_files))
    return ", ".join(parts)


def append_line(rows: int | None, files: int, replaced: int, table: Summary | None, change: str = "") -> str:
    """Return ``500 rows appended in 1 file, now 17 files, point query on ...``."""
    if not files and not replaced:
        return ", ".join(filter(None, ["no new rows", change or "nothing written"]))
    instead = f"in place of {counted(replaced, 'file')}" if replaced else "appended"
    written = counted(files, "file")
    parts = [f"merged, {written} {instead}" if rows is None else f"{counted(rows, 'row')} {instead} in {written}"]
    if change:
        parts.append(change)
    if table is not None:
        parts.append("now " + table_line(table.files, table.point_query_files))
    return ", ".join(parts)


def table_line(files: int, touched: Mapping[str, float]) -> str:
    """Return ``16 files, point query on customer_id reads 4 of 16, event_ts 4 of 16``."""
    head = counted(files, "file") if files else "no rows"
    if files < 2:
        return head
    means = {column: f"{mean:.1f}".removesuffix(".0") + f" of {files}" for column, mean in touched.items()}
    parts = [f"{column}{'' if number else ' reads'} {mean}" for number, (column, mean) in enumerate(means.items())]
    return f"{head}, point query on " + ", ".join(parts)
