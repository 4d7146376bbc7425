"""T10: random trees of joins, which must give the same rows from the files that are left as from all of them.

``SOAK_T10=1500 pytest -s tests/soundness/test_random_joins.py`` asks that many, ``SEED=7`` repeats a run.
"""

# ruff: noqa: T201
from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt_zorder.pruning.joins import pruner
from dbt_zorder.pruning.plain_sql.statement import Pruned, prepare
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from tests.soundness.world import COLUMNS, make_world
from tests.support import settings

SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
COUNT = int(os.environ.get("SOAK_T10") or 40)
MEANING = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/St_Johns"}
SESSION = {
    **MEANING,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
TABLES = ["t10.t", "t10.t", "t10.t", "t10.small", "t10.small", "t10.zsmall"]
WHOLE = ["n1", "n2", "i32", "i8", "i64"]
FAMILIES = {
    "date": ["d"],
    "text": ["s", "vc"],
    "moment": ["ts"],
    "decimal": ["dec9"],
    "float": ["f64"],
    "whole": WHOLE,
}
"""Columns of the second key of a statement."""

JOINS = [
    *["JOIN"] * 3,
    *["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"],
    *["LEFT SEMI JOIN", "LEFT ANTI JOIN"],
]
ON = [
    "x.a = y.a",
    "x.a = y.a",
    "x.b = y.b",
    "x.a = y.v",
    "x.v = y.a AND x.b = y.b",
    "x.a = y.a AND x.v > y.v",
    "x.a < y.a",
    "y.v <= x.a",
    "x.b >= y.b",
    "x.a <=> y.a",
    "x.a = y.a OR x.v = 2",
    "x.a = y.a + 1",
    "x.a = y.a AND x.a > 1",
]
ONE = [
    "SELECT * FROM ({r}) WHERE a > 1",
    "SELECT * FROM ({r}) WHERE v < 3 OR a IS NULL",
    "SELECT a, b, count(*) AS v FROM ({r}) GROUP BY a, b",
    "SELECT a, max(b) AS b, sum(v) AS v FROM ({r}) GROUP BY a",
    "SELECT max(a) AS a, min(b) AS b, count(*) AS v FROM ({r})",
    "SELECT a, b, count(*) OVER (PARTITION BY a) AS v FROM ({r})",
    "SELECT a, max(b) OVER (PARTITION BY v) AS b, v FROM ({r})",
    "SELECT a, b, v FROM (SELECT *, rank() OVER (PARTITION BY a ORDER BY v) AS w FROM ({r})) WHERE w <= 2",
    "SELECT DISTINCT a, b, v FROM ({r})",
    "SELECT * FROM ({r}) ORDER BY a, b, v, cast(b AS string) LIMIT 3",
    "SELECT * FROM ({r}) ORDER BY b DESC, cast(b AS string), a, v LIMIT 2 OFFSET 1",
    "SELECT * FROM ({r}) ORDER BY v DESC NULLS FIRST, a, b, cast(b AS string) LIMIT 4",
    "SELECT a, b, count(*) AS v FROM ({r}) GROUP BY ROLLUP(a, b)",
    "SELECT v AS a, b, a AS v FROM ({r})",
    "SELECT a, b, w AS v FROM ({r}) LATERAL VIEW explode(array(v, a)) e AS w",
    "SELECT coalesce(a, 2) AS a, b, v FROM ({r})",
]
TWO = [
    "SELECT * FROM ({r}) UNION ALL SELECT * FROM ({s})",
    "SELECT * FROM ({r}) EXCEPT SELECT * FROM ({s})",
    "SELECT * FROM ({r}) INTERSECT SELECT * FROM ({s})",
    "SELECT * FROM ({r}) x WHERE x.a IN (SELECT a FROM ({s}))",
    "SELECT * FROM ({r}) x WHERE x.a NOT IN (SELECT a FROM ({s}))",
    "SELECT * FROM ({r}) x WHERE x.a IN (SELECT v FROM ({s})) OR x.v > 3",
    "SELECT * FROM ({r}) x WHERE EXISTS (SELECT 1 FROM ({s}) y WHERE {on})",
    "SELECT * FROM ({r}) x WHERE NOT EXISTS (SELECT 1 FROM ({s}) y WHERE {on})",
    "SELECT x.a, x.b, (SELECT max(v) FROM ({s}) y WHERE y.a = x.a) AS v FROM ({r}) x",
    "SELECT * FROM ({r}) x WHERE x.a > (SELECT min(a) FROM ({s}))",
]
BOTH = [
    "x.a, x.b, y.v",
    "y.a, x.b, x.v",
    "coalesce(x.a, y.a) AS a, y.b, x.v",
    "y.a, y.b, y.v",
    "x.a, y.b, y.v + 0 AS v",
]


class Statements:
    """Random statements over trees of joins; each relation has the columns ``a``, ``b`` and ``v``."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def statement(self) -> str:
        second = FAMILIES[self.rng.choice(list(FAMILIES))]
        if self.rng.random() < 0.8:
            return self._relation(self.rng.choice([2, 3, 3, 4]), second)
        shared = self._relation(1, second)
        whole = self._joined("SELECT * FROM c", self._relation(1, second))
        return f"WITH c AS ({shared}) {self._joined(whole, 'SELECT * FROM c')}"

    def _relation(self, depth: int, second: list[str]) -> str:
        rng = self.rng
        if depth == 0:
            table = rng.choice(TABLES)
            tests = ["true", "n1 = 2", "n2 < 3", "ok", "i32 IS NOT NULL", "n1 IN (1, 4)", "n2 = 5", "n1 > 3"]
            test = rng.choice(tests[:3] if table == "t10.t" and rng.random() < 0.7 else tests)
            return (
                f"SELECT {rng.choice(WHOLE)} AS a, {rng.choice(second)} AS b, cast({rng.choice(WHOLE)} AS bigint) AS v "
                f"FROM {table} WHERE {test}"
            )
        inner = self._relation(depth - 1, second)
        kind = rng.random()
        if kind < 0.25:
            return rng.choice(ONE).format(r=inner)
        other = self._relation(rng.randrange(depth), second)
        if kind < 0.45:
            return rng.choice(TWO).format(r=inner, s=other, on=rng.choice(ON))
        return self._joined(inner, other)

    def _joined(self, inner: str, other: str) -> str:
        rng = self.rng
        if rng.random() < 0.5:
            inner, other = other, inner
        join = rng.choice(JOINS)
        chosen = "x.a, x.b, x.v" if "SEMI" in join or "ANTI" in join else rng.choice(BOTH)
        on = "" if join == "CROSS JOIN" else f" ON {rng.choice(ON)}"
        where = " WHERE x.v > y.a" if join == "CROSS JOIN" else ""
        return f"SELECT {chosen} FROM ({inner}) x {join} ({other}) y{on}{where}"


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    """A table of twelve files with statistics, and two small ones, with and without."""
    with settings(spark, MEANING):
        spark.sql("CREATE DATABASE t10")
        world = make_world(spark, SEED, 80)
        for name, first, last in (("t", 0, 24), ("small", 24, 28), ("zsmall", 28, 34)):
            # of more rows, a tree of joins would give millions
            rows = world.rows.drop("lc").where(f"file_id >= {first} AND file_id < {last}")
            rows.repartitionByRange((last - first) // 2, "file_id").write.format("parquet").saveAsTable(f"t10.{name}")
            if name != "small":
                rebuild_stats(spark, TableName("t10", name), [column for column in COLUMNS if column != "lc"])
        world.rows.unpersist()
        world.stats.unpersist()
        yield
        spark.sql("DROP DATABASE t10 CASCADE")


def _rows(spark: SparkSession, pruned: Pruned) -> Counter[str]:
    rows = pruned.run(spark)
    packed = rows.toDF(*(f"c{number}" for number in range(len(rows.columns)))).selectExpr("to_json(struct(*)) AS row")
    return Counter({row[0]: row[1] for row in packed.groupBy("row").count().collect()})


def test_joins_lose_no_row(spark: SparkSession, tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruner, "APART_AT_LEAST", -1.0)
    monkeypatch.setattr(pruner, "SIDE_SHARE_AT_MOST", 100.0)
    statements = Statements(SEED)
    asked = pruned = joined = 0
    with settings(spark, SESSION):
        while asked < COUNT:
            sql = statements.statement()
            try:
                whole = _rows(spark, Pruned(sql))
            except (PySparkException, Py4JError):  # a fault of Spark's own optimizer, besides errors
                continue
            asked += 1
            fewer = prepare(spark, sql)
            if fewer.reads:
                pruned += 1
                joined += any("join" in rule for read in fewer.reads for rule in read.rules)
                found = _rows(spark, fewer)
                assert found == whole, f"seed {SEED}: {sql}\n{whole - found} lost, {found - whole} more\n{fewer}"
    print(f"T10 seed {SEED}: {asked} statements, {pruned} read fewer files, {joined} by joins")
    assert joined >= asked * 0.2, "next to nothing was pruned, so nothing was tested"
