"""What a z-ordered build tells dbt: the status line of ``dbt run``, and the figures in ``run_results.json``."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt.adapters.contracts.connection import AdapterResponse

from dbt_zorder.tables.report import Outcome

_UNKNOWN = -1
"""How dbt writes a number of rows that nobody knows."""


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
    def of(cls, outcome: Outcome | None) -> ZorderResponse:
        """Return the response for what was done to a table; None is a snapshot that was up to date."""
        if outcome is None:
            return cls(_message="zorder: no changes, nothing written", code="OK", rows_affected=0, files_written=0)
        return cls(
            _message=f"zorder: {outcome}",
            code="OK",
            rows_affected=_UNKNOWN if outcome.rows is None else outcome.rows,
            files_written=outcome.files,
            bytes_written=outcome.bytes,
            zorder_by=list(outcome.point_query_files),
            version=outcome.version,
            seconds=dict(outcome.seconds),
            point_query_files=dict(outcome.point_query_files),
            appended=outcome.appended,
            files_replaced=outcome.replaced,
            rewritten=outcome.rewritten,
        )
