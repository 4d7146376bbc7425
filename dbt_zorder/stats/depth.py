"""Measure from the bounds of files how many of them contain one value of a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_zorder.stats.point_query import ranks_of

_POINTS = 16
"""Values of a file at which the depth is measured."""

_MOST = 1e300
"""Stands for greater numbers, so that differences are finite."""

_BYTES = 6
"""Bytes of a text after the common prefix of all texts; a float64 represents as many."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Depth:
    """How far the files of a table overlap in one column.

    Attributes:
        mean: the mean number of files that an equality query reads, for the value of a random row. The rows of a file
            are taken to be spread evenly between its bounds.
        deepest: the largest number of files that contain one value.
        overlaps: the mean number of other files whose range meets that of a file.
        unbounded: the number of files that may contain any value, because they have no bounds. Every query reads them,
            so the first two figures include them.
    """

    mean: float
    deepest: int
    overlaps: float
    unbounded: int


def depth_of(minimum: pa.Array, maximum: pa.Array, rows: pa.Array, nulls: pa.Array) -> Depth:
    """Return the depth of the files of a table in one column.

    A file of NULL alone contains no value, and no equality query reads it. A NaN in place of a bound is the greatest
    value, as in Spark.

    Args:
        minimum, maximum: one key a file, of any type that Arrow sorts; NULL where a file has no bounds.
        rows: the number of rows of each file; NULL where it is missing.
        nulls: the number of NULLs of each file; NULL where it is missing.
    """
    bounded = pc.and_(pc.is_valid(minimum), pc.is_valid(maximum))
    of_nulls = pc.fill_null(pc.equal(rows, nulls), False)
    unbounded = int(pc.sum(pc.invert(pc.or_(bounded, of_nulls))).as_py() or 0)
    low, high, counts = (values.filter(bounded) for values in (minimum, maximum, rows))
    if not len(low):
        return Depth(float(unbounded), unbounded, 0.0, unbounded)
    both = pa.concat_arrays([low, high])
    deepest, overlaps = _overlaps(ranks_of(both))
    step = 1.0 if pa.types.is_integer(both.type) else 0.0
    mean = _mean(_as_numbers(both), step, pc.fill_null(counts, 0).to_numpy().astype(np.float64))
    return Depth(mean + unbounded, deepest + unbounded, overlaps, unbounded)


def _overlaps(ranks: npt.NDArray[np.int64]) -> tuple[int, float]:
    """Return the most ranges that contain one value, and the mean number of other ranges that meet a range.

    Args:
        ranks: the ranks of the lower bounds, then those of the upper bounds.
    """
    lows, highs = np.split(ranks, 2)
    starts, ends = np.sort(lows), np.sort(highs)
    at_starts = np.searchsorted(starts, lows, side="right") - np.searchsorted(ends, lows, side="left")
    met = np.searchsorted(starts, highs, side="right") - np.searchsorted(ends, lows, side="left") - 1
    return int(at_starts.max()), float(met.mean())


def _mean(bounds: Numbers, step: float, rows: Numbers) -> float:
    """Return the mean number of ranges that contain a value, over values inside each range, weighted by rows.

    The bounds themselves would not do: where all files have the whole range, half of them miss the others' bounds.

    Args:
        bounds: the lower bounds, then the upper bounds.
        step: the distance between two neighbouring values; 0 where it is unknown.
        rows: the number of rows of each file.
    """
    lows, highs = np.split(bounds, 2)
    starts, ends = np.sort(lows), np.sort(highs)
    weights = rows if rows.any() else np.ones_like(rows)
    total = 0.0
    for point in range(_POINTS):
        values = lows + (highs - lows + step) * ((point + 0.5) / _POINTS)
        if step:
            values = np.clip(np.floor(values), lows, highs)
        found = np.searchsorted(starts, values, side="right") - np.searchsorted(ends, values, side="left")
        total += float(np.average(found, weights=weights))
    return total / _POINTS


def _as_numbers(values: pa.Array) -> Numbers:
    """Return numbers in the order of the values, with distances that are about those of the values."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        return _of_texts([bytes(value) for value in values.cast(pa.large_binary()).to_pylist()])
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int64())
    if pa.types.is_integer(values.type):
        whole = values.cast(pa.int64()).to_numpy()
        # unsigned, as a difference may need 64 bits
        distances: Numbers = (whole.astype(np.uint64) - whole.min().astype(np.uint64)).astype(np.float64)
        return distances
    numbers: Numbers = values.cast(pa.float64()).to_numpy()
    finite = numbers[np.isfinite(numbers)]
    most = float(finite.max()) if len(finite) else 0.0
    numbers = np.nan_to_num(numbers, nan=most, posinf=_MOST, neginf=-_MOST)
    return np.clip(numbers, -_MOST, _MOST, out=numbers)


def _of_texts(texts: list[bytes]) -> Numbers:
    first, last = min(texts), max(texts)
    common = next(
        (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first)
    )
    parts = (text[common : common + _BYTES].ljust(_BYTES, b"\0") for text in texts)
    return np.fromiter((int.from_bytes(part, "big") for part in parts), dtype=np.float64, count=len(texts))
