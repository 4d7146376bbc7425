"""Compare a table with its stats, file by file: lost files, files without stats, and wrong stats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.errors import ColumnError, ZorderError
from dbt_zorder.layout.hash_index import BUCKET_ID, HashIndex
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.columns import case_sensitive, quote_column
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.collect import collect, file_metadata
from dbt_zorder.stats.listing import listed_files, local_file
from dbt_zorder.stats.schema import columns_type
from dbt_zorder.stats.store import read_stats
from dbt_zorder.tables.parquet.buckets.bucket_files import outside_buckets
from dbt_zorder.tables.parquet.journal import ready_entries
from dbt_zorder.tables.parquet.retention.whole_versions import check_there
from dbt_zorder.tables.parquet.stats_view import stats_table
from dbt_zorder.tables.report import Verified
from dbt_zorder.tables.version import read_marker, version_of


def verify_table(spark: SparkSession, table: TableName, info: TableInfo | None = None) -> Verified:
    """Compare the files of a table, their footers and their rows with the stats; read all columns with stats.

    Bounds that are wider than the rows are no finding: they exclude fewer files, but never wrongly.

    Args:
        spark: the session.
        table: name of the table.
        info: current catalog description of the table, if just read.

    Raises:
        ZorderError: the table does not exist, is a view, or has no readable stats.
    """
    info = info or describe(spark, table)
    if info is not None and info.is_view:
        msg = f"{table} is a view, which has no files of its own: verify the tables that it reads."
        raise ZorderError(msg)
    location = info.location if info else ""
    try:
        stats = read_stats(spark, location).cache()
        columns = columns_type(stats.schema).names
    except Exception as exc:
        check_there(spark, table, location, exc)
        msg = (
            f"{table} has no stats that can be read: build its model with zorder_by, give it the post-hook "
            "zorder_stats, or run zorder_rebuild_stats."
        )
        raise ZorderError(msg) from exc
    try:
        return _compared(spark, table, info, stats, columns)
    finally:
        stats.unpersist()


def _compared(
    spark: SparkSession, table: TableName, info: TableInfo | None, stats: DataFrame, columns: Sequence[str]
) -> Verified:
    location = info.location if info else ""
    spark.catalog.refreshTable(table.sql)
    listed = {row[0]: row[1] for row in listed_files(spark, location).collect()}
    if info is not None and not info.partition_columns:
        # Spark does not read files in folders that are not partitions
        folder = location.rstrip("/").rsplit("/", 1)[-1]
        listed = {path: size for path, size in listed.items() if unquote(path.split("/")[-2]) == unquote(folder)}
    kept: dict[str, Row] = {}
    findings = []
    for row in stats.select("file_path", "file_size", "row_count").collect():
        if row[0] in kept:
            findings.append(f"{row[0]} has two rows of stats.")
        kept[row[0]] = row
    if findings:  # each file is compared with one row of stats; a search for all duplicates needs a shuffle
        stats = stats.dropDuplicates(["file_path"])
    findings += _files_that_differ(listed, kept)
    findings += _footers_that_differ(listed, kept)
    rows = None
    try:
        rows = spark.table(table.sql).count()
        findings += _bounds_that_differ(spark, table, stats, columns)
    except ColumnError as exc:
        findings.append(f"The stats are of other columns than the table has: {exc}")
    except Exception as exc:
        findings.append(f"The table cannot be read: {in_one_line(exc)}")
    index = HashIndex.of_names(info.bucket_columns, info.bucket_count) if info is not None else None
    if info is not None and index is not None:
        findings += _buckets_that_differ(spark, table, info, index, listed)
    findings += [
        f"The batch {entry.name} is in the journal and not all in its place: the next run of the model completes it."
        for entry in ready_entries(spark, location)
    ]
    counted = sum(row[2] for row in kept.values())
    if rows is not None and rows != counted:
        findings.append(f"The table has {rows:,} rows, and its stats count {counted:,}.")
    relation = describe(spark, stats_table(table))
    shown = version_of(relation.location.rstrip("/").rsplit("/", 1)[0]) if relation else ""
    if version_of(location) != shown:
        shows = "does not show the stats of the version that is served"
        findings.append(f"{stats_table(table)} {shows}; zorder_rebuild_stats makes it do so.")
    return Verified(table, len(listed), rows or 0, findings)


def _files_that_differ(listed: dict[str, int], kept: dict[str, Row]) -> Iterator[str]:
    for path, row in kept.items():
        if path not in listed:
            yield f"{path} is lost: the stats know it with {row[2]:,} rows, and it is not there or holds no bytes."
        elif listed[path] != row[1]:
            yield f"{path} has {listed[path]:,} bytes, and its stats are of one of {row[1]:,}."


def _footers_that_differ(listed: dict[str, int], kept: dict[str, Row]) -> Iterator[str]:
    """Read the footers of local files without Spark; Spark reads all others when it collects the bounds."""
    for path in listed:
        file = local_file(path)
        if file is None:
            continue
        try:
            rows = pq.read_metadata(file).num_rows
        except Exception as exc:
            yield f"{path} has no footer that can be read: {exc}"
            continue
        if path not in kept and rows:
            yield f"{path} with {rows:,} rows is unknown to the stats; it is always read, and never pruned."
        elif path in kept and kept[path][2] != rows:
            yield f"{path} has {rows:,} rows by its footer, and its stats count {kept[path][2]:,}."


def _buckets_that_differ(
    spark: SparkSession, table: TableName, info: TableInfo, index: HashIndex, listed: Iterable[str]
) -> Iterator[str]:
    """Compare the bucket in each file's name with the hash of its rows: Spark itself never does."""
    marker = read_marker(spark, info.location)
    if marker is not None and (marker.bucket_by, marker.buckets) != ([*info.bucket_columns], info.bucket_count):
        yield (
            f"The catalog has {info.bucket_count} buckets by {', '.join(info.bucket_columns)}, and the version was "
            f"written with {marker.buckets} by {', '.join(marker.bucket_by) or 'none'}."
        )
    for path in outside_buckets(listed, info.bucket_count):
        yield f"{path} has no bucket below {info.bucket_count} in its name, so joins skip its rows or fail."
    try:
        df = spark.table(table.sql)
        expected = index.bucket_sql(df.schema, sensitive=case_sensitive(spark))
        file = file_metadata(df)
        named = f.regexp_extract(file.getField("file_name"), BUCKET_ID, 1).cast("bigint")
        found = df.select(
            file.getField("file_path").alias("file_path"), named.eqNullSafe(f.expr(expected)).alias("is_right")
        )
        for row in found.where("NOT is_right").groupBy("file_path").count().collect():
            yield f"{row[0]}: {row[1]:,} rows belong to another bucket than its name has."
    except Exception as exc:
        yield f"The buckets cannot be read: {in_one_line(exc)}"


