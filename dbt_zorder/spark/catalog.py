"""Read a table's facts from the session's catalog, by its entry or by SQL, which also works over Spark Connect."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog_entry import CatalogEntry, entry_of, is_absent, location_by_entry
from dbt_zorder.spark.columns import split_name
from dbt_zorder.spark.inner_path import folder_name
from dbt_zorder.spark.messages import in_one_line, unlogged
from dbt_zorder.spark.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")

ROOT_SUFFIX = "__zorder"
"""Suffix of a table's identifier for the folder of its versions."""

NEXT_SUFFIX = "__zorder_next"
"""Suffix of a table's identifier for the entry that a swap creates and then moves to the table's name."""

PREVIOUS_SUFFIX = "__zorder_prev"
"""Suffix for the previous entry, while a swap needs two calls."""

FORMAT_SUFFIX = "__zorder_format"
"""Suffix for a table that is about to replace one of another format."""

_LOCATION = re.compile(r"^Location: (.*)$", re.MULTILINE)
_DETAILS = "# Detailed Table Information"


@dataclass(frozen=True)
class TableName:
    """Name of a table by schema and identifier, unquoted.

    Raises:
        ZorderError: the identifier is not a plain name. Folders are named after it, so it could lead to another folder.
    """

    schema: str
    identifier: str

    def __post_init__(self) -> None:
        """Refuse an identifier that is not a plain name before any path is made of it."""
        try:
            folder_name(self.identifier)
        except ValueError as exc:
            msg = (
                f"A table cannot have the name {self.identifier!r}: {exc}. A name has letters, digits and underscores; "
                "look at the model's file and its alias."
            )
            raise ZorderError(msg) from exc

    @property
    def sql(self) -> str:
        """Return the name as SQL, both parts quoted."""
        return quote_name(self.schema, self.identifier)

    def __str__(self) -> str:
        return f"{self.schema}.{self.identifier}"


@dataclass(frozen=True)
class ListedName(TableName):
    """A table as the catalog lists it, under whatever name: Hive lets other tools make a table ``a/b``.

    No path is made of it.
    """

    def __post_init__(self) -> None:
        """Accept any name."""


@dataclass(frozen=True)
class TableInfo:
    """A table or view as the catalog describes it.

    Attributes:
        kind: ``MANAGED``, ``EXTERNAL`` or ``VIEW``.
        provider: ``parquet``, ``delta``, ...; empty for views.
        location: URI of its folder; empty for views.
        partition_columns: names, in order.
        columns: name, type and comment of each column.
        comment: the table's comment; empty if it has none.
        statistics: result of ``ANALYZE TABLE``, such as ``1024 bytes, 10 rows``; empty if it was not run.
        partition_provider: ``Catalog`` if the partitions are registered there; empty if they follow from the folders.
        bucket_columns: names of the columns whose hash chooses a row's bucket, in order.
        bucket_count: number of buckets; 0 if there are none.
        has_properties: whether ``TBLPROPERTIES`` are set.
    """

    kind: str
    provider: str
    location: str
    partition_columns: Sequence[str]
    columns: Sequence[tuple[str, str, str]]
    comment: str
    statistics: str = ""
    partition_provider: str = ""
    bucket_columns: Sequence[str] = ()
    bucket_count: int = 0
    has_properties: bool = False

    @property
    def column_comments(self) -> dict[str, str]:
        """Comments by the name of their column, without empty ones."""
        return {name: comment for name, _, comment in self.columns if comment}

    @property
    def kind_text(self) -> str:
        """What the relation is, in words, if it is no table in Parquet."""
        return "a view, which has no files" if self.is_view else f"of the format {self.provider or 'unknown'}"

    @property
    def is_view(self) -> bool:
        """Return whether this is a view, which has no rows of its own."""
        return self.kind == "VIEW"

    @property
    def keyword(self) -> str:
        """Return the keyword for SQL's ``DROP`` and ``ALTER``."""
        return "VIEW" if self.is_view else "TABLE"


def describe(spark: SparkSession, table: TableName) -> TableInfo | None:
    """Return the catalog's description of a table or view; None if there is none by that name."""
    found = entry_of(spark, table.schema, table.identifier)
    if found is None:
        if is_absent(spark, table.schema, table.identifier):
            return None
        try:
            with unlogged():
                found = _entry_by_sql(spark, table)
        except AnalysisException:
            if spark.catalog.tableExists(table.sql):
                raise
            return None
    details = found.details
    return TableInfo(
        kind=details.get("Type", ""),
        provider=details.get("Provider", "").lower(),
        location=details.get("Location", ""),
        partition_columns=found.partition_columns,
        columns=found.columns,
        comment=details.get("Comment", ""),
        statistics=details.get("Statistics", ""),
        partition_provider=details.get("Partition Provider", ""),
        bucket_columns=_listed(details.get("Bucket Columns", "")),
        bucket_count=max(0, int(details.get("Num Buckets") or 0)),
        has_properties="Table Properties" in details,
    )


def _listed(text: str) -> list[str]:
    """Return the names in a list of the catalog: "[`a`, `b c`]"."""
    return [name.replace("``", "`") for name in re.findall(r"`((?:[^`]|``)+)`", text)]


