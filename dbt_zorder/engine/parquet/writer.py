"""Writes Arrow tables as Parquet files like those of Spark's own writer."""

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
from dbt_zorder.engine.rows import Rows, group_slices
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.file_count import arrow_codec, codec_of
from dbt_zorder.layout.known_keys import Fetched
from dbt_zorder.layout.page_order import PAGE_ROWS_OPTION, page_rows_of, parse_page_rows
from dbt_zorder.spark.columns import inner_types
from dbt_zorder.spark.conf import COMMITTERS
from dbt_zorder.spark.jvm import items
from dbt_zorder.spark.local_disk import LocalPath, on_disk
from dbt_zorder.stats.arrow_store import footer_entries
from dbt_zorder.stats.portability import is_legacy

CODECS: Mapping[str, tuple[int | None, str]] = {
    "none": (None, ""),
    "uncompressed": (None, ""),
    "snappy": (None, ".snappy"),
    "gzip": (6, ".gz"),
    "zstd": (3, ".zstd"),
    "lz4_raw": (None, ".lz4raw"),
}
"""Compression level of Spark's writer, and suffix of file names, by Spark's name of a codec."""

_AS_SPARK: Mapping[str, str] = {
    "spark.sql.parquet.writeLegacyFormat": "false",
    **COMMITTERS,
}
"""Session settings, with the values under which Spark's files are like those of this module."""

_MICROS = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
_CALENDAR = "spark.sql.parquet.datetimeRebaseModeInWrite"
GROUP_BYTES = 128 << 20
"""Maximum bytes of a row group: ``parquet.block.size``."""
_OLD_DAY, _OLD_MICROS = -141_427, -2_208_988_800_000_000
"""1582-10-15 and the beginning of 1900. For earlier dates and timestamps, Spark asks for the calendar."""


