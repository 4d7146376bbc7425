"""Rewrite a Parquet table of another writer into a first version, and leave its former files where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import BuildError, ConfigError
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest, check
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.jvm import class_named, has_jvm, items, jvm_of
from dbt_zorder.stats.listing import data_files
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.partition_discovery import let_folders_tell
from dbt_zorder.tables.parquet.properties import all_properties
from dbt_zorder.tables.report import BuildReport

_DEFAULTS = ("CURRENT_DEFAULT", "EXISTS_DEFAULT")
"""Keys of the field metadata of a column with a default value."""


def adoption_request(spark: SparkSession, table: TableName, info: TableInfo, spec: LayoutSpec) -> BuildRequest:
    """Return the request that rewrites a table with its comments, properties, partitions and buckets.

    Raises:
        ConfigError: a column has a default value, which a rewrite would lose; or the catalog registers other partitions
            than the table's folders have.
        ColumnError: a column to cluster by does not exist or cannot be ordered.
    """
    if info.partition_columns:
        _check_partitions(spark, table, info)
        let_folders_tell(spark)
    df = spark.table(table.sql)
    for field in df.schema.fields:
        if any(key in (field.metadata or {}) for key in _DEFAULTS):
            msg = (
                f"zorder_optimize: the column '{field.name}' of {table} has a default value, which the rewritten table "
                "would not have: drop the default first, by ALTER TABLE."
            )
            raise ConfigError(msg)
    request = BuildRequest(
        table,
        spec,
        comment=info.comment,
        column_comments=info.column_comments,
        properties=all_properties(spark, table),
        hash_index=HashIndex.of_names(info.bucket_columns, info.bucket_count),
        leaves_replaced=True,
    )
    check(df, request)
    return request


def adopt(spark: SparkSession, request: BuildRequest, info: TableInfo) -> BuildReport:
    """Rewrite a table by the request of ``adoption_request``; give up if its files change meanwhile.

    Raises:
        BuildError: ``build`` raised it, or another writer changed the table's files.
    """
    spark.catalog.refreshTable(request.table.sql)
    df = spark.table(request.table.sql)
    return build(spark, df, request, guard=_watch(df, request.table, info), info=info)


def _watch(df: DataFrame, table: TableName, info: TableInfo) -> Callable[[], None]:
    """Return a function that checks that a table still has the files that a query on it reads."""
    spark = df.sparkSession
    before = sorted(df.inputFiles()), data_files(spark, info.location)

    def check_same() -> None:
        spark.catalog.refreshTable(table.sql)
        if before != (sorted(spark.table(table.sql).inputFiles()), data_files(spark, info.location)):
            msg = (
                f"Another writer changed the files of {table} while this run was at work; this run is abandoned and "
                "changed nothing. Run it again."
            )
            raise BuildError(msg)

    return check_same


def _check_partitions(spark: SparkSession, table: TableName, info: TableInfo) -> None:
    """Check that the table's partitions in the catalog are its folders: other sessions read the former.

    Raises:
        ConfigError: they differ, or this session cannot read them.
    """
    if not info.partition_provider:
        return
    if not has_jvm(spark):
        msg = f"zorder_optimize: Spark Connect cannot compare the catalog's partitions of {table}: run it in-process."
        raise ConfigError(msg)
    registered = {_folder(place) for place in _partition_places(spark, table)}
    files = data_files(spark, info.location)
    there = {_folder(path.rsplit("/", 1)[0]) for path in files}
    home = _folder(info.location) + "/"
    odd = sorted({*(there - registered), *(place for place in registered if not place.startswith(home))})
    if odd:
        msg = (
            f"zorder_optimize: the catalog registers other partitions of {table} than its folder has: {odd[0]}. "
            "Register those of the folder by MSCK REPAIR TABLE, and move others there."
        )
        raise ConfigError(msg)


def _partition_places(spark: SparkSession, table: TableName) -> list[str]:
    session: Any = spark._jsparkSession
    every = class_named(jvm_of(spark), "scala.Option").empty()
    found = session.sharedState().externalCatalog().listPartitions(table.schema, table.identifier, every)
    return [str(one.location().toString()) for one in items(found)]


def _folder(uri: str) -> str:
    """Return the path of a folder in one spelling."""
    scheme, _, path = uri.partition(":")
    return f"{scheme}:/{unquote(path).strip('/')}"
