"""What a finished build or batch did, in figures and one line: what ``dbt run`` shows and ``save_table`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dbt_zorder.humanize import counted
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.parquet.batch import IncrementReport
from dbt_zorder.tables.parquet.build import BuildReport


@dataclass(frozen=True)
class Outcome:
    """What was done to a table; ``str()`` of it is one line.

    Attributes:
        line: ``16 files, point query on a reads 4 of 16, b 4 of 16``.
        rows: that were written; None where a format does not say.
        files, bytes: that were written, of data.
        point_query_files: by clustering column, how many files an equality query reads on average, of the whole table.
        version: of the table that is served now: the name of its folder, or the format's own.
        seconds: by phase: query, sample, write, stats, swap; a query that is not kept runs in later ones, too.
        appended: whether rows were added to what was there; None where the table was built.
        replaced: files of the partitions that a batch replaced; None where the table was built.
        rewritten: whether the table was built anew after a batch, because that was due; None where it was built.
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

    def __str__(self) -> str:
        return self.line

    @classmethod
    def of_build(cls, report: BuildReport) -> Outcome:
        """Return what a build did."""
        summary = report.summary
        return cls(
            line=table_line(summary.files, summary.point_query_files),
            rows=summary.rows,
            files=summary.files,
            bytes=summary.bytes,
            point_query_files=dict(summary.point_query_files),
            version=report.version,
            seconds=dict(report.seconds),
        )

    @classmethod
    def of_increment(cls, report: IncrementReport) -> Outcome:
        """Return what a batch did, together with the rewrite that it made due."""
        batch, built, table = report.appended, report.built, report.table
        if batch is None:
            assert built is not None
            now = cls.of_build(built)
            what = "built anew with the new rows" if built.summary.rows else "built anew"
            return replace(now, line=f"{what}, {now.line}", appended=False, rewritten=False)
        seconds = dict(batch.seconds)
        for phase, spent in built.seconds.items() if built else ():
            seconds[phase] = round(seconds.get(phase, 0.0) + spent, 3)
        return cls(
            line=append_line(batch.rows, batch.files, batch.removed, table, rewritten=built is not None),
            rows=batch.rows,
            files=batch.files + (built.summary.files if built else 0),
            bytes=batch.bytes + (built.summary.bytes if built else 0),
            point_query_files=dict(table.point_query_files) if table else {},
            version=report.version,
            seconds=seconds,
            appended=True,
            replaced=batch.removed,
            rewritten=built is not None,
        )


def append_line(rows: int | None, files: int, replaced: int, table: Summary | None, *, rewritten: bool) -> str:
    """Return ``500 rows appended in 1 file, now 17 files, point query on ...``."""
    if not files and not replaced:
        return "no new rows, nothing written"
    instead = f"in place of {counted(replaced, 'file')}" if replaced else "appended"
    written = counted(files, "file")
    parts = [f"merged, {written} {instead}" if rows is None else f"{counted(rows, 'row')} {instead} in {written}"]
    if rewritten:
        parts.append("table rewritten")
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
