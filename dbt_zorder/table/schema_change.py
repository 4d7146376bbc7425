"""A batch whose columns are not those of the table that it is added to: dbt's ``on_schema_change``, on Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from dbt_zorder.columns import case_sensitive
from dbt_zorder.ddl import type_ddl
from dbt_zorder.errors import SchemaChangeError
from dbt_zorder.spark_message import first_line
from dbt_zorder.sql import checked_cast, quote_name, quote_string

MODES = ("ignore", "fail", "append_new_columns", "sync_all_columns")


@dataclass(frozen=True)
class SchemaChange:
    """How a query's columns differ from a table's.

    Attributes:
        added: columns that only the query has.
        removed: columns that only the table has.
        retyped: columns of another type, as the query has them; each has the table's spelling.
    """

    added: Sequence[StructField]
    removed: Sequence[StructField]
    retyped: Sequence[StructField]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.retyped)

    def __str__(self) -> str:
        parts = (("new", self.added), ("missing", self.removed), ("of another type", self.retyped))
        return "; ".join(
            f"{what}: {', '.join(f'{c.name} {c.dataType.simpleString()}' for c in columns)}"
            for what, columns in parts
            if columns
        )


def compare(query: StructType, table: StructType, *, sensitive: bool = False) -> SchemaChange:
    """Compare columns by name and type; their order and what may be NULL make no difference."""
    ours = {_folded(column.name, sensitive): column for column in table.fields}
    theirs = {_folded(column.name, sensitive): column for column in query.fields}
    return SchemaChange(
        added=[column for name, column in theirs.items() if name not in ours],
        removed=[column for name, column in ours.items() if name not in theirs],
        retyped=[
            StructField(ours[name].name, column.dataType)
            for name, column in theirs.items()
            if name in ours and not _same(column.dataType, ours[name].dataType)
        ],
    )


def target_schema(change: SchemaChange, table: StructType, mode: str) -> StructType:
    """Return the columns that a table has after a batch, by ``on_schema_change``.

    Args:
        change: what ``compare`` found.
        table: the table's columns.
        mode: one of ``MODES``.

    Raises:
        SchemaChangeError: the mode does not allow the change; the table is as it was.
    """
    if mode == "fail" and change:
        msg = (
            f"The columns of the query are not those of the table ({change}), and on_schema_change is 'fail'. Set it "
            "to 'append_new_columns' or 'sync_all_columns', or run the model with --full-refresh."
        )
        raise SchemaChangeError(msg)
    if mode == "ignore" and change.removed:
        msg = (
            f"The query lacks columns of the table ({change}), and on_schema_change is 'ignore', its default. Set it "
            "to 'append_new_columns', which makes them NULL, or to 'sync_all_columns', which drops them, or run the "
            "model with --full-refresh."
        )
        raise SchemaChangeError(msg)
    if mode in ("ignore", "fail"):
        return table
    added = [StructField(column.name, column.dataType) for column in change.added]
    if mode == "append_new_columns":
        return StructType([*table.fields, *added])
    removed = {column.name for column in change.removed}
    retyped = {column.name: column.dataType for column in change.retyped}
    kept = [
        StructField(column.name, retyped.get(column.name, column.dataType), True, column.metadata)
        for column in table.fields
        if column.name not in removed
    ]
    return StructType([*kept, *added])


def conform(df: DataFrame, schema: StructType) -> DataFrame:
    """Return ``df`` with the columns of ``schema``: by name, NULL where it lacks one.

    Other types are cast as an ANSI INSERT casts them: a value that does not fit is an error, never NULL.

    Raises:
        SchemaChangeError: a type cannot become the other. A single value that cannot fails the query that reads it.
    """
    if _names_and_types(df.schema) == _names_and_types(schema):
        return df
    sensitive = case_sensitive(df.sparkSession)
    has = {_folded(column.name, sensitive): column for column in df.schema.fields}
    try:
        return df.select(*(_as(has.get(_folded(column.name, sensitive)), column) for column in schema.fields))
    except AnalysisException as exc:
        said = first_line(exc)
        msg = f"A type of the query cannot become that of the table: {said} Cast it there, or run with --full-refresh."
        raise SchemaChangeError(msg) from exc


def keeps(table: StructType, schema: StructType) -> bool:
    """Tell whether all columns of a table stay as they are in ``schema``, so that its files need not be touched."""
    return _names_and_types(schema)[: len(table.fields)] == _names_and_types(table)


def add_columns_sql(table: str, columns: Sequence[StructField], comments: dict[str, str]) -> str:
    """Return the statement that adds columns to a Parquet table, whose files stay as they are.

    Args:
        table: quoted name.
        columns: to be added.
        comments: of columns, by name.
    """
    parts = []
    for column in columns:
        comment = comments.get(column.name)
        text = f"{quote_name(column.name)} {type_ddl(column.dataType)}"
        parts.append(f"{text} COMMENT {quote_string(comment)}" if comment else text)
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(parts)})"


def _names_and_types(schema: StructType) -> list[tuple[str, str]]:
    return [(column.name, column.dataType.simpleString()) for column in schema.fields]


def _as(found: StructField | None, wanted: StructField) -> Column:
    kind = type_ddl(wanted.dataType)
    if found is None:
        return f.expr(f"CAST(NULL AS {kind})").alias(wanted.name)
    name = quote_name(found.name)
    if _same(found.dataType, wanted.dataType):
        return f.expr(name).alias(wanted.name)
    if any(isinstance(one, (StructType, ArrayType, MapType)) for one in (found.dataType, wanted.dataType)):
        msg = (
            f"The column '{wanted.name}' is {found.dataType.simpleString()} in one of query and table and "
            f"{wanted.dataType.simpleString()} in the other. Values that hold others are not converted: cast them in "
            "the query, or run the model with --full-refresh."
        )
        raise SchemaChangeError(msg)
    complaint = f"A value of column {wanted.name} does not fit into {wanted.dataType.simpleString()}: "
    return f.expr(checked_cast(name, kind, complaint)).alias(wanted.name)


def _same(one: DataType, other: DataType) -> bool:
    return one.simpleString() == other.simpleString()


def _folded(name: str, sensitive: bool) -> str:
    return name if sensitive else name.lower()
