"""A seeded sample of the key columns, ranked on the driver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.curve.ranks import Ranks
from dbt_zorder.layout.keys import SAMPLE_BYTES, TEXT, Key, KeyValue, shortest_separator
from dbt_zorder.spark.arrow import collect_arrow, one_chunk
from dbt_zorder.spark.small_queries import SMALL_BYTES, estimated_bytes, fetch_few

ROWS_PER_FILE = 300
"""Number of sampled rows m for each file.

The relative error of a file's share of rows is 1/sqrt(m), which is 6%. The fullest of 1,000 files is about
1 + sqrt(2 ln 1000 / 300) = 1.2 times the mean.
"""

ROWS_PER_CELL = 4
"""Number of sampled rows for each cell.

A cell inside a file only orders rows, so its share of rows may be rough.
"""

LEAST_ROWS = 1 << 16
MOST_BYTES = 256 << 20
"""Limit on the bytes of a sample on the driver; a larger sample is reduced to fewer rows."""
_SHORT_TEXT = 64
"""Least bytes that are assumed for a key of text."""
_FIRST_ROWS = 1_000
_SEED_BITS = (1 << 64) - 1
"""Mask for a seed, because NumPy rejects negative ones."""


@dataclass(frozen=True)
class Sample:
    """Ranked rows of a sample.

    Attributes:
        ranks: ranks of the rows, see ``dbt_zorder.curve.ranks.Ranks``.
        partitions: partition of each row, shape (rows,).
        distinct: distinct keys in order, one array for each column; rank r is ``distinct[r - 1]``.
    """

    ranks: Ranks
    partitions: npt.NDArray[np.int32]
    distinct: list[pa.Array]

    def cut_value(self, column: int, rank: int, carrier: str) -> KeyValue:
        """Return the shortest key that separates values below ``rank`` from those at and above it."""
        value = self.value(column, rank, carrier)
        below = self.value(column, rank - 1, carrier)
        if not isinstance(value, bytes) or not isinstance(below, bytes):
            return value
        return shortest_separator(below, value, text=carrier == "string")

    def value(self, column: int, rank: int, carrier: str) -> KeyValue | None:
        """Return the key of a rank, None for NULL."""
        return None if rank == 0 else _plain(self.distinct[column][rank - 1], carrier)


def rows_wanted_of(df: DataFrame, keys: Sequence[Key], files: int, cells: int = 0) -> int:
    """Return how many rows of ``df`` to sample; see ``wanted_rows``.

    If long text could need too much memory, measure its length on the first rows.
    """
    wanted = wanted_rows(files, keys, cells, SAMPLE_BYTES)
    texts = [key.sampled for key in keys if key.carrier in TEXT]
    if not texts or wanted == wanted_rows(files, keys, cells):
        return wanted
    lengths = df.select(*(f.expr(f"coalesce(octet_length({text}), 0)") for text in texts)).take(_FIRST_ROWS)
    mean = sum(map(sum, lengths)) / max(1, len(lengths)) / len(texts)
    return wanted_rows(files, keys, cells, math.ceil(mean))


def wanted_rows(files: int, keys: Sequence[Key], cells: int = 0, text_bytes: int = _SHORT_TEXT) -> int:
    """Return how many rows to sample for a number of files and cells.

    Args:
        files: number of files of the table.
        keys: keys that are sampled.
        cells: number of cells of the tree.
        text_bytes: bytes of a key of text.
    """
    width = _width(keys, max(_SHORT_TEXT, min(text_bytes, SAMPLE_BYTES)))
    return min(max(LEAST_ROWS, ROWS_PER_FILE * files, ROWS_PER_CELL * cells), MOST_BYTES // width)


def _width(keys: Sequence[Key], text_bytes: int) -> int:
    return sum(text_bytes if key.carrier in TEXT else 16 for key in keys)


def fetch_keys(df: DataFrame, keys: Sequence[Key], partition_hash: str | None) -> pa.Table | None:
    """Return the keys of all rows, then the hash of each row's partition; None if there are too many.

    Args:
        df: the query.
        keys: keys that are sampled.
        partition_hash: SQL text of a row's partition as a 64-bit hash, None if the table has no partitions.
    """
    size = estimated_bytes(df)
    if size is None or size > SMALL_BYTES:
        return None
    return fetch_few(df, _select_keys(df, keys, partition_hash), MOST_BYTES // _width(keys, SAMPLE_BYTES))


def draw(
    df: DataFrame,
    keys: Sequence[Key],
    rows: int,
    total_rows: int,
    seed: int,
    partition_hash: str | None,
    all_hashes: npt.NDArray[np.int64],
    fetched: pa.Table | None = None,
) -> Sample:
    """Sample about ``rows`` of the ``total_rows`` rows of ``df``; read the key columns and nothing else.

    The same rows in the same input splits give the same sample for the same seed.

    Args:
        df: the query.
        keys: keys that are sampled.
        rows: number of rows to sample.
        total_rows: number of rows of the query.
        seed: seed of the sample.
        partition_hash: SQL text of a row's partition as a 64-bit hash, None if the table has no partitions.
        all_hashes: sorted hashes of all partitions; the position of a hash is the partition's number.
        fetched: keys of all rows, see ``fetch_keys``, or of a random sample of at least ``rows`` rows.
    """
    if fetched is not None:
        table = _take_random(fetched, rows, seed)
    else:
        selected = _select_keys(df, keys, partition_hash)
        if rows < total_rows:
            selected = selected.sample(fraction=min(1.0, rows / total_rows), seed=seed)
        table = collect_arrow(selected)
    ranked = [_rank(table.column(number)) for number in range(len(keys))]
    ranks = np.stack([ranks for ranks, _ in ranked], axis=1) if table.num_rows else np.zeros((0, len(keys)), np.int32)
    if partition_hash is None:
        partitions = np.zeros(table.num_rows, dtype=np.int32)
    else:
        hashes = table.column(len(keys)).to_numpy()
        partitions = np.minimum(np.searchsorted(all_hashes, hashes), len(all_hashes) - 1).astype(np.int32)
    return Sample(ranks, partitions, [distinct for _, distinct in ranked])


def _select_keys(df: DataFrame, keys: Sequence[Key], partition_hash: str | None) -> DataFrame:
    columns = [f.expr(key.sampled).alias(f"k{number}") for number, key in enumerate(keys)]
    if partition_hash is not None:
        columns.append(f.expr(partition_hash).alias("p"))
    return df.select(*columns)


def _take_random(table: pa.Table, rows: int, seed: int) -> pa.Table:
    """Return ``rows`` random rows in their order; all rows if there are no more."""
    return table if rows >= table.num_rows else table.take(pa.array(random_rows(table.num_rows, rows, seed)))


def random_rows(count: int, rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the numbers of ``rows`` random rows of ``count``, in order; of all if there are no more."""
    if rows >= count:
        return np.arange(count)
    return np.sort(_random(seed).choice(count, rows, replace=False, shuffle=False))


