"""Manages folders of temporary rows inside Spark's own folder on the local disk."""

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
"""Bytes of a row group on disk, and in memory if it has no text. Each thread reads, places and shuffles one at a
time."""
OPTIONS: Mapping[str, str] = {
    "compression": "snappy",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "mapreduce.output.basename": "part",
    "parquet.block.size": str(CHUNK_BYTES),
    "parquet.enable.dictionary": "false",  # costs more time than the spared bytes save
    "parquet.page.write-checksum.enabled": "false",
    "parquet.column.statistics.enabled": "false",
}
"""Options of Spark's writer, for files that are read once."""
_NAME = "c"


@contextlib.contextmanager
def spool_errors(folder: str | None) -> Iterator[None]:
    """Turn an ``OSError`` of the block into a one-line error.

    Raises:
        BuildError: the disk refused the access.
    """
    try:
        yield
    except OSError as exc:
        place = folder or tempfile.gettempdir()
        msg = f"Rows on their way to the table could not be kept in {place}: {exc}. spark.local.dir says where that is."
        raise BuildError(msg) from exc


@contextlib.contextmanager
def new_spool_folder() -> Iterator[str]:
    """Make a folder, and delete it after the block.

    Raises:
        BuildError: the disk refused the access.
    """
    scratch = _spark_folder()
    with spool_errors(scratch):
        folder = tempfile.mkdtemp(prefix="zorder-", dir=scratch)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def uri_of(folder: str) -> str:
    """Return a folder's URI in Hadoop's form, which does not percent-encode."""
    path = Path(folder).as_posix()
    return f"file://{path}" if path.startswith("/") else f"file:///{path}"


def files_in(folder: str) -> list[str]:
    """Return the files that Spark wrote, in the order of its tasks; none if they cannot be seen from this process."""
    path = Path(folder)
    return sorted(map(str, path.glob("*.parquet"))) if (path / "_SUCCESS").exists() else []


def column_name(place: int) -> str:
    """Return the name of a column in the files: Parquet's options, or case folding, could misread the query's name."""
    return f"{_NAME}{place}"


def place_of(name: str) -> int:
    """Return the number of a column by its name in the files."""
    return int(name.removeprefix(_NAME))


def _spark_folder() -> str | None:
    """Return Spark's own folder for temporary files, which it deletes with the session; None if it has none."""
    folder = SparkFiles.getRootDirectory()
    return folder if os.path.isabs(folder) and os.path.isdir(folder) else None
