"""Statistics of a z-ordered table for ``dbt docs generate``, in the form of dbt's catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.columns import case_sensitive, fold_case, split_name
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.registry import table_of
from dbt_zorder.tables.version import read_marker, version_of


def table_stats(spark: SparkSession, table: TableName, info: TableInfo) -> dict[str, Any]:
    """Return the current statistics of a table, or an empty dict if dbt-zorder does not manage the table.

    Raises:
        ZorderError: the table's stats cannot be read.
    """
    version = version_of(info.location)
    if not version:
        return {}
    marker = read_marker(spark, info.location)
    by = [".".join(split_name(name)) for name in marker.zorder_by] if marker else []
    return catalog_stats(version, by, table_of(spark, table, info).summary(), sensitive=case_sensitive(spark))


def catalog_stats(version: str, by: Sequence[str], summary: Summary, *, sensitive: bool = False) -> dict[str, Any]:
    """Return the statistics of a table as columns of dbt's catalog: label, value, description and include for each.

    Args:
        version: name of the current version.
        by: the clustering columns in their model's spelling, without backticks.
        summary: figures of the table, over all columns with stats.
        sensitive: value of ``spark.sql.caseSensitive``.
    """
    wanted = {fold_case(name, sensitive=sensitive) for name in by}
    reads = "; ".join(
        f"{column} {mean:.1f}".removesuffix(".0") + f" of {summary.files}"
        for column, mean in summary.point_query_files.items()
        if fold_case(column, sensitive=sensitive) in wanted
    )
    facts = [
        ("zorder_by", "Z-order columns", ", ".join(by), "Columns by which rows are laid out in files"),
        ("zorder_files", "Files", summary.files, "Data files of the version that is served"),
        ("zorder_point_query", "Files per point query", reads, "Mean number of files that an equality query reads"),
        ("zorder_version", "Version", version, "Folder of the version that is served"),
        ("rows", "# Rows", summary.rows, "Rows in the table, counted when it was built"),
        ("bytes", "Approximate Size", summary.bytes, "Bytes of the data files"),
    ]
    found: dict[str, Any] = {}
    for name, label, value, description in facts:
        found[f"stats:{name}:label"] = label
        found[f"stats:{name}:value"] = value
        found[f"stats:{name}:description"] = description
        found[f"stats:{name}:include"] = True
    return found
