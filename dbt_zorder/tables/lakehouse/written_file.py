"""Describe a file that this process wrote for a lakehouse table, and its partition."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq
from pyspark.sql import types as t

from dbt_zorder.layout.partitions import values_of

_SHARED_TEXT = (t.StringType, t.DateType, t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType)
"""Formats read values of these types from Spark's text; each format has its own text for other types."""


@dataclass(frozen=True)
class WrittenFile:
    """A data file.

    Attributes:
        path: its path as the table spells it.
        below: its path relative to the table's folder on this machine's disk.
        place: its full path on this machine's disk.
        size: its size in bytes.
        footer: its footer.
    """

    path: str
    below: str
    place: str
    size: int
    footer: pq.FileMetaData

    @property
    def partition(self) -> list[str | None]:
        """The values of the partition columns, as text."""
        return values_of(self.below.rpartition("/")[0])


def written_files(places: Sequence[str], root: str, path_of: Callable[[str], str]) -> list[WrittenFile]:
    """Return files by their paths on this machine's disk.

    Args:
        places: their paths.
        root: the table's folder on this disk.
        path_of: a function that converts a relative path to the table's spelling.
    """
    found = []
    for place in places:
        below = place[len(root) + 1 :]
        found.append(WrittenFile(path_of(below), below, place, os.path.getsize(place), pq.read_metadata(place)))
    return found


def why_not_partitioned(columns: t.StructType, wanted: Sequence[str], kept: Sequence[str]) -> str:
    """Return a short reason why only a format can partition a table; an empty text if this process can.

    Args:
        columns: the columns of the query.
        wanted: the names of the partition columns in the model.
        kept: the names of the partition columns in the table.
    """
    if [*wanted] != [*kept]:
        return "it is parted in another way"
    if {*wanted} - {*columns.names}:
        return "it is parted by a part of a struct"
    others = [name for name in wanted if not isinstance(columns[name].dataType, _SHARED_TEXT)]
    return f"it is parted by {others[0]}, which each format writes as a text of its own" if others else ""
