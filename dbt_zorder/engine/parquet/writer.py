"""Rows that are held here, written as Parquet files like those of Spark's own writer."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.engine.parquet.column_options import Traits, bloom_filters
from dbt_zorder.engine.parquet.encodings import VERSION_OPTION, VERSIONS, Encodings
from dbt_zorder.engine.parquet.field_ids import numbered
from dbt_zorder.engine.rows import Rows, stretches
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.file_count import arrow_codec, codec_of
from dbt_zorder.layout.known_keys import Fetched
from dbt_zorder.layout.page_order import PAGE_ROWS_OPTION, page_rows_of, parse_page_rows
from dbt_zorder.spark.columns import inner_types
from dbt_zorder.spark.conf import COMMITTERS
from dbt_zorder.spark.jvm import items
from dbt_zorder.spark.local_disk import LocalPath, on_disk
from dbt_zorder.stats.arrow_store import told_by_spark
from dbt_zorder.stats.portability import is_legacy

CODECS: Mapping[str, tuple[int | None, str]] = {
    "none": (None, ""),
    "uncompressed": (None, ""),
    "snappy": (None, ".snappy"),
    "gzip": (6, ".gz"),
    "zstd": (3, ".zstd"),
    "lz4_raw": (None, ".lz4raw"),
}
"""By Spark's name of a codec the level that Spark's writer has, and what stands in the names of files."""

_AS_SPARK: Mapping[str, str] = {
    "spark.sql.parquet.writeLegacyFormat": "false",
    **COMMITTERS,
}
"""Settings of a session, and at which value files are written as here."""

_MICROS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
_CALENDAR = "spark.sql.parquet.datetimeRebaseModeInWrite"
GROUP_BYTES = 128 << 20
"""Of a row group: ``parquet.block.size``."""
_OLD_DAY, _OLD_MICROS = -141_427, -2_208_988_800_000_000
"""1582-10-15 and the beginning of 1900: before, Spark asks which calendar dates and times are meant by."""


@dataclass(frozen=True)
class ArrowWriter:
    """How a table's files are written here.

    Attributes:
        codec: a key of ``CODECS``.
        page_rows: rows of a page at most.
        told: what files say of themselves besides.
        threads: that write at a time.
        blooms: columns with a bloom filter.
        numbers: of columns and of what is in them, by their path, where a format goes by those.
        whole: files have the columns, too, that part the table, and an empty text is another partition than NULL.
        encodings: of values that have no dictionary.
        job: what tells these files from those of other writes.
        begun: the paths of files that it has begun to write.
    """

    codec: str
    page_rows: int
    told: Mapping[str, str]
    threads: int
    blooms: Collection[str] = ()
    numbers: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    whole: bool = False
    encodings: Encodings = field(default_factory=Encodings)
    job: str = field(default_factory=lambda: str(uuid.uuid4()))
    begun: list[str] = field(default_factory=list, compare=False)

    def write(self, fetched: Fetched, files: Iterable[Rows], place: LocalPath) -> None:
        """Write each list of rows to a file of its own, those of each partition in its folder.

        Of no rows at all there is one file, unless the table is parted.

        Raises:
            BuildError: the disk refused.
        """
        parts: list[tuple[str, int, Rows | None]] = []
        for rows in files:
            for folder, some in by_folder(fetched.folders, fetched.folder_of[rows], rows):
                parts.append((folder, len(parts), some))
        if not parts and fetched.folders:
            parts.append(("", 0, None))

        def write(part: tuple[str, int, Rows | None]) -> None:
            folder, number, rows = part
            some = fetched.rows[:0] if rows is None else fetched.rows.take(pa.array(rows))
            self.write_file(place, folder, number, some)

        with writing_to(place):
            self.make_folders(place, {folder for folder, _, _ in parts})
            with ThreadPoolExecutor(self.threads) as pool:
                for _ in pool.map(write, parts):
                    pass

    def make_folders(self, place: LocalPath, folders: Iterable[str]) -> None:
        """Make the folders of some partitions."""
        for folder in {"", *folders}:
            place.make_folders(f"{place.path}/{folder}")

    def write_file(self, place: LocalPath, folder: str, number: int, rows: pa.Table) -> None:
        """Write a file of some rows; arguments as of ``new_file``."""
        traits = self.traits_of(rows)
        with self.new_file(place, folder, number, rows.schema, traits) as file:
            file.write_table(rows, row_group_size=traits.group_rows)

    @contextlib.contextmanager
    def new_file(
        self, place: LocalPath, folder: str, number: int, schema: pa.Schema, traits: Traits
    ) -> Iterator[pq.ParquetWriter]:
        """Make a file under the name that Spark would give it, for a block to write.

        Args:
            place: of the table's files.
            folder: of the rows' partition, empty if there is none.
            number: that no other file in the folder has.
            schema: of its rows.
            traits: of its columns.
        """
        _, ending = CODECS[self.codec]
        # Spark's own two spellings
        name = f"{folder}/part-{number:05d}-{self.job}.c000" if folder else f"part-{number:05d}-{self.job}-c000"
        file = f"{place.path}/{name}{ending}.parquet"
        self.begun.append(file)
        with self._writer_to(file, schema, traits) as writer:
            yield writer
        place.set_permissions(file)

    def place_of(self, spark: SparkSession, path: str) -> LocalPath:
        """Return where a folder lies that is written to now.

        Raises:
            BuildError: it lies elsewhere by now.
        """
        place = on_disk(spark, path)
        # whoever made the folder did so by Spark's client, which may see another disk, or its name in other bytes
        if place is None or not os.path.isdir(os.path.dirname(place.path)):
            msg = f"The folder {path} cannot be written to from here any more."
            raise BuildError(msg)
        return place

    def files(self) -> list[str]:
        """Return the paths of what it has written by now, in their order."""
        return sorted(filter(os.path.exists, self.begun))

    def size_of(self, rows: pa.Table) -> int:
        """Return how large a file of some rows is."""
        sink, traits = io.BytesIO(), self.traits_of(rows)
        with self._writer_to(sink, rows.schema, traits) as writer:
            writer.write_table(rows, row_group_size=traits.group_rows)
        return sink.tell()

    def traits_of(self, rows: pa.Table) -> Traits:
        """Return what the columns of a file are like that has these rows in row groups of one size."""
        groups = max(1, -(-rows.nbytes // GROUP_BYTES))
        return Traits.of(rows, self.page_rows, max(1, -(-rows.num_rows // groups)))

    @contextlib.contextmanager
    def _writer_to(self, file: Any, schema: pa.Schema, traits: Traits) -> Iterator[pq.ParquetWriter]:
        level, _ = CODECS[self.codec]
        with pq.ParquetWriter(
            file,
            numbered(schema, self.numbers),
            compression=arrow_codec(self.codec),
            compression_level=level,
            use_dictionary=traits.repeating,
            write_statistics=traits.bounded,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
            max_rows_per_page=self.page_rows,
            write_batch_size=traits.batch_rows,
            **bloom_filters(schema, self.blooms, traits.group_rows),
            **self.encodings.told(schema, traits.repeating),
        ) as writer:
            writer.add_key_value_metadata(self.told)
            yield writer


@contextlib.contextmanager
def writing_to(place: LocalPath) -> Iterator[None]:
    """Let a block that writes files fail with a sentence.

    Raises:
        BuildError: the disk refused.
    """
    try:
        yield
    except (OSError, ValueError) as exc:  # Python's for the name of a folder with NUL in it
        msg = f"The files at {place.path} could not be written: {exc}"
        raise BuildError(msg) from exc


def by_folder(folders: Sequence[str], of_row: npt.NDArray[np.int32], rows: Rows) -> list[tuple[str, Rows]]:
    """Return the rows of a file by the folders of their partitions, mostly one.

    Args:
        folders: of all partitions.
        of_row: shape (rows,): the number of each row's folder.
        rows: in their order.
    """
    if len(folders) == 1:
        return [(folders[0], rows)]
    order = np.argsort(of_row, kind="stable")
    return [(folders[folder], rows[order[here]]) for folder, here in stretches(of_row[order]).items()]


def arrow_writer(
    spark: SparkSession, schema: t.StructType, options: Mapping[str, str], path: str, blooms: Collection[str] = ()
) -> ArrowWriter | str:
    """Return what writes files here as Spark would write them; or in a few words why only Spark can.

    Args:
        spark: the session.
        schema: of the rows without their partition columns, of types that ``width_of`` knows.
        options: of Spark's Parquet writer.
        path: of a folder that is there, the one that is written to or one beside it.
        blooms: names of columns with a bloom filter.
    """
    missing = lacks(blooms)
    if missing:
        return missing
    given = {name.lower(): value for name, value in options.items()}
    codec = codec_of(spark, given.pop("compression", None))
    if codec not in CODECS:
        return f"the codec is {codec}"
    for name, wanted in _wanted_settings(schema).items():
        if spark.conf.get(name) != wanted:
            return f"{name} is {spark.conf.get(name)}"
    if is_legacy(spark, (_CALENDAR,)):
        return f"{_CALENDAR} is LEGACY"
    if re.search(r'"parquet\.[^"]*":', schema.json()):
        return "columns have numbers for Parquet"
    place = on_disk(spark, path)
    if place is None or not os.path.isdir(place.path):
        return "it lies elsewhere than on this machine"
    told = {**_parquet_settings(spark), **given}
    page_rows, version = told.pop(PAGE_ROWS_OPTION, ""), told.pop(VERSION_OPTION, "v1")
    if told:
        return f"of Spark's writer alone is {min(told)}"
    if version not in VERSIONS:
        return f"{VERSION_OPTION} is {version}"
    nullable = t.StructType([t.StructField(one.name, one.dataType, True, one.metadata) for one in schema.fields])
    rows, encodings = page_rows_of(spark, parse_page_rows(page_rows)), Encodings(VERSIONS[version])
    said = told_by_spark(spark, nullable)
    return ArrowWriter(codec, rows, said, threads_of(spark), blooms, encodings=encodings)


def lacks(blooms: Collection[str]) -> str:
    """Return in a few words what this PyArrow cannot do, an empty string if it can write files as they should be."""
    if not _takes("max_rows_per_page"):
        return f"PyArrow {pa.__version__} writes pages without end"
    if blooms and not _takes("bloom_filter_options"):
        return f"PyArrow {pa.__version__} writes no bloom filters"
    return ""


def threads_of(spark: SparkSession) -> int:
    """Return how many threads write at a time: as many as Spark has tasks, and there are processors."""
    return max(1, min(spark.sparkContext.defaultParallelism, os.cpu_count() or 1))


def are_old(spark: SparkSession, rows: pa.Table) -> bool:
    """Tell whether rows have dates or times so old that Spark's writer asks which calendar they are meant by."""
    if str(spark.conf.get(_CALENDAR)).upper() == "CORRECTED":
        return False
    for column in rows.columns:
        is_date, is_moment = pa.types.is_date(column.type), pa.types.is_timestamp(column.type) and column.type.tz
        if is_date or is_moment:
            least = pc.min(column.cast(pa.int32() if is_date else pa.int64())).as_py()
            if least is not None and least < (_OLD_DAY if is_date else _OLD_MICROS):
                return True
    return False


def _wanted_settings(schema: t.StructType) -> dict[str, str]:
    return {**_AS_SPARK, **(dict([_MICROS]) if _has_times(schema) else {})}


def _has_times(data_type: t.DataType) -> bool:
    return isinstance(data_type, t.TimestampType) or any(map(_has_times, inner_types(data_type)))


def _parquet_settings(spark: SparkSession) -> dict[str, str]:
    """Return what the session, or Hadoop, tells Parquet's own writer."""
    session: Any = spark._jsparkSession
    prefix = "parquet."
    found = session.sessionState().newHadoopConf().getPropsWithPrefix(prefix)
    return {f"{prefix}{name}": str(found.get(name)) for name in items(found.keySet())}


@cache
def _takes(option: str) -> bool:
    return option in inspect.signature(pq.ParquetWriter.__init__).parameters
