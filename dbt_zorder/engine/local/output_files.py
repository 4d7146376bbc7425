"""Which files shared-out rows make, and what of each is in memory at a time: all of it, or of a large one a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from dbt_zorder.engine.local.row_groups import RowGroups
from dbt_zorder.engine.row_bytes import DataSize


@dataclass(frozen=True)
class OutputFile:
    """A file, by the parts that its rows are shared out by.

    Attributes:
        number: of the file.
        groups: of its parts, in their order; more than one if they are written one after the other.
        sizes: of each group.
    """

    number: int
    groups: Sequence[Sequence[int]]
    sizes: Sequence[DataSize]

    @property
    def nbytes(self) -> int:
        """What of it is in memory at a time, at most."""
        return max(size.nbytes for size in self.sizes)


def files_of(sizes: Mapping[int, DataSize], parts: RowGroups, group_bytes: int) -> list[OutputFile]:
    """Return the files that have rows, in order.

    Args:
        sizes: of each part, in order.
        parts: how files are parted.
        group_bytes: of a group, where parts are smaller.
    """
    files = []
    for number, of_file in groupby(sizes, parts.file):
        groups = _groups(list(of_file), sizes, group_bytes)
        together = [
            DataSize(sum(sizes[part].rows for part in group), sum(sizes[part].nbytes for part in group))
            for group in groups
        ]
        files.append(OutputFile(number, groups, together))
    return files


def _groups(parts: Sequence[int], sizes: Mapping[int, DataSize], group_bytes: int) -> list[list[int]]:
    """Return parts that follow each other in groups as even as they can be."""
    total = sum(sizes[part].nbytes for part in parts)
    size = total / max(1, -(-total // group_bytes))
    groups: list[list[int]] = [[]]
    done = 0.0
    for part in parts:
        # where its middle lies beyond the end of the group
        if groups[-1] and done + sizes[part].nbytes / 2 > size * len(groups):
            groups.append([])
        groups[-1].append(part)
        done += sizes[part].nbytes
    return groups
