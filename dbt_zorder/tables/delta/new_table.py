"""Create a new Delta table without rows, and predict its metadata before it exists.

Delta's catalog creates a table from a query or from nothing, but not from files (decision 015).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableName, managed_location
from dbt_zorder.spark.files import delete_path, exists
from dbt_zorder.spark.jvm import class_named, jvm_of, nullable_type
from dbt_zorder.stats.delta.log import delta_state
from dbt_zorder.tables.delta.metadata import metadata_of, stored_schema
from dbt_zorder.tables.delta.target import COMMENT, LOCATION, NOT_KEPT, NOTE, PLAIN_WRITER, DeltaTarget
from dbt_zorder.tables.delta.transaction import Replaces
from dbt_zorder.tables.reserved import is_marked


def new_delta(
    spark: SparkSession,
    table: TableName,
    schema: t.StructType,
    parts: Sequence[str],
    properties: Mapping[str, str],
    options: Mapping[str, str],
) -> DeltaTarget | str:
    """Return the expected target of a table that does not exist yet.

    Its files are not written to this target, but to the table that ``make_delta`` creates.

    Args:
        spark: the session.
        table: the name of the table.
        schema: the schema of its rows.
        parts: the names of its partition columns.
        properties: the properties of the table, comment and location among them.
        options: the writer options.
    """
    if {*options} - {NOTE}:
        return "there are options for Delta's own writer"
    place = properties.get(LOCATION) or managed_location(spark, table)
    if exists(spark, place):
        return f"there is something in {place} already"
    wanted = {name: value for name, value in properties.items() if name not in NOT_KEPT}
    metadata = {"schemaString": stored_schema(schema), "partitionColumns": [*parts], "configuration": wanted}
    return DeltaTarget(
        spark,
        table,
        place.rpartition("/")[0],
        metadata,
        {"minWriterVersion": PLAIN_WRITER},
        parts,
        options.get(NOTE, ""),
        Replaces.NOTHING,
    )


def make_delta(
    spark: SparkSession,
    table: TableName,
    of: TableName,
    schema: t.StructType,
    parts: Sequence[str],
    properties: Mapping[str, str],
) -> str:
    """Create a table without rows or files with Delta's own API, and return its id.

    Args:
        spark: the session.
        table: the temporary name of the table, which is free and reserved for us.
        of: the final name of the table.
        schema: the schema of its rows; every column may be NULL.
        parts: the names of its partition columns.
        properties: the properties of the table, comment and location among them.

    Raises:
        BuildError: other files are in the folder of the table.
    """
    place = managed_location(spark, table)
    if LOCATION not in properties and exists(spark, place):
        if not is_marked(spark, of, place):
            msg = f"The folder {place} is in the way of a new Delta table; nothing was changed. Move it elsewhere."
            raise BuildError(msg)
        delete_path(spark, place)  # left by a run that was killed while it dropped the table
    jvm: Any = jvm_of(spark)
    made = class_named(jvm, "io.delta.tables.DeltaTable").createOrReplace(spark._jsparkSession).tableName(table.sql)
    made = made.addColumns(nullable_type(jvm, schema))
    if parts:
        made = made.partitionedBy(jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(parts)))
    for name, value in properties.items():
        if name == COMMENT:
            made = made.comment(value)
        elif name == LOCATION:
            made = made.location(value)
        else:
            made = made.property(name, value)
    made.execute()
    return delta_id(spark, table)


def delta_id(spark: SparkSession, table: TableName) -> str:
    """Return the id that distinguishes a table from earlier or later tables of the same name."""
    return str(metadata_of(delta_state(spark, table).snapshot)["id"])
