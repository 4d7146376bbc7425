"""What the session's catalog says of a table: by its own entry, or by SQL, so that it also works over Spark Connect."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog_entry import Entry, entry_of, is_absent, location_by_entry
from dbt_zorder.spark.columns import split_name
from dbt_zorder.spark.inner_path import folder_name
from dbt_zorder.spark.messages import in_one_line, unlogged
from dbt_zorder.spark.sql import quote_name

_LOG = logging.getLogger("dbt_zorder")

ROOT_SUFFIX = "__zorder"
"""Behind a table's identifier: the folder of its versions."""

NEXT_SUFFIX = "__zorder_next"
"""Behind a table's identifier: the entry that a swap makes and then puts in the table's place."""

PREVIOUS_SUFFIX = "__zorder_prev"
"""The same of the entry that was there before, while a swap takes two calls."""

FORMAT_SUFFIX = "__zorder_format"
"""The same of a table that is about to take the place of one of another format."""

_LOCATION = re.compile(r"^Location: (.*)$", re.MULTILINE)
_DETAILS = "# Detailed Table Information"


@dataclass(frozen=True)
class TableName:
    """A table by schema and identifier, unquoted.

    Raises:
        ZorderError: the identifier is none, since folders are named for it, and it would lead to another one.
    """

    schema: str
    identifier: str

    def __post_init__(self) -> None:
        """Refuse what is no name before any path is made of it."""
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
        """The name as SQL, both parts quoted."""
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
        columns: DDL-relevant facts of each column: (name, type, comment).
        comment: of the table; empty if it has none.
        statistics: what ``ANALYZE TABLE`` found, ``1024 bytes, 10 rows``; empty if it was not run.
        partition_provider: ``Catalog`` if the partitions are registered there; empty if they are what its folders say.
        buckets: their number; empty if there are none.
        has_properties: whether ``TBLPROPERTIES`` were set.
    """

    kind: str
    provider: str
    location: str
    partition_columns: Sequence[str]
    columns: Sequence[tuple[str, str, str]]
    comment: str
    statistics: str = ""
    partition_provider: str = ""
    buckets: str = ""
    has_properties: bool = False

    @property
    def is_view(self) -> bool:
        """Whether there are no rows of its own."""
        return self.kind == "VIEW"

    @property
    def keyword(self) -> str:
        """What SQL's ``DROP`` and ``ALTER`` call it."""
        return "VIEW" if self.is_view else "TABLE"


def describe(spark: SparkSession, table: TableName) -> TableInfo | None:
    """Return what the catalog says of a table or view, None if there is none by that name."""
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
        buckets=details.get("Num Buckets", ""),
        has_properties="Table Properties" in details,
    )


def location_of(spark: SparkSession, table: TableName) -> str:
    """Return where a table lies by the catalog of now, an empty string if there is none, or a view."""
    found = location_by_entry(spark, table.schema, table.identifier)
    if found is not None:
        return found
    info = describe(spark, table)
    return info.location if info else ""


def _entry_by_sql(spark: SparkSession, table: TableName) -> Entry:
    head, details = described(spark, table.sql)
    columns = []
    for row in head:
        if row[0] == "" or row[0].startswith("# Partition"):
            break
        columns.append((row[0], row[1], row[2] or ""))
    return Entry(columns, partition_columns([row[0] for row in head]), details)


def described(spark: SparkSession, name: str) -> tuple[list[Row], dict[str, str]]:
    """Return what ``DESCRIBE TABLE EXTENDED`` says of a table: the rows of its columns, and its details by name.

    Columns come first and may have any name, so the details count from the last heading on.

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
    """Return the URI of the folder that a table gets which is given none.

    Raises:
        ZorderError: there is no such schema.
    """
    return f"{schema_location(spark, table.schema).rstrip('/')}/{table.identifier.lower()}"


def table_locations(spark: SparkSession) -> list[tuple[TableName, str]]:
    """Return the location of every table of every schema that the session may list.

    A comment or a property that has a line like that of a location counts as one too: it cannot be told apart, and what
    a table lies in must never be missing here.

    One call a schema where the catalog has such a call; a table that cannot be described then hides all others, and
    each is described by itself.
    """
    found = []
    for row in spark.sql("SHOW DATABASES").collect():
        schema = str(row[0])
        try:
            found += _locations_in(spark, schema)
        except AnalysisException as exc:  # dropped meanwhile, or not for this user to see
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
    """Return, by the last folder of its location, the name of every table but those of an unfinished swap."""
    return {
        place.rstrip("/").rsplit("/", 1)[-1]: str(table)
        for table, place in table_locations(spark)
        if not (table.identifier.endswith(NEXT_SUFFIX) and _is_in_own_root(table, place))
    }


def _is_in_own_root(following: TableName, place: str) -> bool:
    """Tell whether an entry that a swap has made leads to a version of its table, as one that a user made may not."""
    root = place.rstrip("/").rsplit("/", 2)[-2:-1]
    return [name.lower() for name in root] == [f"{following.identifier.removesuffix(NEXT_SUFFIX)}{ROOT_SUFFIX}".lower()]


def _location_of(spark: SparkSession, table: TableName) -> list[str]:
    try:
        info = describe(spark, table)
    except Exception:  # of a format that this session cannot read: it is none of ours
        return []
    return [info.location] if info and info.location else []


def column_facts(schema: StructType) -> list[tuple[str, str, str]]:
    """Return a schema's columns in the form of ``TableInfo.columns``."""
    return [(f.name, f.dataType.simpleString(), (f.metadata or {}).get("comment", "")) for f in schema.fields]


def partition_columns(names: Sequence[str]) -> list[str]:
    """Return the partition columns of a table by the first words of ``described``'s rows.

    Of a table of Delta Lake or Iceberg the name of one that is no plain word stands in backticks there.
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
