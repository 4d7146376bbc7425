"""Decimals of up to 18 digits as whole numbers while they are only moved: Arrow's own take 16 bytes each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_INT32_DIGITS, _INT64_DIGITS = 9, 18


def can_compact(data_type: pa.DataType) -> bool:
    """Tell whether values of a type have a shorter form."""
    return bool(pa.types.is_decimal128(data_type) and data_type.precision <= _INT64_DIGITS)


def compacted(values: pa.Array) -> pa.Array:
    """Return decimals without their point, in as many bytes as Parquet takes for them."""
    if values.offset:
        values = pa.concat_arrays([values])
    short = values.type.precision <= _INT32_DIGITS
    validity, data = values.buffers()
    # the lower half of a number of 128 bits, the lowest byte first, tells all of one that has so few digits
    low = np.frombuffer(data, dtype=np.int64)[: 2 * len(values) : 2]
    kept = pa.py_buffer(low.astype(np.int32 if short else np.int64))
    return pa.Array.from_buffers(pa.int32() if short else pa.int64(), len(values), [validity, kept])


def decimals(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return what ``compacted`` made as the decimals that it was made of."""
    if values.offset:
        values = pa.concat_arrays([values])
    validity, data = values.buffers()
    numbers = np.frombuffer(data, dtype=np.int32 if pa.types.is_int32(values.type) else np.int64)[: len(values)]
    halves = np.empty((len(values), 2), dtype=np.int64)
    halves[:, 0] = numbers
    np.right_shift(halves[:, 0], 63, out=halves[:, 1])
    return pa.Array.from_buffers(data_type, len(values), [validity, pa.py_buffer(halves)])
