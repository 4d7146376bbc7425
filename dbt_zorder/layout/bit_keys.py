"""The encoding ``bits`` of a column by its type, in SQL and in Arrow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from dbt_zorder.curve.bits import _WIDTHS, IEEE, decimal_digits, float_integers, high_part, ordered_bits, width_of_kind
from dbt_zorder.layout.key_arrays import integers
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.decimals import can_compact, pack_decimals
from dbt_zorder.spark.sql import quote_name


def bits_of(column: ResolvedColumn) -> str:
    """Return SQL text of a column's 64 ordered bits, see ``dbt_zorder.curve.bits``.

    As in ``key_of``, an array is encoded by its first element and a struct by its first field.
    """
    return bits_sql(*_kind(column.sql, column.data_type))


def bit_values(values: pa.Array, column: ResolvedColumn) -> npt.NDArray[np.int64]:
    """Return the 64 ordered bits of many values in this process.

    Args:
        values: values of the column's key, as ``key_values`` returns them.
        column: column of a type that ``estimated_row_bytes`` supports.
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
        return integers(pack_decimals(values))
    if pa.types.is_decimal(values.type):
        high = high_part(kind)
        assert high is not None
        # cast by way of text, as Java does: Arrow's own cast may be wrong by one bit
        numbers = pc.fill_null(values.cast(pa.string()).cast(pa.float64()), 0.0)
        return np.asarray(numbers.to_numpy(zero_copy_only=False) * high).astype(np.int64)
    return integers(values) - (kind == "boolean")


def _first_bytes(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return the first eight bytes of each value as a number, less half of the range."""
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset :][: len(values) + 1].astype(np.int64)
    data = np.frombuffer(values.buffers()[2] or b"\0", dtype=np.uint8)
    found = np.zeros(len(values), dtype=np.uint64)
    for place in range(8):
        at = offsets[:-1] + place
        found = found << np.uint64(8) | np.where(at < offsets[1:], data.take(at, mode="clip"), 0).astype(np.uint64)
    return (found ^ np.uint64(1 << 63)).view(np.int64)


def _kind(sql: str, data_type: t.DataType) -> tuple[str, str]:
    """Return SQL text and kind of the representative of a value, whose type ``key_of`` accepts."""
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
        return sql, "string"  # text of any collation is ordered by its bytes
    return sql, name


_EPOCH_SQL = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


_SIGN = "shiftleft(1L, 63)"


def bits_sql(sql: str, kind: str) -> str:
    """Return SQL text of the 64 bits of a value as BIGINT, to be read as unsigned; 0 for NULL.

    Args:
        sql: SQL text of a value of the kind's type.
        kind: kind of the value, see the module ``dbt_zorder.curve.bits``.
    """
    width = width_of_kind(kind)
    number = _integer_sql(sql, kind)
    if width == 64:
        bits = f"({_SIGN} ^ greatest({number}, {1 - (1 << 63)}L))"
    else:
        bits = f"(shiftleft({number} + {1 << width - 1}L, {64 - width}) | 1L)"
    return f"CASE WHEN {sql} IS NULL THEN 0L ELSE {bits} END"


def _integer_sql(sql: str, kind: str) -> str:
    if kind == "boolean":
        return f"(CAST({sql} AS BIGINT) - 1L)"
    if kind in IEEE:
        return _ieee_sql(sql, kind)
    if kind.startswith("decimal"):
        high, (_, scale) = high_part(kind), decimal_digits(kind)
        if high:
            return f"CAST(CAST({sql} AS DOUBLE) * {high!r}D AS BIGINT)"
        return f"CAST({sql} * CAST('{10**scale}' AS DECIMAL({scale + 1}, 0)) AS BIGINT)"
    if kind == "date":
        return f"CAST(unix_date({sql}) AS BIGINT)"
    if kind == "timestamp":
        return f"unix_micros({sql})"
    if kind == "timestamp_ntz":
        return _micros_sql(f"({sql} - {_EPOCH_SQL})")
    if kind == "micros":
        return _micros_sql(f"CAST({sql} AS INTERVAL DAY TO SECOND)")
    if kind == "months":
        return f"CAST(CAST({sql} AS INTERVAL MONTH) AS BIGINT)"
    if kind in ("string", "binary"):
        start = f"rpad(hex(substr(CAST({sql} AS BINARY), 1, 8)), 16, '0')"
        return f"({_SIGN} ^ CAST(conv({start}, 16, -10) AS BIGINT))"
    return f"CAST({sql} AS BIGINT)"


def _micros_sql(interval: str) -> str:
    """Return SQL text of an interval's microseconds; nothing overflows because its parts share a sign."""
    # for a timestamp without zone, Spark has no function for this that ignores the session's zone
    seconds = f"CAST(extract(SECOND FROM {interval}) * 1000000 AS BIGINT)"
    whole = f"CAST(extract(HOUR FROM {interval}) AS BIGINT) * 3600000000L"
    minutes = f"CAST(extract(MINUTE FROM {interval}) AS BIGINT) * 60000000L"
    return f"(CAST(extract(DAY FROM {interval}) AS BIGINT) * 86400000000L + {whole} + {minutes} + {seconds})"


def _ieee_sql(sql: str, kind: str) -> str:
    """Return SQL text of the bits of a number's magnitude, with its sign.

    Both zeros share a code, and NaN is above all. Spark has no function for these bits, but all steps here are exact.
    The exponent from the logarithm may be wrong by one. Division by a power of two does not round, so the quotient
    shows this error.
    """
    mantissa, least = IEEE[kind]
    value = f"CAST({sql} AS DOUBLE)"
    size = f"abs({value})"
    infinity = f"{(2 * (1 - least) + 1) << mantissa}L"
    guess = f"greatest(least(floor(log2({size})), 1023L), -1022L)"
    quotient = f"({size} / pow(2.0D, {guess}))"
    off = f"(CAST({quotient} >= 2.0D AS INT) - CAST({quotient} < 1.0D AS INT))"
    fraction = f"CAST(({quotient} / pow(2.0D, {off}) - 1.0D) * {float(1 << mantissa)!r}D AS BIGINT)"
    normal = f"(shiftleft({guess} + {off} + {1 - least}L, {mantissa}) + {fraction})"
    # 2^1074 exceeds a double, so multiply by two factors
    half = (mantissa - least) // 2
    factors = f"{2.0**half!r}D * {2.0 ** (mantissa - least - half)!r}D"
    subnormal = f"CAST({size} * {factors} AS BIGINT)"
    magnitude = (
        f"CASE WHEN {size} = double('Infinity') THEN {infinity} WHEN {size} < {2.0**least!r}D THEN {subnormal} "
        f"ELSE {normal} END"
    )
    highest = (1 << _WIDTHS[kind] - 1) - 1
    return f"CASE WHEN isnan({sql}) THEN {highest}L ELSE CAST(sign({value}) AS BIGINT) * ({magnitude}) END"
