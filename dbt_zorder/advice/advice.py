"""The advice on a table: which columns to cluster by, or that it should stay as it is, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dbt_zorder.advice.candidates import best_of, predict_candidates
from dbt_zorder.advice.simulation import (
    Candidate,
    Prediction,
    Read,
    SampledTable,
    files_of_trees,
    predict,
    trees_of,
)
from dbt_zorder.humanize import counted, printed, size_text

FEWEST_FILES = 4
"""A table of fewer files is read too fast for a layout to matter."""

LEAST_GAIN = 0.2
"""Least share of the bytes read now that a layout must save."""

_SHOWN = 6
_NAMED = 5


@dataclass(frozen=True)
class Advice:
    """Advice on one table.

    Attributes:
        table: name of the table.
        config: config of the model that the advice is for, ready to paste; empty if the advice is "don't".
        reason: why.
        present: what the workload reads as the table is now; None without a workload.
        predictions: what it reads under the candidates, best first.
        scans: number of scans in the workload.
        filtered: number of scans whose filters can leave out files.
        unread: queries that could not be read, and why.
    """

    table: str
    config: str
    reason: str
    present: Prediction | None = None
    predictions: Sequence[Prediction] = ()
    scans: int = 0
    filtered: int = 0
    unread: Sequence[str] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as plain values, ready for JSON."""
        shown = [*([self.present] if self.present else []), *self.predictions]
        return {
            **{name: value for name, value in asdict(self).items() if name not in ("present", "predictions")},
            "unread": list(self.unread),
            "candidates": [
                {
                    "config": one.candidate.config,
                    "files": one.files,
                    "files_read": one.files_read,
                    "share": one.share,
                }
                for one in shown
            ],
        }

    def __rich__(self) -> Group:
        head = f"{self.table}: {self.config or self.reason}"
        lines: list[Any] = [Text(head, no_wrap=True, overflow="ignore"), *([Text(self.reason)] if self.config else [])]
        if self.present is not None:
            lines.append(self._candidates(self.present))
            filters = f"{self.filtered} of them with a filter that can leave out files"
            lines.append(
                Text(f"The queries scan the table {counted(self.scans, 'time')}, {filters}. Files are the mean of")
            )
            lines.append(Text("those scans. Bytes are a share of what all scans read if no file is left out."))
        for query in self.unread[:_NAMED]:
            lines.append(Text(f"Not read: {query}"))
        if len(self.unread) > _NAMED:
            lines.append(Text(f"Not read either: {len(self.unread) - _NAMED} other queries"))
        return Group(*lines)

    def __str__(self) -> str:
        return printed(self, width=120)

    def _candidates(self, present: Prediction) -> Table:
        table = Table("layout (weight)", "files read", "of", "bytes read")
        chosen = [one for one in self.predictions if one.candidate.config == self.config]
        others = [one for one in self.predictions if one.candidate.config != self.config]
        rows = [*chosen, *others[: _SHOWN - len(chosen)], present]
        for one in sorted(rows, key=lambda row: (row.share, row is present)):
            table.add_row(Text(str(one.candidate)), f"{one.files_read:,.1f}", f"{one.files:,}", f"{one.share:.1%}")
        return table


def advise(
    name: str, table: SampledTable, reads: Sequence[Read], *, by: Sequence[str] = (), unread: Sequence[str] = ()
) -> Advice:
    """Advise on the layout of a table.

    Args:
        name: name of the table.
        table: a sample of its rows.
        reads: scans of the table.
        by: columns that the table is clustered by now.
        unread: queries that could not be read, and why.
    """
    asked = [read for read in reads if read.test is not None]
    if not asked:
        return Advice(name, "", _no_workload(reads), scans=len(reads), unread=unread)
    if not table.rows:
        return Advice(
            name, "", "Don't: the table is empty, so nothing can be predicted.", scans=len(reads), unread=unread
        )
    size = table.rows * table.row_bytes
    files = sum(files_of_trees(table, trees_of(table, table.partition_by)))
    present = predict(table, Candidate(), reads)
    if files < FEWEST_FILES:
        reason = (
            f"Don't: the table has {size_text(round(size))}, which is {counted(files, 'file')} of the target "
            f"size. Below {FEWEST_FILES} files, there is little to leave out. A smaller zorder_file_size makes more."
        )
        return Advice(name, "", reason, present, (), len(reads), len(asked), unread)
    predictions = predict_candidates(table, reads)
    config, reason = _choose(predictions, present, by)
    return Advice(name, config, reason, present, predictions, len(reads), len(asked), unread)


def _no_workload(reads: Sequence[Read]) -> str:
    if not reads:
        return "Don't: no query was found that reads the table. Give the ones you have in mind by 'queries'."
    return (
        f"Don't: no filter can leave out files, in {counted(len(reads), 'scan')} of the table. All of them read every "
        "file under every layout."
    )


def _choose(predictions: Sequence[Prediction], present: Prediction, by: Sequence[str]) -> tuple[str, str]:
    """Return the config to paste, empty for none, and the reason."""
    if not predictions:
        return "", "Don't: all filters are on the partition columns, which leave out files already."
    best = best_of(predictions)
    gain = 1 - best.share / present.share if present.share else 0.0
    read = f"{best.share:.0%} of the bytes, where {present.share:.0%} are read now"
    if gain < LEAST_GAIN:
        what = f"The clustering by {', '.join(by)} is good" if by else "Don't: no layout helps enough"
        return "", f"{what}. The best candidate, {best.candidate.config}, reads {read}."
    reason = f"The queries then read {read}."
    if not best.candidate.columns:
        reason += " The files are good as they are: statistics alone leave out most of them."
        if by:
            return f"zorder_stats_columns={list(best.candidate.stats)!r}", reason
    elif best.candidate.partition_by:
        reason += " All filters are equalities on a column of few values, and every reader skips other partitions."
    elif len(best.candidate.by) == 1:
        reason += " One column is enough: ORDER BY it does the same for readers, if files are cut by ranges of it."
    return best.candidate.config, reason
