"""Stats in this process's memory, which Arrow writes and reads: a job of Spark's takes ten times as long."""

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
"""With it, and without the keys of another calendar, readers take dates and times for what they say."""

ENDING = ".stats"
"""Of files of stats, which are Parquet: other engines take each ``*.parquet`` below a table's folder for its rows."""

ARROW = "parquet-cpp-arrow"
"""How the name of Arrow's own writer begins."""

MOST_BYTES = 64 << 20
"""Of stats, the most that is read as a whole: as Parquet holds them before it compresses them."""

MOST_VALUES = 1_000_000
"""The same in values, of which Parquet holds each but once."""


@dataclass(frozen=True)
class LocalStats:
    """Rows of a stats table.

    Attributes:
        spark: the session that their files were listed by.
        rows: in the shape of ``stats_schema``.
        schema: what Spark calls it.
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
        """Return what the rows will say when their files have moved: a slash stands for this part of the paths."""
        paths = pc.replace_substring(self.rows["file_path"], part, "/")
        return replace(self, rows=self.rows.set_column(0, "file_path", paths))


def told_by_spark(spark: SparkSession, schema: StructType) -> dict[str, str]:
    """Return what Spark's own writer tells of itself and of the columns in the footer of a file."""
    return {SCHEMA_KEY: schema.json(), VERSION_KEY: spark.version}


def write_local(stats: LocalStats, folder: str) -> LocalStats | None:
    """Write stats as one file into a folder that is not there yet, and return them as they lie there.

    None, and no folder, where this process cannot do it: it is there already, or lies elsewhere.

    Args:
        stats: of types that Arrow and Spark store alike, as those that footers tell exactly are.
        folder: as Spark would name it.
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
        rows = stats.rows.sort_by("file_path").replace_schema_metadata(told_by_spark(stats.spark, stats.schema))
        pq.write_table(rows, file)
        place.set_permissions(file)
        return replace(stats, rows=pq.ParquetFile(file).read())
    except (OSError, pa.ArrowException):
        with contextlib.suppress(OSError):
            shutil.rmtree(place.path)
        return None


def read_local(spark: SparkSession, folder: str) -> LocalStats | None:
    """Return the stats that ``write_local`` wrote to a folder, in one file or several.

    None where Spark is to read them: another writer wrote one of them, they lie elsewhere, or they are large, of which
    Spark reads the columns that are asked for.
    """
    place = on_disk(spark, folder)
    if place is None:
        return None
    try:
        names = sorted(name for name in os.listdir(place.path) if name[0] not in "._")
        files = [pq.ParquetFile(f"{place.path}/{name}") for name in names]
        told = {(file.metadata.metadata or {}).get(SCHEMA_KEY.encode(), b"") for file in files}
        if len(told) != 1 or not all(str(file.metadata.created_by).startswith(ARROW) for file in files):
            return None
        if _are_large([file.metadata for file in files]):
            return None
        rows = pa.concat_tables([file.read() for file in files]).replace_schema_metadata(None)
        return LocalStats(spark, rows, columns_from_json(told.pop(), folder))
    except Exception:  # whatever is wrong with them
        return None


def _are_large(footers: Sequence[pq.FileMetaData]) -> bool:
    groups = [footer.row_group(number) for footer in footers for number in range(footer.num_row_groups)]
    values = sum(footer.num_rows * footer.num_columns for footer in footers)
    return bool(values > MOST_VALUES or sum(group.total_byte_size for group in groups) > MOST_BYTES)
