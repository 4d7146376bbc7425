"""Read a table's statistics with distrust: treat everything unexpected as missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from dbt_zorder.pruning.files.table_facts import NOT_DESCRIBED, TableFacts
from dbt_zorder.pruning.predicate.tree import Column, Node
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import ResolvedColumn, split_name
from dbt_zorder.spark.messages import first_line
from dbt_zorder.stats import store
from dbt_zorder.stats.cache import cached_stats
from dbt_zorder.stats.schema import column_stats_type, stats_schema
from dbt_zorder.stats.table_state import FORMATS, state_of


@dataclass(frozen=True)
class Stats:
    """Stats table of a table, or the reason why there is none.

    Attributes:
        frame: one row for each file, with the schema in :mod:`dbt_zorder.stats.schema`; None if there are no usable
            statistics.
        reason: why ``frame`` is None.
        is_local: whether the statistics are in memory, so that a selection needs no Spark job.
    """

    frame: DataFrame | None
    reason: str = ""
    is_local: bool = False

    @cached_property
    def types(self) -> dict[str, DataType]:
        """Return the bounds' type of every column whose statistics have the right shape, by its dotted name."""
        if self.frame is None:
            return {}
        columns = self.frame.schema["columns"].dataType
        assert isinstance(columns, StructType)
        found: dict[str, DataType] = {}
        for field in columns.fields:
            inner = field.dataType
            if isinstance(inner, StructType) and "min_value" in inner.names:
                bounds = inner["min_value"].dataType
                if _bare(inner) == _bare(column_stats_type(bounds)):
                    found[field.name] = bounds
        return found

    def covers(self, column: Column) -> bool:
        """Return whether the column has statistics of exactly its own type."""
        return self.types.get(column.name) == column.data_type

    def covered(self, tree: Node) -> list[Column]:
        """Return the columns of a predicate that have such statistics."""
        return [column for column in tree.columns() if self.covers(column)]


def read_stats(spark: SparkSession, facts: TableFacts, columns: Sequence[Column] = ()) -> Stats:
    """Return the statistics beside the table's files, or those of its format. Never raises.

    Args:
        spark: reader's session.
        facts: facts of the table.
        columns: columns whose bounds are read, if the format has its own statistics; ours are read whole.
    """
    if facts.kind == NOT_DESCRIBED:
        return Stats(None, f"the catalog does not describe {facts.sql}")
    if not facts.location:
        kind = "a view" if "VIEW" in facts.kind or not facts.kind else f"of type {facts.kind}"
        return Stats(None, f"{facts.sql} is {kind}, and only tables have files of their own")
    if facts.provider in FORMATS:
        return _read_format_stats(spark, facts, columns)
    if facts.provider != "parquet":
        return Stats(
            None,
            f"{facts.sql} is in the format '{facts.provider or 'unknown'}', whose files cannot be distinguished",
        )
    try:
        held = cached_stats(spark, facts.location)
        if held is not None:
            return replace(check_shape(held), is_local=True)
        return check_shape(store.read_stats(spark, facts.location))
    except Exception as exc:  # a failure of any kind means that the statistics cannot be used
        return Stats(None, f"no statistics could be read: {first_line(exc)}")


def _read_format_stats(spark: SparkSession, facts: TableFacts, columns: Sequence[Column]) -> Stats:
    try:
        wanted = [ResolvedColumn(column.path, column.data_type) for column in dict.fromkeys(columns)]
        table = TableName(*split_name(facts.sql)[-2:])
        return check_shape(state_of(spark, facts.provider, table).stats(wanted))
    except Exception as exc:
        return Stats(None, f"the statistics of {facts.provider} could not be read: {first_line(exc)}")


def check_shape(frame: DataFrame) -> Stats:
    """Return ``frame`` as statistics if it has exactly the columns of this version."""
    columns = frame.schema["columns"].dataType if "columns" in frame.columns else None
    if not isinstance(columns, StructType):
        return Stats(None, "the statistics have no struct 'columns'")
    expected = _bare(stats_schema({}))
    given = {name: kind for name, kind in _bare(frame.schema).items() if name != "columns"}
    expected.pop("columns")
    if given != expected:
        return Stats(None, f"the statistics have another shape than this version knows: {sorted(given)}")
    return Stats(frame)


def _bare(schema: StructType) -> dict[str, DataType]:
    """Return names and types without nullability and metadata, which vary between writers."""
    return {field.name: field.dataType for field in schema.fields}
