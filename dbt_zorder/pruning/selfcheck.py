"""Check on the user's own table that pruned answers equal full answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pyspark.sql import SparkSession

from dbt_zorder.pruning.condition.types import Family, family
from dbt_zorder.pruning.files.stats_source import Stats, read_stats
from dbt_zorder.pruning.files.table_facts import describe
from dbt_zorder.pruning.plan import make_plan
from dbt_zorder.spark.columns import ResolvedColumn, find_column
from dbt_zorder.spark.sql import quote_name

_TEXT_FORMS = {
    Family.INTEGRAL: "cast({} AS string)",
    Family.DECIMAL: "concat(cast({} AS string), 'BD')",
    Family.BINARY_FLOAT: 'concat("double(\'", cast({} AS string), "\')")',
    Family.BOOLEAN: "cast({} AS string)",
    Family.DATE: 'concat("DATE \'", cast({} AS string), "\'")',
    Family.TIMESTAMP: "concat('timestamp_micros(', unix_micros({}), ')')",
    Family.STRING: 'concat("cast(X\'", hex({}), "\' AS string)")',
    Family.BINARY: 'concat("X\'", hex({}), "\'")',
}
"""SQL that writes a value as a SQL literal of its own type, without loss."""


@dataclass(frozen=True)
class Mismatch:
    """A predicate for which a pruned read and a full read differ.

    Attributes:
        predicate: predicate as given.
        pruned_rows, full_rows: number of rows of each read; if they are equal, the rows themselves differ.
    """

    predicate: str
    pruned_rows: int
    full_rows: int


def sound(spark: SparkSession, table: str, predicates: Sequence[str]) -> list[Mismatch]:
    """Return every predicate whose pruned answer differs from its full answer: none, if pruning is correct.

    The comparison uses the number of rows and the sum of their hashes. Each predicate reads the table twice, pruned and
    in full. A predicate that prunes nothing reads nothing.

    Examples:
        >>> sound(spark, "shop.orders", ["order_id = 42", "customer_id IN (1, 2)"])
        []

    Raises:
        PredicateError, ColumnError: a predicate is wrong.
    """
    found: list[Mismatch] = []
    for predicate in predicates:
        plan = make_plan(spark, table, predicate)
        if plan.pruned is None:
            continue
        # Hash the text form, because maps have no hash.
        measure = ("count(*)", "sum(cast(xxhash64(to_json(struct(*))) AS decimal(38,0)))")
        pruned_rows, pruned_sum = plan.pruned.selectExpr(*measure).collect()[0]
        full_rows, full_sum = plan.accepted.selectExpr(*measure).collect()[0]
        if (pruned_rows, pruned_sum) != (full_rows, full_sum):
            found.append(Mismatch(predicate, pruned_rows, full_rows))
    return found


def make_predicates(spark: SparkSession, table: str, most: int = 40) -> list[str]:
    """Return predicates from the table's own statistics: at, below, above and between the bounds of its files.

    Examples:
        >>> sound(spark, "shop.orders", make_predicates(spark, "shop.orders", 3))
        []

    Args:
        spark: reader's session.
        table: table name, as for :func:`dbt_zorder.pruning.scan`.
        most: maximum number of predicates, spread over all columns with statistics.
    """
    facts = describe(spark, table)
    stats = read_stats(spark, facts)
    if stats.frame is None:
        return []
    schema = spark.table(facts.sql).schema
    named = {name: find_column(name, schema) for name, kind in stats.types.items() if family(kind) in _TEXT_FORMS}
    columns = [(name, column) for name, column in named.items() if column is not None]
    share = -(-most // max(1, len(columns)))
    # each column begins with another kind of predicate, so that few predicates on each of many columns cover all kinds
    per_column = [_column_predicates(stats, *column, share, number) for number, column in enumerate(columns)]
    by_turns = [one for turn in zip_longest(*per_column) for one in turn if one is not None]
    return by_turns[:most]


def _column_predicates(stats: Stats, name: str, named: ResolvedColumn, share: int, first: int) -> list[str]:
    """Return up to ``share`` predicates on a column, rotated to start with predicate number ``first``."""
    assert stats.frame is not None
    kind = stats.types[name]
    written = _TEXT_FORMS[family(kind) or Family.INTEGRAL]
    low, high = (f"columns.{quote_name(name)}.{bound}" for bound in ("min_value", "max_value"))
    rows = (
        stats.frame.where(f"{low} IS NOT NULL")
        .orderBy(low)
        .selectExpr(f"{written.format(low)} AS low", f"{written.format(high)} AS high")
        .limit(1000)
        .collect()
    )
    column = named.sql
    found = [f"{column} IS NULL", f"{column} IS NOT NULL"]
    step = max(1, len(rows) // max(1, share // 4))
    for row in rows[::step]:
        found += [
            f"{column} = {row.low}",
            f"{column} = {row.high}",
            f"{column} <> {row.low}",
            f"{column} BETWEEN {row.low} AND {row.high}",
            f"{column} < {row.low}",
            f"NOT ({column} <= {row.high})",
            f"{column} IN ({row.low}, {row.high})",
            f"NOT ({column} <=> {row.low})",
        ]
    start = first % len(found)
    return [*found[start:], *found[:start]][:share]
