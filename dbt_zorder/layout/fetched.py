"""All rows of a small query, fetched to be laid out here: a shuffle in Spark takes longer than all that is left to do.

Of 337,000 rows of 19 columns, to fetch, place and write them takes two thirds of the time that Spark takes to sample,
shuffle, sort and write them (docs/decisions/012).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from dbt_zorder.arrow import collect_arrow
from dbt_zorder.columns import ResolvedColumn
from dbt_zorder.jvm import class_named, jvm_of
from dbt_zorder.layout.hashing import partition_hash
from dbt_zorder.layout.keys import SAMPLE_BYTES, TEXT, Key
from dbt_zorder.layout.small import ROW_IN_PARTITION, SMALL_BYTES, estimated_bytes, partitions_of
from dbt_zorder.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")

_SHARE_OF_HEAP = 8
"""What Spark's tasks send stands there more than once on its way: as rows of each task, and as the result of all."""
_UNKNOWN = 4
"""A part of what may be held, that rows are taken for which nobody has counted: those of small files."""
_OFFSET = 4
"""Bytes that a value of text takes besides itself."""
_TEXT_WIDTH = 16
"""Bytes that a value of text is taken for, where nobody has measured it."""
_MOST_TEXTS = 32
"""Columns of text: with more, whether they are long takes longer to reckon than a shuffle does."""
_LEAST_WIDTH = 32
"""Bytes that a row is taken for at least: to place it takes some, whatever it holds."""
_SLACK = 3
"""So many times as much as rows are taken for may their text weigh besides, where nobody has measured it."""
_MOST_FOLDERS = 20_000
"""Each is named by a call into the JVM."""
_WIDTHS = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "bigint": 8,
    "float": 4,
    "double": 8,
    "date": 4,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "string": _TEXT_WIDTH,
    "binary": _TEXT_WIDTH,
}
"""Bytes of a value in Arrow, of the types that Arrow and Spark store alike; a decimal takes 16."""


@dataclass(frozen=True)
class Fetched:
    """The rows of a query.

    Attributes:
        rows: with the query's columns but those that part the table, every one of them nullable, in one chunk.
        keys: one column a key, as ``Key.expression`` gives it, text as bytes; behind them ``p``, the hash of each row's
            partition, if the table has any.
        folders: of the partitions, as Spark names them: ``day=2024-01-01/shop=7``; an empty name if there are none.
        folder_of: shape (rows,): the number of each row's folder.
    """

    rows: pa.Table
    keys: pa.Table
    folders: Sequence[str]
    folder_of: npt.NDArray[np.int32]

    @property
    def sampled(self) -> pa.Table:
        """The keys as ``Key.sampled`` gives them: text is cut, so that no cut between two files is long."""
        found = self.keys
        for place, column in enumerate(found.columns):
            if pa.types.is_binary(column.type) and (pc.max(pc.binary_length(column)).as_py() or 0) > SAMPLE_BYTES:
                found = found.set_column(place, found.field(place), pc.binary_slice(column, 0, SAMPLE_BYTES))
        return found

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.rows.num_rows)


def width_of(schema: t.StructType) -> int | None:
    """Return the bytes that a row takes in memory, text by a guess; None if it has a type that stays in Spark.

    Nested types do, and all that Parquet has no type of its own for; and rows of many texts.
    """
    if sum(field.dataType.simpleString() in TEXT for field in schema.fields) > _MOST_TEXTS:
        return None
    total = 0
    for field in schema.fields:
        if isinstance(field.dataType, t.DecimalType):
            total += 16
            continue
        width = _WIDTHS.get(field.dataType.simpleString())
        if width is None or isinstance(field.dataType, t.UserDefinedType):
            return None
        total += width
    return max(_LEAST_WIDTH, total)


