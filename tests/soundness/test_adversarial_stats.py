"""T3: statistics that are partial, wide, cut, doubled, stale or strange must never lose a row, nor raise."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.soundness.grammar import Grammar
from tests.soundness.judge import Asked, ask, judge, understand
from tests.soundness.world import World

COUNT = int(os.environ.get("SOAK_T3") or 150)


def _columns(stats: DataFrame) -> list[str]:
    return stats.schema["columns"].dataType.names  # type: ignore[attr-defined,no-any-return]


def _change(stats: DataFrame, change: dict[str, tuple[str, str, str]]) -> DataFrame:
    """Replace the three fields of columns by SQL over ``low``, ``high`` and ``nulls``."""
    fields = []
    for name in _columns(stats):
        path = f"columns.`{name}`"
        if name not in change:
            fields.append(f"'{name}', {path}")
            continue
        low, high, nulls = (
            part.replace("low", f"{path}.min_value")
            .replace("high", f"{path}.max_value")
            .replace("nulls", f"{path}.null_count")
            for part in change[name]
        )
        fields.append(f"'{name}', named_struct('min_value', {low}, 'max_value', {high}, 'null_count', {nulls})")
    return stats.withColumn("columns", f.expr(f"named_struct({', '.join(fields)})"))


def _some(stats: DataFrame, changed: DataFrame) -> DataFrame:
    """Change every second file only."""
    return stats.where("file_size % 2 = 0").unionByName(changed.where("file_size % 2 = 1"))


def _every(
    stats: DataFrame, low: str = "low", high: str = "high", nulls: str = "nulls"
) -> dict[str, tuple[str, str, str]]:
    return dict.fromkeys(_columns(stats), (low, high, nulls))


def _cut(size: int) -> tuple[str, str, str]:
    """Cut strings as Delta Lake does: a prefix below, a prefix and the largest character above."""
    return (
        f"substring(low, 1, {size})",
        f"if(length(high) <= {size}, high, substring(high, 1, {size}) || '\U0010ffff')",
        "nulls",
    )


WRONG = ("high", "low", "nulls")
"""Bounds that would lose rows if they were believed."""


def _kinds(stats: DataFrame) -> dict[str, DataFrame]:
    numbers = dict.fromkeys(("f32", "f64", "n2"), ("low - 3", "high + 3", "nulls"))
    lying = stats.withColumn("row_count", f.lit(0)).transform(lambda s: _change(s, _every(s, "NULL", "NULL", "0L")))
    typed = {"n1": ("cast(low AS bigint)", "cast(high AS bigint)", "nulls"), "d": ("cast(low AS int)", "1", "nulls")}
    typed["d"] = ("unix_date(low)", "unix_date(high)", "nulls")
    return {
        "dropped": stats.where("file_size % 3 <> 0"),
        "no bounds": _some(stats, _change(stats, _every(stats, "NULL", "NULL"))),
        "one bound": _some(stats, _change(stats, _every(stats, "low", "NULL"))),
        "no null count": _some(stats, _change(stats, _every(stats, nulls="NULL"))),
        "widened": _change(stats, numbers),
        "cut to 1": _change(stats, dict.fromkeys(["s", "vc", "st.t"], _cut(1))),
        "cut to 2": _change(stats, dict.fromkeys(["s", "vc", "st.t"], _cut(2))),
        "cut to 16": _change(stats, dict.fromkeys(["s", "vc", "st.t"], _cut(16))),
        "doubled": stats.unionByName(lying.where("file_size % 2 = 0")),
        "stale": lying.withColumn("file_path", f.expr("concat('old/', file_path)")),
        "wrong size": lying.withColumn("file_size", f.expr("file_size + 1")),
        "renamed": lying.withColumn("file_path", f.expr("concat(file_path, '.old')")),
        "swapped bounds": _change(stats, {n: WRONG for n in ("i32", "s", "d") if n in _columns(stats)}),
        "impossible counts": _change(stats, _every(stats, nulls="-1L")),
        "more nulls than rows": _change(stats, _every(stats, nulls="row_count + 1")),
        "other types": _change(stats, typed),
        "unknown shape": stats.withColumn("format", f.lit(2)),
        "unknown fields of a column": stats.withColumn(
            "columns",
            f.expr("transform(array(columns), c -> named_struct('s', named_struct('min_value', c.s.min_value)))[0]"),
        ),
        "columns of text": stats.withColumn("columns", f.expr("to_json(columns)")),
        "no rows": stats.where("false"),
    }


@pytest.fixture(scope="module")
def asked(spark: SparkSession, world: World) -> list[Asked]:
    grammar = Grammar(31)
    found = ask(spark, world, [grammar.predicate() for _ in range(COUNT)])
    understand(spark, world, found)
    return found


KINDS = [
    "dropped",
    "no bounds",
    "one bound",
    "no null count",
    "widened",
    "cut to 1",
    "cut to 2",
    "cut to 16",
    "doubled",
    "stale",
    "wrong size",
    "renamed",
    "swapped bounds",
    "impossible counts",
    "more nulls than rows",
    "other types",
    "unknown shape",
    "unknown fields of a column",
    "columns of text",
    "no rows",
]


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_lost(spark: SparkSession, world: World, asked: list[Asked], kind: str) -> None:
    verdict = judge(spark, world, asked, _kinds(world.stats)[kind])
    assert not verdict.unsound, "\n".join(verdict.unsound[:5])
    if kind in {"stale", "wrong size", "renamed", "no rows", "unknown shape", "columns of text", "impossible counts"}:
        assert verdict.kept == verdict.decisions
