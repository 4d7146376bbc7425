"""The types in which a format keeps the columns of a query."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, ByteType, DataType, IntegerType, MapType, ShortType, StructField, StructType

from dbt_zorder.ddl import type_ddl
from dbt_zorder.sql import quote_name
from dbt_zorder.table.request import BuildRequest, check_names


def as_kept(df: DataFrame, request: BuildRequest) -> DataFrame:
    """Return a query in the types that a format keeps: Iceberg has no whole numbers below 32 bits.

    Raises:
        ColumnError: two columns have one name.
    """
    check_names(df)
    if request.file_format != "iceberg":
        return df
    if all(_widened(column.dataType) == column.dataType for column in df.schema.fields):
        return df
    columns = []
    for column in df.schema.fields:
        kept, name = _widened(column.dataType), quote_name(column.name)
        cast = name if kept == column.dataType else f"CAST({name} AS {type_ddl(kept)})"
        columns.append(f.expr(cast).alias(column.name))
    return df.select(*columns)


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
