"""Delete old versions on request; a dry run gives the reason why each folder goes or stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError, ZorderError
from dbt_zorder.option_parsers import MOST_HOURS, are_hours
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.catalog_id import catalog_id
from dbt_zorder.spark.files import has_client
from dbt_zorder.tables.parquet.retention.deletions import RetentionDecision, delete_planned, plan_deletions
from dbt_zorder.tables.parquet.retention.former_roots import listed_roots
from dbt_zorder.tables.parquet.retention.ownership import Owner, owner_of
from dbt_zorder.tables.parquet.retention.whole_versions import missing_version_message, why_gone
from dbt_zorder.tables.parquet.shared_files import bytes_of_each
from dbt_zorder.tables.two_step_swap import restore_if_interrupted
from dbt_zorder.tables.version import read_marker, root_of, version_of


@dataclass(frozen=True)
class Vacuumed:
    """The result of a vacuum, or what it would delete in a dry run.

    Attributes:
        table: name of the table.
        versions: each folder with its size in bytes, newest first. A file that versions share counts in the newest.
        dry_run: whether nothing was deleted.
        deleted: names of the deleted versions.
        skipped: folders in the marker that were not searched, each with the reason.
        refused: reason why nothing is deleted, as a sentence; empty if deletions are allowed.
    """

    table: TableName
    versions: Sequence[tuple[RetentionDecision, int]]
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
    """Delete the versions of a table that are beyond both limits, and the remains of failed builds.

    It can be interrupted and repeated. With a grace period of 0 hours, run no build of this table at the same time: its
    folder would be deleted and the build abandoned.

    Args:
        spark: the session.
        table: name of a table that is, or will be, built with ``zorder_by``.
        keep: number of old versions to keep whatever their age.
        grace_hours: minimum hours to keep a version after it was replaced.
        location_root: the model's ``location_root``; by default the schema's own folder.
        dry_run: only report what would be deleted.

    Raises:
        ConfigError: a limit is out of range.
        ZorderError: this session cannot list folders.
    """
    if not has_client(spark):
        msg = (
            "zorder_vacuum lists and deletes folders by the session's own Hadoop client, which neither Spark Connect "
            "nor SQL alone has: run it with a target in dbt's own process."
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
            refused = f"Nothing is deleted: {missing_version_message(spark, table, current, gone)}"
    decisions = plan_deletions(spark, owner, roots, keep, grace_hours, note=not (dry_run or refused))
    if refused:
        decisions = [
            replace(one, delete=False, why="stays until the table leads to a whole version") for one in decisions
        ]
    sizes = list(zip(decisions, bytes_of_each(spark, [one.path for one in decisions]), strict=True))
    deleted = [] if dry_run else delete_planned(spark, table, decisions)
    return Vacuumed(table, sizes, dry_run, deleted, skipped, refused)
