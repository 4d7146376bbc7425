"""The rows that a merge writes: those of the files with a changed row, as they are after it, and the inserted ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.merge import MergeColumns
from dbt_zorder.tables.parquet.merge.matching import CHANGED, FILE, POSITION, value_of
from dbt_zorder.tables.parquet.merge.small_side import sent_whole
from dbt_zorder.tables.parquet.merge.source import ROW, NumberedRows


@dataclass(frozen=True)
class Inserts:
    """The rows of a batch that have no match.

    Attributes:
        rows: the rows, in the table's columns.
        count: number of rows.
        repeated: number of rows whose key another one of them has.
        without_key: number of rows with NULL in a column of the key.
    """

    rows: DataFrame
    count: int
    repeated: int
    without_key: int


def find_inserts(source: NumberedRows, pairs: DataFrame | None, columns: MergeColumns) -> Inserts:
    """Return the rows of a batch that a merge inserts.

    Args:
        source: the batch.
        pairs: result of ``matching.match``; None if matched rows are inserted as well.
        columns: the columns of the merge.
    """
    rows = source.rows if pairs is None else source.rows.join(pairs.select(ROW), ROW, "left_anti")
    keys = [key.sql for key in columns.keys]
    is_null = " OR ".join(f"{key} IS NULL" for key in keys)
    counted = rows.groupBy(*map(f.expr, keys)).agg(f.count(f.lit(1)).alias("__zorder_rows"))
    figures = counted.selectExpr("__zorder_rows AS rows", f"({is_null}) AS is_null").selectExpr(
        "coalesce(sum(rows), 0)",
        "coalesce(sum(rows) FILTER (WHERE rows > 1 AND NOT is_null), 0)",
        "coalesce(sum(rows) FILTER (WHERE is_null), 0)",
    )
    return Inserts(rows.select(*map(quote_name, source.columns)), *(int(one) for one in figures.collect()[0]))


def rows_after(
    target: DataFrame, names: Sequence[str], pairs: DataFrame, columns: MergeColumns, changed: int, *, deletes: bool
) -> DataFrame:
    """Return the rows of files after a merge, without inserted ones.

    Args:
        target: result of ``matching.with_places`` for these files.
        names: columns of the table.
        pairs: result of ``matching.match``.
        columns: the columns of the merge.
        changed: number of changed rows.
        deletes: whether a changed row is deleted.
    """
    changes = pairs.where(CHANGED)
    if deletes:
        rows = target.join(sent_whole(changes, changed), [FILE, POSITION], "left_anti")
        return rows.select(*map(quote_name, names))
    numbers = {name: number for number, name in enumerate(columns.updated)}
    after = [
        f.expr(f"if({CHANGED}, {value_of(numbers[name])}, {quote_name(name)}) AS {quote_name(name)}")
        if name in numbers
        else f.expr(quote_name(name))
        for name in names
    ]
    return target.join(sent_whole(changes.drop(ROW), changed), [FILE, POSITION], "left").select(*after)
