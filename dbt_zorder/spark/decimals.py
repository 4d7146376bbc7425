"""Store decimals of up to 18 digits as integers while they are only moved: Arrow's decimals need 16 bytes each."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from dbt_zorder.spark.arrow import one_chunk

_INT32_DIGITS, _INT64_DIGITS = 9, 18


def can_compact(data_type: pa.DataType) -> bool:
    """Return whether values of a type have a shorter form."""
    return bool(pa.types.is_decimal128(data_type) and data_type.precision <= _INT64_DIGITS)


def compact_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of the shorter form, which has as many bytes as in Parquet."""
    return pa.int32() if data_type.precision <= _INT32_DIGITS else pa.int64()


def pack_decimals(values: pa.Array) -> pa.Array:
    """Return decimals as integers, without their point."""
    if values.offset:
        values = pa.concat_arrays([values])
    short = compact_type(values.type)
    validity, data = values.buffers()
    # the lower half of 128 bits, lowest byte first, is enough for so few digits
    low = np.frombuffer(data, dtype=np.int64)[: 2 * len(values) : 2]
    kept = pa.py_buffer(low.astype(short.to_pandas_dtype()))
    return pa.Array.from_buffers(short, len(values), [validity, kept])


def unpack_decimals(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return integers from ``pack_decimals`` as the original decimals."""
    if not len(values):
        return pa.array([], data_type)
    if values.offset:
        values = pa.concat_arrays([values])
    validity, data = values.buffers()
    numbers = np.frombuffer(data, dtype=np.int32 if pa.types.is_int32(values.type) else np.int64)[: len(values)]
    halves = np.empty((len(values), 2), dtype=np.int64)
    halves[:, 0] = numbers
    np.right_shift(halves[:, 0], 63, out=halves[:, 1])
    return pa.Array.from_buffers(data_type, len(values), [validity, pa.py_buffer(halves)])


def compact_columns(rows: pa.Table, names: Collection[str]) -> pa.Table:
    """Return a table with the named decimal columns packed as integers."""
    return _with_columns(rows, {name: pack_decimals(one_chunk(rows[name])) for name in names})


def decimal_columns(rows: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Return a table with integer columns converted back to these decimal types, chunk by chunk."""
    found = {
        name: pa.chunked_array([unpack_decimals(chunk, kind) for chunk in rows[name].chunks], kind)
        for name, kind in kinds.items()
    }
    return _with_columns(rows, found)


def _with_columns(rows: pa.Table, found: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    return pa.table({name: found.get(name, rows[name]) for name in rows.column_names})
