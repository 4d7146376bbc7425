"""Names and places of versions: every build writes into a folder of its own, never into one that is served."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass, field, fields
from datetime import datetime, timezone
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import ROOT_SUFFIX, TableName, schema_location
from dbt_zorder.spark.files import has_client, list_folders
from dbt_zorder.spark.hadoop import open_path
from dbt_zorder.spark.inner_path import folder_name, is_folder
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.tables.markers import read_line, write_line

MARKER_DIRECTORY = "_zorder_version"
TOMBSTONE = "_zorder_deleting"
"""Folder in a version whose deletion has begun; see ``tombstone``."""

_MARKER_COPY = "_zorder_version_copy"
_FORMAT = 1
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_NAME = re.compile(r"v\d{8}T\d{9}-[0-9a-f]{8}", re.ASCII)
_MOST_TEXT = 16 << 20
"""Characters of a marker that can be one: its schema has about a hundred for each column."""


@dataclass(frozen=True)
class Marker:
    """What a version says of itself, written before any of its data: only a folder with a marker is ever deleted.

    Attributes:
        version: the folder's own name.
        table: the table that it was built for.
        base: the version that was served when the build began; empty if it was none of ours.
        created_at: UTC, ISO 8601.
        zorder_by: the clustering columns.
        format: of this marker.
        former_roots: other folders in which versions of this table may lie, because its ``location_root`` was changed.
        schema: of the table, as Spark's JSON with partition columns last; a rollback restores it.
        partition_by: names of the partition columns.
        table_id: of the table, random, and the same in each version that was built upon one of ours; see ``ownership``.
        catalog: identity of the catalog that built it, as of ``catalog_id``.
        home: the version's folder as it was written. A copy has it too, but lies elsewhere.
    """

    version: str
    table: str
    base: str
    created_at: str
    zorder_by: list[str]
    format: int = _FORMAT
    former_roots: list[str] = field(default_factory=list)
    schema: str = ""
    partition_by: list[str] = field(default_factory=list)
    table_id: str = ""
    catalog: str = ""
    home: str = ""

    @property
    def table_name(self) -> TableName:
        """The table as a name; a schema's own name cannot hold a dot."""
        return TableName(*self.table.split(".", 1))

    def is_of(self, table: TableName) -> bool:
        """Tell whether the version was built for ``table``."""
        return self.table.lower() == str(table).lower()


def new_version() -> str:
    """Return a name that no other build has: UTC time to the millisecond and 32 random bits, so names sort by age."""
    now = datetime.now(timezone.utc)
    return f"v{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{secrets.token_hex(4)}"


def is_version(name: str) -> bool:
    """Tell whether a folder's name is one that ``new_version`` makes."""
    return _NAME.fullmatch(name) is not None


def root_of(spark: SparkSession, table: TableName, location_root: str | None) -> str:
    """Return the folder that holds all versions of a table.

    It lies beside the place where Spark would put the table itself, never in it: Spark refuses to create a managed
    table where files lie, and drops whatever lies there with the table. A relative ``location_root`` counts from the
    schema's folder, as the catalog counts it: a writer alone would count it from the working directory.
    """
    parent = location_root or schema_location(spark, table.schema)
    if not parent.startswith("/") and not _SCHEME.match(parent):
        parent = f"{schema_location(spark, table.schema).rstrip('/')}/{parent}"
    return f"{parent.rstrip('/')}/{table.identifier}{ROOT_SUFFIX}"


def version_of(location: str) -> str:
    """Return the version that a table's location leads to, an empty string if it is none of ours."""
    name = location.rstrip("/").rsplit("/", 1)[-1]
    return name if is_version(name) else ""


def roots_of(location: str, marker: Marker | None) -> list[str]:
    """Return the folders in which versions of a table may lie: first that of the one at ``location``."""
    former = [root for root in marker.former_roots if is_root(root)] if marker else []
    return [location.rstrip("/").rsplit("/", 1)[0], *former]


def is_root(folder: str) -> bool:
    """Tell whether a folder may be one that holds versions: its name is a table's, which may have another by now."""
    return is_folder(folder.rstrip("/"), ROOT_SUFFIX)