@dataclass(frozen=True)
class ArrowWriter:
    """Writes the files of a table.

    Attributes:
        codec: key of ``CODECS``.
        page_rows: maximum rows of a page.
        file_metadata: additional key-value metadata of the files.
        threads: number of threads that write at a time.
        blooms: columns with a bloom filter.
        numbers: field ids by path, for formats that need them.
        whole: whether files contain the partition columns, and an empty text is another partition than NULL.
        encodings: encodings of values without a dictionary.
        job: id that distinguishes these files from those of other writes.
        begun: paths of the files that this writer has opened.
    """

    codec: str
    page_rows: int
    file_metadata: Mapping[str, str]
    threads: int
    blooms: Collection[str] = ()
    numbers: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    whole: bool = False
    encodings: Encodings = field(default_factory=Encodings)
    job: str = field(default_factory=lambda: str(uuid.uuid4()))
    begun: list[str] = field(default_factory=list, compare=False)

    def write(self, fetched: Fetched, files: Iterable[Rows], place: LocalPath) -> None:
        """Write each list of rows to a file of its own, with the rows of each partition in its folder.

        Without any rows it writes one empty file, unless the table is partitioned.

        Raises:
            BuildError: the disk refused the write.
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
        """Make the folders of partitions."""
        for folder in {"", *folders}:
            place.make_folders(f"{place.path}/{folder}")

    def write_file(self, place: LocalPath, folder: str, number: int, rows: pa.Table) -> None:
        """Write rows to a file; arguments are those of ``new_file``."""
        traits = self.traits_of(rows)
        with self.new_file(place, folder, number, rows.schema, traits) as file:
            file.write_table(rows, row_group_size=traits.group_rows)

    @contextlib.contextmanager
    def new_file(
        self, place: LocalPath, folder: str, number: int, schema: pa.Schema, traits: Traits
    ) -> Iterator[pq.ParquetWriter]:
        """Open a file for the block, under the name that Spark would give it.

        Args:
            place: folder of the table's files.
            folder: folder of the rows' partition, empty if there is none.
            number: file number, unique in the folder.
            schema: schema of the rows.
            traits: traits of the columns.
        """
        _, ending = CODECS[self.codec]
        # Spark has these two spellings
        name = f"{folder}/part-{number:05d}-{self.job}.c000" if folder else f"part-{number:05d}-{self.job}-c000"
        file = f"{place.path}/{name}{ending}.parquet"
        self.begun.append(file)
        with self._writer_to(file, schema, traits) as writer:
            yield writer
        place.set_permissions(file)

    def place_of(self, spark: SparkSession, path: str) -> LocalPath:
        """Return the current location of a folder.

        Raises:
            BuildError: the folder has moved.
        """
        place = on_disk(spark, path)
        # Spark's client made the folder. It may see another disk, or encode the name in other bytes.
        if place is None or not os.path.isdir(os.path.dirname(place.path)):
            msg = f"The folder {path} cannot be written to from here any more."
            raise BuildError(msg)
        return place

    def files(self) -> list[str]:
        """Return the sorted paths of the files that exist by now."""
        return sorted(filter(os.path.exists, self.begun))

    def size_of(self, rows: pa.Table) -> int:
        """Return the bytes of a file with the given rows."""
        sink, traits = io.BytesIO(), self.traits_of(rows)
        with self._writer_to(sink, rows.schema, traits) as writer:
            writer.write_table(rows, row_group_size=traits.group_rows)
        return sink.tell()

    def traits_of(self, rows: pa.Table) -> Traits:
        """Return the column traits of a file with these rows in row groups of equal size."""
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
            **self.encodings.writer_options(schema, traits.repeating),
        ) as writer:
            writer.add_key_value_metadata(self.file_metadata)
            yield writer


@contextlib.contextmanager
def writing_to(place: LocalPath) -> Iterator[None]:
    """Turn an error of the block, which writes files, into a one-line error.

    Raises:
        BuildError: the disk refused the write.
    """
    try:
        yield
    except (OSError, ValueError) as exc:  # Python raises ValueError for a folder name with NUL
        msg = f"The files at {place.path} could not be written: {exc}"
        raise BuildError(msg) from exc


def by_folder(folders: Sequence[str], of_row: npt.NDArray[np.int32], rows: Rows) -> list[tuple[str, Rows]]:
    """Return the rows of a file by partition folder; usually there is one folder.

    Args:
        folders: folders of all partitions.
        of_row: shape (rows,): folder number of each row.
        rows: row numbers in file order.
    """
    if len(folders) == 1:
        return [(folders[0], rows)]
    order = np.argsort(of_row, kind="stable")
    return [(folders[folder], rows[order[here]]) for folder, here in group_slices(of_row[order]).items()]


def arrow_writer(
    spark: SparkSession, schema: t.StructType, options: Mapping[str, str], path: str, blooms: Collection[str] = ()
) -> ArrowWriter | str:
    """Return a writer of files like Spark's, or the reason why only Spark can write them.

    Args:
        spark: Spark session.
        schema: schema of the rows without partition columns, of types that ``estimated_row_bytes`` supports.
        options: options of Spark's Parquet writer.
        path: existing folder, either that of the files or one beside it.
        blooms: names of columns with a bloom filter.
    """
    missing = missing_feature(blooms)
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
    parquet_options = {**_parquet_settings(spark), **given}
    page_rows, version = parquet_options.pop(PAGE_ROWS_OPTION, ""), parquet_options.pop(VERSION_OPTION, "v1")
    if parquet_options:
        return f"of Spark's writer alone is {min(parquet_options)}"
    if version not in VERSIONS:
        return f"{VERSION_OPTION} is {version}"
    nullable = t.StructType([t.StructField(one.name, one.dataType, True, one.metadata) for one in schema.fields])
    rows, encodings = page_rows_of(spark, parse_page_rows(page_rows)), Encodings(VERSIONS[version])
    file_metadata = footer_entries(spark, nullable)
    return ArrowWriter(codec, rows, file_metadata, threads_of(spark), blooms, encodings=encodings)


def missing_feature(blooms: Collection[str]) -> str:
    """Return a feature that this PyArrow lacks, an empty string if it has all that the files need."""
    if not _takes("max_rows_per_page"):
        return f"PyArrow {pa.__version__} writes pages without end"
    if blooms and not _takes("bloom_filter_options"):
        return f"PyArrow {pa.__version__} writes no bloom filters"
    return ""


def threads_of(spark: SparkSession) -> int:
    """Return the number of threads that write at a time: as many as Spark's tasks, at most one per processor."""
    return max(1, min(spark.sparkContext.defaultParallelism, os.cpu_count() or 1))


def are_old(spark: SparkSession, rows: pa.Table) -> bool:
    """Return whether rows have dates or timestamps so old that Spark's writer asks for their calendar."""
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
    """Return the settings for Parquet's own writer in the session and in Hadoop's configuration."""
    session: Any = spark._jsparkSession
    prefix = "parquet."
    found = session.sessionState().newHadoopConf().getPropsWithPrefix(prefix)
    return {f"{prefix}{name}": str(found.get(name)) for name in items(found.keySet())}


@cache
def _takes(option: str) -> bool:
    return option in inspect.signature(pq.ParquetWriter.__init__).parameters
