"""Convert values to another type; match struct fields by name, also inside arrays and maps, never by position."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from dbt_zorder.errors import SchemaChangeError
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import checked_cast, quote_string

_DIGITS: Mapping[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
"""Number of decimal digits of the widest value of each integer type."""


def fields_by_name(struct: StructType, sensitive: bool, where: str = "") -> dict[str, StructField]:
    """Return the fields of a struct by name, in lower case unless the session is case sensitive.

    Raises:
        SchemaChangeError: the session does not distinguish two of the names; ``where`` names their column.
    """
    found: dict[str, StructField] = {}
    for field in struct.fields:
        other = found.setdefault(field.name if sensitive else field.name.lower(), field)
        if other is not field:
            msg = (
                f"The column '{where}' has the fields '{other.name}' and '{field.name}', which differ only by case, "
                "and this session does not distinguish them (spark.sql.caseSensitive)."
            )
            raise SchemaChangeError(msg)
    return found


def same_type(one: DataType, other: DataType) -> bool:
    """Return whether two types have the same fields in the same order; ignore nullability."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        pairs = zip(one.fields, other.fields, strict=False)
        return len(one) == len(other) and all(a.name == b.name and same_type(a.dataType, b.dataType) for a, b in pairs)
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return same_type(one.elementType, other.elementType)
    if isinstance(one, MapType) and isinstance(other, MapType):
        return same_type(one.keyType, other.keyType) and same_type(one.valueType, other.valueType)
    return type(one) is type(other) and one.simpleString() == other.simpleString()


def converted(value: str, found: DataType, wanted: DataType, name: str, sensitive: bool, depth: int = 0) -> str:
    """Return SQL that converts a value to another type; fields that it lacks become NULL.

    Scalars are cast as an ANSI INSERT casts them: a value that does not fit raises an error and never becomes NULL.

    Args:
        value: SQL of a column, a variable, or a field of either.
        found: type of the value.
        wanted: target type.
        name: dotted name of the column, for messages.
        sensitive: whether the session is case sensitive.
        depth: number of arrays and maps around the value.

    Raises:
        SchemaChangeError: only one of the types is a struct, an array or a map; or two keys of a map could become
            equal.
    """
    if same_type(found, wanted):
        return value
    if isinstance(found, NullType):
        return f"CAST(NULL AS {type_ddl(wanted)})"
    if isinstance(found, StructType) and isinstance(wanted, StructType):
        has, parts = fields_by_name(found, sensitive, name), []
        for key, field in fields_by_name(wanted, sensitive, name).items():
            other = has.get(key)
            # brackets, because `s`.`a` is column a of table s where such a table is in scope
            inner = (
                f"CAST(NULL AS {type_ddl(field.dataType)})"
                if other is None
                else converted(
                    f"{value}[{quote_string(other.name)}]", other.dataType, field.dataType,
                    f"{name}.{field.name}", sensitive, depth,
                )
            )  # fmt: skip
            parts.append(f"{quote_string(field.name)}, {inner}")
        return f"if({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        item = f"item_{depth}"
        inner = converted(item, found.elementType, wanted.elementType, f"{name}.element", sensitive, depth + 1)
        return f"transform({value}, {item} -> {inner})"
    if isinstance(found, MapType) and isinstance(wanted, MapType):
        return _converted_map(value, found, wanted, name, sensitive, depth)
    if any(isinstance(one, (StructType, ArrayType, MapType)) for one in (found, wanted)):
        msg = f"The column '{name}' is {found.simpleString()}, which cannot become {wanted.simpleString()}."
        raise SchemaChangeError(msg)
    complaint = f"A value of column {name} does not fit into {wanted.simpleString()}: "
    return checked_cast(value, type_ddl(wanted), complaint)


def _converted_map(value: str, found: MapType, wanted: MapType, name: str, sensitive: bool, depth: int) -> str:
    key, item = f"key_{depth}", f"item_{depth}"
    if not same_type(found.keyType, wanted.keyType):
        if not fits(found.keyType, wanted.keyType, sensitive, one_to_one=True):
            msg = (
                f"The keys of the map '{name}' are {found.keyType.simpleString()}, and not each of them would stay one "
                f"of its own as {wanted.keyType.simpleString()}."
            )
            raise SchemaChangeError(msg)
        inner = converted(key, found.keyType, wanted.keyType, f"{name}.key", sensitive, depth + 1)
        value = f"transform_keys({value}, ({key}, {item}) -> {inner})"
    if same_type(found.valueType, wanted.valueType):
        return value
    inner = converted(item, found.valueType, wanted.valueType, f"{name}.value", sensitive, depth + 1)
    return f"transform_values({value}, ({key}, {item}) -> {inner})"


def fits(found: DataType, wanted: DataType, sensitive: bool, *, one_to_one: bool = False) -> bool:
    """Return whether ``converted`` accepts every value of a type without loss of digits.

    Args:
        found: type of the values.
        wanted: target type.
        sensitive: whether the session is case sensitive.
        one_to_one: whether distinct values must stay distinct.
    """
    if same_type(found, wanted) or isinstance(found, NullType):
        return True
    if isinstance(found, StructType) and isinstance(wanted, StructType):
        has, gets = fields_by_name(found, sensitive), fields_by_name(wanted, sensitive)
        if one_to_one and has.keys() - gets.keys():
            return False
        both = has.keys() & gets.keys()
        return all(fits(has[key].dataType, gets[key].dataType, sensitive, one_to_one=one_to_one) for key in both)
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        return fits(found.elementType, wanted.elementType, sensitive, one_to_one=one_to_one)
    if isinstance(found, MapType) and isinstance(wanted, MapType):
        keys = fits(found.keyType, wanted.keyType, sensitive, one_to_one=True)
        return keys and fits(found.valueType, wanted.valueType, sensitive, one_to_one=one_to_one)
    return _widens(found, wanted) or (not one_to_one and _has_text(found) and type(wanted) is StringType)


def _widens(found: DataType, wanted: DataType) -> bool:
    digits = _DIGITS.get(type(found))
    if isinstance(wanted, DecimalType):
        if isinstance(found, DecimalType):
            digits = found.precision - found.scale
            return found.scale <= wanted.scale and digits <= wanted.precision - wanted.scale
        return digits is not None and digits <= wanted.precision - wanted.scale
    if digits is not None and type(wanted) in _DIGITS:
        return digits <= _DIGITS[type(wanted)]
    if isinstance(wanted, DoubleType):
        return isinstance(found, FloatType) or (digits is not None and digits <= _DIGITS[IntegerType])
    return isinstance(wanted, FloatType) and digits is not None and digits <= _DIGITS[ShortType]


def _has_text(kind: DataType) -> bool:
    """Return whether each value has a text form; binaries may not be UTF-8, and other types are left out."""
    return isinstance(kind, (NumericType, StringType)) or (
        isinstance(kind, AtomicType)
        and not isinstance(kind, BinaryType)
        and kind.typeName() in ("boolean", "date", "timestamp", "timestamp_ntz")
    )
