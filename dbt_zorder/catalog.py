"""What the session's catalog says of a table, read by SQL alone, so that it also works over Spark Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.sql import quote_name

_DETAILS = "# Detailed Table Information"


@dataclass(frozen=True)
class TableName:
    """A table by schema and identifier, unquoted."""

    schema: str
    identifier: str

    @property
    def sql(self) -> str:
        """The name as SQL, both parts quoted."""
        return quote_name(self.schema, self.identifier)

    def __str__(self) -> str:
        return f"{self.schema}.{self.identifier}"


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
    """

    kind: str
    provider: str
    location: str
    partition_columns: Sequence[str]
    columns: Sequence[tuple[str, str, str]]
    comment: str


def describe(spark: SparkSession, table: TableName) -> TableInfo | None:
    """Return what the catalog says of a table or view, None if there is none by that name."""
    if not spark.catalog.tableExists(table.sql):
        return None
    head, details = described(spark, table.sql)
    columns = []
    for row in head:
        if row[0] == "" or row[0].startswith("# Partition"):
            break
        columns.append((row[0], row[1], row[2] or ""))
    return TableInfo(
        kind=details.get("Type", ""),
        provider=details.get("Provider", "").lower(),
        location=details.get("Location", ""),
        partition_columns=_partition_columns([row[0] for row in head]),
        columns=columns,
        comment=details.get("Comment", ""),
    )


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
    """Return the URI of a schema's folder."""
    for row in spark.sql(f"DESCRIBE SCHEMA {quote_name(schema)}").collect():
        if row[0] == "Location":
            return str(row[1])
    msg = f"The schema {schema} has no location."
    raise LookupError(msg)


def column_facts(schema: StructType) -> list[tuple[str, str, str]]:
    """Return a schema's columns in the form of ``TableInfo.columns``."""
    return [(f.name, f.dataType.simpleString(), (f.metadata or {}).get("comment", "")) for f in schema.fields]


def _partition_columns(names: Sequence[str]) -> list[str]:
    if "# Partition Information" not in names:
        return []
    start = names.index("# Partition Information") + 2  # the line after it is the header '# col_name'
    found = []
    for name in names[start:]:
        if not name:
            break
        found.append(name)
    return found
