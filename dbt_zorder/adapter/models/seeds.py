"""Conversion of a seed to one DataFrame with the types that dbt-spark's statements would produce."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.adapter.models.frames import arrow_frame
from dbt_zorder.adapter.models.session_scope import MODEL_SCOPES
from dbt_zorder.spark.sql import checked_cast, quote_name, quote_string

if TYPE_CHECKING:
    import agate

_LENGTH = re.compile(r"\s*(?:var)?char\s*\(\s*(\d+)\s*\)\s*", re.IGNORECASE)
_ARROW = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "string": pa.string(),
}


def seed_frame(spark: SparkSession, table: agate.Table, types: Sequence[str]) -> tuple[DataFrame, bool]:
    """Return a seed's rows, and whether Spark has to cast any column. Such a cast can fail.

    Args:
        spark: the session.
        table: the seed as dbt read it. Columns with a user-defined type are text.
        types: the SQL types of all columns, inferred or user-defined.
    """
    columns = [arrow_column(column.values(), kind) for column, kind in zip(table.columns, types, strict=True)]
    # columns are numbered until the end, because names may repeat or differ by case alone
    numbered = arrow_frame(spark, pa.table({str(number): column for number, column in enumerate(columns)}))
    chosen, casts = [], False
    for number, (name, kind, column) in enumerate(zip(table.column_names, types, columns, strict=True)):
        cast = _ARROW.get(kind.lower()) != column.type
        casts = casts or cast
        text = quote_name(str(number))
        chosen.append(f.expr(_cast(text, kind, name) if cast else text).alias(name))
    return numbered.select(*chosen), casts


def seed_rows(spark: SparkSession, table: agate.Table, types: Sequence[str]) -> DataFrame:
    """Return a seed's rows, and raise at once if a value does not fit its column.

    Rows that Spark has to cast stay in its memory until the model ends. The arguments are those of ``seed_frame``.
    """
    df, casts = seed_frame(spark, table, types)
    if casts:
        persisted = df.persist()
        scope = MODEL_SCOPES.current()
        if scope is not None:
            scope.callback(persisted.unpersist)
        persisted.count()
    return df


def arrow_column(values: Sequence[Any], kind: str) -> pa.Array:
    """Return a column's values in Arrow's type for ``kind`` if all of them fit it, else as text for Spark to cast."""
    arrow_type = _ARROW.get(kind.lower(), pa.string())
    if arrow_type == pa.int64():
        values = [value if value is None or isinstance(value, str) else int(value) for value in values]
    elif arrow_type == pa.float64():
        values = [value if value is None or isinstance(value, str) else float(value) for value in values]
    try:
        if arrow_type == pa.timestamp("us") and any(value is not None and value.tzinfo for value in values):
            # with mixed offsets Arrow would read values without an offset in UTC; Spark uses the session's zone
            return _text_column(values)
        return pa.array(values, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, AttributeError, OverflowError):
        return _text_column(values)


def _cast(text: str, kind: str, name: str) -> str:
    """Return SQL that casts text to a column's type, or fails before any table is changed."""
    complaint = f"A value of the seed's column {name} does not fit into {kind}: "
    length = _LENGTH.fullmatch(kind)
    if length is None:
        return checked_cast(text, kind, complaint)
    too_long = f"raise_error(concat({quote_string(complaint)}, {text}))"
    return f"CAST(CASE WHEN char_length({text}) > {length[1]} THEN {too_long} ELSE {text} END AS {kind})"


def _text_column(values: Sequence[Any]) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in values], pa.string())
