"""Read from Spark where a table's files are and which format wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.spark.catalog import described, partition_columns
from dbt_zorder.spark.columns import split_name
from dbt_zorder.spark.jvm import class_named
from dbt_zorder.spark.messages import unlogged
from dbt_zorder.spark.sql import quote_name

NOT_DESCRIBED = "NOT DESCRIBED"
"""Kind of a relation that Spark reads but no catalog describes."""

_ENTRIES_AT_MOST = 256

_entries: dict[tuple[Any, str], tuple[Any, TableFacts]] = {}
"""Cached facts with the catalog entry they came from, by JVM and quoted name."""


@dataclass(frozen=True)
class TableFacts:
    """Facts of a table in Spark's catalog; an empty string stands for a fact that the catalog lacks.

    Attributes:
        sql: quoted name.
        location: folder of the data files, as Spark writes it.
        provider: format, such as ``parquet``.
        kind: ``MANAGED``, ``EXTERNAL``, ``VIEW`` or ``NOT_DESCRIBED``.
        qualifiers: names that may precede a column of the table.
        partition_columns: names, as the catalog spells them.
    """

    sql: str
    location: str = ""
    provider: str = ""
    kind: str = ""
    qualifiers: tuple[tuple[str, ...], ...] = ()
    partition_columns: tuple[str, ...] = ()

    def is_partition(self, path: tuple[str, ...]) -> bool:
        """Return whether the catalog says that a column's values belong to folders, not to files.

        The same files can get another value (``ALTER TABLE ... PARTITION ... RENAME``, ``SET LOCATION``). A timestamp
        in the name of a folder is in each reader's time zone. So statistics of files prove nothing about such a column.
        """
        return len(path) == 1 and path[0].lower() in {name.lower() for name in self.partition_columns}


def quoted(table: str) -> str:
    """Return ``db.t``, ```db`.`t``` or ``t`` with every part quoted."""
    return quote_name(*split_name(table.strip()))


def read_facts(spark: SparkSession, table: str, frame: DataFrame) -> TableFacts:
    """Return the facts of the table or view that ``frame`` reads by its name.

    They come from the relation that Spark will read, so they stay true if the catalog changes. Over Spark Connect, this
    process cannot inspect the relation; a view is not a plain relation. In both cases the catalog is asked.
    """
    sql = quoted(table)
    try:
        facts = _cached_facts(sql, spark._jvm, frame._jdf) or _relation_facts(sql, spark._jvm, frame._jdf)
        if facts is None and _reads_path(frame._jdf):
            return TableFacts(sql, kind=NOT_DESCRIBED)
    except Exception:  # another version of Spark, or no JVM in this process
        facts = None
    if facts is not None:
        return facts
    try:
        with unlogged():
            return describe(spark, table)
    except Exception:  # a path read as a table, or no right to describe it: all files are read
        return TableFacts(sql, kind=NOT_DESCRIBED)


def _cached_facts(sql: str, jvm: Any, jdf: Any) -> TableFacts | None:
    """Return the cached facts of the same catalog entry: one call in place of twenty."""
    held = _entries.get((jvm, sql))
    if held is None:
        return None
    try:
        same = held[0].equals(jdf.queryExecution().analyzed().child().catalogTable())
    except Exception:  # no longer a plain relation
        return None
    return held[1] if same else None


def find_relation(jdf: Any) -> Any | None:
    """Return the relation that a name stands for; None if it is anything else than a relation of files."""
    alias = jdf.queryExecution().analyzed()
    relation = alias.child() if alias.nodeName() == "SubqueryAlias" else alias
    return relation if relation.getClass().getSimpleName() == "LogicalRelation" else None


def _reads_path(jdf: Any) -> bool:
    """Return whether Spark reads a path in place of a table, as ``parquet.`/path```: no catalog has such a name."""
    relation = find_relation(jdf)
    return relation is not None and bool(relation.catalogTable().isEmpty())


def _relation_facts(sql: str, jvm: Any, jdf: Any) -> TableFacts | None:
    relation = find_relation(jdf)
    if relation is None or relation.catalogTable().isEmpty():
        return None
    found = relation.catalogTable().get()
    identifier = found.identifier()
    if identifier.database().isEmpty() or identifier.catalog().isEmpty() or found.provider().isEmpty():
        return None
    location = read_location(jvm, found)
    names = (identifier.catalog().get(), identifier.database().get(), identifier.table())
    parts = found.partitionColumnNames()
    partitions = tuple(str(parts.apply(number)) for number in range(parts.size()))
    facts = TableFacts(
        sql, location, found.provider().get().lower(), found.tableType().name(), _qualifiers(names), partitions
    )
    if len(_entries) >= _ENTRIES_AT_MOST:
        _entries.clear()
    _entries[jvm, sql] = (relation.catalogTable(), facts)
    return facts


def read_location(jvm: Any, entry: Any) -> str:
    """Return the folder of a table by its entry in the catalog, as Spark writes it."""
    utils = class_named(jvm, "org.apache.spark.sql.catalyst.catalog.CatalogUtils")
    return str(utils.URIToString(entry.location()))


def _qualifiers(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(names[start:] for start in range(len(names)))


def describe(spark: SparkSession, table: str) -> TableFacts:
    """Return the facts of a table or view.

    Raises:
        AnalysisException: there is no such table or view; the error is Spark's own.
    """
    sql = quoted(table)
    head, details = described(spark, sql)
    parts = split_name(table.strip())
    full = tuple(part for part in (details.get("Catalog"), details.get("Database"), details.get("Table")) if part)
    names = full if len(full) == 3 and "Location" in details else tuple(parts)
    return TableFacts(
        sql,
        details.get("Location", ""),
        details.get("Provider", "").lower(),
        details.get("Type", "").upper(),
        _qualifiers(names),
        tuple(partition_columns([row[0] for row in head])),
    )
