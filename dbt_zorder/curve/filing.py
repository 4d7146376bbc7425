"""Cuts the sample of a table into files; of a skewed table a good one of some trees is taken, or the best.

A value that holds several files' worth of rows cannot be cut, so the cuts around it leave one column behind the others.
Which one, and how far, depends on where the first cuts fall. Trees that favour one column a little fall elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt_zorder.curve.file_cuts import FileCell, Splitter
from dbt_zorder.curve.ranks import Mass, Ranks

_FAVOURS = (1.1, 1.2, 1.35)
"""So many times as much as the others may one column count in a further tree."""
_GOOD = {2: 1.05, 3: 1.1}
"""Of the least of uniform columns, by their number: a tree that touches no more than that is not bettered.

A tree of three columns takes twice as long to grow as one of two; with four, other trees were hardly ever better.
"""
_FEWEST, _MOST = 17, 250
"""Files of one tree for which others are grown: fewer are planned to their end, more no better by another tree."""


@dataclass(frozen=True)
class Filing:
    """The levels of a forest that choose the file.

    Attributes:
        cuts: one array a level, as of ``Forest``.
        cells: what is cut no further, each with the number of levels above it.
        left: those of them that have several files yet, for want of levels.
    """

    cuts: list[npt.NDArray[np.int32]]
    cells: list[tuple[int, FileCell]]
    left: list[FileCell]

    @property
    def files_left(self) -> int:
        """Files that no cut parts, for want of levels."""
        return sum(cell.files for cell in self.left)

    def touched(self, ranks: Ranks, mass: Sequence[Mass]) -> npt.NDArray[np.float64]:
        """Return by column the files that an equality query for a value of the sample's rows touches in the mean."""
        found = np.zeros(len(mass))
        for _, cell in self.cells:
            for column, of_column in enumerate(mass):
                values = ranks[cell.rows, column]
                values = values[values > 0]
                if len(values):
                    found[column] += cell.files * float(of_column[values.max()] - of_column[values.min() - 1])
        return found


def file_rows(
    ranks: Ranks,
    mass: Sequence[Mass],
    roots: Sequence[FileCell],
    allowed: int,
    scale: npt.NDArray[np.float64],
    *,
    best: bool = True,
) -> Filing:
    """Cut trees into files.

    Args:
        ranks: the sampled rows.
        mass: of each column.
        roots: one a tree.
        allowed: levels at most.
        scale: how much each column's filters count, 1 at most.
        best: where columns are uneven, cut anew by trees that favour one of them, until one is good, and take the best.
    """
    found = _file(ranks, mass, roots, allowed, scale)
    one_tree = len(roots) == 1 and _FEWEST <= roots[0].files <= _MOST
    if not best or not one_tree or len(mass) not in _GOOD:
        return found
    least = roots[0].files ** (1 - 1 / len(mass)) * float(scale.prod()) ** (1 / len(mass))
    enough = _GOOD[len(mass)] * least
    worst = _worst(found, ranks, mass, scale)
    for favoured in _favouring(scale):
        if worst <= enough:
            break
        other = _file(ranks, mass, roots, allowed, favoured)
        of_other = _worst(other, ranks, mass, scale)
        if of_other < worst and other.files_left <= found.files_left:
            found, worst = other, of_other
    return found


def _favouring(scale: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
    for favour in _FAVOURS:
        for column in range(len(scale)):
            favoured = scale.copy()
            favoured[column] *= favour
            yield favoured / favoured.max()


def _worst(filing: Filing, ranks: Ranks, mass: Sequence[Mass], scale: npt.NDArray[np.float64]) -> float:
    return float((filing.touched(ranks, mass) * scale).max())


def _file(
    ranks: Ranks, mass: Sequence[Mass], roots: Sequence[FileCell], allowed: int, scale: npt.NDArray[np.float64]
) -> Filing:
    splitter = Splitter(ranks, mass, scale)
    cuts: list[npt.NDArray[np.int32]] = []
    reached = list(roots)
    done: list[tuple[int, FileCell]] = []  # of a deep forest far more than those that are cut further
    while True:
        done += [(len(cuts), cell) for cell in reached if not cell.cuttable]
        left = [cell for cell in reached if cell.cuttable]
        if not left or len(cuts) == allowed:
            break
        level, reached = splitter.cut_level(left, len(roots) << len(cuts), allowed - len(cuts))
        if not level.any():
            break
        cuts.append(level)
    return Filing(cuts, done + [(len(cuts), cell) for cell in left], left)
