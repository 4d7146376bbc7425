"""Collect old versions that exceed both the number to keep and the grace period."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import TableName, describe, served_locations
from dbt_zorder.spark.files import delete_path, folders_with, has_client, list_folders
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.tables.parquet.retention.foreign_files import delete_around, sorted_out
from dbt_zorder.tables.parquet.retention.former_roots import listed_roots
from dbt_zorder.tables.parquet.retention.ownership import Owner, chain_of, owner_of, why_not_own, why_unnamed
from dbt_zorder.tables.parquet.retention.replacements import NOTE, note_replaced, replaced_at
from dbt_zorder.tables.parquet.retention.tombstone import deletion_began, is_dying, raise_tombstone, take_away
from dbt_zorder.tables.version import MARKER_DIRECTORY, TOMBSTONE, is_version, markers_below, read_marker, version_of

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class RetentionDecision:
    """A folder in the root of a table's versions, and whether to delete it.

    Attributes:
        path: path of the folder.
        delete: whether to delete it.
        why: reason, as a sentence without its subject.
        noted: False if it was replaced and nobody has noted when.
    """

    path: str
    delete: bool
    why: str
    noted: bool = True

    @property
    def version(self) -> str:
        """The folder's name."""
        return self.path.rsplit("/", 1)[-1]


def collect_old(spark: SparkSession, root: str, current: str, keep: int, grace_hours: float) -> list[str]:
    """Delete old versions of a table after a build, and return their names.

    A run may still be building a version that is younger than the current one and was never served. A later collection
    decides on it. See ``plan_deletions`` for the other rules.

    Args:
        spark: the session.
        root: folder of all versions.
        current: name of the version that is served.
        keep: number of versions besides the current one to keep whatever their age.
        grace_hours: minimum hours to keep a version after it was replaced.
    """
    marker = read_marker(spark, f"{root}/{current}") if has_client(spark) else None
    if marker is None:
        return []
    path = f"{root}/{current}"
    roots, _ = listed_roots(spark, path, marker)
    if not _is_due(spark, roots, current, grace_hours):
        return []
    owner = owner_of(spark, marker.table_name, path, marker)
    if is_dying(spark, path):
        return []
    if owner.refused:
        _LOG.warning("no old version of %s is collected: the one that is served %s", owner.table, owner.refused)
        return []
    # tables served from old versions can only spare them: if there is nothing to do, the catalog is not searched
    decisions = plan_deletions(spark, owner, roots, keep, grace_hours, served={}, running=True, note=False)
    if any(one.delete or not one.noted for one in decisions):
        decisions = plan_deletions(spark, owner, roots, keep, grace_hours, running=True)
    gone = delete_planned(spark, owner.table, decisions)
    _LOG.debug("collected %d old versions below %s", len(gone), root)
    return gone


def _is_due(spark: SparkSession, roots: Sequence[str], current: str, grace_hours: float) -> bool:
    """Return whether ``plan_deletions`` could find anything to do, from names and note times alone.

    ``plan_deletions`` reads every marker. A table that is rebuilt every few minutes has hundreds in its grace period.
    """
    names = {name for root in roots for name in list_folders(spark, root) if is_version(name)} - {current}
    noted = {name: since for root in roots for name, since in folders_with(spark, root, NOTE).items()}
    beyond = datetime.now(timezone.utc) - timedelta(hours=grace_hours)
    return any(name not in noted or noted[name] <= beyond for name in names)


