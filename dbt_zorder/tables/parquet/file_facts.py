"""Collect the facts of a Parquet table's files: from its stats, and from footers where a file has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.stats.footer_ranges import read_ranges
from dbt_zorder.stats.listing import data_files
from dbt_zorder.stats.schema import columns_type
from dbt_zorder.stats.store import load_stats
from dbt_zorder.stats.summary import gather
from dbt_zorder.tables.batch_size import NOT_BUILT
from dbt_zorder.tables.health import FileFacts
from dbt_zorder.tables.parquet.retention.whole_versions import check_there
from dbt_zorder.tables.parquet.saved_layout import SavedLayout, read_tree
from dbt_zorder.tables.version import read_marker, version_of


def read_facts(spark: SparkSession, table: TableName, info: TableInfo, names: Sequence[str]) -> FileFacts:
    """Return the facts of a Parquet table's files.

    Args:
        spark: the session.
        table: name of the table.
        info: current catalog description of the table.
        names: columns to examine; by default those that the table is clustered by.

    Raises:
        ZorderError: the relation is a view, or a table of another format; or the folder is gone.
        ColumnError, ConfigError: a column is unknown, ambiguous, a partition column, or has a type without order.
    """
    if info.provider != "parquet":
        msg = f"{table} is {info.kind_text}; health is measured for tables in Parquet, Delta Lake and Iceberg."
        raise ZorderError(msg)
    df = spark.table(table.sql)
    is_own = bool(version_of(info.location))
    tree = read_tree(spark, info.location, df.schema) if is_own else None
    by = list(names) or _clustered_by(spark, info.location, tree, is_own=is_own)
    keys = keys_for(df, LayoutSpec(by=by, partition_by=list(info.partition_columns))) if by else []
    try:
        sizes = data_files(spark, info.location)
    except Exception as exc:
        check_there(spark, table, info.location, exc)
        raise
    if not info.partition_columns:  # Spark reads no file in a folder below
        folder = info.location.rstrip("/").rsplit("/", 1)[-1]
        sizes = {path: size for path, size in sizes.items() if unquote(path.rsplit("/", 2)[-2]) == unquote(folder)}
    layout = tree.layout if tree is not None else None
    is_same = tree is not None and [key.column.name for key in keys] == tree.by
    return FileFacts(
        files=_files(spark, info.location, sizes, keys),
        keys=keys,
        built=tree.built if tree is not None and is_same else NOT_BUILT,
        partitions=layout.trees if layout is not None and is_same else 1,
        by_bucket=info.bucket_count > 0,
        is_own=is_own,
    )


def _clustered_by(spark: SparkSession, location: str, tree: SavedLayout | None, *, is_own: bool) -> list[str]:
    if tree is not None and tree.layout is not None:
        return [key.column.sql for key in tree.layout.keys]
    marker = read_marker(spark, location) if is_own else None
    return [] if marker is None else marker.zorder_by


def _files(spark: SparkSession, location: str, sizes: Mapping[str, int], keys: Sequence[Key]) -> pa.Table:
    """Return the facts of the listed files, from the stats of those that have them, else from their footers."""
    try:
        stats = load_stats(spark, location)
        kept = columns_type(stats.schema).names
    except Exception:  # a table of another writer
        return read_ranges(sizes, keys)
    if any(key.column.name not in kept for key in keys):
        return read_ranges(sizes, keys)
    found = gather(stats, keys, with_nulls=True)
    paths = found["file_path"].to_pylist()
    is_current = [sizes.get(path) == size for path, size in zip(paths, found["file_size"].to_pylist(), strict=True)]
    found = found.filter(pa.array(is_current, pa.bool_()))
    without = sizes.keys() - set(found["file_path"].to_pylist())
    if not without:
        return found
    others = read_ranges({path: sizes[path] for path in sizes if path in without}, keys, found.schema)
    return pa.concat_tables([found, others.cast(found.schema)])
