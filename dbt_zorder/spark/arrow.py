"""Rows of a DataFrame as Arrow: their types, the rows of a small one, and the way back."""

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
"""What Arrow calls a column of Spark's, by what Spark calls it; of decimals there are many."""


def collect_arrow(df: DataFrame) -> pa.Table:
    """Return all rows of a small DataFrame as one Arrow table, by the way that the installed PySpark has."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    batches = df._collect_as_arrow()  # type: ignore[operator]
    if batches:
        return pa.Table.from_batches(batches)
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.Table.from_batches([], schema=to_arrow_schema(df.schema))


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece: as it is where it is one, which ``combine_chunks`` would copy."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def first_rows(df: DataFrame, count: int) -> DataFrame:
    """Return some rows of ``df`` as a DataFrame of their own, read from as few of its splits as hold so many.

    A limit that is sorted, or fetched as Arrow, takes that many rows of every split instead. The rows stay in the JVM,
    where there is one: through Python it takes five times as long.
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
    """Tell whether a session can make a DataFrame of an Arrow table: not PySpark 3.5 over Spark Connect."""
    return hasattr(DataFrame, "toArrow") or has_jvm(spark)


def frame_of(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Return a small Arrow table as a DataFrame of these types, a local relation.

    PySpark 3.5 has no call for it, but of pandas its ``createDataFrame`` makes Arrow batches, which it hands to the JVM
    in a file: so does this. The JVM takes them for what Spark's types are in Arrow, so they are cast to that first.

    Raises:
        ArrowException, TypeError: Arrow has no such type, or a value is not of it.
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
