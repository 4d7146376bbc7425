"""Decide by the bounds of files which of them may hold one of the first rows in an order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_zorder.pruning.files.column_bounds import FileBounds, FileRows


@dataclass(frozen=True)
class Worst:
    """A key that is at least as far back in an order as that of every row asked for.

    Attributes:
        value: the key; None if it is NULL.
    """

    value: Any


@dataclass(frozen=True)
class Ranking:
    """An order of rows by one key.

    Attributes:
        falls: whether the largest values come first.
        nulls_first: whether rows with NULL come before all others; else they come after them.
    """

    falls: bool
    nulls_first: bool

    def worst(self, files: Sequence[FileBounds], rows: int) -> Worst | None:
        """Return a key that at least a number of rows reach; None if the bounds do not show so many.

        The values of a file are all at least as good as its worse bound, whether that occurs in it or not.

        Args:
            files: files whose rows all count.
            rows: number of rows that are asked for.
        """
        left = rows
        if self.nulls_first:
            left -= sum(one.nulls for one in files)
            if left <= 0:
                return Worst(None)
        for one in sorted(_with_values(files), key=self._worse_bound, reverse=self.falls):
            left -= one.rows - one.nulls
            if left <= 0:
                return Worst(self._worse_bound(one))
        return None

    def without(self, files: Iterable[FileBounds], worst: Worst) -> dict[str, FileRows]:
        """Return by path the files whose keys are all behind another key; a row with that very key may be asked for."""
        return {one.path: one for one in files if not self._reaches(one, worst)}

    def best_first(self, files: Iterable[FileBounds]) -> list[FileBounds]:
        """Return files by their best key, the best first."""
        files = list(files)
        found = sorted(_with_values(files), key=self._better_bound, reverse=self.falls)
        found += [one for one in files if one.low is None]
        return sorted(found, key=lambda one: not one.nulls) if self.nulls_first else found

    def _reaches(self, file: FileBounds, worst: Worst) -> bool:
        if self.nulls_first and file.nulls > 0:
            return True
        if file.low is None or worst.value is None:
            return False
        return bool(file.high >= worst.value if self.falls else file.low <= worst.value)

    def _better_bound(self, file: FileBounds) -> Any:
        return file.high if self.falls else file.low

    def _worse_bound(self, file: FileBounds) -> Any:
        return file.low if self.falls else file.high


def enough(files: Iterable[FileRows], rows: int) -> list[FileRows] | None:
    """Return the fewest files that have a number of rows together; None if all have fewer."""
    found: list[FileRows] = []
    for one in sorted(files, key=lambda one: one.rows, reverse=True):
        if rows <= 0:
            break
        found.append(one)
        rows -= one.rows
    return found if rows <= 0 else None


def _with_values(files: Iterable[FileBounds]) -> list[FileBounds]:
    return [one for one in files if one.low is not None]