def _bounds_that_differ(spark: SparkSession, table: TableName, stats: DataFrame, names: Sequence[str]) -> Iterator[str]:
    schema = spark.table(table.sql).schema
    fresh = collect(spark, table.sql, [quote_column(name, schema) for name in names])
    joined = fresh.alias("now").join(stats.alias("kept"), "file_path", "left")
    wrong = []
    for name in names:
        now, kept = (f"{side}.columns.{quote_name(name)}" for side in ("now", "kept"))
        # a NULL bound in the stats proves nothing and is allowed; null counts prune in both directions, so they must be
        # exact
        unsound = (
            f"{kept}.min_value > {now}.min_value OR {kept}.max_value < {now}.max_value "
            f"OR {kept}.null_count <> {now}.null_count"
        )
        wrong.append(f.when(f.expr(unsound), f.lit(name)))
    count = f.when(f.expr("now.row_count <> kept.row_count"), f.lit(True))
    found = joined.select("file_path", count.alias("count"), f.array_compact(f.array(*wrong)).alias("wrong"))
    for row in found.where("count OR size(wrong) > 0").collect():
        if row["count"]:
            yield f"{row['file_path']} holds another number of rows than its stats count."
        if row["wrong"]:
            yield f"{row['file_path']}: the stats of {', '.join(row['wrong'])} do not hold for its rows."
