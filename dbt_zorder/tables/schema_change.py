"""Apply dbt's ``on_schema_change`` to Parquet: add a batch whose columns differ from those of its table.

Struct fields are matched by name like columns, also in arrays and in the values of maps. If they change, a new version
is built of all rows, so that no version mixes files of both shapes. Spark 4.1 would fill the gaps with NULL. Earlier
releases read a struct as NULL if a file has none of the requested fields. ``explode(items.new)`` then loses rows
(SPARK-53535).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from dbt_zorder.errors import SchemaChangeError
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.messages import first_line
from dbt_zorder.spark.sql import quote_name, quote_string
from dbt_zorder.tables.conversion import converted, fields_by_name, fits, same_type

MODES = ("ignore", "fail", "append_new_columns", "sync_all_columns")

ADVICE = "Give it the table's type in the query, or run the model with --full-refresh."


@dataclass(frozen=True)
class SchemaChange:
    """The difference between a query's columns and a table's; struct fields have dotted names.

    The element of an array is its field ``element``; keys and values of a map are ``key`` and ``value``.

    Attributes:
        added: columns that only the query has.
        removed: columns that only the table has.
        retyped: columns whose type differs, with the query's type and the table's spelling.
    """

    added: list[StructField] = field(default_factory=list)
    removed: list[StructField] = field(default_factory=list)
    retyped: list[StructField] = field(default_factory=list)

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
    """Compare columns by name and type; ignore order and nullability.

    Raises:
        SchemaChangeError: struct fields differ only by case, and the session is not case sensitive.
    """
    change = SchemaChange()
    _compare(query, table, "", sensitive, change)
    return change


def _compare(query: DataType, table: DataType, name: str, sensitive: bool, change: SchemaChange) -> None:
    if same_type(query, table):
        return
    if isinstance(query, StructType) and isinstance(table, StructType):
        theirs, ours = (fields_by_name(one, sensitive, name) for one in (query, table))
        for these, those, found in ((theirs, ours, change.added), (ours, theirs, change.removed)):
            found += [
                StructField(_dotted(name, one.name), one.dataType) for key, one in these.items() if key not in those
            ]
        for key, column in ours.items():
            if key in theirs:
                _compare(theirs[key].dataType, column.dataType, _dotted(name, column.name), sensitive, change)
    elif isinstance(query, ArrayType) and isinstance(table, ArrayType):
        _compare(query.elementType, table.elementType, _dotted(name, "element"), sensitive, change)
    elif isinstance(query, MapType) and isinstance(table, MapType):
        _compare(query.keyType, table.keyType, _dotted(name, "key"), sensitive, change)
        _compare(query.valueType, table.valueType, _dotted(name, "value"), sensitive, change)
    else:
        change.retyped.append(StructField(name, query))


def _dotted(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part


def target_schema(
    query: StructType,
    table: StructType,
    mode: str,
    *,
    sensitive: bool = False,
    serves: Callable[[StructType], bool] = lambda _: True,
) -> StructType:
    """Return the columns of a table after a batch, according to ``on_schema_change``.

    Args:
        query: the query's columns.
        table: the table's columns.
        mode: one of ``MODES``.
        sensitive: whether the session is case sensitive.
        serves: predicate whether columns include all names in the model's config; other columns are not advised.

    Raises:
        SchemaChangeError: the mode does not allow the change; the table is unchanged.
    """
    change = compare(query, table, sensitive=sensitive)
    if mode == "fail" and change:
        does = dict.fromkeys(("append_new_columns", "sync_all_columns"), "")
        msg = (
            f"The columns of the query are not those of the table ({change}), and on_schema_change is 'fail'. "
            f"{_advice(query, table, does, sensitive, serves)}"
        )
        raise SchemaChangeError(msg)
    if mode == "ignore" and change.removed:
        does = {"append_new_columns": ", which makes them NULL", "sync_all_columns": ", which drops them"}
        msg = (
            f"The query lacks columns of the table ({change}), and on_schema_change is 'ignore', its default. "
            f"{_advice(query, table, does, sensitive, serves)}"
        )
        raise SchemaChangeError(msg)
    return table if mode in ("ignore", "fail") else _merged_schema(query, table, mode, sensitive)


def _advice(
    query: StructType,
    table: StructType,
    does: Mapping[str, str],
    sensitive: bool,
    serves: Callable[[StructType], bool],
) -> str:
    """Return advice that works for any values: modes that convert each of them, and a full refresh."""
    modes = []
    for mode, what in does.items():
        after = _merged_schema(query, table, mode, sensitive)
        if serves(after) and fits(query, after, sensitive) and fits(table, after, sensitive):
            modes.append(f"'{mode}'{what}")
    ways = [f"set it to {', or to '.join(modes) if any(does.values()) else ' or '.join(modes)}"] if modes else []
    ways += ["run the model with --full-refresh"] if serves(query) else []
    ways = ways or ["let the query give the table's columns, which the model's config names"]
    text = ", or ".join(ways)
    return f"{text[0].upper()}{text[1:]}."


def _merged_schema(query: StructType, table: StructType, mode: str, sensitive: bool) -> StructType:
    merged = merged_type(query, table, mode, sensitive)
    assert isinstance(merged, StructType)
    return merged


def merged_type(query: DataType, table: DataType, mode: str, sensitive: bool) -> DataType:
    """Return the type of a column, or the columns of a table, after a batch.

    Args:
        query: type in the batch.
        table: type in the table.
        mode: ``append_new_columns`` or ``sync_all_columns``; new fields come last.
        sensitive: whether the session is case sensitive.
    """
    if same_type(query, table):
        return table
    if isinstance(query, StructType) and isinstance(table, StructType):
        theirs, ours = fields_by_name(query, sensitive), fields_by_name(table, sensitive)
        kept = [
            StructField(one.name, merged_type(theirs[key].dataType, one.dataType, mode, sensitive), True, one.metadata)
            if key in theirs
            else one
            for key, one in ours.items()
            if key in theirs or mode == "append_new_columns"
        ]
        return StructType(
            kept + [StructField(one.name, one.dataType) for key, one in theirs.items() if key not in ours]
        )
    if isinstance(query, ArrayType) and isinstance(table, ArrayType):
        return ArrayType(merged_type(query.elementType, table.elementType, mode, sensitive))
    if isinstance(query, MapType) and isinstance(table, MapType):
        key = merged_type(query.keyType, table.keyType, mode, sensitive)
        return MapType(key, merged_type(query.valueType, table.valueType, mode, sensitive))
    return query if mode == "sync_all_columns" and not isinstance(query, NullType) else table


def conform(df: DataFrame, schema: StructType, advice: str = ADVICE) -> DataFrame:
    """Return ``df`` with the columns of ``schema``, matched by name; missing columns and struct fields become NULL.

    Other types are cast as an ANSI INSERT casts them: a value that does not fit raises an error and never becomes NULL.

    Args:
        df: the rows.
        schema: target columns.
        advice: last sentence of the error message.

    Raises:
        SchemaChangeError: a type cannot be converted. A single value that does not fit fails the query that reads it.
    """
    if same_type(df.schema, schema):
        return df
    sensitive = case_sensitive(df.sparkSession)
    has = {_folded(column.name, sensitive): column for column in df.schema.fields}
    try:
        columns = [_as(has.get(_folded(column.name, sensitive)), column, sensitive) for column in schema.fields]
    except SchemaChangeError as exc:
        msg = f"{exc} {advice}"
        raise SchemaChangeError(msg) from exc
    try:
        return df.select(*columns)
    except AnalysisException as exc:
        _explain(df, schema, columns, advice)
        msg = f"A type cannot become the other: {first_line(exc)} {advice}"
        raise SchemaChangeError(msg) from exc


def _explain(df: DataFrame, schema: StructType, columns: Sequence[Column], advice: str) -> None:
    """Raise an error that names the column that Spark cannot cast; Spark names only an expression."""
    for wanted, column in zip(schema.fields, columns, strict=True):
        try:
            df.select(column)
        except AnalysisException as exc:
            msg = (
                f"The column '{wanted.name}' cannot become {wanted.dataType.simpleString()}: {first_line(exc)} {advice}"
            )
            raise SchemaChangeError(msg) from exc


def keeps(table: StructType, schema: StructType) -> bool:
    """Return whether all columns of a table stay unchanged in ``schema``, so that its files can stay."""
    return same_type(StructType(schema.fields[: len(table.fields)]), table)


def add_columns_sql(table: str, columns: Sequence[StructField], comments: dict[str, str]) -> str:
    """Return the statement that adds columns to a Parquet table; its files stay unchanged.

    Args:
        table: quoted name of the table.
        columns: new columns.
        comments: comments of columns, by name.
    """
    parts = []
    for column in columns:
        comment = comments.get(column.name)
        text = f"{quote_name(column.name)} {type_ddl(column.dataType)}"
        parts.append(f"{text} COMMENT {quote_string(comment)}" if comment else text)
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(parts)})"


def _as(found: StructField | None, wanted: StructField, sensitive: bool) -> Column:
    if found is None:
        return f.expr(f"CAST(NULL AS {type_ddl(wanted.dataType)})").alias(wanted.name)
    text = converted(quote_name(found.name), found.dataType, wanted.dataType, wanted.name, sensitive)
    return f.expr(text).alias(wanted.name)


def _folded(name: str, sensitive: bool) -> str:
    return name if sensitive else name.lower()
