"""A curve other than the default's, complete in itself, and the keys of points on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import types as t

from dbt_zorder.curve.hilbert import hilbert_digits
from dbt_zorder.curve.morton import digits, interleave_bytes, pack_bytes, pack_long
from dbt_zorder.layout.keys import Key, KeyValue

VALUE_BITS = 64
"""Of one column by the encoding ``bits``."""


@dataclass(frozen=True)
class CurveKey:
    """A curve other than the default's, complete in itself.

    Attributes:
        curve: ``zorder``, ``hilbert`` or ``linear``.
        encoding: ``rank`` or ``bits``; means nothing to ``linear``.
        cuts_files: whether files are ranges of this order; else a tree over the columns cuts them.
        bits: of one column's value.
        boundaries: of the encoding ``rank``: ascending keys, a list a column.
        codes: the rank of NULL, of what is below the first boundary, and from each boundary on, a list a column.
    """

    curve: str
    encoding: str = "rank"
    cuts_files: bool = False
    bits: int = VALUE_BITS
    boundaries: Sequence[Sequence[KeyValue]] = ()
    codes: Sequence[Sequence[int]] = ()

    @property
    def carrier(self) -> str:
        """SQL type of the key."""
        return "bigint" if self.encoding == "rank" else "binary"


def prefix(keys: Sequence[Key]) -> Sequence[Key]:
    """Return the first keys, up to one that tells less than its column: behind it the order of keys is another."""
    for number, key in enumerate(keys, start=1):
        if isinstance(key.column.data_type, (t.ArrayType, t.StructType)):
            return keys[:number]
    return keys


def packed(curve: CurveKey, values: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """Return the keys of points on a curve: shape (rows,) of BIGINT, or (rows, bytes) of BINARY.

    Args:
        curve: ``zorder`` or ``hilbert``.
        values: shape (rows, columns), of the curve's bits.
    """
    columns = values.shape[1]
    if (curve.curve, curve.carrier) == ("zorder", "binary"):
        return interleave_bytes(values)
    levels = digits(values, curve.bits)
    if curve.curve == "hilbert":
        levels = hilbert_digits(levels, columns)
    return pack_long(levels, columns) if curve.carrier == "bigint" else pack_bytes(levels, columns)
