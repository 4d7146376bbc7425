"""Read and change a table's entry in Spark's built-in catalog through the JVM.

A read needs a millisecond, by SQL twenty. Most of SQL's time is the overhead of a query: its id, its events, its plan
as text. The entry has the same names as the output of ``DESCRIBE TABLE EXTENDED``.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.conf import is_on, sibling_session
from dbt_zorder.spark.jvm import catalog_identifier, class_named, jvm_of, table_identifier
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.spark.type_json import columns_from_json

_LOG = logging.getLogger("dbt_zorder")

_STATISTICS = "spark.sql.statistics."
"""Prefix of the properties in which Spark keeps the result of ``ANALYZE TABLE``."""

_MEASURES = "spark.sql.statistics.size.autoUpdate.enabled"
"""Setting that makes SET LOCATION measure a table's size again."""

_CATALOG = "spark_catalog"
"""Name of the catalog that every session has; a format that replaces it sets ``spark.sql.catalog.spark_catalog``."""

DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
"""Delta's catalog. It keeps an entry of each table in Spark's own catalog, with fewer facts than Delta has."""

ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkSessionCatalog"
"""Iceberg's catalog. It keeps its own tables, and delegates requests for others to Spark's."""

_TIMESTAMPS = "spark.sql.timestampType"
"""Setting that defines the meaning of TIMESTAMP."""

GLOBAL_VIEWS = "global_temp"
"""Schema of global temporary views, which are in no catalog."""


@dataclass(frozen=True)
class CatalogEntry:
    """A catalog's entry of a table or view.

    Attributes:
        columns: name, type and comment of each column, partition columns last.
        partition_columns: names, in order.
        details: facts after the columns, by name, without the schema tree; an absent fact has no key.
    """

    columns: Sequence[tuple[str, str, str]]
    partition_columns: Sequence[str]
    details: Mapping[str, str]


def entry_of(spark: SparkSession, schema: str, identifier: str) -> CatalogEntry | None:
    """Return the entry of a table; None if SQL must be asked, also if there is no table by that name.

    There are three such cases. The session uses Spark Connect, a format or another catalog resolves the name, or the
    catalog does not record the table's columns.
    """
    try:
        found = _known(spark, schema, identifier)
        if found is None:
            return None
        fields = columns_from_json(found.schema().json(), f"{schema}.{identifier}").fields
        between = _between()
        parts = found.partitionColumnNames().mkString(between)
        details = _details(found)
    except Exception:  # no such table, or of a kind that this call does not support
        return None
    columns = [(field.name, field.dataType.simpleString(), field.metadata.get("comment", "")) for field in fields]
    return CatalogEntry(columns, parts.split(between) if parts else [], details) if columns else None


def location_by_entry(spark: SparkSession, schema: str, identifier: str) -> str | None:
    """Return a table's location; None if SQL must be asked, as for ``entry_of``.

    The columns of a wide table need 40 ms to transfer (``conf.first_below``), so they are not read.
    """
    try:
        found = _known(spark, schema, identifier)
        return None if found is None else _details(found).get("Location")
    except Exception:
        return None


def provider_by_entry(spark: SparkSession, schema: str, identifier: str) -> str | None:
    """Return the format of a table, also if Delta's catalog delegates the request; None if SQL must be asked."""
    found = _known(spark, schema, identifier, DELTA_CATALOG)
    provider = None if found is None else found.provider()
    return str(provider.get()).lower() if provider is not None and provider.isDefined() else None


def _known(spark: SparkSession, schema: str, identifier: str, *passed_on: str) -> Any | None:
    """Return the entry in Spark's own catalog; None if SQL must be asked."""
    jvm = jvm_of(spark)
    if jvm is None or not answers_for(spark, schema, *passed_on):
        return None
    name = table_identifier(jvm, schema, identifier)
    # an error in the JVM costs twenty times as much as this test
    return _catalog(spark).getTableRawMetadata(name) if _catalog(spark).tableExists(name) else None


def _details(found: Any) -> dict[str, str]:
    lines, between = found.toLinkedHashMap(), _between()
    lines.remove("Schema")  # repeats the columns, as a tree
    return dict(line.partition(" -> ")[::2] for line in lines.mkString(between).split(between))


def _between() -> str:
    """Return a separator that no comment contains."""
    return f"\n{uuid.uuid4()}\n"


def is_absent(spark: SparkSession, schema: str, identifier: str) -> bool:
    """Return whether there is certainly no table or view by that name; in doubt, SQL must be asked.

    SQL needs three times as long for a missing table as for a description: it raises an error.
    """
    try:
        jvm = jvm_of(spark)
        if jvm is None or not answers_for(spark, schema, DELTA_CATALOG):
            return False
        if schema.lower() == str(spark.conf.get("spark.sql.globalTempDatabase", GLOBAL_VIEWS)).lower():
            return False
        return not _catalog(spark).tableExists(table_identifier(jvm, schema, identifier))
    except Exception:  # another version of Spark, or a catalog that cannot be reached
        return False


