"""One side of a comparison, as bounds of a column's values in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import types as t

from dbt_zorder.pruning.predicate.tree import Column
from dbt_zorder.spark.sql import quote_name


@dataclass(frozen=True)
class Operand:
    """A column, or an expression of it that keeps or reverses its order.

    Attributes:
        column: column whose statistics give the bounds.
        low: SQL of a lower bound of the values in the file.
        high: SQL of an upper bound of the values in the file.
        data_type: type of the compared expression.
        is_open: whether a bound may be NULL although the file has values, because it could not be computed.
        is_partial: whether the expression may be NULL for a value of the column.
        both: SQL of a struct whose fields ``l`` and ``h`` are the bounds; empty if they are separate.
    """

    column: Column
    low: str
    high: str
    data_type: t.DataType
    is_open: bool = False
    is_partial: bool = False
    both: str = ""


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

    def has_null(self, operand: Operand) -> str:
        """Return SQL that is TRUE if the operand may be NULL in a row of the file."""
        return "true" if operand.is_partial else f"{self.null_count(operand.column)} > 0"

    def unbounded(self, operand: Operand) -> str:
        """Return SQL that is TRUE if the file has values, but a bound of the operand could not be computed."""
        return f"({self.min_value(operand.column)} IS NOT NULL AND ({operand.low} IS NULL OR {operand.high} IS NULL))"

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
