"""Convert between DataFrames and Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.spark.jvm import has_jvm

ARROW_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}
"""Arrow type by the name of Spark's type. Decimals are missing, because each precision and scale has its own type."""


def collect_arrow(df: DataFrame) -> pa.Table:
    """Return all rows of a small DataFrame as one Arrow table, by the method of the installed PySpark."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    batches = df._collect_as_arrow()  # type: ignore[operator]
    if batches:
        return pa.Table.from_batches(batches)
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.Table.from_batches([], schema=to_arrow_schema(df.schema))


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without the copy that ``combine_chunks`` makes of a single chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def first_rows(df: DataFrame, count: int) -> DataFrame:
    """Return ``count`` rows of ``df`` as a DataFrame of their own, read from as few of its splits as possible.

    A limit that is sorted, or fetched as Arrow, reads that many rows of every split instead. The rows stay in the JVM
    if this process has one: the way through Python is five times slower.
    """
    spark = df.sparkSession
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        return spark.createDataFrame(df.take(count), df.schema)
    made: Any = DataFrame
    rows = spark._jsparkSession.createDataFrame(df._jdf.takeAsList(count), df._jdf.schema())
    frame: DataFrame = made(rows, spark)
    return frame


def takes_arrow(spark: SparkSession) -> bool:
    """Return whether a session can make a DataFrame of an Arrow table: not PySpark 3.5 over Spark Connect."""
    return hasattr(DataFrame, "toArrow") or has_jvm(spark)


def frame_of(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Return a small Arrow table as a DataFrame of these types, a local relation.

    PySpark 3.5 has no method for it. Its ``createDataFrame`` converts pandas to Arrow batches and passes them to the
    JVM in a file; this function does the same. The JVM assumes the Arrow equivalents of Spark's types, so the table is
    cast to those first.

    Raises:
        ArrowException, TypeError: Arrow has no such type, or a value does not fit it.
    """
    if hasattr(DataFrame, "toArrow"):
        return spark.createDataFrame(table, schema=schema)
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer
    from pyspark.sql.pandas.types import to_arrow_schema

    types = to_arrow_schema(schema)
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    batches = context._serialize_to_jvm(
        table.cast(types).to_batches() or [pa.RecordBatch.from_pylist([], types)],
        ArrowStreamSerializer(),
        jvm.PythonSQLUtils.readArrowStreamFromFile,
        jvm.ArrowIteratorServer,
    )
    made: Any = DataFrame
    frame: DataFrame = made(jvm.PythonSQLUtils.toDataFrame(batches, schema.json(), spark._jsparkSession), spark)
    return frame
