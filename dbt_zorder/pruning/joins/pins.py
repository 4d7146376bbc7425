"""Pin the files of what a statement is joined with, so that it runs on the rows whose keys were read.

Spark lists the files of a table that is not partitioned when it analyses a statement, and reads no others. So the keys
of a table are those that a statement joins if Spark has listed the same files for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dbt_zorder.spark.jvm import items

_CONSTANT = frozenset({"LocalRelation", "OneRowRelation", "Range"})
"""Leaves of a plan whose rows are in the plan."""

_ACCESS_TIME = re.compile(r"access_time=\d+; ")
_FILES_AT_MOST = 2_000

Pins = Mapping[str, str]
"""Names, sizes and times of the files of each relation, by its folders."""


def pin_leaves(plan: Any) -> tuple[Pins, int] | None:
    """Return the pins of a plan's tables and their size in bytes; None if the files of one are not yet listed."""
    pins: dict[str, str] = {}
    size = 0
    for leaf in _leaves(plan):
        if leaf.nodeName() in _CONSTANT:
            continue
        index = _index(leaf)
        if index is None or len(index.inputFiles()) > _FILES_AT_MOST:
            return None
        pins[_folders(index)] = _listing(index)
        size += int(index.sizeInBytes())
    return pins, size


def are_same(pins: Pins, analyzed: Any) -> bool:
    """Return whether an analyzed statement reads exactly the pinned files of each pinned relation."""
    if not pins:
        return True
    found: set[str] = set()
    for leaf in _leaves(analyzed):
        index = _index(leaf)
        if index is not None and (folders := _folders(index)) in pins:
            if _listing(index) != pins[folders]:
                return False
            found.add(folders)
    return found == pins.keys()


def _leaves(plan: Any) -> Iterator[Any]:
    """Yield the leaves of a plan and of all subqueries in it."""
    for part in (plan, *items(plan.subqueriesAll())):
        yield from items(part.collectLeaves())


def _index(leaf: Any) -> Any | None:
    """Return the list of files of a relation; None if Spark makes it later, or has none."""
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    index = relation.location()
    return index if index.getClass().getSimpleName() == "InMemoryFileIndex" else None


def _folders(index: Any) -> str:
    return str(index.rootPaths().toString())


def _listing(index: Any) -> str:
    return _ACCESS_TIME.sub("", str(index.allFiles().toString()))
