"""Which of the bit encodings serves a column, by its type."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from dbt_zorder.curve.bits import bits_sql, float_integers, high_part, ordered_bits
from dbt_zorder.engine.local.compare import integers
from dbt_zorder.engine.local.decimals import can_compact, compacted
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.sql import quote_name


def bits_of(column: ResolvedColumn) -> str:
    """Return SQL text of a column's 64 ordered bits, see ``dbt_zorder.curve.bits``.

    As in ``key_of``, an array counts by its first element and a struct by its first field.
    """
    return bits_sql(*_kind(column.sql, column.data_type))


def bits_here(values: pa.Array, column: ResolvedColumn) -> npt.NDArray[np.int64]:
    """Return the same for many values.

    Args:
        values: of the column's key, as ``key_here`` gives them.
        column: of a type that ``width_of`` knows.
    """
    _, kind = _kind("", column.data_type)
    found = ordered_bits(_integers(values, kind), kind)
    if values.null_count:
        found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def _integers(values: pa.Array, kind: str) -> npt.NDArray[np.int64]:
    if kind in ("string", "binary"):
        return _first_bytes(pc.fill_null(values, b""))
    if pa.types.is_floating(values.type):
        return float_integers(np.asarray(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)), kind)
    if can_compact(values.type):
        return integers(compacted(values))
    if pa.types.is_decimal(values.type):
        high = high_part(kind)
        assert high is not None
        # by way of its text, as Java does: Arrow's own cast may be one bit off
        numbers = pc.fill_null(values.cast(pa.string()).cast(pa.float64()), 0.0)
        return np.asarray(numbers.to_numpy(zero_copy_only=False) * high).astype(np.int64)
    return integers(values) - (kind == "boolean")


def _first_bytes(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return the first eight bytes of each value as a number, less half of all such numbers."""
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset :][: len(values) + 1].astype(np.int64)
    data = np.frombuffer(values.buffers()[2] or b"\0", dtype=np.uint8)
    found = np.zeros(len(values), dtype=np.uint64)
    for place in range(8):
        at = offsets[:-1] + place
        found = found << np.uint64(8) | np.where(at < offsets[1:], data.take(at, mode="clip"), 0).astype(np.uint64)
    return (found ^ np.uint64(1 << 63)).view(np.int64)


def _kind(sql: str, data_type: t.DataType) -> tuple[str, str]:
    """Return SQL text and kind of what stands for a value; the type is one that ``key_of`` accepts."""
    name = data_type.simpleString()
    if isinstance(data_type, t.DayTimeIntervalType):
        return sql, "micros"
    if isinstance(data_type, t.YearMonthIntervalType):
        return sql, "months"
    if isinstance(data_type, t.ArrayType):
        return _kind(f"get({sql}, 0)", data_type.elementType)
    if isinstance(data_type, t.StructType):
        first = data_type.fields[0]
        return _kind(f"{sql}.{quote_name(first.name)}", first.dataType)
    if name.startswith("time("):
        return f"CAST({sql} AS STRING)", "string"
    if name.startswith(("string", "varchar", "char")):
        return sql, "string"  # text of any collation goes by its bytes
    return sql, name
