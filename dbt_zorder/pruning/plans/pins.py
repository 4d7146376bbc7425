"""Pin the files of what a statement is joined with, so that it runs on the rows whose keys were read.

Spark lists the files of a table that is not partitioned when it analyses a statement, and reads no others. So the keys
of a table are those that a statement joins if Spark has listed the same files for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.files import list_versions
from dbt_zorder.spark.jvm import class_named, items, jvm_of

_CONSTANT = frozenset({"LocalRelation", "OneRowRelation", "Range"})
"""Leaves of a plan whose rows are in the plan."""

_COMMANDS = ("Command", "AsSelect")
"""Ends of the names of commands, which Spark makes leaves once it has analysed their query."""

_ACCESS_TIME = re.compile(r"access_time=\d+; ")
_LENGTH = re.compile(r"; isDirectory=false; length=(\d+); replication=")
_FOLDER = re.compile(r"\w+\((.*)\)", re.DOTALL)
_FILE = re.compile(r"path=[^;]*/([^;/]+); isDirectory=false; length=(\d+); ")
_FILES_AT_MOST = 2_000
"""Maximum number of files of a side of a join, whose list is compared."""

WHOLE_TABLE_FILES_AT_MOST = 20_000
"""Maximum number of files of a table whose limit or aggregates are decided by its list of files."""

Pins = Mapping[str, str]
"""Names, sizes and times of the files of each relation, by its folders."""


Versions = tuple[tuple[str, frozenset[tuple[str, int, int]]], ...]
"""Name, bytes and modification time of the files in each folder, as they are on the storage."""


def pin_leaves(plan: Any, files_at_most: int = _FILES_AT_MOST) -> tuple[Pins, int] | None:
    """Return the pins of a plan's tables and their size in bytes.

    Return None if the files of a table are not yet listed, or are more than ``files_at_most``.
    """
    pins: dict[str, str] = {}
    size = 0
    for leaf in leaves(plan):
        if leaf.nodeName() in _CONSTANT:
            continue
        index = file_index(leaf)
        if index is None or len(index.inputFiles()) > files_at_most:
            return None
        pins[_folders(index)] = _listing(index)
        size += int(index.sizeInBytes())
    return pins, size


def listed_files(spark: SparkSession, relation: Any) -> dict[str, int] | None:
    """Return the files that Spark has listed of a relation, as size in bytes by path; None if it has not.

    Paths are those of ``_metadata.file_path``.
    """
    index = file_index(relation)
    if index is None:
        return None
    # a call for each file would need seconds; an encoded path contains no blank
    runtime = class_named(jvm_of(spark), "scala.runtime.ScalaRunTime")
    paths = str(runtime.stringOf(index.inputFiles())).removeprefix("Array(").removesuffix(")").split(", ")
    sizes = _LENGTH.findall(str(index.allFiles().toString()))
    paths = [path.replace("file:///", "file:/", 1) for path in paths if path]
    return dict(zip(paths, map(int, sizes), strict=True)) if len(paths) == len(sizes) == len(set(paths)) else None


def are_same(pins: Pins, analyzed: Any, *, all_there: bool = True) -> bool:
    """Return whether an analyzed statement reads exactly the pinned files of each pinned relation.

    Args:
        pins: pins of relations.
        analyzed: analyzed plan of the statement.
        all_there: whether it must read each of them.
    """
    if not pins:
        return True
    found: set[str] = set()
    for leaf in leaves(analyzed):
        index = file_index(leaf)
        if index is not None and (folders := _folders(index)) in pins:
            if _listing(index) != pins[folders]:
                return False
            found.add(folders)
    return found == pins.keys() or not all_there


def read_versions(spark: SparkSession, pins: Pins) -> Versions | None:
    """Return the files of pinned relations as they are on the storage now; None if they are not those listed.

    Spark may have listed them long ago, and reads what is there now.
    """
    found: list[tuple[str, frozenset[tuple[str, int, int]]]] = []
    for folders, listing in sorted(pins.items()):
        folder = _FOLDER.fullmatch(folders)
        there = list_versions(spark, folder[1]) if folder is not None else frozenset()
        listed = {(name, int(size)) for name, size in _FILE.findall(listing)}
        if not listed or not listed <= {(name, size) for name, size, _ in there}:
            return None
        found.append((folders, there))
    return tuple(found)


def leaves(plan: Any) -> Iterator[Any]:
    """Yield the leaves of a plan, of all subqueries in it, and of the query whose rows a command keeps."""
    for part in (plan, *items(plan.subqueriesAll())):
        for leaf in items(part.collectLeaves()):
            if str(leaf.getClass().getSimpleName()).endswith(_COMMANDS):
                for inner in items(leaf.innerChildren()):
                    yield from leaves(inner)
            else:
                yield leaf


def file_index(leaf: Any) -> Any | None:
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
