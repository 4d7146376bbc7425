"""What a z-ordered build tells dbt: the status line of ``dbt run``, and the figures in ``run_results.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dbt.adapters.contracts.connection import AdapterResponse

from dbt_zorder.figures import counted
from dbt_zorder.table.batch import IncrementReport
from dbt_zorder.table.build import BuildReport
from dbt_zorder.table.summary import Summary


@dataclass
class ZorderResponse(AdapterResponse):
    """dbt's response with the figures of a build.

    Attributes:
        files_written, bytes_written: of the new version's data.
        zorder_by: the clustering columns.
        version: name of the new version.
        seconds: by phase: query, sample, write, stats, swap.
        point_query_files: by clustering column, how many files an equality query reads on average.
        appended: whether rows were added to the version that was there; None for a table model. What was written is
            then the batch's alone, while ``point_query_files`` is the whole table's.
        files_replaced: files of the partitions that a batch replaced.
        rewritten: whether the table was built anew after the append, because that was due.
    """

    files_written: int | None = None
    bytes_written: int | None = None
    zorder_by: list[str] = field(default_factory=list)
    version: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    point_query_files: dict[str, float] = field(default_factory=dict)
    appended: bool | None = None
    files_replaced: int | None = None
    rewritten: bool | None = None

    @classmethod
    def of(cls, report: BuildReport) -> ZorderResponse:
        """Return the response for a finished build."""
        summary = report.summary
        return cls(
            _message=status_line(summary.files, summary.point_query_files),
            code="OK",
            rows_affected=summary.rows,
            files_written=summary.files,
            bytes_written=summary.bytes,
            zorder_by=list(summary.point_query_files),
            version=report.version,
            seconds=dict(report.seconds),
            point_query_files=dict(summary.point_query_files),
        )

    @classmethod
    def of_snapshot(cls, report: BuildReport | None) -> ZorderResponse:
        """Return the response for a snapshot that was brought up to date, None meaning that it was."""
        if report is None:
            return cls(_message="zorder: no changes, nothing written", code="OK", rows_affected=0, files_written=0)
        return cls.of(report)

    @classmethod
    def of_increment(cls, report: IncrementReport) -> ZorderResponse:
        """Return the response for a finished incremental run."""
        batch, built, table = report.appended, report.built, report.table
        if batch is None:
            assert built is not None
            now = cls.of(built)
            what = "built anew with the new rows" if built.summary.rows else "built anew"
            anew = now._message.replace("zorder: ", f"zorder: {what}, ", 1)
            return replace(now, _message=anew, appended=False, rewritten=False)
        touched = dict(table.point_query_files) if table else {}
        seconds = dict(batch.seconds)
        for phase, spent in built.seconds.items() if built else ():
            seconds[phase] = round(seconds.get(phase, 0.0) + spent, 3)
        return cls(
            _message=append_line(batch.rows, batch.files, batch.removed, table, rewritten=built is not None),
            code="OK",
            rows_affected=batch.rows if batch.rows is not None else -1,
            files_written=batch.files + (built.summary.files if built else 0),
            bytes_written=batch.bytes + (built.summary.bytes if built else 0),
            zorder_by=list(touched),
            version=report.version,
            seconds=seconds,
            point_query_files=touched,
            appended=True,
            files_replaced=batch.removed,
            rewritten=built is not None,
        )


def append_line(rows: int | None, files: int, replaced: int, table: Summary | None, *, rewritten: bool) -> str:
    """Return ``zorder: 500 rows appended in 1 file, now 17 files, point query on ...``."""
    if not files and not replaced:
        return "zorder: no new rows, nothing written"
    instead = f"in place of {counted(replaced, 'file')}" if replaced else "appended"
    written = counted(files, "file")
    what = f"merged, {written} {instead}" if rows is None else f"{counted(rows, 'row')} {instead} in {written}"
    parts = [f"zorder: {what}"]
    if rewritten:
        parts.append("table rewritten")
    if table is not None:
        parts.append("now " + status_line(table.files, table.point_query_files).removeprefix("zorder: "))
    return ", ".join(parts)


def status_line(files: int, touched: Mapping[str, float]) -> str:
    """Return ``zorder: 16 files, point query on customer_id reads 4 of 16, event_ts 4 of 16``."""
    head = f"zorder: {counted(files, 'file') if files else 'no rows'}"
    if files < 2:
        return head
    means = {column: f"{mean:.1f}".removesuffix(".0") + f" of {files}" for column, mean in touched.items()}
    parts = [f"{column}{'' if number else ' reads'} {mean}" for number, (column, mean) in enumerate(means.items())]
    return f"{head}, point query on " + ", ".join(parts)
