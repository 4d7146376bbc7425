"""Find other tables of the catalog in, above or at a folder that a table will use or a run will delete."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Sequence
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError, ZorderError
from dbt_zorder.spark.catalog import ROOT_SUFFIX, TableInfo, TableName, describe, schema_location, table_locations
from dbt_zorder.spark.files import exists, has_client
from dbt_zorder.spark.location import is_same_place, is_within, path_of
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.stats.listing import data_files
from dbt_zorder.tables.version import is_version

_LOG = logging.getLogger("dbt_zorder")

_PLAIN = re.compile(r"\w+")
"""Names that a managed table can have; the folder of a schema has a dot in its name by default."""

_free: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""Folders of roots that lie in no managed table's, by session."""


def check_root(
    spark: SparkSession, table: TableName, root: str, location_root: str | None, roots: Sequence[str]
) -> None:
    """Check, before a table's first version is written to a folder, that no other table uses the folder.

    The whole catalog is searched only if the folder exists or ``location_root`` is set. By default versions lie beside
    the schema's other tables, in a new folder.

    Args:
        spark: the session.
        table: name of the table to build.
        root: folder of its versions.
        location_root: the model's ``location_root``.
        roots: folders in which the table has versions already.

    Raises:
        ConfigError: another table uses it; nothing was read or written.
    """
    if any(is_same_place(root, one) for one in roots):
        return
    inside = next((name for name in root.split("/") if is_version(name)), None)
    if inside is not None:
        msg = (
            f"{table}: location_root is '{location_root}', which lies in the version {inside} of another table and "
            "goes with that. Name another folder."
        )
        raise ConfigError(msg)
    beside = TableName(table.schema, root.rsplit("/", 1)[-1])
    found = describe(spark, beside)
    if found is not None and found.location and is_same_place(found.location, root):
        raise ConfigError(_in_the_way(table, beside, found.location, root))
    outer = _managed_above(spark, table, root)
    if outer is not None:
        raise ConfigError(_in_the_way(table, *outer, root))
    if location_root is None and not (has_client(spark) and exists(spark, root)):
        return
    places = table_locations(spark)
    for other, place in places:
        # tables that are served from versions, under any name, are protected version by version
        lies_in = is_within(place, root) and not _is_of_version(place)
        if not _is_same(other, table) and (lies_in or _is_above(spark, place, root, places)):
            raise ConfigError(_in_the_way(table, other, place, root))


def check_former(spark: SparkSession, table: TableName, base: TableInfo | None) -> None:
    """Check, before a build, that the folder of a managed table can be deleted once the table is replaced.

    Raises:
        ConfigError: another table lies there.
    """
    if base is not None and goes_with(table, base) and has_client(spark):
        why = why_not_deletable(spark, table, base)
        if why:
            msg = (
                f"{table} is a managed table, whose folder {base.location} goes once it is z-ordered, and {why}. "
                "Nothing was changed: move the other table to a folder of its own, or drop it, and run again."
            )
            raise ConfigError(msg)


def goes_with(table: TableName, base: TableInfo) -> bool:
    """Return whether a table is managed and its folder is its own, so that dropping the table would delete it."""
    return base.kind == "MANAGED" and base.location.rstrip("/").rsplit("/", 1)[-1] == table.identifier.lower()


def why_not_deletable(spark: SparkSession, table: TableName, base: TableInfo) -> str:
    """Return which other table lies in, above or at a managed table's folder, as a clause; empty if none does."""
    folder = base.location
    places = table_locations(spark)
    for other, place in places:
        if _is_same(other, table):
            continue
        if is_within(place, folder) or _is_above(spark, place, folder, places):
            return f"{other} lies in {place}"
    files: Sequence[str] = ()
    with contextlib.suppress(Exception):  # the folder is gone already
        files = list(data_files(spark, folder))
    depth = len(path_of(folder).rstrip("/").split("/"))
    for file in files:
        for name in path_of(file).split("/")[depth:-1]:
            if is_version(name) or unquote(name).endswith(ROOT_SUFFIX):
                return f"{file} is of a z-ordered table that this catalog does not know"
    return ""


def _is_same(other: TableName, table: TableName) -> bool:
    return str(other).lower() == str(table).lower()


def _is_of_version(place: str) -> bool:
    return any(is_version(name) for name in place.rstrip("/").split("/")[-2:])


def _is_above(spark: SparkSession, place: str, folder: str, places: Sequence[tuple[TableName, str]]) -> bool:
    """Return whether a table's folder contains another one, and is not that of whole schemas."""
    if not is_within(folder, place) or is_same_place(folder, place):
        return False
    for schema in dict.fromkeys(other.schema for other, _ in places):
        with contextlib.suppress(ZorderError):  # the schema has no location, or was dropped meanwhile
            if is_within(schema_location(spark, schema), place):
                return False
    return True


def _managed_above(spark: SparkSession, table: TableName, root: str) -> tuple[TableName, str] | None:
    """Return a managed table in whose folder a root lies, with that folder, also where a whole schema lies there.

    Spark makes the folder of a managed table in its schema's, by its name. So one table is asked for in each schema
    whose folder the root lies in. It makes none where files lie already, so it is enough to ask once for each folder.
    """
    parent = root.rpartition("/")[0]
    looked_at = _free.setdefault(spark, set())
    if parent in looked_at:
        return None
    try:
        schemas = spark.catalog.listDatabases()
    except Exception as exc:  # one was dropped meanwhile, or is not for this user to see
        _LOG.debug("the folders of schemas could not be listed: %s", in_one_line(exc))
        return None
    for schema in schemas:
        place = schema.locationUri or ""
        if not place or not is_within(root, place):
            continue
        depth = len([name for name in path_of(place).split("/") if name])
        below = [name for name in path_of(root).split("/") if name][depth:]
        if not below or not _PLAIN.fullmatch(below[0]):
            continue
        other = TableName(schema.name, below[0])
        found = None if _is_same(other, table) else describe(spark, other)
        if found is not None and found.kind == "MANAGED" and is_within(root, found.location):
            return other, found.location
    looked_at.add(parent)
    return None


def _in_the_way(table: TableName, other: TableName, place: str, root: str) -> str:
    return (
        f"{table} is to have its versions in {root}, and {other} lies in {place}: dropping one of the two would take "
        f"rows of the other. Nothing was changed: give {table} another location_root, or move {other}."
    )