def new_table_id() -> str:
    """Return an identity that no other table has."""
    return secrets.token_hex(8)


def home_of(spark: SparkSession, path: str) -> str:
    """Return a version's folder with its file system; over Spark Connect as it is spelled."""
    if not has_client(spark):
        return path.rstrip("/")
    place = on_disk(spark, path)
    if place is not None:
        return place.uri
    system, folder = open_path(spark, path)
    return str(system.makeQualified(folder).toString())


def markers_below(spark: SparkSession, roots: Iterable[str]) -> dict[str, Marker | None]:
    """Return the marker of every version below some folders by its path, also of one half deleted.

    By name, because one root may be spelled in two ways, and no two versions have one name.
    """
    by_name = {name: f"{root}/{name}" for root in roots for name in list_folders(spark, root) if is_version(name)}
    return {path: read_marker(spark, path, dying=True) for path in by_name.values()}


def write_marker(spark: SparkSession, path: str, marker: Marker, *, renew: bool = False) -> None:
    """Write the marker of the version at ``path``, which must not have one yet, unless it is to be renewed."""
    text = json.dumps(asdict(marker))
    if renew:
        # two copies, one of which is whole whenever the process ends
        write_line(spark, f"{path}/{_MARKER_COPY}", text, renew=True)
    write_line(spark, f"{path}/{MARKER_DIRECTORY}", text, renew=renew)


def read_marker(spark: SparkSession, path: str, *, dying: bool = False) -> Marker | None:
    """Return the marker of the version at ``path``, None if there is none that can be read.

    With ``dying`` also that of a version whose deletion was cut short when its marker was gone.
    """
    for directory in (MARKER_DIRECTORY, _MARKER_COPY, *([TOMBSTONE] if dying else [])):
        try:
            return parse_marker(read_line(spark, f"{path}/{directory}"), path)
        except Exception:  # whatever is wrong with it: without a marker nothing is deleted
            continue
    return None


def parse_marker(text: str, path: str) -> Marker:
    """Return the marker that a text is, of the version at ``path``.

    Other keys are passed over: a later release may add them, and raises ``format`` where the rest mean
    something else by then. Former roots are looked at where they are used, see ``roots_of``.

    Raises:
        ValueError: it is none, or that of another version.
        RecursionError: it is nested too deep for one.
    """
    found = json.loads(text) if len(text) <= _MOST_TEXT else None
    if not isinstance(found, dict):
        msg = f"the marker of {path} is no object of JSON, or too large"
        raise ValueError(msg)
    kinds = get_type_hints(Marker)
    given = {key: value for key, value in found.items() if key in kinds}
    needed = {one.name for one in fields(Marker) if one.default is MISSING and one.default_factory is MISSING}
    wrong = [*(needed - {*given}), *(key for key, value in given.items() if not _is_of(value, kinds[key]))]
    if wrong:
        msg = f"the marker of {path} lacks '{wrong[0]}', or has it of another type"
        raise ValueError(msg)
    marker = Marker(**given)
    if marker.format != _FORMAT or marker.version != version_of(path):
        msg = f"the marker of {path} is of another format, or that of another version"
        raise ValueError(msg)
    if marker.base and not is_version(marker.base):
        msg = f"the marker of {path} names no version as its base"
        raise ValueError(msg)
    schema, _, identifier = marker.table.partition(".")
    folder_name(schema)
    folder_name(identifier)
    return marker


def _is_of(value: Any, kind: Any) -> bool:
    """Tell whether a value of JSON is of the type that a field of a marker has."""
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_is_of(one, get_args(kind)[0]) for one in value)
    if get_origin(kind) is UnionType:
        return any(_is_of(value, one) for one in get_args(kind))
    return type(value) is kind


def is_gone(spark: SparkSession, path: str) -> bool:
    """Tell whether the version at ``path`` has no marker for sure: one that could not be read may be there."""
    for directory in (MARKER_DIRECTORY, _MARKER_COPY):
        try:
            read_line(spark, f"{path}/{directory}")
        except LookupError:
            continue
        except Exception as exc:  # over Spark Connect by its name alone
            if "PATH_NOT_FOUND" in str(exc):
                continue
        return False
    return True
