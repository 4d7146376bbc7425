"""Compares keys with NumPy and Arrow in Spark's order: NULL first, and NaN above all numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_zorder.curve.bits import decimal_digits, float_integers
from dbt_zorder.engine.local.buckets import Buckets, in_buckets
from dbt_zorder.engine.local.search import binary_search, map_distinct
from dbt_zorder.engine.local.text_search import TextCuts, text_cuts
from dbt_zorder.engine.rows import Rows
from dbt_zorder.layout.key_arrays import integers
from dbt_zorder.layout.keys import TEXT, KeyValue
from dbt_zorder.spark.decimals import can_compact, pack_decimals

_DIGIT = 16
"""Bits that a pass of the radix sort handles."""


def radix_order(numbers: npt.NDArray[np.int64]) -> Rows:
    """Return the stable order of non-negative numbers.

    Sorts by 16 bits at a time from the lowest, because NumPy counts 16-bit numbers, and compares longer ones. Sorting 3
    M numbers of 20 bits takes 0.07 s in place of 0.35. With 40 bits it takes 0.16 s in place of 0.28.
    """
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    for shift in range(_DIGIT, int(numbers.max(initial=0)).bit_length(), _DIGIT):
        digits = (numbers >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


def cuts_of(values: Sequence[KeyValue], carrier: str) -> tuple[Any, dict[str, int]]:
    """Return the distinct cuts in order, in the form for ``at_or_below``, and the index of each by its ``repr``."""
    # by their text, because NaN is not equal to itself; as the greatest number it is sorted last
    distinct = sorted({repr(value): value for value in values}.values(), key=lambda value: (value != value, value))
    places = {repr(value): place for place, value in enumerate(distinct)}
    return as_cuts(pa.array(distinct, _type_of(carrier))), places


def as_cuts(values: pa.Array) -> Any:
    """Return ordered keys without NULL in the form for ``at_or_below``."""
    if pa.types.is_binary(values.type):
        return text_cuts(values)
    if pa.types.is_decimal(values.type) and not can_compact(values.type):
        return values
    return in_buckets(_numbers(values))


def at_or_below(values: pa.Array, cuts: Any) -> npt.NDArray[np.int32]:
    """Return for each value how many of the ordered cuts are at or below it; 0 for NULL.

    Args:
        values: values of the same type as the cuts, for decimals with the same scale.
        cuts: cuts from ``cuts_of`` or ``as_cuts``.
    """
    if isinstance(cuts, TextCuts):
        found = map_distinct(cuts.shortened(values), cuts.at_or_below)
    elif isinstance(cuts, pa.Array):
        found = map_distinct(values, lambda some: binary_search(pc.fill_null(some, cuts[0]), cuts))
    elif isinstance(cuts, Buckets):
        found = cuts.at_or_below(_numbers(values))
    else:
        found = np.searchsorted(cuts, _numbers(values), side="right").astype(np.int32)
    if values.null_count:
        found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def order_by(values: pa.Array) -> Rows:
    """Return the order of rows by a key, NULL first and NaN last, as Spark sorts."""
    if pa.types.is_floating(values.type):
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        return np.lexsort((_floats(values), valid))
    order = np.asarray(pc.sort_indices(values).to_numpy(), dtype=np.int64)
    return np.roll(order, values.null_count)


def _type_of(carrier: str) -> pa.DataType:
    """Return the Arrow type of a key's cuts; times are whole numbers."""
    if carrier in TEXT:
        return pa.binary()
    if carrier.startswith("decimal"):
        return pa.decimal128(*decimal_digits(carrier))
    return pa.float64() if carrier == "double" else pa.int64()


def _numbers(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return whole numbers in the order of the values, any number for NULL; long decimals are not supported."""
    if pa.types.is_floating(values.type):
        return float_integers(_floats(values), "double")
    return integers(pack_decimals(values) if can_compact(values.type) else values)


def _floats(values: pa.Array) -> npt.NDArray[np.float64]:
    return np.asarray(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False), dtype=np.float64) + 0.0
