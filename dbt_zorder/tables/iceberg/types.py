"""Convert the columns of a query to the types that Iceberg stores."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    IntegerType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

from dbt_zorder.request import check_names
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.lakehouse.types import replace_columns


def in_iceberg_types(df: DataFrame) -> DataFrame:
    """Return a query in the types that Iceberg stores: no integers below 32 bits, no CHAR or VARCHAR.

    Raises:
        ColumnError: two columns have one name.
    """
    check_names(df)
    df = as_text(df)
    return replace_columns(df, _casts(df))


def _casts(df: DataFrame) -> dict[str, str]:
    """Return SQL casts of the columns to widen, by name."""
    wider = {column.name: _widened(column.dataType) for column in df.schema.fields}
    return {
        column.name: f"CAST({quote_name(column.name)} AS {type_ddl(wider[column.name])})"
        for column in df.schema.fields
        if wider[column.name] != column.dataType
    }


def _widened(kind: DataType) -> DataType:
    if isinstance(kind, (ByteType, ShortType)):
        return IntegerType()
    if isinstance(kind, ArrayType):
        return ArrayType(_widened(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(_widened(kind.keyType), _widened(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        fields = (StructField(one.name, _widened(one.dataType), one.nullable, one.metadata) for one in kind.fields)
        return StructType(list(fields))
    return kind