def move_entry(spark: SparkSession, schema: str, identifier: str, location: str) -> bool:
    """Change a table's location as ``ALTER TABLE ... SET LOCATION`` does, in one call of the metastore instead of two.

    SQL's second call deletes the result of ``ANALYZE TABLE``. So SQL does the change if there is such a result. Hive
    measures the bytes of a table without partitions again in either case.

    Returns:
        False if SQL must do it. SQL can do it in any case, because a second run has no further effect.
    """
    try:
        jvm = jvm_of(spark)
        if jvm is None or not answers_for(spark, schema) or is_on(spark, _MEASURES):
            return False
        catalog = _catalog(spark)
        found = catalog.getTableRawMetadata(table_identifier(jvm, schema, identifier))
        kept = catalog.externalCatalog().unwrapped().client().getTable(schema.lower(), identifier.lower())
        if _STATISTICS in kept.properties().keySet().mkString("\n"):
            return False
        place = class_named(jvm, "org.apache.spark.sql.catalyst.catalog.CatalogUtils").stringToURI(location)
        fields = found.storage().productArity()
        others = (getattr(found, f"withNewStorage$default${number}")() for number in range(2, fields + 1))
        catalog.alterTable(found.withNewStorage(class_named(jvm, "scala.Some")(place), *others))
    except Exception as exc:  # a catalog of another kind, or a refusal, whose reason SQL reports
        _LOG.debug("the entry of %s.%s was not moved in one call: %s", schema, identifier, in_one_line(exc))
        return False
    return True


def entry_session(spark: SparkSession) -> SparkSession:
    """Return the session to change entries with: this one, or one whose TIMESTAMP means the same as Hive's.

    If ``spark.sql.timestampType`` is TIMESTAMP_NTZ, Spark reads a ``timestamp`` in Hive's entry as that type. It then
    writes the type back by its name, which Hive does not support. So ``ALTER TABLE`` would fail for any table with a
    TIMESTAMP.
    """
    if str(spark.conf.get(_TIMESTAMPS, None) or "").upper() != "TIMESTAMP_NTZ":
        return spark
    return sibling_session(spark, {_TIMESTAMPS: "TIMESTAMP_LTZ"}) or spark


def change_entry(spark: SparkSession, schema: str, identifier: str, statement: str) -> None:
    """Run a statement that changes a table's entry, in the session of ``entry_session``."""
    session = entry_session(spark)
    session.sql(statement)
    if session is not spark:
        invalidate_entry(spark, schema, identifier)


def invalidate_entry(spark: SparkSession, schema: str, identifier: str) -> None:
    """Drop the session's cached entry of a table that was just created or moved.

    The next read then asks the catalog and lists the folder. ``REFRESH TABLE`` does more, and is many times slower. It
    reads the entry and lists the files at once, to update the table's data in Spark's cache. If that cache is empty,
    dropping the entry is enough.
    """
    try:
        jvm = jvm_of(spark)
        session: Any = None if jvm is None else spark._jsparkSession
        if session is not None and session.sharedState().cacheManager().isEmpty():
            if answers_for(spark, schema):
                _catalog(spark).invalidateCachedTable(table_identifier(jvm, schema, identifier))
                return
            if answers_for(spark, schema, DELTA_CATALOG, ICEBERG_CATALOG):
                session.sessionState().catalogManager().catalog(_CATALOG).invalidateTable(
                    catalog_identifier(spark, schema, identifier)
                )
                return
    except Exception as exc:  # another version of Spark
        _LOG.debug("%s.%s is not forgotten: %s", schema, identifier, in_one_line(exc))
    spark.sql(f"REFRESH TABLE {quote_name(schema, identifier)}")


def _catalog(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().catalog()


def answers_for(spark: SparkSession, schema: str, *passed_on: str) -> bool:
    """Return whether the catalog that every session has resolves the names of a schema.

    It does not if another catalog is the current one, or has the schema's name.

    Args:
        spark: session.
        schema: schema of a table.
        passed_on: classes of catalogs that may replace the built-in one.
    """
    if spark.conf.get(f"spark.sql.catalog.{_CATALOG}", "builtin") not in ("builtin", *passed_on):
        return False
    if spark.conf.get(f"spark.sql.catalog.{schema}", None) is not None:
        return False
    return str(spark._jsparkSession.sessionState().catalogManager().currentCatalog().name()) == _CATALOG
