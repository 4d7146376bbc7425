"""T1: every file of up to three rows over a small alphabet, every predicate of up to two atoms, four states of stats.

Atoms are judged by Spark: their truth for each value, and their generated condition for each file. AND, OR and NOT are
put together here for the truth, and by the real translator for the condition.
"""

# ruff: noqa: T201
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.stats.schema import stats_schema
from tests.soundness.judge import FAST, module
from tests.support import settings

ALPHABET = ["NULL", "double('-0.0')", "1.0D", "2.0D", "3.0D", "double('NaN')"]
LITERALS = ["0.0D", "1.0D", "2.0D", "2.5", "3", "double('NaN')", "NULL"]
OPS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
MULTISETS = [m for size in (1, 2, 3) for m in itertools.combinations_with_replacement(range(len(ALPHABET)), size)]
FUNCTIONS = [
    "c - 1 = 1", "3 - c >= 1", "c * -2D < -2", "- c = -1", "floor(c / 2) = 1", "CAST(c AS int) = 2", "round(c) <> 2",
    "coalesce(c, 2D) = 2", "nullif(c, 2D) >= 2", "if(c > 1, c, 0D) < 2",
    "CASE WHEN c = 1 THEN 1 WHEN c > 2 THEN 2 END = 2", "(c > 2) <=> false", "coalesce(c, 1) IS NULL",
]  # fmt: skip
STATES = ["exact", "widened", "no bounds", "no null count"]


def atom_texts() -> list[str]:
    found = [f"c {op} {value}" for op in OPS for value in LITERALS]
    found += [f"{value} {op} c" for op in ("<", ">=", "=") for value in LITERALS[1:3]]
    found += ["c IS NULL", "c IS NOT NULL", "c BETWEEN 1 AND 2", "c NOT BETWEEN 1 AND 2", "c BETWEEN 2 AND 1"]
    for prefix in ("c IN", "c NOT IN"):
        found += [
            f"{prefix} ({', '.join(v)})" for v in (["1"], ["1", "3"], ["1", "NULL"], ["NULL"], ["double('NaN')", "2"])
        ]
        found.append(f"{prefix} ({', '.join(f'{n}D' for n in range(2, 30))})")
    found += ["c + 1 > 2", "CAST(c AS float) >= 2", "1 = 0", "c = c"]
    return [*found, *FUNCTIONS]


def stats_frame(spark: SparkSession, rows: DataFrame, state: str) -> DataFrame:
    low, high, nulls = "min(c)", "max(c)", "count_if(c IS NULL)"
    if state == "widened":
        low, high = "min(c) - 1.5D", "max(c) + 0.5D"
    if state == "no bounds":
        low = high = "CAST(NULL AS double)"
    if state == "no null count":
        nulls = "CAST(NULL AS bigint)"
    shape = stats_schema({"c": rows.schema["c"].dataType})
    plain = rows.groupBy("file").agg(
        *(_expr(e) for e in ("count(*) AS n", f"struct(struct({low}, {high}, {nulls})) AS columns"))
    )
    named = plain.selectExpr("cast(file AS string) file_path", "1L file_size", "n row_count", "'v' version", "columns")
    return named.select(*(named[f.name].cast(f.dataType).alias(f.name) for f in shape.fields))


