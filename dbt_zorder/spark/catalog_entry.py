"""A table's entry in the catalog that Spark itself comes with, in the JVM: a millisecond to ask it, by SQL twenty.

Most of what SQL takes is the life of a query: its id, its events, its plan as text. The entry is what ``DESCRIBE TABLE
EXTENDED`` prints, by the same names.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.conf import is_on, session_aside
from dbt_zorder.spark.jvm import catalog_identifier, class_named, jvm_of, table_identifier
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.spark.type_json import columns_from_json

_LOG = logging.getLogger("dbt_zorder")

_STATISTICS = "spark.sql.statistics."
"""What properties begin with in which Spark keeps what ``ANALYZE TABLE`` found."""

_MEASURES = "spark.sql.statistics.size.autoUpdate.enabled"
"""With it SET LOCATION measures a table's size anew."""

_CATALOG = "spark_catalog"
"""Name of the one that every session has; a format that takes it over has a setting of its own for it."""

PASSED_ON = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
"""Delta's keeps an entry of each table in Spark's own catalog; it says less of a table there than it knows."""

STANDS_BEFORE = "org.apache.iceberg.spark.SparkSessionCatalog"
"""Iceberg's keeps its own tables, and passes on what is asked of others."""

_TIMESTAMPS = "spark.sql.timestampType"
"""What TIMESTAMP means."""

GLOBAL_VIEWS = "global_temp"
"""Schema of temporary views, which are in no catalog."""


@dataclass(frozen=True)
class Entry:
    """What a catalog says of a table or view.

    Attributes:
        columns: name, type and comment of each, partition columns last.
        partition_columns: their names, in order.
        details: what follows the columns, by name, but for their tree; what it does not say is not there.
    """

    columns: Sequence[tuple[str, str, str]]
    partition_columns: Sequence[str]
    details: Mapping[str, str]


def entry_of(spark: SparkSession, schema: str, identifier: str) -> Entry | None:
    """Return the entry of a table, None where SQL is to be asked: also where there is none by that name.

    It is asked over Spark Connect, where a format or another catalog answers to the name, and of a table whose columns
    the catalog does not know.
    """
    try:
        found = _known(spark, schema, identifier)
        if found is None:
            return None
        fields = columns_from_json(found.schema().json(), f"{schema}.{identifier}").fields
        between = _between()
        parts = found.partitionColumnNames().mkString(between)
        details = _details(found)
    except Exception:  # no such table, or one of a kind that this way does not know
        return None
    columns = [(field.name, field.dataType.simpleString(), field.metadata.get("comment", "")) for field in fields]
    return Entry(columns, parts.split(between) if parts else [], details) if columns else None


def location_by_entry(spark: SparkSession, schema: str, identifier: str) -> str | None:
    """Return where a table lies, None where SQL is to be asked, as of ``entry_of``.

    The columns of a wide table take 40 ms on their way (``settings.first_below``), and are not asked for.
    """
    try:
        found = _known(spark, schema, identifier)
        return None if found is None else _details(found).get("Location")
    except Exception:
        return None


def provider_by_entry(spark: SparkSession, schema: str, identifier: str) -> str | None:
    """Return the format of a table, also where Delta's catalog passes the question on; None if SQL is to be asked."""
    found = _known(spark, schema, identifier, PASSED_ON)
    provider = None if found is None else found.provider()
    return str(provider.get()).lower() if provider is not None and provider.isDefined() else None


def _known(spark: SparkSession, schema: str, identifier: str, *passed_on: str) -> Any | None:
    """Return what Spark's own catalog has of a table, None if SQL is to be asked."""
    jvm = jvm_of(spark)
    if jvm is None or not answers_for(spark, schema, *passed_on):
        return None
    name = table_identifier(jvm, schema, identifier)
    # an error of the JVM takes twenty times as long as this question
    return _catalog(spark).getTableRawMetadata(name) if _catalog(spark).tableExists(name) else None


