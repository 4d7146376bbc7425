"""Whether a table was replaced by a commit that knows nothing of another run's, whose rows are then no longer in it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.errors import LostRowsError
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.files import list_files
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.iceberg.manifests import iceberg_table
from dbt_zorder.tables.lakehouse.history import commit_of
from dbt_zorder.tables.lakehouse.spark_writer import TOKEN

_LOG = logging.getLogger("dbt_zorder")
_NUMBER = re.compile(r"^v?(\d+)")


def check_lost(spark: SparkSession, provider: str, table: TableName, before: str, token: str) -> None:
    """Find out whether somebody else committed between the reading of a table and the commit that replaced it.

    Delta refuses such a commit from when its own began. Iceberg's replacement never does, and takes the other's
    snapshot out of the table: it is in metadata files that the table does not name any more.

    Args:
        spark: the session.
        provider: format of the table.
        table: that was replaced.
        before: its version when it was read.
        token: of the commit that replaced it.

    Raises:
        LostRowsError: somebody did.
    """
    try:
        found = (
            _lost_delta(spark, table, before, token)
            if provider == "delta"
            else _lost_iceberg(spark, table, before, token)
        )
    except Exception as exc:  # the rows are in: a run that fails now would be run again, and add them twice
        _LOG.warning(
            "it could not be told whether another run committed to %s just before this one: %s", table, in_one_line(exc)
        )
        return
    if found:
        msg = (
            f"Another run changed {table} while this one was building it anew of all its rows. That is done, and the "
            f"batch of this run is in the table; the other's rows may not be. They are in {found}: compare, and add "
            "from there what is missing."
        )
        raise LostRowsError(msg)


def _lost_delta(spark: SparkSession, table: TableName, before: str, token: str) -> str:
    ours, base, _ = commit_of(spark, table, token)
    return "" if base == int(before) else f"VERSION AS OF {ours - 1}"


def _lost_iceberg(spark: SparkSession, table: TableName, before: str, token: str) -> str:
    """Return where the rows are of commits that a replacement left out, an empty string if there are none."""
    jvm: Any = spark._jvm
    operations = iceberg_table(spark, table).operations()
    now = operations.current()

    def read(file: str) -> Any:
        return jvm.org.apache.iceberg.TableMetadataParser.read(operations.io().newInputFile(file))

    # the last metadata that do not know our snapshot are those upon which the replacement was based
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
    if not changed:  # a commit of properties alone
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
    """Return the number that Iceberg's catalogs count metadata files by, None where one does not."""
    match = _NUMBER.match(file.rpartition("/")[2])
    return int(match[1]) if match else None
