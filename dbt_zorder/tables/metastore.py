"""A table's entry as Hive's metastore keeps it, changed whole in one call, where Spark has its own client for one."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.jvm import jvm_of, table_identifier
from dbt_zorder.spark.messages import in_one_line

_LOG = logging.getLogger("dbt_zorder")

_SCHEMA = 4
"""Place of ``schema`` among what a ``CatalogTable`` is made of, from 1."""

_PARTITION_COLUMNS = 6
"""Place of ``partitionColumnNames`` there."""


def replace_entry(spark: SparkSession, table: TableName, following: TableName) -> bool:
    """Give ``table`` the entry of ``following``, which is dropped; False, and all as it was, if that is impossible."""
    client = _put(spark, table, following, table)
    if client is None:
        return False
    with contextlib.suppress(Exception):
        # SQL's DROP would look at the files first, in case somebody keeps them in memory under this name
        client.dropTable(following.schema, following.identifier, True, False)
    return True


def rename_entry(spark: SparkSession, table: TableName, to: TableName) -> bool:
    """Give an external table another name; False, and all as it was, if that is impossible.

    ``ALTER TABLE ... RENAME`` does so for all but tables with partitions of a type that Hive does not know, as
    TIMESTAMP_NTZ and intervals: Spark loses sight of their partition columns, and Hive refuses the change.
    """
    return _put(spark, table, table, to) is not None


def kept_entry(spark: SparkSession, table: TableName) -> Any | None:
    """Return the entry of a table as the metastore has it, for ``put_back``; None without a client for one."""
    try:
        if jvm_of(spark) is None:
            return None
        client = spark._jsparkSession.sharedState().externalCatalog().unwrapped().client()
        return client.getTable(table.schema, table.identifier)
    except Exception:  # another catalog
        return None


def put_back(spark: SparkSession, table: TableName, entry: Any) -> None:
    """Give a table the entry again that ``kept_entry`` returned.

    Raises:
        Py4JJavaError: the metastore refused.
    """
    client = spark._jsparkSession.sharedState().externalCatalog().unwrapped().client()
    client.alterTable(table.schema, table.identifier, entry)


def _put(spark: SparkSession, place: TableName, source: TableName, name: TableName) -> Any:
    """Put the entry of ``source``, under another name, in the place of that of a table; None if it is not done."""
    try:
        jvm = jvm_of(spark)
        if jvm is None:
            return None
        catalog = spark._jsparkSession.sharedState().externalCatalog().unwrapped()
        client = catalog.client()
        entry = client.getTable(source.schema, source.identifier)
        parts = [getattr(entry, f"copy$default${number}")() for number in range(1, entry.productArity() + 1)]
        parts[0] = table_identifier(jvm, entry.identifier().database().get(), name.identifier)
        told = catalog.getTable(source.schema, source.identifier)
        if entry.partitionColumnNames().size() < told.partitionColumnNames().size():
            # Spark's reading of an entry leaves out what Hive has for columns whose type only Spark knows
            schema, partitions, names = entry.dataSchema(), told.partitionSchema(), []
            for number in range(partitions.size()):
                field = partitions.apply(number)
                names.append(field.name().lower())  # as Hive has all of them
                schema = schema.add(field.copy(names[-1], field.dataType(), field.nullable(), field.metadata()))
            parts[_SCHEMA - 1], parts[_PARTITION_COLUMNS - 1] = schema, jvm.PythonUtils.toSeq(names)
        client.alterTable(place.schema, place.identifier, entry.copy(*parts))
    except Exception as exc:
        _LOG.debug("the metastore did not put %s in the place of %s in one call: %s", source, place, in_one_line(exc))
        return None
    return client
