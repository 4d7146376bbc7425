"""Read the ranges of columns from the footers of any writer's Parquet files, for reports alone.

No query skips a file by them: bounds of text may be truncated, and those of floats omit NaN. ``footers`` reads bounds
that are as exact as the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt_zorder.layout.keys import SAMPLE_BYTES, TEXT, Key
from dbt_zorder.stats.footers import is_plain
from dbt_zorder.stats.listing import local_file

_READERS = 4
"""Threads that read footers; Arrow reads without Python's lock."""

Range = tuple[Any, Any, int | None]
"""The least and the greatest value, and the number of NULLs; None where a footer lacks them."""

_UNKNOWN: Range = (None, None, None)


@dataclass(frozen=True)
class _Footer:
    rows: int | None
    ranges: Sequence[Range]


def read_ranges(sizes: Mapping[str, int], keys: Sequence[Key], like: pa.Schema | None = None) -> pa.Table:
    """Return one row a file as ``summary.gather`` does with NULL counts, from the footers of files.

    A file that this process cannot read has neither rows nor bounds.

    Args:
        sizes: the bytes of each file, by its path as Spark spells it.
        keys: the keys whose bounds are returned.
        like: the schema of the result, None for the types of the values.
    """
    with ThreadPoolExecutor(_READERS) as pool:
        footers = list(pool.map(lambda name: _read(name, keys), sizes))
    columns: dict[str, pa.Array] = {
        "file_path": pa.array(list(sizes), pa.string()),
        "file_size": pa.array(list(sizes.values()), pa.int64()),
        "row_count": pa.array([footer.rows for footer in footers], pa.int64()),
    }
    for number, key in enumerate(keys):
        kind = None if like is None else like.field(f"min_value{number}").type
        lows, highs, nulls = ([footer.ranges[number][part] for footer in footers] for part in range(3))
        low, high = _as_keys(lows, highs, key.carrier, kind)
        columns |= {f"min_value{number}": low, f"max_value{number}": high}
        columns[f"null_count{number}"] = pa.array(nulls, pa.int64())
    return pa.table(columns)


def _read(name: str, keys: Sequence[Key]) -> _Footer:
    try:
        file = local_file(name) or ""
        footer = pq.read_metadata(file)
        return _Footer(
            int(footer.num_rows), _ranges(footer, keys) if is_plain(file, footer) else [_UNKNOWN] * len(keys)
        )
    except Exception:  # a remote or a damaged file, or one of another format
        return _Footer(None, [_UNKNOWN] * len(keys))


def _ranges(footer: pq.FileMetaData, keys: Sequence[Key]) -> list[Range]:
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    schema = footer.schema
    leaves: dict[str, list[int]] = {}
    for number in range(len(schema)):
        leaves.setdefault(schema.column(number).path.lower(), []).append(number)
    found = []
    for key in keys:
        places = leaves.get(key.column.name.lower(), [])
        exact = [place for place in places if schema.column(place).path == key.column.name] or places
        chunks = [group.column(exact[0]) for group in groups] if len(exact) == 1 else None
        found.append(_UNKNOWN if chunks is None else _range(chunks))
    return found


def _range(chunks: Sequence[pq.ColumnChunkMetaData]) -> Range:
    """Return the range of a column over the row groups of a file."""
    lows, highs, nulls = [], [], 0
    for chunk in chunks:
        stats = chunk.statistics if chunk.is_stats_set else None
        if stats is None:
            return _UNKNOWN
        if stats.has_null_count:
            nulls += stats.null_count
        if stats.has_min_max:
            lows.append(stats.min)
            highs.append(stats.max)
        elif not stats.has_null_count or stats.null_count != chunk.num_values:
            return _UNKNOWN
    if any(isinstance(value, float) and isnan(value) for value in (*lows, *highs)):
        return _UNKNOWN
    return min(lows, default=None), max(highs, default=None), nulls


def _as_keys(
    lows: Sequence[Any], highs: Sequence[Any], carrier: str, kind: pa.DataType | None
) -> tuple[pa.Array, pa.Array]:
    """Return values as keys of one type; NULL in place of all of them where they have no common one."""
    try:
        both = _CARRIERS.get(carrier, pa.array)([*lows, *highs])
        if kind is not None:
            both = both.cast(kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        both = pa.nulls(2 * len(lows), kind or pa.int64())
    return both[: len(lows)], both[len(lows) :]


def _numbers(values: Sequence[Any]) -> pa.Array:
    """Return whole numbers, booleans, dates as days, or times as microseconds."""
    found = pa.array(values)
    if pa.types.is_date(found.type):
        found = found.cast(pa.date32()).cast(pa.int32())
    if pa.types.is_timestamp(found.type):
        found = found.cast(pa.timestamp("us", found.type.tz))
    return found.cast(pa.int64())


def _bytes(values: Sequence[Any]) -> pa.Array:
    texts = [value.encode() if isinstance(value, str) else value for value in values]
    return pc.binary_slice(pa.array(texts, pa.binary()), 0, SAMPLE_BYTES)


_CARRIERS: Mapping[str, Callable[[Sequence[Any]], pa.Array]] = {
    "bigint": _numbers,
    "double": lambda values: pa.array(values, pa.float64()),
    "timestamp_ntz": lambda values: pa.array(values, pa.timestamp("us")),
    **dict.fromkeys(TEXT, _bytes),
}
"""Makes the keys of a carrier from the values of a footer; Arrow itself finds the type of decimals."""