def _expr(sql: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(sql)


class Model:
    """Truth and conditions of all atoms; predicates are trees of atom numbers."""

    def __init__(self, spark: SparkSession) -> None:
        pairs = [(file, value) for file, multiset in enumerate(MULTISETS) for value in multiset]
        values = ", ".join(f"({file}, {ALPHABET[value]})" for file, value in pairs)
        self.rows = spark.sql(f"SELECT * FROM VALUES {values} AS t(file, c)").cache()
        self.spark = spark
        self.texts = atom_texts()
        read = module("predicate.read")
        names = module("predicate.names").Names(self.rows.schema)
        self.trees = [read.read(module("predicate.parse").parse(text), names) for text in self.texts]
        self.types = module("predicate.confirm").read_types(spark, module("predicate.tree").And(tuple(self.trees)))
        truth = spark.sql(f"SELECT * FROM VALUES {', '.join(f'({n}, {v})' for n, v in enumerate(ALPHABET))} AS t(n, c)")
        found = (
            truth.selectExpr("n", *(f"({text}) AS p{n}" for n, text in enumerate(self.texts))).orderBy("n").collect()
        )
        # 1 true, 0 false, -1 unknown: AND is the least of (true > unknown > false), so use 2, 1, 0
        code = {True: 2, None: 1, False: 0}
        self.truth = np.array([[code[v] for v in list(row)[1:]] for row in found], dtype=np.int8)
        self.member = np.zeros((len(MULTISETS), len(ALPHABET)), dtype=bool)
        for file, multiset in enumerate(MULTISETS):
            self.member[file, list(multiset)] = True

    def conditions(self, state: str) -> dict[str, np.ndarray[Any, Any]]:
        """Return, for the SQL of each atom's condition, what Spark makes of it for each file."""
        translate, decide = module("condition.translate"), module("files.evaluate")
        column = next(n for n in self.trees[0].walk() if type(n).__name__ == "Column")
        self.names = decide.stats_names([column])
        self.translator = translate.Translator(self.names, self.types)
        leaves: dict[str, None] = {}
        for tree in self.trees:
            for negated in (False, True):
                condition = self.translator.translate(tree, negated=negated)
                leaves |= {
                    translate.keep_sql(leaf, self.names): None
                    for leaf in module("condition.condition").leaves(condition)
                }
        stats = stats_frame(self.spark, self.rows, state)
        base = decide.with_names(stats, self.names)
        found = (
            base.selectExpr("cast(file_path AS int) file", *(f"{sql} AS k{n}" for n, sql in enumerate(leaves)))
            .orderBy("file")
            .collect()
        )
        table = np.array([list(row)[1:] for row in found], dtype=bool)
        return {sql: table[:, n] for n, sql in enumerate(leaves)}

    def keep(self, condition: Any, known: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        kind = type(condition).__name__
        if kind in {"All", "Any"}:
            parts = [self.keep(term, known) for term in condition.terms]
            joined: np.ndarray[Any, Any] = (np.logical_and if kind == "All" else np.logical_or).reduce(parts)
            return joined
        found: np.ndarray[Any, Any] = known[module("condition.translate").keep_sql(condition, self.names)]
        return found

    def predicates(self, most: int | None = None) -> list[tuple[str, tuple[int, ...]]]:
        count = len(self.trees)
        found: list[tuple[str, tuple[int, ...]]] = [(form, (n,)) for n in range(count) for form in ("{0}", "NOT {0}")]
        forms = (
            "{0} AND {1}",
            "{0} OR {1}",
            "NOT ({0} AND {1})",
            "NOT ({0} OR {1})",
            "{0} AND NOT {1}",
            "NOT {0} OR {1}",
        )
        found += [(form, pair) for pair in itertools.combinations(range(count), 2) for form in forms]
        return found[:: max(1, len(found) // most)] if most else found

    def build(self, form: str, numbers: tuple[int, ...]) -> tuple[Any, np.ndarray[Any, Any]]:
        """Return the tree of a predicate, and its truth for each value of the alphabet."""
        tree = module("predicate.tree")
        a, b = self.trees[numbers[0]], self.trees[numbers[-1]]
        x, y = self.truth[:, numbers[0]], self.truth[:, numbers[-1]]
        made: dict[str, Any] = {
            "{0}": lambda: (a, x),
            "NOT {0}": lambda: (tree.Not(a), 2 - x),
            "{0} AND {1}": lambda: (tree.And((a, b)), np.minimum(x, y)),
            "{0} OR {1}": lambda: (tree.Or((a, b)), np.maximum(x, y)),
            "NOT ({0} AND {1})": lambda: (tree.Not(tree.And((a, b))), 2 - np.minimum(x, y)),
            "NOT ({0} OR {1})": lambda: (tree.Not(tree.Or((a, b))), 2 - np.maximum(x, y)),
            "{0} AND NOT {1}": lambda: (tree.And((a, tree.Not(b))), np.minimum(x, 2 - y)),
            "NOT {0} OR {1}": lambda: (tree.Or((tree.Not(a), b)), np.maximum(2 - x, y)),
        }
        found: tuple[Any, np.ndarray[Any, Any]] = made[form]()
        return found

    def run(self, state: str, most: int | None = None) -> tuple[int, int, int, list[str]]:
        """Return decisions, files kept, files that must be kept, and what was unsound."""
        known = self.conditions(state)
        decisions = kept = needed = 0
        unsound: list[str] = []
        for form, numbers in self.predicates(most):
            tree, truth = self.build(form, numbers)
            keep = self.keep(self.translator.translate(tree), known)
            matches = (self.member & (truth == 2)).any(axis=1)
            decisions, kept, needed = decisions + len(keep), kept + int(keep.sum()), needed + int(matches.sum())
            lost = np.nonzero(matches & ~keep)[0]
            if len(lost):
                text = form.format(*(f"({self.texts[n]})" for n in numbers))
                unsound.append(f"{state}: {text} loses {[ALPHABET[v] for v in MULTISETS[lost[0]]]}")
        return decisions, kept, needed, unsound


@pytest.fixture(scope="module")
def model(spark: SparkSession) -> Model:
    with settings(spark, FAST):
        return Model(spark)


def test_all_decisions_are_sound(spark: SparkSession, model: Model, record_property: Any) -> None:
    total = 0
    with settings(spark, FAST):
        for state in STATES:
            decisions, kept, needed, unsound = model.run(state)
            record_property(state, f"{decisions} decisions, {kept} kept, {needed} must be kept")
            print(
                f"T1 {state}: {decisions} decisions, {len(model.predicates())} predicates, {kept} kept, {needed} needed"
            )
            assert not unsound, "\n".join(unsound[:10])
            total += decisions
    assert len(MULTISETS) >= 80
    assert total >= 1_200_000


def test_composition_is_what_spark_makes_of_the_whole_condition(spark: SparkSession, model: Model) -> None:
    with settings(spark, FAST):
        known = model.conditions("exact")
        chosen = model.predicates(300)
        conditions = [model.translator.translate(model.build(*predicate)[0]) for predicate in chosen]
        stats = module("files.evaluate").with_names(stats_frame(spark, model.rows, "exact"), model.names)
        sql = [module("condition.translate").keep_sql(condition, model.names) for condition in conditions]
        found = (
            stats.selectExpr("cast(file_path AS int) f", *(f"{s} AS k{n}" for n, s in enumerate(sql)))
            .orderBy("f")
            .collect()
        )
        for number, condition in enumerate(conditions):
            assert [row[number + 1] for row in found] == list(model.keep(condition, known))