def sample_shares(counts: Sequence[int], rows: int, seed: int) -> list[int]:
    """Return how many of ``rows`` rows to draw from each part of a table; all if there are no more.

    Each part contributes in proportion to its rows in ``counts``. The fraction is rounded at random, so no array needs
    the length of the table.
    """
    ends = np.cumsum(counts)
    if rows >= ends[-1]:
        return list(counts)
    upto = np.floor(ends * (rows / ends[-1]) + _random(seed).random())
    return [int(share) for share in np.diff(upto, prepend=0)]


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(int(seed) & _SEED_BITS)


def _rank(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], pa.Array]:
    values = one_chunk(column)
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], type=values.type)
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # Spark treats -0.0 and 0.0 as one value, and NaN of any bits too
        values = pc.if_else(pc.is_nan(values), pa.scalar(math.nan, values.type), values)
    coded = values.dictionary_encode()
    order = pc.sort_indices(coded.dictionary)
    distinct = coded.dictionary.take(order)
    rank_of_code = np.empty(len(order) + 1, dtype=np.int32)
    rank_of_code[order.to_numpy()] = np.arange(1, len(order) + 1, dtype=np.int32)
    rank_of_code[-1] = 0
    codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    return rank_of_code[codes], distinct


def _plain(scalar: pa.Scalar, carrier: str) -> Any:
    if carrier == "timestamp_ntz":
        return int(scalar.cast(pa.int64()).as_py())
    return scalar.as_py()
