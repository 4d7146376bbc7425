"""Groups shuffled rows into output files, and splits large files into row groups that fit in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from dbt_zorder.engine.local.row_groups import RowGroups
from dbt_zorder.engine.row_bytes import DataSize


@dataclass(frozen=True)
class OutputFile:
    """An output file, and the parts of its rows.

    Attributes:
        number: number of the file.
        groups: part numbers of each row group, in file order; several if they are written one after the other.
        sizes: size of each row group.
    """

    number: int
    groups: Sequence[Sequence[int]]
    sizes: Sequence[DataSize]

    @property
    def nbytes(self) -> int:
        """Return the maximum bytes of the file's rows in memory at a time."""
        return max(size.nbytes for size in self.sizes)


def files_of(sizes: Mapping[int, DataSize], parts: RowGroups, group_bytes: int) -> list[OutputFile]:
    """Return the files that have rows, in order.

    Args:
        sizes: size of each part, in order.
        parts: split of files into parts.
        group_bytes: target bytes of a row group, if parts are smaller.
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
    """Return consecutive parts in row groups that are as even as possible."""
    total = sum(sizes[part].nbytes for part in parts)
    size = total / max(1, -(-total // group_bytes))
    groups: list[list[int]] = [[]]
    done = 0.0
    for part in parts:
        # if the middle of the part lies beyond the end of the group
        if groups[-1] and done + sizes[part].nbytes / 2 > size * len(groups):
            groups.append([])
        groups[-1].append(part)
        done += sizes[part].nbytes
    return groups
