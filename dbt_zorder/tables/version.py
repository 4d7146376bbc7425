"""Define the names, folders and markers of versions; every build writes to a new folder, never to a served one."""

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
from dbt_zorder.spark.files import has_client, list_folders, open_path
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
"""Maximum length of a marker in characters; its schema needs about a hundred per column."""


@dataclass(frozen=True)
class Marker:
    """The description of a version, written before its data; only folders with a marker are ever deleted.

    Attributes:
        version: name of the version's folder.
        table: name of the table that it was built for.
        base: version that was served when the build began; empty if dbt-zorder did not make it.
        created_at: time of the build in UTC, ISO 8601.
        zorder_by: the clustering columns.
        format: format number of the marker.
        former_roots: other folders that may contain versions of the table, because its ``location_root`` was changed.
        schema: columns of the table as Spark's JSON, partition columns last; a rollback restores them.
        partition_by: names of the partition columns.
        bucket_by: names of the columns of the hash index.
        buckets: its number of buckets; 0 without one. Files of another number would lose rows.
        table_id: random identity of the table; versions built upon one another share it, see ``ownership``.
        catalog: identity of the catalog that built the version, from ``catalog_id``.
        home: original folder of the version. A copy has the same value but another folder.
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
    bucket_by: list[str] = field(default_factory=list)
    buckets: int = 0
    table_id: str = ""
    catalog: str = ""
    home: str = ""

    @property
    def table_name(self) -> TableName:
        """The table's name; a schema's name cannot contain a dot."""
        return TableName(*self.table.split(".", 1))

    def is_of(self, table: TableName) -> bool:
        """Return whether the version was built for ``table``."""
        return self.table.lower() == str(table).lower()


def new_version() -> str:
    """Return a unique name: UTC time to the millisecond and 32 random bits.

    Names sort by age.
    """
    now = datetime.now(timezone.utc)
    return f"v{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{secrets.token_hex(4)}"


def is_version(name: str) -> bool:
    """Return whether a folder's name has the form of ``new_version``."""
    return _NAME.fullmatch(name) is not None


def root_of(spark: SparkSession, table: TableName, location_root: str | None) -> str:
    """Return the folder that contains all versions of a table.

    It lies beside Spark's default location of the table, never inside it. Spark refuses to create a managed table over
    existing files, and deletes them with the table. A relative ``location_root`` starts at the schema's folder, as in
    the catalog. A plain writer would start at the working directory.
    """
    parent = location_root or schema_location(spark, table.schema)
    if not parent.startswith("/") and not _SCHEME.match(parent):
        parent = f"{schema_location(spark, table.schema).rstrip('/')}/{parent}"
    return f"{parent.rstrip('/')}/{table.identifier}{ROOT_SUFFIX}"


def version_of(location: str) -> str:
    """Return the version that a table's location leads to; an empty string if it is not one of dbt-zorder's."""
    name = location.rstrip("/").rsplit("/", 1)[-1]
    return name if is_version(name) else ""


def roots_of(location: str, marker: Marker | None) -> list[str]:
    """Return the folders that may contain versions of a table, first that of the version at ``location``."""
    former = [root for root in marker.former_roots if is_root(root)] if marker else []
    return [location.rstrip("/").rsplit("/", 1)[0], *former]


def is_root(folder: str) -> bool:
    """Return whether a folder's name is that of a versions folder; the table itself may have been renamed."""
    return is_folder(folder.rstrip("/"), ROOT_SUFFIX)


def new_table_id() -> str:
    """Return a random identity for a new table."""
    return secrets.token_hex(8)


def home_of(spark: SparkSession, path: str) -> str:
    """Return a version's folder qualified with its file system; over Spark Connect, as it is spelled."""
    if not has_client(spark):
        return path.rstrip("/")
    place = on_disk(spark, path)
    if place is not None:
        return place.uri
    system, folder = open_path(spark, path)
    return str(system.makeQualified(folder).toString())


def markers_below(spark: SparkSession, roots: Iterable[str]) -> dict[str, Marker | None]:
    """Return the markers of all versions below the given folders by path, including half-deleted ones.

    Versions are merged by name, because a root can be spelled in two ways and version names are unique.
    """
    by_name = {name: f"{root}/{name}" for root in roots for name in list_folders(spark, root) if is_version(name)}
    return {path: read_marker(spark, path, dying=True) for path in by_name.values()}


def write_marker(spark: SparkSession, path: str, marker: Marker, *, renew: bool = False) -> None:
    """Write the marker of the version at ``path``, which must not have one unless ``renew`` is set."""
    text = json.dumps(asdict(marker))
    if renew:
        # with two copies, one is complete whenever the process ends
        write_line(spark, f"{path}/{_MARKER_COPY}", text, renew=True)
    write_line(spark, f"{path}/{MARKER_DIRECTORY}", text, renew=renew)


def read_marker(spark: SparkSession, path: str, *, dying: bool = False) -> Marker | None:
    """Return the marker of the version at ``path``; None if there is no readable one.

    With ``dying``, also read the tombstone of a version whose deletion was interrupted after its marker was gone.
    """
    for directory in (MARKER_DIRECTORY, _MARKER_COPY, *([TOMBSTONE] if dying else [])):
        try:
            return parse_marker(read_line(spark, f"{path}/{directory}"), path)
        except Exception:  # any error will do: without a marker nothing is deleted
            continue
    return None


def parse_marker(text: str, path: str) -> Marker:
    """Parse the marker of the version at ``path``.

    Unknown keys are ignored, so that a later release can add keys. It raises ``format`` if the meaning of the others
    changes. Former roots are checked where they are used, see ``roots_of``.

    Raises:
        ValueError: the text is not a marker, or is that of another version.
        RecursionError: it is nested too deeply.
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
    if marker.buckets < 0 or bool(marker.buckets) is not bool(marker.bucket_by):
        msg = f"the marker of {path} has {marker.buckets} buckets by {len(marker.bucket_by)} columns"
        raise ValueError(msg)
    schema, _, identifier = marker.table.partition(".")
    folder_name(schema)
    folder_name(identifier)
    return marker


def _is_of(value: Any, kind: Any) -> bool:
    """Return whether a JSON value has the type of a marker's field."""
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_is_of(one, get_args(kind)[0]) for one in value)
    if get_origin(kind) is UnionType:
        return any(_is_of(value, one) for one in get_args(kind))
    return type(value) is kind


def is_gone(spark: SparkSession, path: str) -> bool:
    """Return whether the version at ``path`` certainly has no marker; an unreadable one may exist."""
    for directory in (MARKER_DIRECTORY, _MARKER_COPY):
        try:
            read_line(spark, f"{path}/{directory}")
        except LookupError:
            continue
        except Exception as exc:  # over Spark Connect only the error's name shows it
            if "PATH_NOT_FOUND" in str(exc):
                continue
        return False
    return True
