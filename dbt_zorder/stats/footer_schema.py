"""Read the schema in a Parquet file's footer without Spark's reader, which builds any type that the footer names."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from dbt_zorder.spark.files import open_path
from dbt_zorder.spark.jvm import class_named, has_jvm
from dbt_zorder.spark.sql import glob_escape
from dbt_zorder.spark.type_json import columns_from_json

SCHEMA_KEY = "org.apache.spark.sql.parquet.row.metadata"
"""The footer key of a file's schema in files of Spark's own writer."""

_FOOTER_BYTES = 1 << 20
"""The bytes that a server reads from a file's end; for a longer footer it reads the whole file."""


def footer_schema(spark: SparkSession, folder: str) -> StructType:
    """Return the schema in the first file of a folder, the file that Spark would choose.

    Raises:
        LookupError: there is no file, or its footer has no schema.
        ZorderError: the schema names a type that is not Spark's own.
        Py4JJavaError, AnalysisException, ArrowException: the file cannot be read.
    """
    schema = _by_client(spark, folder) if has_jvm(spark) else _by_server(spark, folder)
    if not schema:
        msg = f"There is no file in {folder} that names its columns."
        raise LookupError(msg)
    return columns_from_json(schema, folder)


def _by_client(spark: SparkSession, folder: str) -> str | None:
    jvm: Any = spark._jvm
    system, path = open_path(spark, folder)
    if not system.exists(path):
        return None
    files = {str(one.getPath().getName()): one.getPath() for one in system.listStatus(path) if one.isFile()}
    names = sorted(name for name in files if name[0] not in "._")
    if not names:
        return None
    parquet = "org.apache.parquet.hadoop"
    file = class_named(jvm, f"{parquet}.util.HadoopInputFile").fromPath(files[names[0]], system.getConf())
    reader = class_named(jvm, f"{parquet}.ParquetFileReader").open(file)
    try:
        schema = reader.getFooter().getFileMetaData().getKeyValueMetaData().get(SCHEMA_KEY)
    finally:
        reader.close()
    return None if schema is None else str(schema)


def _by_server(spark: SparkSession, folder: str) -> bytes | None:
    """Return the same over Spark Connect, whose server reads the file as bytes."""
    files = spark.read.format("binaryFile").load(glob_escape(folder)).where("length > 0").orderBy("path").limit(1)
    for column in (f.expr(f"substring(content, -{_FOOTER_BYTES}, {_FOOTER_BYTES})"), f.col("content")):
        rows = files.select(column).collect()
        if not rows:
            return None
        end = bytes(rows[0][0])
        if int.from_bytes(end[-8:-4], "little") + 8 <= len(end):
            found: bytes | None = (pq.read_metadata(pa.BufferReader(end)).metadata or {}).get(SCHEMA_KEY.encode())
            return found
    return None
