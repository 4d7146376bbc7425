"""Convert CHAR and VARCHAR to STRING, as our tables store them.

Spark reads both as STRING, and keeps the declared type in the column's metadata. With
``spark.sql.preserveCharVarcharTypeInfo`` (PySpark 4) they are types of their own, which all of Spark's readers refuse.
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
"""Key of the field metadata with the declared CHAR or VARCHAR type of a column that Spark reads as STRING."""

_BOTH = (CharType, VarcharType)


def is_char(column: StructField) -> bool:
    """Return whether a column, or a part of it, is declared CHAR: Spark ignores trailing blanks of its values."""
    declared = str((column.metadata or {}).get(_DECLARED, ""))
    return "char(" in declared.replace("varchar(", "") or _as_text(column.dataType, CharType) != column.dataType


def text_type(data_type: DataType) -> DataType:
    """Return a type with STRING in place of CHAR and VARCHAR, also in structs, arrays and maps."""
    return _as_text(data_type, *_BOTH)


def reader_schema(schema: StructType) -> StructType:
    """Return columns as Spark's readers accept them: only name and ``text_type``, all nullable.

    Declarations of a query's columns, such as the blanks of CHAR, need not be true for the written data.
    """
    return StructType([StructField(column.name, text_type(column.dataType)) for column in schema.fields])


def as_text(df: DataFrame) -> DataFrame:
    """Return a query whose columns have ``text_type``, with the metadata that Spark writes for the declared types."""
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
