"""Files that a plan lets a scan leave out."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt_zorder.pruning.files.column_bounds import FileRows


@dataclass
class PlanExclusion:
    """Files of a scan without a row that the joins or the limit above it keep.

    Attributes:
        files: excluded files by path.
        rules: what excludes files: each side with its tables, the compared column and the keys; the limit.
        pins: files that the choice depends on, which the statement must read.
        reason: why a limit excludes no file; empty if there is none above the scan.
    """

    files: dict[str, FileRows] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    pins: dict[str, str] = field(default_factory=dict)
    reason: str = ""
