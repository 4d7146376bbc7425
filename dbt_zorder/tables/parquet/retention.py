"""Old versions are collected when they are both beyond the number kept and beyond the grace period."""

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
from dbt_zorder.tables.parquet.foreign import delete_around, sorted_out
from dbt_zorder.tables.parquet.former_roots import listed_roots
from dbt_zorder.tables.parquet.ownership import Owner, chain_of, owner_of, why_not_own, why_unnamed
from dbt_zorder.tables.parquet.replacements import NOTE, note_replaced, replaced_at
from dbt_zorder.tables.parquet.tombstone import deletion_began, is_dying, raise_tombstone, take_away
from dbt_zorder.tables.version import MARKER_DIRECTORY, TOMBSTONE, is_version, markers_below, read_marker, version_of

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class Judged:
    """A folder in the root of a table's versions.

    Attributes:
        path: of the folder.
        delete: whether it is to go.
        why: it goes or stays, as a sentence without its subject.
        noted: False where it was replaced and nobody has noted when.
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

    What is younger than the current version and was never served may be another run's, which is still building it: it
    is left to a later collection. See ``judge`` for the rest.

    Args:
        root: folder of all versions.
        current: name of the version that is served.
        keep: number of versions besides the current one that stay whatever their age.
        grace_hours: hours that a version stays at least after it was replaced.
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
    # that tables are served from old versions can only spare some: where nothing is to be done, nobody asks for them
    judged = judge(spark, owner, roots, keep, grace_hours, served={}, running=True, note=False)
    if any(one.delete or not one.noted for one in judged):
        judged = judge(spark, owner, roots, keep, grace_hours, running=True)
    gone = delete_judged(spark, owner.table, judged)
    _LOG.debug("collected %d old versions below %s", len(gone), root)
    return gone


def _is_due(spark: SparkSession, roots: Sequence[str], current: str, grace_hours: float) -> bool:
    """Tell whether ``judge`` could find anything to do, by the names of versions and the times of their notes alone.

    It reads the marker of every version, and one that is rebuilt every few minutes has hundreds in its grace period.
    """
    names = {name for root in roots for name in list_folders(spark, root) if is_version(name)} - {current}
    noted = {name: since for root in roots for name, since in folders_with(spark, root, NOTE).items()}
    beyond = datetime.now(timezone.utc) - timedelta(hours=grace_hours)
    return any(name not in noted or noted[name] <= beyond for name in names)


def judge(
    spark: SparkSession,
    owner: Owner,
    roots: Sequence[str],
    keep: int,
    grace_hours: float,
    *,
    served: Mapping[str, str] | None = None,
    running: bool = False,
    note: bool = True,
) -> list[Judged]:
    """Say of every folder in the roots of a table whether it may be deleted, the newest first.

    Never deleted is the current version, a folder whose name is not a version's, one that is not known to be the
    table's own (see ``ownership``), and one that any table of the catalog is served from, whatever name it has by now.
    What a deletion that was cut short has left takes no place of a version that is kept.
    A reader that began with a version keeps it for the grace period after it was replaced. Where nobody noted when
    that was, because a run was killed, the period begins now.

    Args:
        spark: the session.
        owner: whose versions, and which of them is served.
        roots: folders of its versions.
        keep: number of versions that were served once and stay whatever their age.
        grace_hours: hours that a version stays at least after it was replaced.
        served: by name of a version, the table that is served from it; None looks at every table of the catalog.
        running: spare versions that are younger than the current one and were never served.
        note: note the replacement where that is missing; a dry run does not.
    """
    markers = markers_below(spark, roots)
    # by name, because one root may be spelled in two ways, and no two versions have one name
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
    judged = []
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
            judged.append(Judged(path, False, why))
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
            judged.append(Judged(path, False, f"{state}, and is one of the {keep} old versions that are kept", noted))
        elif running and not was_served and version_of(path) > current:
            judged.append(Judged(path, False, "is served by no table and may still be being built", noted))
        elif since > now - timedelta(hours=grace_hours):
            judged.append(Judged(path, False, f"{state}, and its grace period of {grace_hours:g} hours goes on", noted))
        else:
            judged.append(Judged(path, True, state, noted))
    return judged


def delete_judged(spark: SparkSession, table: TableName, judged: Sequence[Judged]) -> list[str]:
    """Delete what was judged to go, and return the names; the table is looked up again before each deletion.

    Raises:
        ZorderError: some could not be deleted; all others were.
    """
    gone: list[str] = []
    refused: list[tuple[str, Exception]] = []
    for one in judged:
        if not one.delete:
            continue
        stone = raise_tombstone(spark, one.path)
        now = describe(spark, table)
        if now is not None and version_of(now.location) == one.version:
            take_away(spark, stone)  # a run has put it back meanwhile
            continue
        try:
            delete_version(spark, one.path)
        except Exception as exc:  # the older ones can go all the same
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
    """Delete a version, its marker last: whatever a deletion that is cut short leaves is still known to be ours."""
    if not is_dying(spark, path):
        raise_tombstone(spark, path)
    _delete(spark, path)


def delete_unserved(spark: SparkSession, path: str) -> None:
    """Delete a version that no table was ever served from, also where a full disk has no room for a tombstone."""
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
