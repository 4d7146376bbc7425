"""Write and read stats in this process with Arrow: a Spark job takes ten times as long."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.spark.arrow import frame_of
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.spark.type_json import columns_from_json
from dbt_zorder.stats.footer_schema import SCHEMA_KEY

VERSION_KEY = "org.apache.spark.version"
"""A footer key of Spark. With it and without the legacy keys, readers do not move dates and times."""

ENDING = ".stats"
"""The ending of stats files. They are Parquet, but other engines read every ``*.parquet`` in a table's folder."""

ARROW = "parquet-cpp-arrow"
"""The prefix of Arrow's name as a writer."""

MOST_BYTES = 64 << 20
"""The most bytes of stats that are read as a whole: uncompressed, but encoded by Parquet."""

MOST_VALUES = 1_000_000
"""The most values of stats that are read as a whole; Parquet may store a repeated value only once."""


@dataclass(frozen=True)
class LocalStats:
    """The rows of a stats table.

    Attributes:
        spark: the session that listed the files.
        rows: the rows, in the shape of ``stats_schema``.
        schema: the Spark schema of the rows.
    """

    spark: SparkSession
    rows: pa.Table
    schema: StructType

    def frame(self) -> DataFrame:
        """Return the rows as a local relation of the session."""
        if not self.rows.num_rows:
            return self.spark.createDataFrame([], self.schema)
        return frame_of(self.spark, self.rows, self.schema)

    def moved(self, part: str) -> LocalStats:
        """Return the rows for moved files: a slash replaces this part of the paths."""
        paths = pc.replace_substring(self.rows["file_path"], part, "/")
        return replace(self, rows=self.rows.set_column(0, "file_path", paths))


def footer_entries(spark: SparkSession, schema: StructType) -> dict[str, str]:
    """Return the footer entries of Spark's own writer: its schema and its version."""
    return {SCHEMA_KEY: schema.json(), VERSION_KEY: spark.version}


def write_local(stats: LocalStats, folder: str) -> LocalStats | None:
    """Write stats as one file into a new folder, and return the stored rows.

    Return None, and leave no folder, if the folder exists or is not on this machine.

    Args:
        stats: the stats, of types that Arrow and Spark store alike, such as those with exact footers.
        folder: the folder as Spark would name it.
    """
    place = on_disk(stats.spark, folder)
    if place is None:
        return None
    file = f"{place.path}/part-{uuid.uuid4()}{ENDING}"
    try:
        place.make_folder(place.path)
    except OSError:
        return None
    try:
        rows = stats.rows.sort_by("file_path").replace_schema_metadata(footer_entries(stats.spark, stats.schema))
        pq.write_table(rows, file)
        place.set_permissions(file)
        return replace(stats, rows=pq.ParquetFile(file).read())
    except (OSError, pa.ArrowException):
        with contextlib.suppress(OSError):
            shutil.rmtree(place.path)
        return None


def read_local(spark: SparkSession, folder: str) -> LocalStats | None:
    """Return the stats that ``write_local`` wrote to a folder, in one file or several.

    Return None where Spark must read them: another writer wrote a file, or the files are remote or large. Spark reads
    only the selected columns of large files.
    """
    place = on_disk(spark, folder)
    if place is None:
        return None
    try:
        names = sorted(name for name in os.listdir(place.path) if name[0] not in "._")
        files = [pq.ParquetFile(f"{place.path}/{name}") for name in names]
        schemas = {(file.metadata.metadata or {}).get(SCHEMA_KEY.encode(), b"") for file in files}
        if len(schemas) != 1 or not all(str(file.metadata.created_by).startswith(ARROW) for file in files):
            return None
        if _are_large([file.metadata for file in files]):
            return None
        rows = pa.concat_tables([file.read() for file in files]).replace_schema_metadata(None)
        return LocalStats(spark, rows, columns_from_json(schemas.pop(), folder))
    except Exception:  # Spark reads unreadable files, or raises its own error
        return None


def _are_large(footers: Sequence[pq.FileMetaData]) -> bool:
    groups = [footer.row_group(number) for footer in footers for number in range(footer.num_row_groups)]
    values = sum(footer.num_rows * footer.num_columns for footer in footers)
    return bool(values > MOST_VALUES or sum(group.total_byte_size for group in groups) > MOST_BYTES)
