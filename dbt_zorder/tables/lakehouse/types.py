"""The types and values in which a format keeps the columns of a query."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    IntegerType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from dbt_zorder.layout.partitions import null_if_unnamed
from dbt_zorder.request import BuildRequest, check_names, partition_columns
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.columns import naming
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import quote_name


def as_kept(df: DataFrame, request: BuildRequest) -> DataFrame:
    """Return a query in the types and values that a format keeps: CHAR and VARCHAR as STRING.

    Iceberg has no whole numbers below 32 bits; to Delta Lake, an empty text that parts a table is NULL ("Partition
    Value Serialization").

    Raises:
        ColumnError: two columns have one name, or ``partition_by`` names none.
    """
    check_names(df)
    df = as_text(df)
    kept = _casts(df) if request.file_format == "iceberg" else _nulls(df, request)
    if not kept:
        return df
    names = ((column, quote_name(column.name)) for column in df.schema.fields)
    return df.select(
        *(f.expr(kept.get(column.name, name)).alias(column.name, metadata=column.metadata) for column, name in names)
    )


def _casts(df: DataFrame) -> dict[str, str]:
    """Return SQL text of the columns that are of wider types, by their names."""
    wider = {column.name: _widened(column.dataType) for column in df.schema.fields}
    return {
        column.name: f"CAST({quote_name(column.name)} AS {type_ddl(wider[column.name])})"
        for column in df.schema.fields
        if wider[column.name] != column.dataType
    }


def _nulls(df: DataFrame, request: BuildRequest) -> dict[str, str]:
    """Return SQL text of the columns of text that part the table, by their names."""
    with naming("partition_by"):
        parts = partition_columns(df.sparkSession, df.schema, request)
    return {part.name: null_if_unnamed(part.sql) for part in parts if isinstance(part.data_type, StringType)}


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
