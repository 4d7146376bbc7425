"""Decide which types may be compared through a file's bounds, because Spark's coercion keeps the column's order.

A pair is listed only if Spark leaves the column unchanged, or casts it to a type in which order cannot change. See
table (a) of the research behind this package, "implicit cast on the column" and "literal of another type".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import types as t

from dbt_zorder.pruning.predicate.names import plain_string


class Family(Enum):
    """Types that behave alike in comparisons."""

    INTEGRAL = "integral"
    DECIMAL = "decimal"
    BINARY_FLOAT = "float"
    STRING = "string"
    BOOLEAN = "boolean"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    NULL = "void"


_FAMILIES: dict[type[t.DataType], Family] = {
    t.ByteType: Family.INTEGRAL,
    t.ShortType: Family.INTEGRAL,
    t.IntegerType: Family.INTEGRAL,
    t.LongType: Family.INTEGRAL,
    t.DecimalType: Family.DECIMAL,
    t.FloatType: Family.BINARY_FLOAT,
    t.DoubleType: Family.BINARY_FLOAT,
    t.BooleanType: Family.BOOLEAN,
    t.BinaryType: Family.BINARY,
    t.DateType: Family.DATE,
    t.TimestampType: Family.TIMESTAMP,
    t.TimestampNTZType: Family.TIMESTAMP_NTZ,
    t.NullType: Family.NULL,
}
_DIGITS: dict[type[t.DataType], int] = {t.ByteType: 3, t.ShortType: 5, t.IntegerType: 10, t.LongType: 20}
_INTEGRAL_ORDER = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
NUMERIC = {Family.INTEGRAL, Family.DECIMAL, Family.BINARY_FLOAT}
_MAX_PRECISION = 38

# Column family -> literal families whose comparison keeps the column's order. Decimals must also fit in 38 digits.
_COMPARABLE: dict[Family, set[Family]] = {
    Family.INTEGRAL: {*NUMERIC, Family.STRING},
    Family.DECIMAL: {*NUMERIC, Family.STRING},
    Family.BINARY_FLOAT: {*NUMERIC, Family.STRING},
    Family.STRING: {Family.STRING},
    Family.BOOLEAN: {Family.BOOLEAN},
    Family.BINARY: {Family.BINARY},
    Family.DATE: {Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_NTZ, Family.STRING},
    Family.TIMESTAMP: {Family.TIMESTAMP, Family.TIMESTAMP_NTZ, Family.DATE, Family.STRING},
    Family.TIMESTAMP_NTZ: {Family.TIMESTAMP_NTZ, Family.DATE, Family.STRING},
}
_DATETIME = {Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_NTZ}


@dataclass(frozen=True)
class Rules:
    """Settings of the reader's session that affect type coercion.

    Attributes:
        datetime_as_string: ``spark.sql.legacy.typeCoercion.datetimeToString.enabled``, under which a date that is
            compared with a string becomes a string.
    """

    datetime_as_string: bool = False


def family(data_type: t.DataType) -> Family | None:
    """Return the family of a type, or None for unsupported types (arrays, intervals, collations ...)."""
    if isinstance(data_type, t.StringType):
        return Family.STRING if plain_string(data_type) else None
    return _FAMILIES.get(type(data_type))


def comparable(column: t.DataType, literal: t.DataType, rules: Rules) -> bool:
    """Return whether the bounds of ``column`` can decide ``column op literal`` for every comparison operator."""
    left, right = family(column), family(literal)
    if left is None or right is None or left is Family.NULL:
        return False
    if right is Family.NULL:
        return True
    if right is Family.STRING and left in _DATETIME and rules.datetime_as_string:
        return False
    if right not in _COMPARABLE[left]:
        return False
    return fits(column, literal)


def comparable_in_list(column: t.DataType, literals: Sequence[t.DataType], rules: Rules) -> bool:
    """Return whether ``column IN (literals)`` can be decided value by value.

    Spark casts the column and all values to one type, which may differ from the type of a single comparison. ``bigint
    IN (9007199254740993, 1.0D)`` compares as double. Strings beside a timestamp make both strings. In the hour when a
    clock is set back, two instants have the same text.
    """
    values = [literal for literal in literals if family(literal) is not Family.NULL]
    kinds = {family(literal) for literal in values}
    left = family(column)
    if not all(comparable(column, literal, rules) for literal in values) or left is None:
        return False
    if len(kinds) <= 1 and len({_name(literal) for literal in values}) <= 1:
        kind = next(iter(kinds), None)
        if kind is Family.DECIMAL and left in {Family.INTEGRAL, Family.DECIMAL}:
            return fits(column, *values)  # the scales may differ
        return not (kind is Family.STRING and left not in {Family.STRING, Family.INTEGRAL, Family.DATE})
    if kinds <= {Family.INTEGRAL, Family.DECIMAL} and left in {Family.INTEGRAL, Family.DECIMAL}:
        return fits(column, *values)
    return left is Family.BINARY_FLOAT and kinds <= NUMERIC


def sorts_alike(column: t.DataType, literals: Sequence[t.DataType]) -> bool:
    """Return whether an array keeps these literals, which are ``comparable_in_list``, as the column compares them.

    Spark casts an array's elements to one type. Numbers beside a float become floats and lose digits that a DOUBLE
    column would compare. Decimals beyond 38 digits are rounded.
    """
    values = [literal for literal in literals if family(literal) is not Family.NULL]
    kinds = {family(literal) for literal in values}
    if not kinds <= NUMERIC:
        return kinds == {family(column)}
    floats = [isinstance(literal, t.FloatType) for literal in values]
    whole = not any(floats) or all(floats) or any(isinstance(literal, t.DoubleType) for literal in values)
    return whole and fits(*values)


def fits(*data_types: t.DataType) -> bool:
    """Return whether exact numbers of these types have a common decimal type; Spark rounds beyond 38 digits."""
    sizes = [_digits(data_type) for data_type in data_types]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or not any(isinstance(data_type, t.DecimalType) for data_type in data_types):
        return True
    return max(whole for whole, _ in known) + max(scale for _, scale in known) <= _MAX_PRECISION


def keeps_order(column: t.DataType, target: t.DataType) -> bool:
    """Return whether ``CAST(column AS target)`` never changes order and never makes a value NULL."""
    left, right = family(column), family(target)
    if left is None or right is None:
        return False
    if column == target:
        return True
    if left is Family.INTEGRAL and right is Family.INTEGRAL:
        return _INTEGRAL_ORDER.index(type(column)) <= _INTEGRAL_ORDER.index(type(target))
    if right is Family.DECIMAL and left in {Family.INTEGRAL, Family.DECIMAL}:
        (whole, scale), (to_whole, to_scale) = _digits(column) or (99, 0), _digits(target) or (0, 0)
        return to_whole >= whole and to_scale >= scale
    if right is Family.BINARY_FLOAT and left in {Family.INTEGRAL, Family.DECIMAL}:
        return left is Family.INTEGRAL or isinstance(target, t.DoubleType)
    if left is Family.BINARY_FLOAT:
        return isinstance(column, t.FloatType) and isinstance(target, t.DoubleType)
    return left is Family.DATE and right in {Family.TIMESTAMP, Family.TIMESTAMP_NTZ}


def _digits(data_type: t.DataType) -> tuple[int, int] | None:
    """Return (digits before the point, digits after it), or None if a type is not an exact number."""
    if isinstance(data_type, t.DecimalType):
        return data_type.precision - data_type.scale, data_type.scale
    whole = _DIGITS.get(type(data_type))
    return None if whole is None else (whole, 0)


def _name(data_type: t.DataType) -> str:
    return "decimal" if isinstance(data_type, t.DecimalType) else data_type.simpleString()
