"""Compute the next state of a dbt snapshot: the existing rows, with changed ones closed, and the new rows.

dbt's own query lists the changes, which a ``MERGE`` applies on other formats. Here they are merged as a batch is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructType

from dbt_zorder.engine.keep_result import kept
from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.spec import MOST_COLUMNS
from dbt_zorder.progress import Clock
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import describe
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.columns import ResolvedColumn, case_sensitive
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.merge import Merge, MergeColumns
from dbt_zorder.tables.parquet.changed_files import check_unchanged
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.merge.matching import TARGET, count_by_file, match
from dbt_zorder.tables.parquet.merge.merge_batch import report_of
from dbt_zorder.tables.parquet.merge.row_changes import RowChanges, TableFiles
from dbt_zorder.tables.parquet.merge.source import numbered_rows
from dbt_zorder.tables.parquet.stats_view import renew_stats
from dbt_zorder.tables.report import IncrementReport, MergeReport
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


def take_snapshot(
    spark: SparkSession, query: str, request: BuildRequest, names: SnapshotColumns, *, may_rewrite: bool = True
) -> IncrementReport | None:
    """Update a snapshot in a new version of its table, and swap it in; return None if nothing changed.

    The version shares the files in which no row is closed, see ``merge``. The result is that of a ``MERGE``: a row is
    closed if it is current and among those updated or deleted. A row is added if its id does not exist.

    Args:
        spark: the session.
        query: dbt's own query of changes: rows to ``insert``, and rows that close others (``update``, ``delete``).
        request: settings of the table.
        names: names of the snapshot's columns.
        may_rewrite: rebuild the table when that is due.

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
    existing, clock = spark.table(request.table.sql), Clock()
    # run the snapshot's query once, for the rows to close and the rows to add
    with kept(as_text(spark.sql(query))) as changes:
        files = TableFiles(spark, request, info, existing.schema, columns_after(existing, changes))
        new = added(existing, changes, names)
        with numbered_rows(_closing_rows(existing, changes, names)) as closing:
            columns = MergeColumns([ResolvedColumn((names.scd_id,), StringType())], [names.valid_to])
            valid_to = f"{TARGET}.{quote_name(names.valid_to)}"
            is_current = f"{valid_to} IS NULL" + (f" OR {valid_to} = {names.current}" if names.current else "")
            merge = Merge([names.scd_id], predicates=[is_current])
            with kept(match(files.rows(list(files.sizes)), closing, columns, merge)) as pairs:
                with clock.phase("query"):
                    (matches, contested), count = count_by_file(pairs), new.count()
                if contested:
                    msg = (
                        f"{request.table}: the snapshot's query has a unique_key twice, so that two rows would follow "
                        "the current one; nothing was changed."
                    )
                    raise BuildError(msg)
                closed = RowChanges(pairs, columns, matches, new)
                if not closed.rows and not count and files.keeps_columns:
                    renew_stats(spark, request.table, info.location)
                    return None
                guard = None if before is None else lambda: check_unchanged(spark, request.table, before)
                built, rewritten = files.write(closed, guard)
    figures = MergeReport(count, closed.rows, 0, 0, rewritten, len(files.sizes) - rewritten)
    return report_of(spark, request, Batch(may_rewrite=may_rewrite), built, figures, clock)


def _closing_rows(existing: DataFrame, changes: DataFrame, names: SnapshotColumns) -> DataFrame:
    """Return id and end of validity of the rows that a snapshot closes, in the types of its table."""
    return changes.filter(_CLOSING).select(
        *(
            f.expr(f"CAST({quote_name(name)} AS {type_ddl(existing.schema[name].dataType)}) AS {quote_name(name)}")
            for name in (names.scd_id, names.valid_to)
        )
    )


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
    return conform(rows, columns_after(existing, changes), _ADVICE)


def columns_after(existing: DataFrame, changes: DataFrame) -> StructType:
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