def location_of(spark: SparkSession, table: TableName) -> str:
    """Return a table's current location in the catalog; an empty string for a view or a missing table."""
    found = location_by_entry(spark, table.schema, table.identifier)
    if found is not None:
        return found
    info = describe(spark, table)
    return info.location if info else ""


def _entry_by_sql(spark: SparkSession, table: TableName) -> CatalogEntry:
    head, details = described(spark, table.sql)
    columns = []
    for row in head:
        if row[0] == "" or row[0].startswith("# Partition"):
            break
        columns.append((row[0], row[1], row[2] or ""))
    return CatalogEntry(columns, partition_columns([row[0] for row in head]), details)


def described(spark: SparkSession, name: str) -> tuple[list[Row], dict[str, str]]:
    """Return the result of ``DESCRIBE TABLE EXTENDED``: the rows of the columns, and the details by name.

    Columns come first and may have any name, so the details start after the last heading.

    Raises:
        AnalysisException: there is no table or view by that name.
    """
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    last = max((place for place, row in enumerate(rows) if row[0] == _DETAILS), default=len(rows))
    return rows[:last], {str(row[0]): str(row[1] or "") for row in rows[last + 1 :]}


def properties(spark: SparkSession, table: TableName) -> Mapping[str, str]:
    """Return the table properties of an existing table."""
    return {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {table.sql}").collect()}


def schema_location(spark: SparkSession, schema: str) -> str:
    """Return the URI of a schema's folder.

    Raises:
        ZorderError: there is no such schema.
    """
    try:
        location = spark.catalog.getDatabase(quote_name(schema)).locationUri
    except AnalysisException as exc:
        if spark.catalog.databaseExists(quote_name(schema)):
            raise
        msg = f"There is no schema {schema}: a run makes it with the first of its models."
        raise ZorderError(msg) from exc
    if not location:
        msg = f"The schema {schema} has no location: give it one by ALTER DATABASE, or the model a location_root."
        raise ZorderError(msg)
    return str(location)


def managed_location(spark: SparkSession, table: TableName) -> str:
    """Return the URI of the folder of a table that has no location of its own.

    Raises:
        ZorderError: there is no such schema.
    """
    return f"{schema_location(spark, table.schema).rstrip('/')}/{table.identifier.lower()}"


def table_locations(spark: SparkSession) -> list[tuple[TableName, str]]:
    """Return the location of every table in every schema that the session may list.

    A line in a comment or a property may look like a location. It counts as one, because it cannot be distinguished. A
    table's real location must never be missing here.

    One call lists a schema where the catalog supports it. If one table cannot be described, that call fails, and each
    table is described separately.
    """
    found = []
    for row in spark.sql("SHOW DATABASES").collect():
        schema = str(row[0])
        try:
            found += _locations_in(spark, schema)
        except AnalysisException as exc:  # dropped meanwhile, or not visible to this user
            _LOG.debug("the tables of %s could not be listed: %s", schema, in_one_line(exc))
    return found


def _locations_in(spark: SparkSession, schema: str) -> list[tuple[TableName, str]]:
    try:
        rows = spark.sql(f"SHOW TABLE EXTENDED IN {quote_name(schema)} LIKE '*'").collect()
        found = [
            (str(row["tableName"]), _LOCATION.findall(row["information"])) for row in rows if not row["isTemporary"]
        ]
    except Exception:
        names = [row["tableName"] for row in spark.sql(f"SHOW TABLES IN {quote_name(schema)}").collect()]
        found = [(name, _location_of(spark, ListedName(schema, name))) for name in names]
    return [(ListedName(schema, name), place) for name, places in found for place in places]


def served_locations(spark: SparkSession) -> Mapping[str, str]:
    """Return the name of every table, except those of an unfinished swap, by the last folder of its location."""
    return {
        place.rstrip("/").rsplit("/", 1)[-1]: str(table)
        for table, place in table_locations(spark)
        if not (table.identifier.endswith(NEXT_SUFFIX) and _is_in_own_root(table, place))
    }


def _is_in_own_root(following: TableName, place: str) -> bool:
    """Return whether an entry with a swap's suffix points to a version of its table; a user's entry may not."""
    root = place.rstrip("/").rsplit("/", 2)[-2:-1]
    return [name.lower() for name in root] == [f"{following.identifier.removesuffix(NEXT_SUFFIX)}{ROOT_SUFFIX}".lower()]


def _location_of(spark: SparkSession, table: TableName) -> list[str]:
    try:
        info = describe(spark, table)
    except Exception:  # a format that this session cannot read is never ours
        return []
    return [info.location] if info and info.location else []


def column_facts(schema: StructType) -> list[tuple[str, str, str]]:
    """Return a schema's columns in the form of ``TableInfo.columns``."""
    return [(f.name, f.dataType.simpleString(), (f.metadata or {}).get("comment", "")) for f in schema.fields]


def partition_columns(names: Sequence[str]) -> list[str]:
    """Return the partition columns of a table from the first values of ``described``'s rows.

    For Delta Lake and Iceberg, a name that is not a plain word is in backticks there.
    """
    if "# Partition Information" not in names:
        return []
    start = names.index("# Partition Information") + 2  # the line after it is the header '# col_name'
    columns, found = names[:start], []
    for name in names[start:]:
        if not name:
            break
        plain = split_name(name)
        found.append(plain[0] if name not in columns and plain[0] in columns and len(plain) == 1 else name)
    return found
