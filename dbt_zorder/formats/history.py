"""What the log of a format says of a table: its version now, and what it was when it was last laid out whole."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName, properties
from dbt_zorder.formats.writer import LAST_NATIVE, WHOLE, is_whole
from dbt_zorder.stats.delta_log import delta_version
from dbt_zorder.stats.iceberg_manifests import iceberg_version
from dbt_zorder.table.summary import Summary


def version_of(spark: SparkSession, provider: str, table: TableName) -> str:
    """Return the version number of a Delta table, or the snapshot id of an Iceberg table."""
    return delta_version(spark, table) if provider == "delta" else iceberg_version(spark, table)


def last_whole(spark: SparkSession, provider: str, table: TableName) -> Summary:
    """Return files, rows and bytes of a table after its last whole layout; zeros where its log does not tell."""
    found = _last_delta(spark, table) if provider == "delta" else _last_iceberg(spark, table)
    return Summary(*found, {}) if found else Summary(0, 0, 0, {})


def commit_of(spark: SparkSession, table: TableName, token: str) -> tuple[int, int, int]:
    """Return of the Delta commit with a token its version, the version that it was based on, and the latest version.

    Raises:
        LookupError: the log does not have it.
    """
    rows = spark.sql(f"DESCRIBE HISTORY {table.sql}").select("version", "readVersion", "userMetadata").collect()
    for version, base, note in rows:
        if token in (note or ""):
            return int(version), int(base), int(rows[0][0])
    msg = f"The log of {table} has no commit {token}."
    raise LookupError(msg)


def _last_delta(spark: SparkSession, table: TableName) -> tuple[int, int, int] | None:
    log = spark.sql(f"DESCRIBE HISTORY {table.sql}")
    for parameters, note, metrics in log.select("operationParameters", "userMetadata", "operationMetrics").collect():
        if (parameters or {}).get("zOrderBy", "[]") != "[]" and metrics:  # OPTIMIZE ZORDER BY writes every file anew
            return int(metrics["numAddedFiles"]), 0, int(metrics["numAddedBytes"])
        if is_whole(note) and metrics:
            return int(metrics["numFiles"]), int(metrics["numOutputRows"]), int(metrics["numOutputBytes"])
    return None


def _last_iceberg(spark: SparkSession, table: TableName) -> tuple[int, int, int] | None:
    text = f"SELECT snapshot_id, operation, summary FROM {table.sql}.snapshots ORDER BY committed_at DESC"
    rows = spark.sql(text).collect()
    # others, too, rewrite files, but in no order
    rewritten = any(operation == "replace" for _, operation, _ in rows)
    native = properties(spark, table).get(LAST_NATIVE) if rewritten else None
    for snapshot, _, summary in rows:
        if str(snapshot) == native or summary.get("dbt_zorder") == WHOLE:
            return (
                int(summary["total-data-files"]),
                int(summary["total-records"]),
                int(summary["total-files-size"]),
            )
    return None
