"""What a z-ordered build tells dbt: the status line of ``dbt run``, and the figures in ``run_results.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt.adapters.contracts.connection import AdapterResponse

from dbt_zorder.table.build import BuildReport


@dataclass
class ZorderResponse(AdapterResponse):
    """dbt's response with the figures of a build.

    Attributes:
        files_written, bytes_written: of the new version's data.
        zorder_by: the clustering columns.
        version: name of the new version.
        seconds: by phase: sample, write, stats, swap.
        point_query_files: by clustering column, how many files an equality query reads on average.
    """

    files_written: int | None = None
    bytes_written: int | None = None
    zorder_by: list[str] = field(default_factory=list)
    version: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    point_query_files: dict[str, float] = field(default_factory=dict)

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


def status_line(files: int, touched: Mapping[str, float]) -> str:
    """Return ``zorder: 16 files, point query on customer_id reads 4 of 16, event_ts 4 of 16``."""
    counted = f"zorder: {files} file{'' if files == 1 else 's'}"
    if files < 2:
        return counted
    means = {column: f"{mean:.1f}".removesuffix(".0") + f" of {files}" for column, mean in touched.items()}
    parts = [f"{column}{'' if number else ' reads'} {mean}" for number, (column, mean) in enumerate(means.items())]
    return f"{counted}, point query on " + ", ".join(parts)
