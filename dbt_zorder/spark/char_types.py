"""CHAR and VARCHAR: how a query declares them, and STRING in their place, as which tables of ours keep them.

Spark reads both as STRING, and notes in a column's metadata what was declared. With
``spark.sql.preserveCharVarcharTypeInfo`` (PySpark 4) they are types of their own, which all of its readers refuse.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import quote_name

_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Key of the field metadata under which Spark keeps the declared CHAR or VARCHAR type of what it reads as STRING."""

_BOTH = (CharType, VarcharType)


def is_char(column: StructField) -> bool:
    """Tell whether a column, or something in it, was declared CHAR: to Spark blanks behind its values do not count."""
    declared = str((column.metadata or {}).get(_DECLARED, ""))
    return "char(" in declared.replace("varchar(", "") or _as_text(column.dataType, CharType) != column.dataType


def text_type(data_type: DataType) -> DataType:
    """Return a type with STRING in the place of CHAR and VARCHAR, also in structs, arrays and maps."""
    return _as_text(data_type, *_BOTH)


def reader_schema(schema: StructType) -> StructType:
    """Return columns as a reader of Spark's accepts them: by name and ``text_type`` alone, all of which may be NULL.

    What a query's columns are declared as, as the blanks of CHAR, is not true of what was written.
    """
    return StructType([StructField(column.name, text_type(column.dataType)) for column in schema.fields])


def as_text(df: DataFrame) -> DataFrame:
    """Return a query whose columns are of ``text_type``, with the note that Spark itself makes of what they were."""
    fields = df.schema.fields
    if all(text_type(field.dataType) == field.dataType for field in fields):
        return df
    return df.select(*map(_text_column, fields))


def _text_column(field: StructField) -> Column:
    name, kind, notes = quote_name(field.name), text_type(field.dataType), field.metadata or {}
    if kind == field.dataType:
        return f.expr(name)
    notes = {**notes, _DECLARED: field.dataType.simpleString()}
    return f.expr(f"CAST({name} AS {type_ddl(kind)})").alias(field.name, metadata=notes)


def _as_text(data_type: DataType, *kinds: type[DataType]) -> DataType:
    if isinstance(data_type, kinds):
        return StringType()
    if isinstance(data_type, ArrayType):
        return ArrayType(_as_text(data_type.elementType, *kinds), data_type.containsNull)
    if isinstance(data_type, MapType):
        key, value = (_as_text(one, *kinds) for one in (data_type.keyType, data_type.valueType))
        return MapType(key, value, data_type.valueContainsNull)
    if isinstance(data_type, StructType):
        fields = data_type.fields
        return StructType(
            [StructField(one.name, _as_text(one.dataType, *kinds), one.nullable, one.metadata) for one in fields]
        )
    return data_type
