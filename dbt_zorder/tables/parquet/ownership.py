"""Whose a version is: asked before each deletion, each move and each batch. What cannot be proved ours is not touched.

A version is a table's own if its marker names the table, the catalog of this session and the folder in which it lies,
and has the identity of the version that the table is served from. A copy of a version lies elsewhere, the copy of a
metastore is another catalog, and two tables of one name have two identities.

Markers of releases before these fields say none of it. A version with such a marker counts as the table's own if it is
served, or if a chain of versions built one upon another leads from it to the served one; never where another catalog
has versions in the same folder, or where the embedded metastore was moved or copied.
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
from dbt_zorder.tables.parquet.former_roots import listed_roots
from dbt_zorder.tables.parquet.journal import JOURNAL_DIRECTORY, recover_journal
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
    """A table that is served from a version, and by what other versions are known to be its own.

    Attributes:
        table: its name.
        catalog: identity of the session's catalog.
        location: of the version that it is served from.
        marker: of that version; None if it cannot be read.
        refused: why that version is not known to be the table's own; empty if it is.
    """

    table: TableName
    catalog: str
    location: str
    marker: Marker | None
    refused: str

    @property
    def roots(self) -> list[str]:
        """Folders in which versions of the table may lie, also such as cannot be listed; none of another table's."""
        return [] if self.refused else roots_of(self.location, self.marker)

    @property
    def table_id(self) -> str:
        """Identity of the table; empty if its version has none, or is not its own."""
        return "" if self.refused or self.marker is None else self.marker.table_id

    def shares_identity(self, marker: Marker) -> bool:
        """Tell whether a version has the identity of the one that is served, whatever the table's name was then."""
        return bool(self.table_id) and marker.table_id == self.table_id

    def names(self, marker: Marker) -> bool:
        """Tell whether a marker has the table's name, or the one under which its version was built."""
        return marker.is_of(self.table) or (
            not self.refused and self.marker is not None and marker.is_of(self.marker.table_name)
        )


def owner_of(spark: SparkSession, table: TableName, location: str, marker: Marker | None) -> Owner:
    """Return whose the version is that a table is served from.

    Args:
        spark: the session.
        table: its name.
        location: of the version.
        marker: of the version, as ``read_marker`` returns it.
    """
    location = location.rstrip("/")
    return Owner(table, catalog_id(spark), location, marker, _why_served_is_not(spark, table, location, marker))


def served_owner(spark: SparkSession, table: TableName, location: str) -> Owner:
    """Return the same by the marker that stands there."""
    return owner_of(spark, table, location, read_marker(spark, location))


def own_versions(spark: SparkSession, owner: Owner) -> dict[str, Marker]:
    """Return the markers of a table's own versions by path, also of such as are half deleted."""
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
    """Return why a folder does not even claim to be a version of a table; empty if it does."""
    name = version_of(path)
    if not name:
        return "is no version of ours"
    if marker is None or marker.version != name:
        return "has no marker of ours that can be read"
    return "" if owner.names(marker) or owner.shares_identity(marker) else f"was built for {marker.table}"


def why_not_own(spark: SparkSession, owner: Owner, path: str, marker: Marker, chain: frozenset[str]) -> str:
    """Return why a version that claims to be a table's is not known to be; empty if it is.

    Args:
        spark: the session.
        owner: the table.
        path: of the version.
        marker: of the version.
        chain: as of ``chain_of``.
    """
    elsewhere = _why_elsewhere(spark, owner.catalog, path, marker)
    if elsewhere:
        return elsewhere
    if not owner.names(marker) and _leads_to(spark, marker, path):
        return (
            f"was built for {marker.table}, which has the same identity and is served from it or from another version"
        )
    why = _why_unrelated(owner, marker, chain)
    # what no build has completed was never served, so nobody has rows there
    return why if why and _was_completed(spark, path) else ""


def _why_unrelated(owner: Owner, marker: Marker, chain: frozenset[str]) -> str:
    if not owner.location:
        return "is not known to be the table's, as that is served from no version"
    if owner.refused:
        return f"is not known to be the table's: the version that is served {owner.refused}"
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
    """Return the names of versions that a chain of builds, one upon another, connects with the one that is served.

    It is empty where another catalog has built versions in the same folders.
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
    """Return the identity for the next version of a table: that of its own version, which gets one if it has none.

    Args:
        spark: the session.
        owner: the table; None if it is served from no version of its own.
    """
    if owner is None or owner.marker is None:
        return new_table_id()
    marker = stamped(spark, owner)
    if marker != owner.marker and has_client(spark):
        try:
            write_marker(spark, owner.location, marker, renew=True)
        except Exception as exc:  # the chain of versions says it as well
            _LOG.debug("the marker in %s was not renewed: %s", owner.location, in_one_line(exc))
    return marker.table_id


def stamped(spark: SparkSession, owner: Owner) -> Marker:
    """Return the marker of a table's own version with all that tells whose it is."""
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
    """Do what ``recover_journal`` does for the version of a table, if that is its own: another's journal stays.

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
    """Tell whether a build may have come to the end of a version: its stats and its tree come last."""
    return any(list_files(spark, folder) for folder in (stats_path(path), f"{path}/{TREE_DIRECTORY}"))


def _leads_to(spark: SparkSession, marker: Marker, location: str) -> bool:
    """Tell whether the table that a version was built for is served from it, or from another version of that table.

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
    """Return why a version is not of this catalog and this place, by what its marker says of them."""
    if marker.catalog and catalog and not is_same_catalog(marker.catalog, catalog):
        return (
            f"was built by another catalog, '{marker.catalog}', and this session has '{catalog}' (if the two are one, "
            f"set {SETTING} to the former)"
        )
    if marker.home and not is_same_place(marker.home, home_of(spark, path)):
        return f"was built as {marker.home}, and is a copy or was moved"
    return ""


def claimed_versions(spark: SparkSession, table: TableName, location: str) -> dict[str, Marker]:
    """Return the versions beside a location that is gone which this catalog has built for a table, by path.

    None of them is known to be of the table that was served from there, so they may be served but not deleted.
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
