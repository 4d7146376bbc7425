"""Read the schema in a Parquet file's footer without Spark's reader, which builds any type that the footer names."""

from __future__ import annotations

import re
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

_MILLIS = re.compile(r"TIMESTAMP(?:\(|_)MILLIS")
_FILES_AT_MOST = 64

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


def cuts_times(spark: SparkSession, folder: str) -> bool:
    """Return whether a file in a folder stores times without their microseconds, or may do so.

    Over Spark Connect, and for more than 64 files, nothing is read.
    """
    if not has_jvm(spark):
        return True
    system, files = _data_files(spark, folder)
    if not 0 < len(files) <= _FILES_AT_MOST:
        return True
    return any(_MILLIS.search(str(_footer(spark, system, file).getSchema().toString())) for file in files)


def _by_client(spark: SparkSession, folder: str) -> str | None:
    system, files = _data_files(spark, folder)
    if not files:
        return None
    schema = _footer(spark, system, files[0]).getKeyValueMetaData().get(SCHEMA_KEY)
    return None if schema is None else str(schema)


def _data_files(spark: SparkSession, folder: str) -> tuple[Any, list[Any]]:
    """Return the file system of a folder, and the paths of its data files by name; none if there is no folder."""
    system, path = open_path(spark, folder)
    if not system.exists(path):
        return system, []
    files = {str(one.getPath().getName()): one.getPath() for one in system.listStatus(path) if one.isFile()}
    return system, [files[name] for name in sorted(files) if name[0] not in "._"]


def _footer(spark: SparkSession, system: Any, file: Any) -> Any:
    """Return the metadata in a Parquet file's footer."""
    parquet = "org.apache.parquet.hadoop"
    opened = class_named(spark._jvm, f"{parquet}.util.HadoopInputFile").fromPath(file, system.getConf())
    reader = class_named(spark._jvm, f"{parquet}.ParquetFileReader").open(opened)
    try:
        return reader.getFooter().getFileMetaData()
    finally:
        reader.close()


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
