"""Deleting old versions by hand, with a dry run that says of every folder why it goes or stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError, ZorderError
from dbt_zorder.option_parsers import MOST_HOURS, are_hours
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.catalog_id import catalog_id
from dbt_zorder.spark.files import folder_bytes, has_client
from dbt_zorder.tables.parquet.former_roots import listed_roots
from dbt_zorder.tables.parquet.ownership import Owner, owner_of
from dbt_zorder.tables.parquet.retention import Judged, delete_judged, judge
from dbt_zorder.tables.parquet.whole import told_of_gone, why_gone
from dbt_zorder.tables.two_step_swap import restore_if_interrupted
from dbt_zorder.tables.version import read_marker, root_of, version_of


@dataclass(frozen=True)
class Vacuumed:
    """What a vacuum found, or would delete if it is a dry run.

    Attributes:
        table: whose versions.
        versions: each folder with its size in bytes, the newest first.
        dry_run: nothing was deleted.
        deleted: names of the versions that are gone now.
        skipped: folders that the marker names and that were not looked into, each with the reason.
        refused: why nothing is deleted, as a sentence; empty if what is to go may go.
    """

    table: TableName
    versions: Sequence[tuple[Judged, int]]
    dry_run: bool = True
    deleted: Sequence[str] = ()
    skipped: Sequence[tuple[str, str]] = ()
    refused: str = ""

    def __str__(self) -> str:
        lines = [str(self.table), *([f"  {self.refused}"] if self.refused else [])]
        does, done = ("delete", "to delete") if self.dry_run else ("deleted", "deleted")
        going = []
        for one, size in self.versions:
            goes = one.delete and (self.dry_run or one.version in self.deleted)
            why = one.why if goes or not one.delete else "it is served again"
            lines.append(f"  {does if goes else 'keep':<7} {one.version}  {size:>15,} bytes  {why}")
            going += [size] if goes else []
        lines += [f"  skip    {root!r}, which the marker names: {why}" for root, why in self.skipped]
        lines.append(f"  {len(going)} of {len(self.versions)} versions {done}, {sum(going):,} bytes")
        return "\n".join(lines)


def vacuum(
    spark: SparkSession,
    table: TableName,
    keep: int = 2,
    grace_hours: float = 24.0,
    location_root: str | None = None,
    *,
    dry_run: bool = True,
) -> Vacuumed:
    """Delete the versions of a table that are beyond both bounds, and what failed builds left behind.

    It may be interrupted and run again. With a grace period of 0 hours no build of this table should run beside it: the
    build's folder would go, and the build would be abandoned.

    Args:
        table: a table that is, or is to be, built with ``zorder_by``.
        keep: number of old versions that stay whatever their age.
        grace_hours: hours that a version stays at least after it was replaced.
        location_root: the model's; by default the schema's own folder.
        dry_run: only say what would be deleted.

    Raises:
        ConfigError: the bounds are out of range.
        ZorderError: this session cannot list folders.
    """
    if not has_client(spark):
        msg = (
            "zorder_vacuum lists and deletes folders by the session's own Hadoop client, which Spark Connect has not: "
            "run it with a target in dbt's own process."
        )
        raise ZorderError(msg)
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
        msg = f"{table}: keep_versions is {keep!r}, but it must be a whole number, 0 or more."
        raise ConfigError(msg)
    if not are_hours(grace_hours):
        msg = f"{table}: grace_hours is {grace_hours!r}, but it must be a number of hours, 0 to {MOST_HOURS:,}."
        raise ConfigError(msg)
    restore_if_interrupted(spark, table)
    info = describe(spark, table)
    current = info.location.rstrip("/") if info and version_of(info.location) else ""
    roots = [root_of(spark, table, location_root)]
    owner = Owner(table, catalog_id(spark), "", None, "")
    skipped: Sequence[tuple[str, str]] = ()
    refused = ""
    if current:
        marker = read_marker(spark, current)
        listed, skipped = listed_roots(spark, current, marker)
        roots += listed
        owner = owner_of(spark, table, current, marker)
        gone = why_gone(spark, current)
        if gone:
            refused = f"Nothing is deleted: {told_of_gone(spark, table, current, gone)}"
    judged = judge(spark, owner, roots, keep, grace_hours, note=not (dry_run or refused))
    if refused:
        judged = [replace(one, delete=False, why="stays until the table leads to a whole version") for one in judged]
    sizes = [(one, folder_bytes(spark, one.path)) for one in judged]
    deleted = [] if dry_run else delete_judged(spark, table, judged)
    return Vacuumed(table, sizes, dry_run, deleted, skipped, refused)
