"""Change a table's entry in the Hive metastore by a single call, where Spark has a Hive client."""

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
"""Position of ``schema`` among the fields of a ``CatalogTable``, counted from 1."""

_PARTITION_COLUMNS = 6
"""Position of ``partitionColumnNames`` among these fields."""


def replace_entry(spark: SparkSession, table: TableName, following: TableName) -> bool:
    """Replace the entry of ``table`` by that of ``following``, and drop the latter.

    Returns:
        False if that is impossible; both entries are then unchanged.
    """
    client = _put(spark, table, following, table)
    if client is None:
        return False
    with contextlib.suppress(Exception):
        # SQL's DROP would read the files first, in case a cached query uses this name
        client.dropTable(following.schema, following.identifier, True, False)
    return True


def rename_entry(spark: SparkSession, table: TableName, to: TableName) -> bool:
    """Rename an external table; return False and change nothing if that is impossible.

    ``ALTER TABLE ... RENAME`` fails only for tables with partition columns of a type unsupported by Hive, such as
    TIMESTAMP_NTZ and intervals. Spark loses track of these columns, and Hive refuses the change.
    """
    return _put(spark, table, table, to) is not None


def kept_entry(spark: SparkSession, table: TableName) -> Any | None:
    """Return a table's entry as the metastore has it, for ``put_back``; None without a Hive client."""
    try:
        if jvm_of(spark) is None:
            return None
        client = spark._jsparkSession.sharedState().externalCatalog().unwrapped().client()
        return client.getTable(table.schema, table.identifier)
    except Exception:  # another catalog
        return None


def put_back(spark: SparkSession, table: TableName, entry: Any) -> None:
    """Restore the entry of a table that ``kept_entry`` returned.

    Raises:
        Py4JJavaError: the metastore refused.
    """
    client = spark._jsparkSession.sharedState().externalCatalog().unwrapped().client()
    client.alterTable(table.schema, table.identifier, entry)


def _put(spark: SparkSession, place: TableName, source: TableName, name: TableName) -> Any:
    """Write the entry of ``source``, renamed to ``name``, over that of ``place``; return None if that failed."""
    try:
        jvm = jvm_of(spark)
        if jvm is None:
            return None
        catalog = spark._jsparkSession.sharedState().externalCatalog().unwrapped()
        client = catalog.client()
        entry = client.getTable(source.schema, source.identifier)
        parts = [getattr(entry, f"copy$default${number}")() for number in range(1, entry.productArity() + 1)]
        parts[0] = table_identifier(jvm, entry.identifier().database().get(), name.identifier)
        in_hive = catalog.getTable(source.schema, source.identifier)
        if entry.partitionColumnNames().size() < in_hive.partitionColumnNames().size():
            # Spark omits the columns of an entry whose types exist in Spark but not in Hive
            schema, partitions, names = entry.dataSchema(), in_hive.partitionSchema(), []
            for number in range(partitions.size()):
                field = partitions.apply(number)
                names.append(field.name().lower())  # Hive stores all names in lower case
                schema = schema.add(field.copy(names[-1], field.dataType(), field.nullable(), field.metadata()))
            parts[_SCHEMA - 1], parts[_PARTITION_COLUMNS - 1] = schema, jvm.PythonUtils.toSeq(names)
        client.alterTable(place.schema, place.identifier, entry.copy(*parts))
    except Exception as exc:
        _LOG.debug("the metastore did not put %s in the place of %s in one call: %s", source, place, in_one_line(exc))
        return None
    return client
