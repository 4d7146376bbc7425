"""Response of a z-ordered build to dbt: the status line of ``dbt run``, and the figures in ``run_results.json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from dbt.adapters.contracts.connection import AdapterResponse

from dbt_zorder.tables.report import Outcome

_UNKNOWN = -1
"""dbt's value for an unknown number of rows."""


@dataclass
class ZorderResponse(AdapterResponse):
    """dbt's response with the figures of a build.

    Attributes:
        files_written: number of data files in the new version, or of the batch after an append.
        bytes_written: total size of those files in bytes.
        zorder_by: the clustering columns.
        version: name of the new version.
        seconds: seconds by phase: query, sample, write, stats, swap.
        point_query_files: mean number of files that an equality query reads, by clustering column. It covers the whole
            table, also after an append.
        appended: whether rows were added to the existing version; None for a table model.
        files_replaced: number of files in the partitions that a batch replaced.
        rewritten: whether the table was written once more after the append, because a rewrite was due or the model asks
            for more buckets.
        merged: numbers of rows that a merge inserted, updated, deleted and left unchanged, and of files that it
            rewrote and shared with the version before.
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
    merged: dict[str, int] | None = None

    @classmethod
    def of(cls, outcome: Outcome | None) -> ZorderResponse:
        """Return the response for the outcome of a build. An outcome of None means an unchanged snapshot."""
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
            merged=None if outcome.merged is None else asdict(outcome.merged),
        )
