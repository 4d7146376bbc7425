"""File lists of the tables that models in ``is_incremental()`` read at compilation.

A batch's query runs later than it was compiled. If another run adds files to the table in between, the batch may repeat
their rows. The list of that time shows this, and the model's run fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import get_ident

from dbt.adapters.base import BaseRelation

Files = Mapping[str, int]
"""Size of each file of a table in bytes, by its path."""


class CompiledFiles:
    """File lists by thread and relation. dbt runs a model in one thread, and several models at a time."""

    def __init__(self) -> None:
        self._lists: dict[tuple[int, str], Files] = {}

    def keep_first(self, relation: BaseRelation, files: Files) -> None:
        """Store a relation's file list, unless this thread's model has one: hooks are compiled after the query."""
        self._lists.setdefault(_key(relation), files)

    def put(self, relation: BaseRelation, files: Files) -> None:
        """Store a relation's file list, in place of the earlier one."""
        self._lists[_key(relation)] = files

    def equal(self, relation: BaseRelation, files: Files | None) -> bool:
        """Return whether a list is the one stored for a relation; None stands for no list."""
        return self._lists.get(_key(relation)) == files

    def pop(self, relation: BaseRelation, default: Files | None) -> Files | None:
        """Remove and return a relation's file list; the default if its query was not compiled with one."""
        return self._lists.pop(_key(relation), default)

    def forget(self) -> None:
        """Remove all lists of this thread: they do not apply to its next model."""
        for key in list(self._lists):  # a copy, because other threads may add keys while they compile
            if key[0] == get_ident():
                self._lists.pop(key, None)


def _key(relation: BaseRelation) -> tuple[int, str]:
    return get_ident(), str(relation)
