"""Detect a replacement of an Iceberg table that dropped another run's commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.files import list_files
from dbt_zorder.stats.iceberg.manifests import iceberg_table

TOKEN = "dbt_zorder.token"
"""The key of the token in a snapshot's summary."""


_NUMBER = re.compile(r"^v?(\d+)")


def lost_commits(spark: SparkSession, table: TableName, before: str, token: str) -> str:
    """Return where to find the rows of commits that a replacement left out; an empty string if there are none."""
    jvm: Any = spark._jvm
    operations = iceberg_table(spark, table).operations()
    now = operations.current()

    def read(file: str) -> Any:
        return jvm.org.apache.iceberg.TableMetadataParser.read(operations.io().newInputFile(file))

    # the newest metadata without our snapshot are the base of the replacement
    ours = str(now.metadataFileLocation())
    for base in reversed([str(entry.file()) for entry in now.previousFiles()]):
        metadata = read(base)
        if all(snapshot.summary().get(TOKEN) != token for snapshot in metadata.snapshots()):
            break
        ours = base
    else:
        return ""
    if _snapshot(metadata) != before:
        return f"VERSION AS OF {_snapshot(metadata)}"
    first, last = _number(base), _number(ours)
    if first is None or last is None:
        return ""
    folder = base.rpartition("/")[0]
    between = [(number, name) for number, name in _numbered(spark, folder) if first < number < last]
    lost = [(name, _snapshot(read(f"{folder}/{name}"))) for _, name in sorted(between)]
    changed = [(name, snapshot) for name, snapshot in lost if snapshot != before]
    if not changed:  # a commit that changed only properties
        return ""
    name, snapshot = changed[-1]
    return (
        f"snapshot {snapshot} of {folder}/{name}, which CALL spark_catalog.system.register_table(table => ..., "
        "metadata_file => ...) makes a table, before orphan files are removed"
    )


def _snapshot(metadata: Any) -> str:
    current = metadata.currentSnapshot()
    return "" if current is None else str(current.snapshotId())


def _numbered(spark: SparkSession, folder: str) -> Iterator[tuple[int, str]]:
    for name in list_files(spark, folder):
        number = _number(name)
        if number is not None and "metadata.json" in name:
            yield number, name


def _number(file: str) -> int | None:
    """Return the metadata file number that Iceberg's catalogs assign; None if the name has none."""
    match = _NUMBER.match(file.rpartition("/")[2])
    return int(match[1]) if match else None