def most_bytes_of(spark: SparkSession, allowed: int) -> int:
    """Return how much may be fetched of what is allowed: no more than Spark's own memory takes well."""
    jvm: Any = jvm_of(spark)
    if jvm is None:
        return 0
    heap = int(class_named(jvm, "java.lang.Runtime").getRuntime().maxMemory())
    context: Any = spark._jsc
    result = int(context.sc().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g")) or heap
    return min(allowed, heap // _SHARE_OF_HEAP, result // (1 + _SLACK))


def measure_few(df: DataFrame, most_bytes: int, *, kept: bool, parted: bool) -> tuple[bool, int | None, int]:
    """Tell whether a query has so few rows that they are worth fetching.

    Args:
        df: the query, of types that ``width_of`` knows.
        most_bytes: that its rows may weigh here.
        kept: its result is kept once it has run, so that it is measured here whatever its files tell.
        parted: the table has partitions, whose rows will be counted by partition, if not here.

    Returns:
        Whether it has, the number of rows if they were counted, and the bytes that they are expected to take.
    """
    width = width_of(df.schema)
    if not width or not most_bytes:
        return False, None, 0
    length = f.expr(f"sum(CAST({_text_length(df)} AS BIGINT))")
    texts = sum(field.dataType.simpleString() in TEXT for field in df.schema.fields)
    if kept:
        rows, text = df.agg(f.count(f.lit(1)), length).collect()[0]
    else:
        estimate = estimated_bytes(df)
        if estimate is not None and estimate <= min(SMALL_BYTES, most_bytes):
            return True, None, most_bytes // _UNKNOWN
        if parted:
            return False, None, 0
        # of a large scan with a filter nobody knows; the count is needed anyway, and without one it is but metadata
        rows = df.count()
        if rows * (width - _TEXT_WIDTH * texts) > most_bytes:
            return False, rows, 0
        text = df.agg(length).collect()[0][0] if texts else 0
    size = int(rows * max(_LEAST_WIDTH, width - _TEXT_WIDTH * texts + _OFFSET * texts) + (text or 0))
    return size <= most_bytes, rows, size


def fetch(
    df: DataFrame,
    keys: Sequence[Key],
    most_bytes: int,
    rows: int | None = None,
    partition_by: Sequence[ResolvedColumn] = (),
) -> Fetched | None:
    """Return all rows of a query that is taken to be small; None if they are too many or too long after all.

    None also if the name of a partition is no UTF-8.

    Where nobody has counted them, no Spark partition sends more than its share of rows. Nor does it send long text
    without end: the farther down a row stands, the less text it may have, so that rows of equal length weigh no more
    than some times what is allowed.

    Args:
        df: the query, of types that ``width_of`` knows.
        keys: what rows are placed by.
        most_bytes: that rows may weigh here.
        rows: their number, if they were measured.
        partition_by: columns that part the table, each a whole one.
    """
    width = width_of(df.schema)
    assert width
    columns = [(quote_name(field.name), field.dataType.simpleString()) for field in df.schema.fields]
    wanted, behind, asked = ["*"], [f"CAST({part.sql} AS STRING)" for part in partition_by], df
    behind += [partition_hash([part.sql for part in partition_by])] if partition_by else []
    if rows is None:
        partitions = max(1, partitions_of(df))
        share, budget = most_bytes // width // partitions, _SLACK * most_bytes // partitions
        if not share:
            return None
        number, too_long = _free_names(df)
        asked = df.select("*", f.monotonically_increasing_id().bitwiseAND(ROW_IN_PARTITION).alias(number))
        asked = asked.where(f.col(number) < share)  # a limit would shuffle the rows
        overflow = f"{number} = {share - 1}L"
        if any(kind in TEXT for _, kind in columns):
            # a column, so that it is reckoned once a row, however many columns of text ask for it
            asked = asked.selectExpr("*", f"({_text_length(df)}) * ({number} + 1L) > {budget}L AS {too_long}")
            wanted = [f"IF({too_long}, NULL, {name})" if kind in TEXT else name for name, kind in columns]
            overflow += f" OR {too_long}"
        behind.append(overflow)
    if behind:
        asked = asked.selectExpr(*wanted, *behind)
    found = collect_arrow(asked.toDF(*(f"c{place}" for place in range(len(asked.columns)))))
    extras = found.columns[len(found.columns) - len(behind) :]
    if rows is None and pc.any(extras[-1]).as_py():
        _LOG.debug("rows were fetched in vain, as they are more or longer than what may be held here")
        return None
    by_name = {
        name: _plain_text(column).combine_chunks() for name, column in zip(df.columns, found.columns, strict=False)
    }
    sampled = {f"k{n}": key_here(by_name[key.column.name], key) for n, key in enumerate(keys)}
    folders, folder_of = [""], np.zeros(found.num_rows, dtype=np.int32)
    if partition_by:
        texts, sampled["p"] = extras[: len(partition_by)], extras[len(partition_by)].combine_chunks()
        try:
            folders, folder_of = _folders(df.sparkSession, [column.name for column in partition_by], texts)
        except UnicodeDecodeError:
            _LOG.debug("a partition is no text, and Spark has a name for it")
            return None
        if not folders and found.num_rows:
            _LOG.debug("there are more than %d partitions", _MOST_FOLDERS)
            return None
    data = {name: column for name, column in by_name.items() if name not in {part.name for part in partition_by}}
    return Fetched(pa.table(data), pa.table(sampled), folders, folder_of)


def _folders(
    spark: SparkSession, names: Sequence[str], texts: Sequence[pa.ChunkedArray]
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the folders of some partitions, and the number of each row's: by their values, of which no two are one.

    None at all where they are too many.
    """
    distinct, codes = [], []
    for column in texts:
        coded = column.combine_chunks().dictionary_encode()
        distinct.append([*coded.dictionary.to_pylist(), None])
        codes.append(pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False))
    pairs, folder_of = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    if len(pairs) > _MOST_FOLDERS:
        return [], np.zeros(0, dtype=np.int32)
    named = class_named(spark._jvm, "org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils").getPartitionPathString
    folders = [
        "/".join(named(name, values[code]) for name, values, code in zip(names, distinct, pair, strict=True))
        for pair in pairs.tolist()
    ]
    return folders, np.asarray(folder_of.reshape(-1), dtype=np.int32)


def key_here(values: pa.Array, key: Key) -> pa.Array:
    """Return what ``key.expression`` is in Spark, text as bytes, of a column of a type that ``width_of`` knows."""
    if key.carrier in TEXT:
        return values.cast(pa.binary())
    if key.carrier == "double":
        return values.cast(pa.float64())
    if key.carrier != "bigint":
        return values
    return (values.cast(pa.int32()) if pa.types.is_date(values.type) else values).cast(pa.int64())


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text as files and keys have it, where a session has long offsets for it."""
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(column.type)
    return column if plain is None else column.cast(plain)


def _text_length(df: DataFrame) -> str:
    """Return SQL text of how many bytes of text a row has."""
    texts = [quote_name(field.name) for field in df.schema.fields if field.dataType.simpleString() in TEXT]
    return " + ".join(f"coalesce(octet_length({name}), 0L)" for name in texts) or "0L"


def _free_names(df: DataFrame) -> tuple[str, str]:
    """Return two names that no column of ``df`` has."""
    name = "_zorder_row"
    while any(column.lower().startswith(name) for column in df.columns):
        name += "_"
    return f"{name}_number", f"{name}_long"
