"""Folders of rows on their way to a table, in Spark's own folder on this machine's disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark import SparkFiles

from dbt_zorder.errors import BuildError

CHUNK_BYTES = 16 << 20
"""Of a row group as it lies on disk, and in memory where it has no text: so much is read, placed and shared out at a
time in each thread."""
OPTIONS: Mapping[str, str] = {
    "compression": "snappy",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "mapreduce.output.basename": "part",
    "parquet.block.size": str(CHUNK_BYTES),
    "parquet.enable.dictionary": "false",  # takes longer to write than the bytes that it spares
    "parquet.page.write-checksum.enabled": "false",
    "parquet.column.statistics.enabled": "false",
}
"""Of Spark's writer, for files that are read once."""
_NAME = "c"


@contextlib.contextmanager
def spool_errors(folder: str | None) -> Iterator[None]:
    """Let a block that reads and writes what lies in Spark's folder for that fail with a sentence.

    Raises:
        BuildError: the disk refused.
    """
    try:
        yield
    except OSError as exc:
        place = folder or tempfile.gettempdir()
        msg = f"Rows on their way to the table could not be kept in {place}: {exc}. spark.local.dir says where that is."
        raise BuildError(msg) from exc


@contextlib.contextmanager
def new_spool_folder() -> Iterator[str]:
    """Give a folder for as long as the block runs.

    Raises:
        BuildError: the disk refused.
    """
    scratch = _spark_folder()
    with spool_errors(scratch):
        folder = tempfile.mkdtemp(prefix="zorder-", dir=scratch)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def uri_of(folder: str) -> str:
    """Return a folder as Hadoop takes it: it knows no percent signs for other characters."""
    path = Path(folder).as_posix()
    return f"file://{path}" if path.startswith("/") else f"file:///{path}"


def files_in(folder: str) -> list[str]:
    """Return the files that Spark has written, in the order of its tasks; none if they cannot be seen from here."""
    path = Path(folder)
    return sorted(map(str, path.glob("*.parquet"))) if (path / "_SUCCESS").exists() else []


def column_name(place: int) -> str:
    """Return what a column is called there: a name may hold what Parquet's options, or another case, take for more."""
    return f"{_NAME}{place}"


def place_of(name: str) -> int:
    """Return the number of a column by its name there."""
    return int(name.removeprefix(_NAME))


def _spark_folder() -> str | None:
    """Return Spark's own folder for what it writes on the way, which goes with the session; None if it has none."""
    folder = SparkFiles.getRootDirectory()
    return folder if os.path.isabs(folder) and os.path.isdir(folder) else None