def plan_deletions(
    spark: SparkSession,
    owner: Owner,
    roots: Sequence[str],
    keep: int,
    grace_hours: float,
    *,
    served: Mapping[str, str] | None = None,
    running: bool = False,
    note: bool = True,
) -> list[RetentionDecision]:
    """Decide for every folder in the roots of a table whether it may be deleted, newest first.

    Never deleted are the current version, a folder without a version's name, and a version without proof that the table
    owns it (see ``ownership``). Nor is a version that any table of the catalog is served from, under any name. The
    remains of an interrupted deletion do not count towards ``keep``.

    A reader that began with a version can read it for the grace period after it was replaced. If a killed run failed to
    note that time, the period begins now.

    Args:
        spark: the session.
        owner: the table, with the version that is served.
        roots: folders of its versions.
        keep: number of versions to keep whatever their age, among those that were once served.
        grace_hours: minimum hours to keep a version after it was replaced.
        served: table that is served from each version, by version name; None searches every table of the catalog.
        running: spare versions that are younger than the current one and were never served.
        note: note a replacement that nobody noted; a dry run does not.
    """
    markers = markers_below(spark, roots)
    # by name, because a root can be spelled in two ways and version names are unique
    by_name = {name: f"{root}/{name}" for root in roots for name in list_folders(spark, root)}
    paths = [by_name[name] for name in sorted(by_name, reverse=True)]
    chain = chain_of(owner, markers)
    current = version_of(owner.location)
    dying = {
        name: deletion_began(spark, f"{root}/{name}") or seen
        for root in roots
        for name, seen in folders_with(spark, root, TOMBSTONE).items()
    }
    bases = {marker.base for marker in markers.values() if marker}
    now = datetime.now(timezone.utc)
    kept = 0
    decisions = []
    for path in paths:
        marker = markers.get(path)
        why = why_unnamed(owner, path, marker)
        if not why and version_of(path) == current:
            why = "is the version that is served"
        if not why:
            served = served_locations(spark) if served is None else served
            why = f"is served as {served[version_of(path)]}" if version_of(path) in served else ""
        if not why and marker is not None:
            why = why_not_own(spark, owner, path, marker, chain)
        if why:
            decisions.append(RetentionDecision(path, False, why))
            continue
        since, was_served = replaced_at(spark, path)
        was_served = was_served or version_of(path) in bases
        noted = since is not None or note
        if since is None and note:
            note_replaced(spark, path)
        begun = dying.get(version_of(path))
        since = since or begun or now
        state = "is served by no table: its build failed, or its table was dropped by hand"
        if was_served:
            state = f"was replaced at {since:%Y-%m-%d %H:%M} UTC"
        if begun is not None:
            state = f"is not whole: a run began to delete it at {begun:%Y-%m-%d %H:%M} UTC"
        if was_served and begun is None and kept < keep:
            kept += 1
            decisions.append(
                RetentionDecision(path, False, f"{state}, and is one of the {keep} old versions that are kept", noted)
            )
        elif running and not was_served and version_of(path) > current:
            decisions.append(
                RetentionDecision(path, False, "is served by no table and may still be being built", noted)
            )
        elif since > now - timedelta(hours=grace_hours):
            decisions.append(
                RetentionDecision(path, False, f"{state}, and its grace period of {grace_hours:g} hours goes on", noted)
            )
        else:
            decisions.append(RetentionDecision(path, True, state, noted))
    return decisions


def delete_planned(spark: SparkSession, table: TableName, decisions: Sequence[RetentionDecision]) -> list[str]:
    """Delete the planned versions, and return their names; check the table again before each deletion.

    Raises:
        ZorderError: at least one could not be deleted; all others were.
    """
    gone: list[str] = []
    refused: list[tuple[str, Exception]] = []
    for one in decisions:
        if not one.delete:
            continue
        stone = raise_tombstone(spark, one.path)
        now = describe(spark, table)
        if now is not None and version_of(now.location) == one.version:
            take_away(spark, stone)  # another run serves it again
            continue
        try:
            delete_version(spark, one.path)
        except Exception as exc:  # the older ones can still be deleted
            refused.append((one.path, exc))
        else:
            gone.append(one.version)
    if refused:
        path, cause = refused[0]
        msg = (
            f"{len(refused)} of {len(gone) + len(refused)} versions of {table} could not be deleted, {path} first: "
            f"{in_one_line(cause)}"
        )
        raise ZorderError(msg) from cause
    return gone


def delete_version(spark: SparkSession, path: str) -> None:
    """Delete a version, its marker last, so that the rest of an interrupted deletion can still be identified."""
    if not is_dying(spark, path):
        raise_tombstone(spark, path)
    _delete(spark, path)


def delete_unserved(spark: SparkSession, path: str) -> None:
    """Delete a version that was never served, even if a full disk leaves no space for a tombstone."""
    with contextlib.suppress(Exception):
        raise_tombstone(spark, path)
    _delete(spark, path)


def _delete(spark: SparkSession, path: str) -> None:
    last = (MARKER_DIRECTORY, NOTE, TOMBSTONE)
    ours, foreign = sorted_out(spark, path)
    if foreign:
        delete_around(spark, path, ours, foreign, last)
    else:
        delete_path(spark, path, last=last)
