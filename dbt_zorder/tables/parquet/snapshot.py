"""Compute the next state of a dbt snapshot: the existing rows, with changed ones closed, and the new rows.

dbt's own query lists the changes, which a ``MERGE`` applies on other formats. Here one query over the table and its
changes gives the result, which is built as a new version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.spec import MOST_COLUMNS
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import describe
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.columns import ResolvedColumn, case_sensitive
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import quote_name, quote_string
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.changed_files import check_unchanged
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.report import BuildReport
from dbt_zorder.tables.schema_change import conform, target_schema
from dbt_zorder.tables.two_step_swap import restore_if_interrupted

CHANGE_TYPE = "dbt_change_type"
UNIQUE_KEY = "dbt_unique_key"
KEY_PART = re.compile(rf"{UNIQUE_KEY}_\d+", re.IGNORECASE)
"""Matches dbt's names for the parts of a key of several columns."""

_ADVICE = (
    "Give it the snapshot's type in the query, or rename the column there: the snapshot then keeps the old one, and "
    "adds the new one."
)
_CLOSING = f"{CHANGE_TYPE} IN ('update', 'delete')"
_CLOSED_ID = "__zorder_closed_id"
_CLOSED_AT = "__zorder_closed_at"


@dataclass(frozen=True)
class SnapshotColumns:
    """Names of a snapshot's own columns.

    Attributes:
        scd_id: column that identifies each row of the snapshot.
        valid_to: column with the end of a row's validity.
        current: SQL of the value of ``valid_to`` while a row is valid; None for NULL.
    """

    scd_id: str
    valid_to: str
    current: str | None = None


def take_snapshot(spark: SparkSession, query: str, request: BuildRequest, names: SnapshotColumns) -> BuildReport | None:
    """Update a snapshot in a new version of its table, and swap it in; return None if nothing changed.

    Args:
        spark: the session.
        query: dbt's own query of changes: rows to ``insert``, and rows that close others (``update``, ``delete``).
        request: settings of the table.
        names: names of the snapshot's columns.

    Raises:
        ZorderError: the table is not Parquet.
        BuildError: ``build`` raised it, or another run changed the table meanwhile.
    """
    # the query must compare with the complete table
    restore_if_interrupted(spark, request.table)
    info = describe(spark, request.table)
    before = begin(spark, request.table, info)
    if info is None or info.provider != "parquet":
        msg = (
            f"{request.table} is {f'a table in {info.provider}' if info else 'not there'}, and this snapshot is kept "
            "in Parquet: set the table's file_format in the snapshot's config, or move the table away."
        )
        raise ZorderError(msg)
    existing = spark.table(request.table.sql)

    kept = as_text(
        spark.sql(query)
    ).persist()  # run the snapshot's query once, for the rows to close and the rows to add
    try:
        state = next_state(existing, kept, names)
        closes_any = not kept.filter(_CLOSING).isEmpty()
        if not closes_any and len(state.columns) == len(existing.columns) and added(existing, kept, names).isEmpty():
            return None
        return build(spark, state, request, lambda: check_unchanged(spark, request.table, before), info)
    finally:
        kept.unpersist()


def next_state(existing: DataFrame, changes: DataFrame, names: SnapshotColumns) -> DataFrame:
    """Return the rows of a snapshot after its changes; columns that are new are NULL in its old rows.

    The result is that of a ``MERGE``. A row is closed if it is current and among those updated or deleted. A row is
    added if its id does not exist. Two changes of one row are an error, as in a ``MERGE``.
    """
    scd_id, valid_to = quote_name(names.scd_id), quote_name(names.valid_to)
    twice = quote_string("The snapshot's query has a unique_key twice, so that two rows would follow the current one.")
    closed = (
        changes.filter(_CLOSING)
        .groupBy(f.expr(scd_id).alias(_CLOSED_ID))
        .agg(f.expr(f"if(count(*) > 1, raise_error({twice}), max({valid_to}))").alias(_CLOSED_AT))
    )
    is_current = f"{valid_to} IS NULL" + (f" OR {valid_to} = {names.current}" if names.current else "")
    closes = f"{_CLOSED_ID} IS NOT NULL AND ({is_current})"
    kept = existing.join(closed, f.expr(f"{scd_id} = {_CLOSED_ID}"), "left")
    closed_at = f"CAST({_CLOSED_AT} AS {type_ddl(existing.schema[names.valid_to].dataType)})"
    rows = kept.withColumn(names.valid_to, f.expr(f"if({closes}, {closed_at}, {valid_to})")).select(
        *(f.col(quote_name(name)) for name in existing.columns)
    )
    return conform(rows, _columns_after(existing, changes), _ADVICE).unionAll(added(existing, changes, names))


def added(existing: DataFrame, changes: DataFrame, names: SnapshotColumns) -> DataFrame:
    """Return the rows that a snapshot does not have yet, in the columns of its next state.

    Raises:
        SchemaChangeError: a type cannot be converted to that of the snapshot.
        Exception: the query that reads a value that does not fit the column's type raises it.
    """
    there = existing.select(f.expr(quote_name(names.scd_id)).alias(_CLOSED_ID))
    rows = changes.filter(f"{CHANGE_TYPE} = 'insert'").join(
        there, f.expr(f"{quote_name(names.scd_id)} = {_CLOSED_ID}"), "left_anti"
    )
    return conform(rows, _columns_after(existing, changes), _ADVICE)


def _columns_after(existing: DataFrame, changes: DataFrame) -> StructType:
    """Return the columns of the next state: existing ones keep their types, as in a MERGE, and new ones follow.

    The same applies to the fields of structs.
    """
    query = StructType([column for column in changes.schema.fields if not _is_helper(column.name)])
    mode, sensitive = "append_new_columns", case_sensitive(existing.sparkSession)
    return target_schema(query, existing.schema, mode, sensitive=sensitive)


def default_columns(df: DataFrame, unique_key: Sequence[str], valid_from: str) -> list[str]:
    """Return the clustering columns of a snapshot without ``zorder_by``: its key, by which rows are looked up.

    If the key is an expression or not orderable, return the column with the start of a row's validity.
    """
    fold = str if case_sensitive(df.sparkSession) else str.lower
    fields = {fold(field.name): field for field in df.schema.fields}
    found = []
    for name in unique_key:
        field = fields.get(fold(name.strip().strip("`")))
        if field is None:
            continue
        try:
            key_of(ResolvedColumn((field.name,), field.dataType))
        except ZorderError:
            continue
        found.append(quote_name(field.name))
    return found[:MOST_COLUMNS] or [quote_name(valid_from)]


def _is_helper(name: str) -> bool:
    return name.lower() in (CHANGE_TYPE, UNIQUE_KEY) or KEY_PART.fullmatch(name) is not None
