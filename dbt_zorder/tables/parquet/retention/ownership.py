"""Determine which table owns a version, before each deletion, move and batch.

Without proof of ownership, nothing is touched.

A table owns a version if the version's marker names the table, the session's catalog and the version's own folder. The
marker must also have the identity of the version that the table is served from. A copy of a version lies in another
folder, and the copy of a metastore is another catalog. Two tables of one name have two identities.

Markers of earlier releases lack these fields. A table owns a version with such a marker if it is served from it. It
also does if a chain of versions, each built upon the next, connects the version with the served one. It never does if
another catalog has versions in the folder, or if the embedded metastore was moved or copied.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.catalog_id import SETTING, catalog_id, is_same_catalog, was_moved
from dbt_zorder.spark.files import has_client, list_files, list_folders
from dbt_zorder.spark.location import is_same_place
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.store import stats_path
from dbt_zorder.tables.parquet.journal import JOURNAL_DIRECTORY, recover_journal
from dbt_zorder.tables.parquet.retention.former_roots import listed_roots
from dbt_zorder.tables.parquet.saved_layout import TREE_DIRECTORY
from dbt_zorder.tables.version import (
    Marker,
    home_of,
    is_version,
    markers_below,
    new_table_id,
    read_marker,
    roots_of,
    version_of,
    write_marker,
)

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class Owner:
    """A table that is served from a version, and the evidence for which other versions it owns.

    Attributes:
        table: name of the table.
        catalog: identity of the session's catalog.
        location: folder of the version that the table is served from.
        marker: marker of that version; None if it cannot be read.
        refused: reason why the table does not own that version; empty if it does.
    """

    table: TableName
    catalog: str
    location: str
    marker: Marker | None
    refused: str

    @property
    def roots(self) -> list[str]:
        """Folders that may contain versions of the table, even if they cannot be listed; none if ``refused``."""
        return [] if self.refused else roots_of(self.location, self.marker)

    @property
    def table_id(self) -> str:
        """Identity of the table; empty if its version has none, or the table does not own it."""
        return "" if self.refused or self.marker is None else self.marker.table_id

    def shares_identity(self, marker: Marker) -> bool:
        """Return whether a version has the identity of the one that is served, whatever the table's name was then."""
        return bool(self.table_id) and marker.table_id == self.table_id

    def names(self, marker: Marker) -> bool:
        """Return whether a marker has the table's name, or the name under which its version was built."""
        return marker.is_of(self.table) or (
            not self.refused and self.marker is not None and marker.is_of(self.marker.table_name)
        )


def owner_of(spark: SparkSession, table: TableName, location: str, marker: Marker | None) -> Owner:
    """Return the owner of the version that a table is served from.

    Args:
        spark: the session.
        table: name of the table.
        location: folder of the version.
        marker: marker of the version, from ``read_marker``.
    """
    location = location.rstrip("/")
    return Owner(table, catalog_id(spark), location, marker, _why_served_is_not(spark, table, location, marker))


def served_owner(spark: SparkSession, table: TableName, location: str) -> Owner:
    """Return the owner of the version at ``location``; read the marker there."""
    return owner_of(spark, table, location, read_marker(spark, location))


def own_versions(spark: SparkSession, owner: Owner) -> dict[str, Marker]:
    """Return the markers of all versions that a table owns by path, including half-deleted ones."""
    if owner.refused:
        return {}
    roots, _ = listed_roots(spark, owner.location, owner.marker)
    markers = markers_below(spark, roots)
    chain = chain_of(owner, markers)
    return {
        path: marker
        for path, marker in markers.items()
        if marker and not (why_unnamed(owner, path, marker) or why_not_own(spark, owner, path, marker, chain))
    }


def why_unnamed(owner: Owner, path: str, marker: Marker | None) -> str:
    """Return why a folder does not claim to be a version of a table; empty if it does."""
    name = version_of(path)
    if not name:
        return "is no version of ours"
    if marker is None or marker.version != name:
        return "has no marker of ours that can be read"
    return "" if owner.names(marker) or owner.shares_identity(marker) else f"was built for {marker.table}"


def why_not_own(spark: SparkSession, owner: Owner, path: str, marker: Marker, chain: frozenset[str]) -> str:
    """Return why a table does not own a version that claims to be its own; empty if it does.

    Args:
        spark: the session.
        owner: the table.
        path: folder of the version.
        marker: marker of the version.
        chain: result of ``chain_of``.
    """
    elsewhere = _why_elsewhere(spark, owner.catalog, path, marker)
    if elsewhere:
        return elsewhere
    if not owner.names(marker) and _leads_to(spark, marker, path):
        return (
            f"was built for {marker.table}, which has the same identity and is served from it or from another version"
        )
    why = _why_unrelated(owner, marker, chain)
    # an incomplete version was never served, so no reader uses it
    return why if why and _was_completed(spark, path) else ""


def _why_unrelated(owner: Owner, marker: Marker, chain: frozenset[str]) -> str:
    if not owner.location:
        return "is not provably the table's, as that is served from no version"
    if owner.refused:
        return f"is not provably the table's: the version that is served {owner.refused}"
    if marker.catalog and marker.table_id == owner.table_id:
        return ""
    if marker.catalog:
        return "was built for another table of this name, or before this one was dropped and made anew"
    if marker.table_id:
        return "does not say which catalog built it"
    if marker.version in chain:
        return ""
    return "does not say which catalog built it, and the table's own versions were not built upon it, nor it upon them"


