"""Keys of rows as Arrow arrays and NumPy integers, in the order of Spark."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DecimalType

from dbt_zorder.layout.keys import TEXT, Key


def key_values(values: pa.Array, key: Key) -> pa.Array:
    """Return the value of ``key.expression`` for a column in this process, with text as bytes.

    The column has a type that ``estimated_row_bytes`` supports.
    """
    if key.carrier in TEXT:
        return values.cast(pa.binary())
    if key.carrier == "double":
        return values.cast(pa.float64())
    if key.carrier != "bigint":
        return values
    return (values.cast(pa.int32()) if pa.types.is_date(values.type) else values).cast(pa.int64())


def key_type(key: Key) -> pa.DataType:
    """Return the Arrow type of the values of ``key_values``."""
    if key.carrier in TEXT:
        return pa.binary()
    if isinstance(key.column.data_type, DecimalType):
        return pa.decimal128(key.column.data_type.precision, key.column.data_type.scale)
    return {"double": pa.float64(), "timestamp_ntz": pa.timestamp("us")}.get(key.carrier, pa.int64())


def binaries(rows: npt.NDArray[np.uint8]) -> pa.Array:
    """Return an array of binary values, one for each row of bytes."""
    width, data = rows.shape[1], pa.py_buffer(np.ascontiguousarray(rows))
    return pa.Array.from_buffers(pa.binary(width), len(rows), [None, data]).cast(pa.binary())


def integers(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return whole numbers for NumPy, with 0 for NULL."""
    return np.asarray(pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), dtype=np.int64)
