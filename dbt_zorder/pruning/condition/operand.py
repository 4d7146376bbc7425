"""One side of a comparison, as bounds of a column's values in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import types as t

from dbt_zorder.pruning.condition.types import Family, family, keeps_order
from dbt_zorder.pruning.predicate.tree import Call, Cast, Column, Node, Text
from dbt_zorder.spark.sql import quote_name

_TRUNC_UNITS = {"year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week"}


@dataclass(frozen=True)
class Operand:
    """A column, or an expression of it that keeps its order.

    Attributes:
        column: column whose statistics give the bounds.
        low: SQL of a lower bound of the values in the file.
        high: SQL of an upper bound of the values in the file.
        data_type: type of the compared expression.
    """

    column: Column
    low: str
    high: str
    data_type: t.DataType


@dataclass(frozen=True)
class StatsNames:
    """Names of the columns' statistics in the query on the stats table."""

    aliases: Mapping[Column, str]

    def min_value(self, column: Column) -> str:
        """Return SQL of the file's smallest value."""
        return f"{self.aliases[column]}.min_value"

    def max_value(self, column: Column) -> str:
        """Return SQL of the file's largest value."""
        return f"{self.aliases[column]}.max_value"

    def null_count(self, column: Column) -> str:
        """Return SQL of the number of rows in the file that are NULL in this column."""
        return f"{self.aliases[column]}.null_count"

    def sound(self, column: Column) -> str:
        """Return SQL that is TRUE if the column's statistics may be used, FALSE if not."""
        return f"{self.aliases[column]}_sound"

    def projection(self, column: Column) -> str:
        """Return SQL that gives the column's statistics their short name."""
        return f"{_stored(column)} AS {self.aliases[column]}"

    def soundness(self, column: Column) -> str:
        """Return SQL that computes :meth:`sound`: the statistics exist and do not contradict themselves.

        Spark evaluates it in the same SELECT as :meth:`projection`, so it uses the stored names.
        """
        low, high, nulls = (f"{_stored(column)}.{name}" for name in ("min_value", "max_value", "null_count"))
        return (
            f"coalesce(row_count >= 0 AND {nulls} >= 0 AND {nulls} <= row_count"
            f" AND if({nulls} = row_count, {low} IS NULL AND {high} IS NULL, {low} <= {high}), false)"
            f" AS {self.sound(column)}"
        )


def _stored(column: Column) -> str:
    return f"columns.{quote_name(column.name)}"


def read_operand(node: Node, stats: StatsNames, types: Mapping[str, t.DataType]) -> Operand | None:
    """Return ``node`` as an operand, or None if it does not keep the order of a column.

    Args:
        node: one side of a comparison.
        stats: names in the stats query.
        types: Spark's type of each ``CAST(NULL AS type)``, keyed by the type's text.
    """
    if isinstance(node, Column):
        if not node.plain or family(node.data_type) is None:
            return None
        return Operand(node, stats.min_value(node), stats.max_value(node), node.data_type)
    if isinstance(node, Cast):
        inner = read_operand(node.child, stats, types)
        target = types.get(node.type_sql)
        return None if inner is None or target is None else _cast(inner, target, node.type_sql)
    if isinstance(node, Call):
        return _call(node, stats, types)
    return None


def _cast(inner: Operand, target: t.DataType, type_sql: str) -> Operand | None:
    low, high = f"CAST({inner.low} AS {type_sql})", f"CAST({inner.high} AS {type_sql})"
    if keeps_order(inner.data_type, target):
        return Operand(inner.column, low, high, target)
    if isinstance(target, t.DateType):
        return _to_date(inner)
    return None


def _to_date(inner: Operand) -> Operand | None:
    """Return the date of a timestamp.

    If a clock is set back past midnight, a later instant has an earlier date, by one day at most. No zone was ever set
    back by more than the 24 hours of Alaska in 1867. Bounds that are one day wider are therefore always true.
    """
    low, high = f"CAST({inner.low} AS DATE)", f"CAST({inner.high} AS DATE)"
    kind = family(inner.data_type)
    if kind is Family.TIMESTAMP:
        return Operand(inner.column, f"date_sub({low}, 1)", f"date_add({high}, 1)", t.DateType())
    if kind in {Family.DATE, Family.TIMESTAMP_NTZ}:
        return Operand(inner.column, low, high, t.DateType())
    return None


def _call(node: Call, stats: StatsNames, types: Mapping[str, t.DataType]) -> Operand | None:
    """Return ``date(x)``, ``to_date(x)``, ``year(x)`` or ``trunc(x, unit)`` of a date or timestamp: all keep order."""
    name = node.name.lower()
    inner = read_operand(node.args[0], stats, types) if node.args else None
    if inner is None or family(inner.data_type) not in {Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_NTZ}:
        return None
    dates = _to_date(inner)
    if dates is None:
        return None
    if name in {"date", "to_date"} and len(node.args) == 1:
        return dates
    if name == "year" and len(node.args) == 1:
        return Operand(dates.column, f"year({dates.low})", f"year({dates.high})", t.IntegerType())
    if name == "trunc" and len(node.args) == 2:
        unit = node.args[1]
        if isinstance(unit, Text) and unit.value.lower() in _TRUNC_UNITS:
            low, high = f"trunc({dates.low}, '{unit.value}')", f"trunc({dates.high}, '{unit.value}')"
            return Operand(dates.column, low, high, t.DateType())
    return None