def _details(found: Any) -> dict[str, str]:
    lines, between = found.toLinkedHashMap(), _between()
    lines.remove("Schema")  # the columns once more, as a tree
    return dict(line.partition(" -> ")[::2] for line in lines.mkString(between).split(between))


def _between() -> str:
    """Return what stands in no comment."""
    return f"\n{uuid.uuid4()}\n"


def is_absent(spark: SparkSession, schema: str, identifier: str) -> bool:
    """Tell whether there is no table or view by that name for sure; where there is doubt, SQL is to be asked.

    SQL takes three times as long to say that there is none as to describe one: it is an error there.
    """
    try:
        jvm = jvm_of(spark)
        if jvm is None or not answers_for(spark, schema, PASSED_ON):
            return False
        if schema.lower() == str(spark.conf.get("spark.sql.globalTempDatabase", GLOBAL_VIEWS)).lower():
            return False
        return not _catalog(spark).tableExists(table_identifier(jvm, schema, identifier))
    except Exception:  # another version of Spark, or a catalog that cannot be reached
        return False


def move_entry(spark: SparkSession, schema: str, identifier: str, location: str) -> bool:
    """Do what ``ALTER TABLE ... SET LOCATION`` does, in one call of the metastore where that takes two.

    The other one deletes what was analyzed of a table, so it is left to SQL where anything was. Hive measures the bytes
    of a table without partitions anew by itself, either way.

    Returns:
        False where SQL is to do it; it can in any case: to do this twice is to do it once.
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
    except Exception as exc:  # a catalog of another kind, or one that refused: SQL says why
        _LOG.debug("the entry of %s.%s was not moved in one call: %s", schema, identifier, in_one_line(exc))
        return False
    return True


def entry_session(spark: SparkSession) -> SparkSession:
    """Return the session by which entries are changed: this one, or one that means by TIMESTAMP what Hive does.

    Where ``spark.sql.timestampType`` is TIMESTAMP_NTZ, Spark reads the ``timestamp`` of Hive's entry as that, writes it
    back by its name, and Hive knows no such type: so fails ``ALTER TABLE`` of any table with a TIMESTAMP.
    """
    if str(spark.conf.get(_TIMESTAMPS, None) or "").upper() != "TIMESTAMP_NTZ":
        return spark
    return session_aside(spark, {_TIMESTAMPS: "TIMESTAMP_LTZ"}) or spark


def change_entry(spark: SparkSession, schema: str, identifier: str, statement: str) -> None:
    """Run a statement that changes a table's entry, by ``entry_session``."""
    session = entry_session(spark)
    session.sql(statement)
    if session is not spark:
        look_anew(spark, schema, identifier)


def look_anew(spark: SparkSession, schema: str, identifier: str) -> None:
    """Let the session ask catalog and folder again where it next reads a table that has just been made or moved.

    ``REFRESH TABLE`` does more, and takes many times as long: it reads the entry and lists the files at once, to bring
    up to date what Spark's cache has of the table. Where that has nothing, the entry is forgotten, and no more.
    """
    try:
        jvm = jvm_of(spark)
        session: Any = None if jvm is None else spark._jsparkSession
        if session is not None and session.sharedState().cacheManager().isEmpty():
            if answers_for(spark, schema):
                _catalog(spark).invalidateCachedTable(table_identifier(jvm, schema, identifier))
                return
            if answers_for(spark, schema, PASSED_ON, STANDS_BEFORE):
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
    """Tell whether the catalog that every session has answers to the names of a schema.

    It does not where another one is the current one, or is named as the schema is.

    Args:
        spark: the session.
        schema: of a table.
        passed_on: classes of catalogs that may stand before that one.
    """
    if spark.conf.get(f"spark.sql.catalog.{_CATALOG}", "builtin") not in ("builtin", *passed_on):
        return False
    if spark.conf.get(f"spark.sql.catalog.{schema}", None) is not None:
        return False
    return str(spark._jsparkSession.sessionState().catalogManager().currentCatalog().name()) == _CATALOG
