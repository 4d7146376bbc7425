"""Let a new version share the files that stay with the version before: as hard links on this machine's disk.

Nothing changes a data file in place, so two versions can share one. A deletion removes a version's names, and the bytes
go with the last of them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.errors import BuildError
from dbt_zorder.spark.files import folder_bytes
from dbt_zorder.spark.local_disk import LocalPath, on_disk
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.listing import below_uri
from dbt_zorder.stats.store import load_stats
from dbt_zorder.tables.parquet.state import ParquetState
from dbt_zorder.tables.version import version_of

_NOT_LINKED = {errno.EPERM, errno.EACCES, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Errors of file systems that refuse a link: the file is copied."""


@dataclass(frozen=True)
class SharedFiles:
    """The files of a version that the next one shares.

    Attributes:
        spark: the session.
        state: state of the version, with its saved layout and its stats.
        files: bytes of each file by its path below the version's folder.
    """

    spark: SparkSession
    state: ParquetState
    files: Mapping[str, int]

    def link(self, path: str) -> None:
        """Give each file a name in the folder of another version on the same disk.

        Raises:
            BuildError: a file is gone, or has another size: another run changes the version.
        """
        old, new = (_place(self.spark, folder) for folder in (self.state.location, path))
        folders = {""}
        for name, size in self.files.items():
            folder = name.rpartition("/")[0]
            if folder not in folders:
                new.make_folders(f"{new.path}/{folder}")
                folders.add(folder)
            try:
                _link(f"{old.path}/{name}", f"{new.path}/{name}")
                is_whole = os.stat(f"{new.path}/{name}").st_size == size
            except FileNotFoundError:
                is_whole = False
            if not is_whole:
                msg = f"{name} of {self.state.location} is gone or has changed, so another run is at work there."
                raise BuildError(msg)

    def with_stats(self, stats: DataFrame | LocalStats, path: str) -> DataFrame | LocalStats:
        """Add the stats of the shared files to those of the files that were written to a version's folder."""
        old, version = load_stats(self.spark, self.state.location), version_of(path)
        names = f"/{version_of(self.state.location)}/", f"/{version}/"
        if isinstance(old, LocalStats) and isinstance(stats, LocalStats) and old.schema == stats.schema:
            paths = old.rows["file_path"]
            stays = pa.array(
                [below_uri(self.state.location, one) in self.files for one in paths.to_pylist()], pa.bool_()
            )
            moved = old.rows.set_column(0, "file_path", pc.replace_substring(paths, *names, max_replacements=1))
            moved = moved.set_column(
                moved.column_names.index("version"), "version", pa.array([version] * moved.num_rows, pa.string())
            )
            return replace(stats, rows=pa.concat_tables([moved.filter(stays).cast(stats.rows.schema), stats.rows]))
        old, stats = (one.frame() if isinstance(one, LocalStats) else one for one in (old, stats))
        listed = [row[0] for row in old.select("file_path").collect()]
        stays_there = [one for one in listed if below_uri(self.state.location, one) in self.files]
        moved_rows = (
            old.where(f.col("file_path").isin(stays_there))
            .withColumn("file_path", f.replace("file_path", f.lit(names[0]), f.lit(names[1])))
            .withColumn("version", f.lit(version))
        )
        return moved_rows.unionByName(stats.to(old.schema))

    def without(self, file_stats: pa.Table, path: str) -> pa.Table:
        """Return the rows of the files that were written to a version's folder, of a table from ``gather``."""
        names = file_stats.column("file_path").to_pylist()
        return file_stats.filter(pa.array([below_uri(path, name) not in self.files for name in names], pa.bool_()))


def can_share(spark: SparkSession, path: str) -> bool:
    """Return whether versions beside ``path`` can share files: on this machine's own disk."""
    place = on_disk(spark, path)
    return place is not None and os.path.isdir(place.path)


def bytes_of_each(spark: SparkSession, folders: Sequence[str]) -> list[int]:
    """Return the bytes of all files below each folder; a file that several of them share counts in the first alone."""
    seen: set[tuple[int, int]] = set()
    found = []
    for folder in folders:
        place = on_disk(spark, folder)
        if place is None or not os.path.isdir(place.path):
            found.append(folder_bytes(spark, folder))
            continue
        files = (os.stat(f"{above}/{name}") for above, _, names in os.walk(place.path) for name in names)
        own = {(one.st_dev, one.st_ino): one.st_size for one in files}
        found.append(sum(size for key, size in own.items() if key not in seen))
        seen |= own.keys()
    return found


def _link(source: str, target: str) -> None:
    _link_or_copy(source, target)
    folder, name = os.path.split(source)
    checksum = f".{name}.crc"
    with contextlib.suppress(FileNotFoundError):  # only Spark's own writer leaves one
        _link_or_copy(f"{folder}/{checksum}", str(Path(target).with_name(checksum)))


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as exc:
        if exc.errno not in _NOT_LINKED:
            raise
        shutil.copy2(source, target)


def _place(spark: SparkSession, path: str) -> LocalPath:
    place = on_disk(spark, path)
    assert place is not None
    return place
