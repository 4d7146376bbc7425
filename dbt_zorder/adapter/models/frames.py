"""Conversion of in-memory tables (Arrow, pandas, Polars) to Spark DataFrames."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType, TimestampNTZType

from dbt_zorder.spark.sql import quote_name

_SUPPORTED_TYPES = {
    "string_view": pa.string(),
    "binary_view": pa.binary(),
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "uint64": pa.decimal128(20),
    "halffloat": pa.float32(),
}


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a DataFrame. Timestamps without a zone are in the session's time zone.

    Spark itself converts them, including local times that a clock change repeats or skips. PySpark would refuse
    those, and also time zones that only Spark supports.
    """
    accepts_arrow = int(pyspark.__version__.split(".")[0]) >= 4
    naive = [field.name for field in table.schema if pa.types.is_timestamp(field.type) and field.type.tz is None]
    # nested timestamps too: PySpark itself would read them in this process's time zone, not in the session's
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=not accepts_arrow)
    fields = [StructField(field.name, TimestampNTZType()) if field.name in naive else field for field in schema.fields]
    if accepts_arrow:
        df = spark.createDataFrame(table, StructType(fields))
    else:
        # PySpark 3.5 accepts no Arrow table. It accepts pandas, which need not be installed.
        rows = list(zip(*map(_values, table.columns), strict=True))
        df = spark.createDataFrame(rows, StructType(fields), verifySchema=False)
    casts = {name: f.col(quote_name(name)).cast("timestamp") for name in naive}
    return df.withColumns(casts) if casts else df


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column in the form PySpark expects: a map is a dictionary, not a list of pairs."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if pairs is None else dict(pairs) for pairs in values]
    return values


def spark_frame(spark: SparkSession, result: Any) -> DataFrame | None:
    """Return a Python model's result as a DataFrame, or None if it is not a table.

    Accept DataFrames of PySpark, pandas and pandas on Spark. Also accept every object that exports an Arrow stream,
    such as a PyArrow table or a Polars data frame. Missing values of pandas become NULL, and the index is dropped.
    """
    if callable(getattr(result, "to_spark", None)):
        return result.to_spark()  # type: ignore[no-any-return]
    if callable(getattr(result, "createGlobalTempView", None)):
        return result  # type: ignore[no-any-return]
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(result, pandas.DataFrame):
        return arrow_frame(
            spark, _supported_table(pa.Table.from_pandas(result, preserve_index=False).replace_schema_metadata())
        )
    if hasattr(result, "__arrow_c_stream__"):
        return arrow_frame(spark, _supported_table(pa.table(result)))
    return None


def _supported_table(table: pa.Table) -> pa.Table:
    """Return a table cast to types that PySpark accepts, which excludes Polars' view types and unsigned integers."""
    return table.cast(pa.schema([field.with_type(_supported_type(field.type)) for field in table.schema]))


def _supported_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that PySpark accepts in place of an Arrow type, also inside lists, structs and maps."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_supported_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_supported_type(kind.key_type), _supported_type(kind.item_type))
    if pa.types.is_dictionary(kind):
        return _supported_type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_supported_type(kind.value_type)))
    return _SUPPORTED_TYPES.get(str(kind), kind)
