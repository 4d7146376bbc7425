"""Files in a folder of ours that no build wrote: they stay when the folder is deleted, and so does what they lie in."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from pyspark.sql import SparkSession

from dbt_zorder.spark.files import delete_path, files_below

_LOG = logging.getLogger("dbt_zorder")

_DATA = re.compile(r"part-.*|\d{6}_\d+.*|_SUCCESS.*|_(?:common_)?metadata|_(?:committed|started)_.*", re.DOTALL)
"""Files that Spark, Hive or a build of ours writes into the folder of a table, or of a partition."""

_FOLDERS = re.compile(r"\.?_zorder_.*|_temporary|\.(?:spark|hive)-staging.*", re.DOTALL)
"""Entries that only a build, ours or Spark's, makes: nobody looks into them."""

_OF_FORMATS = {"delta": ("_delta_log", "_change_data", "deletion_vector_"), "iceberg": ("data", "metadata")}
"""Beginnings of the names of what a table of another format has beside its data files."""


def sorted_out(spark: SparkSession, path: str, provider: str = "") -> tuple[list[str], list[str]]:
    """Return the files below a folder that a build wrote, and those that none did, by their paths from there.

    One listing finds them. What our own hidden folders hold counts as a build's.

    Args:
        spark: the session.
        path: of a version, or of a managed table that a version has replaced.
        provider: format of that table.
    """
    also = _OF_FORMATS.get(provider, ())
    ours: list[str] = []
    foreign: list[str] = []
    for name in sorted(files_below(spark, path)):
        (ours if _is_ours(name) or (also and name.startswith(also)) else foreign).append(name)
    return ours, foreign


def delete_around(
    spark: SparkSession, path: str, ours: Sequence[str], foreign: Sequence[str], last: Sequence[str] = ()
) -> None:
    """Delete a folder but for the files that no build wrote and the folders that they lie in; a warning names them.

    Args:
        spark: the session.
        path: of the folder.
        ours, foreign: as ``sorted_out`` returns them.
        last: names of entries that go after all others, in this order; see ``delete_path``.

    Raises:
        OSError: something else is still there.
    """
    stay = {above for name in foreign for above in _with_parents(name)}
    # of each file that goes, the outermost folder that has nothing foreign in it
    going = dict.fromkeys(next(above for above in _with_parents(name) if above not in stay) for name in ours)
    for name in [*(name for name in going if name not in last), *(name for name in last if name in going)]:
        delete_path(spark, f"{path}/{name}")
    _LOG.warning(
        "%s is deleted but for %d of its files, which no build wrote, %s first: move them, and delete what is left.",
        path,
        len(foreign),
        foreign[0],
    )


def _is_ours(name: str) -> bool:
    *folders, file = name.split("/")
    for folder in folders:
        if _FOLDERS.fullmatch(folder):
            return True
        if "=" not in folder:
            return False
    if file.startswith(".") and file.endswith(".crc"):
        file = file[1:-4]
    return bool(_DATA.fullmatch(file) or _FOLDERS.fullmatch(file))


def _with_parents(name: str) -> list[str]:
    """Return a path and those of the folders it lies in, the outermost first."""
    parts = name.split("/")
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]
