"""Resolve the column names that users write against a schema, by Spark's own rules."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import types as t
from pyspark.sql.types import DataType, StructField, StructType

from dbt_zorder.errors import ColumnError, did_you_mean
from dbt_zorder.spark.conf import CASE_SENSITIVE, is_on
from dbt_zorder.spark.sql import quote_name

USER_DEFINED = '"type":"udt"'
"""Mark of a user-defined type in a schema's JSON."""


@dataclass(frozen=True)
class ResolvedColumn:
    """A top-level column or a struct leaf.

    Attributes:
        path: field names from the top level down, spelled as in the schema.
        data_type: type of the field at the end of the path.
    """

    path: tuple[str, ...]
    data_type: DataType

    @property
    def name(self) -> str:
        """Return the path with dots, as stats tables and messages show it."""
        return ".".join(self.path)

    @property
    def sql(self) -> str:
        """Return the path as SQL, every part quoted."""
        return quote_name(*self.path)


def without(columns: StructType, names: Collection[str]) -> StructType:
    """Return the top-level columns except those in ``names``."""
    return StructType([column for column in columns.fields if column.name not in names])


def case_sensitive(spark: SparkSession) -> bool:
    """Return whether this session distinguishes column names by case (``spark.sql.caseSensitive``)."""
    return is_on(spark, CASE_SENSITIVE)


def fold_case(name: str, *, sensitive: bool) -> str:
    """Return the form that all spellings of one column share: the name itself, or its lower case."""
    return name if sensitive else name.lower()


def leaf_names(schema: StructType) -> list[str]:
    """Return every column and struct leaf by its dotted name, parents before their leaves."""
    return [column.name for column in all_columns(schema)]


def find_column(name: str, schema: StructType) -> ResolvedColumn | None:
    """Return the column with this dotted name, as stats tables write it; None if there is none, or more than one."""
    found = [column for column in all_columns(schema) if column.name == name]
    return found[0] if len(found) == 1 else None


def quote_column(name: str, schema: StructType) -> str:
    """Return the dotted name of a column as a user would write it, in backticks; return any other name unchanged."""
    column = find_column(name, schema)
    return name if column is None else column.sql


def all_columns(schema: StructType, path: tuple[str, ...] = ()) -> list[ResolvedColumn]:
    """Return every column and everything in its structs, parents before their leaves; ``path`` leads to the schema."""
    found: list[ResolvedColumn] = []
    for field in schema.fields:
        here = (*path, field.name)
        found.append(ResolvedColumn(here, field.dataType))
        if isinstance(field.dataType, StructType):
            found += all_columns(field.dataType, here)
    return found


def resolve(name: str, schema: StructType, *, sensitive: bool = False) -> ResolvedColumn:
    """Return the column that ``name`` refers to.

    A column whose own name contains the dots wins over a path through structs. Parts in backticks are not split.

    Raises:
        ColumnError: there is no such column, or several that differ only by case.
    """
    top = _match(schema, name, sensitive)
    if top is not None:
        return ResolvedColumn((top.name,), top.dataType)
    path: list[str] = []
    here: DataType = schema
    for part in split_name(name):
        field = _match(here, part, sensitive) if isinstance(here, StructType) else None
        if field is None:
            names = leaf_names(schema)
            all_names = ", ".join(names) or "none"
            msg = (
                f"There is no column '{name}'.{_hint(name) or did_you_mean(name, names)} The columns are: {all_names}."
            )
            raise ColumnError(msg)
        path.append(field.name)
        here = field.dataType
    return ResolvedColumn(tuple(path), here)


def _hint(name: str) -> str:
    """Return advice for a name that is the SQL of something else; empty if there is none."""
    if "," in name:
        listed = ", ".join(repr(part.strip()) for part in name.strip("() ").split(","))
        return f" Several columns are a list: [{listed}]."
    if name[:1] in "'\"" and name[-1:] == name[:1]:
        return f" Leave out the quotes: {name[1:-1]}."
    if "(" in name or name.lower().endswith((" asc", " desc")):
        return " Only a column can be named, no expression: make it a column of the query."
    return ""


@contextlib.contextmanager
def naming(key: str) -> Iterator[None]:
    """Add the name of a config to a ColumnError that the block raises."""
    try:
        yield
    except ColumnError as exc:
        msg = f"{key}: {exc}"
        raise ColumnError(msg) from exc


def resolve_all(names: Sequence[str], schema: StructType, *, sensitive: bool = False) -> list[ResolvedColumn]:
    """Return the column of every name.

    Raises:
        ColumnError: a name cannot be resolved, or a column is named twice, in whatever spelling.
    """
    columns: list[ResolvedColumn] = []
    for name in names:
        column = resolve(name, schema, sensitive=sensitive)
        if column in columns:
            msg = f"The column '{column.name}' is named twice."
            raise ColumnError(msg)
        columns.append(column)
    return columns


def split_name(name: str) -> list[str]:
    """Split at dots outside backticks: ``a.`b.c``` is ``["a", "b.c"]``."""
    parts: list[str] = []
    current = ""
    quoted = False
    position = 0
    while position < len(name):
        char = name[position]
        if char == "`":
            if quoted and name[position + 1 : position + 2] == "`":
                current += "`"
                position += 1
            else:
                quoted = not quoted
        elif char == "." and not quoted:
            parts.append(current)
            current = ""
        else:
            current += char
        position += 1
    parts.append(current)
    return parts


def _match(struct: DataType, name: str, sensitive: bool) -> StructField | None:
    if not isinstance(struct, StructType):
        return None
    wanted = fold_case(name, sensitive=sensitive)
    found = [field for field in struct.fields if fold_case(field.name, sensitive=sensitive) == wanted]
    if len(found) > 1:
        msg = f"The column '{name}' is ambiguous: {', '.join(repr(field.name) for field in found)} differ only by case."
        raise ColumnError(msg)
    return found[0] if found else None


def inner_types(data_type: t.DataType) -> list[t.DataType]:
    """Return the types of a nested type's elements; none for other types."""
    if isinstance(data_type, t.StructType):
        return [field.dataType for field in data_type.fields]
    if isinstance(data_type, t.ArrayType):
        return [data_type.elementType]
    return [data_type.keyType, data_type.valueType] if isinstance(data_type, t.MapType) else []