def chain_of(owner: Owner, markers: Mapping[str, Marker | None]) -> frozenset[str]:
    """Return the names of the versions that a chain of builds connects with the served one.

    The result is empty if another catalog has built versions in the same folders.
    """
    found = [marker for marker in markers.values() if marker]
    if owner.marker is None or any(
        marker.catalog and not is_same_catalog(marker.catalog, owner.catalog) for marker in found
    ):
        return frozenset()
    near: dict[str, set[str]] = {}
    for marker in [*found, owner.marker]:
        if marker.base:
            near.setdefault(marker.version, set()).add(marker.base)
            near.setdefault(marker.base, set()).add(marker.version)
    chain, ends = {owner.marker.version}, [owner.marker.version]
    while ends:
        further = near.get(ends.pop(), set()) - chain
        chain |= further
        ends += further
    return frozenset(chain)


def identified(spark: SparkSession, owner: Owner | None) -> str:
    """Return the identity for a table's next version: that of its current version, or a new one.

    A current version without an identity gets one.

    Args:
        spark: the session.
        owner: the table; None if it does not own the version that it is served from.
    """
    if owner is None or owner.marker is None:
        return new_table_id()
    marker = stamped(spark, owner)
    if marker != owner.marker and has_client(spark):
        try:
            write_marker(spark, owner.location, marker, renew=True)
        except Exception as exc:  # the chain of versions proves ownership as well
            _LOG.debug("the marker in %s was not renewed: %s", owner.location, in_one_line(exc))
    return marker.table_id


def stamped(spark: SparkSession, owner: Owner) -> Marker:
    """Return the marker of a table's own version, with all fields that identify its owner."""
    assert owner.marker is not None
    marker = owner.marker
    if marker.catalog:
        return marker
    return replace(
        marker,
        table_id=marker.table_id or new_table_id(),
        catalog=owner.catalog,
        home=home_of(spark, owner.location),
    )


def recover_own_journal(spark: SparkSession, table: TableName, location: str) -> tuple[int, int]:
    """Call ``recover_journal`` for a table's version if the table owns it; leave another table's journal alone.

    Returns:
        The numbers of entries completed and deleted.
    """
    if not list_folders(spark, f"{location.rstrip('/')}/{JOURNAL_DIRECTORY}"):
        return 0, 0
    refused = served_owner(spark, table, location).refused
    if refused:
        _LOG.warning(
            "%s is served from a version with unfinished batches in its journal, which stay there: the version %s",
            table,
            refused,
        )
        return 0, 0
    return recover_journal(spark, location)


def _why_served_is_not(spark: SparkSession, table: TableName, location: str, marker: Marker | None) -> str:
    if marker is None or marker.version != version_of(location):
        return "has no marker of ours that can be read"
    if not marker.is_of(table) and _leads_to(spark, marker, location):
        return f"was built for {marker.table}, which is served from it, or has moved on to another version"
    why = _why_elsewhere(spark, catalog_id(spark), location, marker)
    if why or marker.catalog or not has_client(spark):
        return why
    if was_moved(spark):
        return "does not say which catalog built it, and this session's metastore was moved or copied"
    root = location.rpartition("/")[0]
    if not chain_of(Owner(table, catalog_id(spark), location, marker, ""), markers_below(spark, [root])):
        return "does not say which catalog built it, and another catalog has versions beside it"
    return ""


def _was_completed(spark: SparkSession, path: str) -> bool:
    """Return whether a build may have completed a version: it writes stats and saved layout last."""
    return any(list_files(spark, folder) for folder in (stats_path(path), f"{path}/{TREE_DIRECTORY}"))


def _leads_to(spark: SparkSession, marker: Marker, location: str) -> bool:
    """Return whether the table that a version was built for is served from it, or from another version of that table.

    A table that was renamed leads nowhere under its old name, and a new one of that name has another identity. Where
    the marker has no identity, the chain of builds counts.
    """
    other = describe(spark, marker.table_name)
    if other is None or not version_of(other.location):
        return False
    if version_of(other.location) == marker.version:
        return True
    theirs = read_marker(spark, other.location)
    if theirs is None or marker.table_id:
        return theirs is not None and theirs.table_id == marker.table_id
    if not has_client(spark):
        return False
    served = Owner(marker.table_name, catalog_id(spark), other.location, theirs, "")
    return marker.version in chain_of(served, markers_below(spark, [location.rpartition("/")[0]]))


def _why_elsewhere(spark: SparkSession, catalog: str, path: str, marker: Marker) -> str:
    """Return why a version belongs to another catalog or folder, according to its marker; empty if it does not."""
    if marker.catalog and catalog and not is_same_catalog(marker.catalog, catalog):
        return (
            f"was built by another catalog, '{marker.catalog}', and this session has '{catalog}' (if the two are one, "
            f"set {SETTING} to the former)"
        )
    if marker.home and not is_same_place(marker.home, home_of(spark, path)):
        return f"was built as {marker.home}, and is a copy or was moved"
    return ""


def claimed_versions(spark: SparkSession, table: TableName, location: str) -> dict[str, Marker]:
    """Return the versions beside a missing location that this catalog has built for a table, by path.

    None of them is proved to belong to the table that was served from there. They may be served but not deleted.
    """
    root = location.rstrip("/").rpartition("/")[0]
    catalog = catalog_id(spark)
    return {
        path: marker
        for path, marker in markers_below(spark, [root]).items()
        if marker
        and is_version(marker.version)
        and marker.version == version_of(path)
        and marker.is_of(table)
        and not _why_elsewhere(spark, catalog, path, marker)
    }
