"""All rows of a small query, fetched to be laid out here: a shuffle in Spark takes longer than all that is left to do.

Of 337,000 rows of 19 columns, to fetch, place and write them takes a third of the time that Spark takes to sample,
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
_TEXT_WIDTH = 16
"""Bytes that a value of text is taken for, when rows are counted before they are fetched."""
_SLACK = 4
"""So many times as much as was taken for them may rows weigh by long text."""
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
        keys: one column a key, as ``Key.sampled`` gives it; behind them ``p``, the hash of each row's partition, if the
            table has any.
        folders: of the partitions, as Spark names them: ``day=2024-01-01/shop=7``; an empty name if there are none.
        folder_of: shape (rows,): the number of each row's folder.
    """

    rows: pa.Table
    keys: pa.Table
    folders: Sequence[str]
    folder_of: npt.NDArray[np.int32]

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.rows.num_rows)


def width_of(schema: t.StructType) -> int | None:
    """Return the bytes that a row takes in memory, text by a guess; None if it has a type that stays in Spark.

    Nested types do, and all that Parquet has no type of its own for.
    """
    total = 0
    for field in schema.fields:
        if isinstance(field.dataType, t.DecimalType):
            total += 16
            continue
        width = _WIDTHS.get(field.dataType.simpleString())
        if width is None or isinstance(field.dataType, t.UserDefinedType):
            return None
        total += width
    return total


def most_bytes_of(spark: SparkSession, allowed: int) -> int:
    """Return how much may be fetched of what is allowed: no more than Spark's own memory takes well."""
    jvm: Any = jvm_of(spark)
    if jvm is None:
        return 0
    heap = int(class_named(jvm, "java.lang.Runtime").getRuntime().maxMemory())
    return min(allowed, heap // _SHARE_OF_HEAP)


def count_few(df: DataFrame, most_bytes: int, rows: int | None) -> tuple[bool, int | None]:
    """Tell whether a query has so few rows that they are worth fetching, and their number where it was counted.

    Args:
        df: the query, of types that ``width_of`` knows.
        most_bytes: that they may weigh here.
        rows: their number, if it is known.
    """
    width = width_of(df.schema)
    if not width or not most_bytes:
        return False, rows
    if rows is None:
        estimate = estimated_bytes(df)
        if estimate is not None and estimate <= min(SMALL_BYTES, most_bytes):
            return True, None
        # of a large scan with a filter nobody knows; the count is needed anyway, and without one it is but metadata
        rows = df.count()
    return rows * width <= most_bytes, rows


def fetch(
    df: DataFrame,
    keys: Sequence[Key],
    most_bytes: int,
    rows: int | None = None,
    partition_by: Sequence[ResolvedColumn] = (),
) -> Fetched | None:
    """Return all rows of a query that is taken to be small; None if they are too many or too long after all.

    None also if the name of a partition is no UTF-8.

    No Spark partition sends more than its share of rows. Nor does it send long text without end: the farther down a row
    stands, the less text it may have, so that rows of equal length weigh no more than some times what is allowed.

    Args:
        df: the query, of types that ``width_of`` knows.
        keys: what rows are placed by.
        most_bytes: that rows may weigh here.
        rows: their number, if it is known.
        partition_by: columns that part the table, each a whole one.
    """
    width = width_of(df.schema)
    assert width
    share, budget = most_bytes // width, _SLACK * most_bytes
    if rows is None:
        partitions = max(1, partitions_of(df))
        share, budget = share // partitions, budget // partitions
    else:
        share = rows + 1
    if not share:
        return None
    columns = [(quote_name(field.name), field.dataType.simpleString()) for field in df.schema.fields]
    number = _free_name(df)
    length = " + ".join(f"coalesce(octet_length({name}), 0L)" for name, kind in columns if kind in TEXT) or "0L"
    too_long = f"({length}) * ({number} + 1L) > {budget}L"
    wanted = [f"IF({too_long}, NULL, {name})" if kind in TEXT else name for name, kind in columns]
    parts = [column.sql for column in partition_by]
    wanted += [f"CAST({part} AS STRING)" for part in parts]
    wanted += [partition_hash(parts)] if parts else []
    wanted.append(f"{number} = {share - 1}L OR {too_long}")
    numbered = df.select("*", f.monotonically_increasing_id().bitwiseAND(ROW_IN_PARTITION).alias(number))
    numbered = numbered.where(f.col(number) < share)  # a limit would shuffle the rows
    found = collect_arrow(numbered.select(*(f.expr(sql).alias(f"c{place}") for place, sql in enumerate(wanted))))
    if pc.any(found.column(len(wanted) - 1)).as_py():
        _LOG.debug("rows were fetched in vain, as they are more or longer than what may be held here")
        return None
    found = found.combine_chunks()
    by_name = dict(zip(df.columns, found.columns, strict=False))
    sampled = {f"k{n}": sampled_here(by_name[key.column.name].combine_chunks(), key) for n, key in enumerate(keys)}
    folders, folder_of = [""], np.zeros(found.num_rows, dtype=np.int32)
    if parts:
        sampled["p"] = found.column(len(wanted) - 2)
        texts = found.columns[len(columns) : len(columns) + len(parts)]
        try:
            folders, folder_of = _folders(df.sparkSession, [column.name for column in partition_by], texts)
        except UnicodeDecodeError:
            _LOG.debug("a partition is no text, and Spark has a name for it")
            return None
    data = {name: column for name, column in by_name.items() if name not in {part.name for part in partition_by}}
    return Fetched(pa.table(data), pa.table(sampled), folders, folder_of)


def _folders(
    spark: SparkSession, names: Sequence[str], texts: Sequence[pa.ChunkedArray]
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return the folders of some partitions, and the number of each row's: by their values, of which no two are one."""
    distinct, codes = [], []
    for column in texts:
        coded = column.combine_chunks().dictionary_encode()
        distinct.append([*coded.dictionary.to_pylist(), None])
        codes.append(pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False))
    pairs, folder_of = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    named = class_named(spark._jvm, "org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils").getPartitionPathString
    folders = [
        "/".join(named(name, values[code]) for name, values, code in zip(names, distinct, pair, strict=True))
        for pair in pairs.tolist()
    ]
    return folders, np.asarray(folder_of.reshape(-1), dtype=np.int32)


def sampled_here(values: pa.Array, key: Key) -> pa.Array:
    """Return what ``key.sampled`` is in Spark, of a column of one of the types that ``width_of`` knows."""
    if key.carrier in TEXT:
        short = pc.max(pc.binary_length(values)).as_py() or 0
        return (
            values.cast(pa.binary())
            if short <= SAMPLE_BYTES
            else pc.binary_slice(values.cast(pa.binary()), 0, SAMPLE_BYTES)
        )
    if key.carrier == "double":
        return values.cast(pa.float64())
    if key.carrier != "bigint":
        return values
    return (values.cast(pa.int32()) if pa.types.is_date(values.type) else values).cast(pa.int64())


def _free_name(df: DataFrame) -> str:
    """Return a name that no column of ``df`` has."""
    name = "_zorder_number"
    while name in (column.lower() for column in df.columns):
        name += "_"
    return name
