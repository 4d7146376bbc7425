"""Compute the figures of a version from its stats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from dbt_zorder.layout.hash_index import BUCKET_ID
from dbt_zorder.layout.keys import SAMPLE_BYTES, TEXT, Key, key_of
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.ordering import is_ordered
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.point_query import point_query_files
from dbt_zorder.stats.schema import columns_type


@dataclass(frozen=True)
class Summary:
    """The figures of one version.

    Attributes:
        files, rows, bytes: the number of data files, and their total rows and bytes.
        point_query_files: the mean number of files that an equality query reads, by clustering column. An unsortable
            column has no bounds and no entry.
    """

    files: int
    rows: int
    bytes: int
    point_query_files: Mapping[str, float]


def summarize(stats: DataFrame | LocalStats, keys: Sequence[Key]) -> Summary:
    """Read a version's stats, one row a file, and return their totals."""
    return add_up(gather(stats, keys), keys)


def gather(stats: DataFrame | LocalStats, keys: Sequence[Key], *, with_nulls: bool = False) -> pa.Table:
    """Read stats into memory: one row a file with its path, size, rows, and the bounds of each key.

    Args:
        stats: the stats.
        keys: the keys.
        with_nulls: return the number of NULLs of each key, too, as ``null_count0`` and so on.
    """
    if isinstance(stats, LocalStats):
        return _gathered(stats.rows, keys, with_nulls=with_nulls)
    bounds = []
    for number, key in enumerate(keys):
        for side in ("min_value", "max_value"):
            column = replace(key.column, path=("columns", key.column.name, side))
            bounds.append(f.expr(key_of(column).sampled).alias(f"{side}{number}"))
        if with_nulls:
            counted = replace(key.column, path=("columns", key.column.name, "null_count"))
            bounds.append(f.expr(counted.sql).alias(f"null_count{number}"))
    return collect_arrow(stats.select("file_path", "file_size", "row_count", *bounds))


def _gathered(rows: pa.Table, keys: Sequence[Key], *, with_nulls: bool) -> pa.Table:
    """Return the same from stats in memory, with keys equal to those of ``Key.sampled``."""
    found = rows.select(["file_path", "file_size", "row_count"])
    for number, key in enumerate(keys):
        stats = pc.struct_field(rows["columns"], [key.column.name])
        for side in ("min_value", "max_value"):
            values = pc.struct_field(stats, [side])
            if key.carrier in TEXT:
                values = pc.binary_slice(values.cast(pa.binary()), 0, SAMPLE_BYTES)
            elif key.carrier == "bigint":
                values = (values.cast(pa.int32()) if pa.types.is_date(values.type) else values).cast(pa.int64())
            found = found.append_column(f"{side}{number}", values)
        if with_nulls:
            found = found.append_column(f"null_count{number}", pc.struct_field(stats, ["null_count"]))
    return found


def add_up(table: pa.Table, keys: Sequence[Key]) -> Summary:
    """Return the totals of a table from ``gather`` for the same keys."""
    rows = [count or 0 for count in table.column("row_count").to_pylist()]  # a format may omit the count
    touched = {
        key.column.name: round(
            point_query_files(
                table.column(f"min_value{number}").combine_chunks(),
                table.column(f"max_value{number}").combine_chunks(),
                rows,
            ),
            2,
        )
        for number, key in enumerate(keys)
        if is_ordered(key.column.data_type)
    }
    return Summary(table.num_rows, sum(rows), sum(table.column("file_size").to_pylist()), touched)


def total_of(table: pa.Table) -> tuple[int, int]:
    """Return bytes and rows of all files in a table from ``gather``."""
    size, rows = (pc.sum(table.column(name)).as_py() or 0 for name in ("file_size", "row_count"))
    return size, rows


def rows_by_folder(table: pa.Table, *, by_bucket: bool = False) -> list[int]:
    """Return the rows of every folder in a table from ``gather``: one folder a partition of the table.

    Args:
        table: the files.
        by_bucket: count each bucket of a folder by itself; the names of all files have one.
    """
    by_folder = table.select(["row_count"]).append_column("folder", folders_of(table, by_bucket=by_bucket))
    sums = by_folder.group_by("folder").aggregate([("row_count", "sum")])
    return [int(rows or 0) for rows in sums["row_count_sum"].to_pylist()]


def folders_of(table: pa.Table, *, by_bucket: bool = False) -> pa.ChunkedArray:
    """Return the folder of every file in a table from ``gather``, with the bucket where ``by_bucket`` is set."""
    name, rest = (f"/[^/]*{BUCKET_ID.removeprefix('.*')}", r"_\1") if by_bucket else ("/[^/]*$", "")
    return pc.replace_substring_regex(table.column("file_path"), name, rest)


def summarize_format(stats: DataFrame | LocalStats, keys: Sequence[Key]) -> Summary:
    """Read a format's statistics, and return their totals."""
    return add_up_format(gather(stats, keys), keys)


def add_up_format(table: pa.Table, keys: Sequence[Key]) -> Summary:
    """Return the totals of a format's statistics; a column without bounds has no mean, as every file is read."""
    return drop_unbounded(add_up(table, keys))


def drop_unbounded(found: Summary) -> Summary:
    """Return figures without the columns for which a format keeps no bounds."""
    return replace(found, point_query_files={name: mean for name, mean in found.point_query_files.items() if mean})


def over_all_columns(stats: DataFrame | LocalStats) -> Summary:
    """Return the figures of a table over every column in its stats; all of these are sortable."""
    keys = []
    for column in columns_type(stats.schema).fields:
        bounds = column.dataType
        assert isinstance(bounds, StructType)
        keys.append(key_of(ResolvedColumn((column.name,), bounds["min_value"].dataType)))
    return summarize(stats, keys)


def no_stats(table: TableName) -> str:
    """Return the message for a table without readable stats."""
    return f"{table} has no stats: give its model a zorder_by, or the post-hook zorder_stats."


def absent(table: TableName) -> str:
    """Return the message for a table that does not exist."""
    return (
        f"{table} does not exist. Build it first: dbt run --select {table.identifier}. (Or by the name of its "
        "model, if that has an alias.)"
    )
