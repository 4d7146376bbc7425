"""Resolve the names in a predicate against a table by Spark's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql.types import DataType, StringType, StructField, StructType

from dbt_zorder.pruning.predicate.tree import Column
from dbt_zorder.spark.char_types import is_char
from dbt_zorder.spark.columns import fold_case, leaf_names

_EXISTS_DEFAULT = "EXISTS_DEFAULT"
"""Key of the field metadata where Spark keeps the value of rows that are older than the column."""


@dataclass(frozen=True)
class Names:
    """Columns and functions that the names of a predicate may refer to.

    Attributes:
        schema: the table's columns.
        sensitive: value of ``spark.sql.caseSensitive``.
        qualifiers: names that may precede a column, longest first, e.g. ``("spark_catalog", "db", "t")``.
        hidden: names of Spark's functions, in lower case, that this session has replaced by its own.
    """

    schema: StructType
    sensitive: bool = False
    qualifiers: Sequence[tuple[str, ...]] = field(default_factory=tuple)
    hidden: frozenset[str] = frozenset()

    def resolve(self, parts: Sequence[str]) -> Column | str:
        """Return the one column that ``parts`` refer to, or why there is none: no such name, or more than one."""
        found: dict[tuple[str, ...], Column] = {}
        starts = [0] + [len(q) for q in self.qualifiers if self._same(parts[: len(q)], q) and len(parts) > len(q)]
        for start in starts:
            for column in self._paths(parts[start:]):
                found[column.path] = column
        shown = ".".join(parts)
        if len(found) > 1:
            return f"'{shown}' may stand for more than one column"
        if not found:
            return f"'{shown}' is not a column, nor a field of structs alone"
        column = next(iter(found.values()))
        if leaf_names(self.schema).count(column.name) > 1:
            return f"'{shown}' shares its dotted name with another column"
        return column

    def _paths(self, parts: Sequence[str]) -> list[Column]:
        here: list[tuple[tuple[str, ...], DataType, bool]] = [((), self.schema, True)]
        for part in parts:
            here = [
                (*self._step(path, struct_field), plain and _plain(struct_field))
                for path, data_type, plain in here
                if isinstance(data_type, StructType)
                for struct_field in data_type.fields
                if self._same((struct_field.name,), (part,))
            ]
        return [Column(path, data_type, plain) for path, data_type, plain in here]

    @staticmethod
    def _step(path: tuple[str, ...], struct_field: StructField) -> tuple[tuple[str, ...], DataType]:
        return (*path, struct_field.name), struct_field.dataType

    def _same(self, left: Sequence[str], right: Sequence[str]) -> bool:
        return [fold_case(part, sensitive=self.sensitive) for part in left] == [
            fold_case(part, sensitive=self.sensitive) for part in right
        ]


def _plain(struct_field: StructField) -> bool:
    """Return whether values compare by their bytes: not CHAR, whose padding differs by reader, and no collation."""
    return not is_char(struct_field) and (
        not isinstance(struct_field.dataType, StringType) or plain_string(struct_field.dataType)
    )


def has_default(column: StructField) -> bool:
    """Return whether Spark reads another value than NULL from a file that lacks a column."""
    return _EXISTS_DEFAULT in (column.metadata or {})


def plain_string(data_type: StringType) -> bool:
    """Return whether strings of this type are compared by their UTF-8 bytes."""
    return type(data_type) is StringType and getattr(data_type, "collation", "UTF8_BINARY") == "UTF8_BINARY"
