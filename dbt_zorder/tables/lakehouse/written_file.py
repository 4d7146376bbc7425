"""A file that this process wrote for a table of a format, and what its path tells of the partition that it is of."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq
from pyspark.sql import types as t

from dbt_zorder.layout.partitions import values_of

_TOLD = (t.StringType, t.DateType, t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType)
"""Types whose values formats read from the text that Spark makes of them; of others each has a text of its own."""


@dataclass(frozen=True)
class WrittenFile:
    """A file.

    Attributes:
        path: as the table spells it.
        below: its path below the table's folder, on this machine's disk.
        place: all of that.
        size: bytes.
        footer: of it.
    """

    path: str
    below: str
    place: str
    size: int
    footer: pq.FileMetaData

    @property
    def partition(self) -> list[str | None]:
        """The values of the columns that part the table, as text."""
        return values_of(self.below.rpartition("/")[0])


def written_files(places: Sequence[str], root: str, path_of: Callable[[str], str]) -> list[WrittenFile]:
    """Return files by their places on this machine's disk.

    Args:
        places: of them.
        root: the table's folder on this disk.
        path_of: tells how the table spells a path below its folder.
    """
    found = []
    for place in places:
        below = place[len(root) + 1 :]
        found.append(WrittenFile(path_of(below), below, place, os.path.getsize(place), pq.read_metadata(place)))
    return found


def why_not_parted(columns: t.StructType, wanted: Sequence[str], kept: Sequence[str]) -> str:
    """Return in a few words why only a format can part a table; an empty text if this process can.

    Args:
        columns: of the query.
        wanted: names of the columns that it is to be parted by.
        kept: of those that the table is.
    """
    if [*wanted] != [*kept]:
        return "it is parted in another way"
    if {*wanted} - {*columns.names}:
        return "it is parted by a part of a struct"
    others = [name for name in wanted if not isinstance(columns[name].dataType, _TOLD)]
    return f"it is parted by {others[0]}, of which formats have texts of their own" if others else ""
