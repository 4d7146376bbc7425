"""Curves other than the default, and the keys of points on them."""

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
"""Bits of one column's value in the encoding ``bits``."""


@dataclass(frozen=True)
class Curve:
    """A curve other than the default, complete in itself.

    Attributes:
        curve: ``zorder``, ``hilbert`` or ``linear``.
        encoding: ``rank`` or ``bits``; ``linear`` ignores it.
        cuts_files: whether files are ranges of this order; otherwise a tree over the columns cuts them.
        bits: number of bits of one column's value.
        boundaries: ascending keys of the encoding ``rank``, one list for each column.
        codes: ranks for NULL, for values below the first boundary, and from each boundary on, one list for each column.
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
    """Return the first keys, up to and including the first array or struct.

    The key of such a column has less detail than the column, so the keys behind it have another order.
    """
    for number, key in enumerate(keys, start=1):
        if isinstance(key.column.data_type, (t.ArrayType, t.StructType)):
            return keys[:number]
    return keys


def packed(curve: Curve, values: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """Return the keys of points on a curve: BIGINT in shape (rows,), or BINARY in shape (rows, bytes).

    Args:
        curve: curve ``zorder`` or ``hilbert``.
        values: values of the points, of the curve's bits, shape (rows, columns).
    """
    columns = values.shape[1]
    if (curve.curve, curve.carrier) == ("zorder", "binary"):
        return interleave_bytes(values)
    levels = digits(values, curve.bits)
    if curve.curve == "hilbert":
        levels = hilbert_digits(levels, columns)
    return pack_long(levels, columns) if curve.carrier == "bigint" else pack_bytes(levels, columns)
