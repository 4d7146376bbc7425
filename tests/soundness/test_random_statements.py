"""T9: random queries, which must give the same rows from the files that are left as from all of them.

``SOAK_T9=1000 pytest -s tests/soundness/test_random_statements.py`` asks that many, ``SEED=7`` repeats a run.
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

from dbt_zorder.pruning.plain_sql.statement import Pruned, prepare
from dbt_zorder.pruning.top_rows import pruner as top_rows
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from tests.soundness.grammar import Grammar
from tests.soundness.world import COLUMNS, LEAVES, make_world
from tests.support import settings

SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
COUNT = int(os.environ.get("SOAK_T9") or 16)
TABLE = "t9.t"
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
SHAPES = [
    "SELECT * FROM {t} WHERE {p}",
    "SELECT * FROM (SELECT * FROM {t} WHERE {p}) WHERE {q}",
    "WITH c AS (SELECT * FROM {t} WHERE {p}) SELECT * FROM c WHERE {q} UNION ALL SELECT * FROM {t} u WHERE {r}",
    "WITH c AS (SELECT * FROM {t}) SELECT x.* FROM c x LEFT SEMI JOIN c y ON x.n1 = y.n1 AND y.ok WHERE {p}",
    "SELECT n1, count(*), min(s) FROM {t} WHERE {p} GROUP BY n1 HAVING n1 > 1",
    "WITH j AS (SELECT l.* FROM (SELECT * FROM {t} WHERE {p}) l {two} {t} r ON l.n1 = r.n1) SELECT * FROM j WHERE {q}",
    "SELECT * FROM (SELECT r.* FROM {t} l {one} {t} r ON l.n1 = r.n1 AND l.i32 < r.n2) WHERE {p}",
    "SELECT * FROM {t} WHERE {p} AND n1 IN (SELECT n1 FROM {t} WHERE {q})",
    "SELECT * FROM {t} WHERE {p} AND n1 NOT IN (SELECT n1 FROM {t} WHERE n1 IS NOT NULL AND {q})",
    "SELECT * FROM {t} o WHERE {p} AND NOT EXISTS (SELECT 1 FROM {t} i WHERE i.n1 = o.n1 AND {q})",
    "SELECT *, (SELECT max(n2) FROM {t} i WHERE i.n1 = o.n1 AND i.n2 < 4) FROM {t} o WHERE {p}",
    "SELECT * FROM (SELECT *, count(*) OVER (PARTITION BY n1, d) AS w FROM {t}) WHERE {p} AND n1 = 1",
    "SELECT * FROM {t} WHERE {p} EXCEPT ALL SELECT * FROM {t} WHERE {q}",
    "SELECT * FROM {t} WHERE {p} INTERSECT SELECT * FROM {t} WHERE {q}",
    "SELECT * FROM {t} LATERAL VIEW explode(arr) e AS item WHERE {p} AND item < 7",
    "SELECT * FROM {t} WHERE {c} {op} (SELECT {f}({c}) FROM {t} WHERE {p})",
    "SELECT * FROM {t} WHERE {q} AND {c} {op} (SELECT {f}({c}) FROM {t} WHERE n1 = 2)",
    "SELECT * FROM {t} WHERE {c} {op} coalesce((SELECT {f}({c}) FROM {t} WHERE n1 = 9), (SELECT {f}({c}) FROM {t}))",
    "SELECT * FROM {t} WHERE {p} OR {c} {op} (SELECT {f}({c}) FROM {t} WHERE n1 > 9)",
    "WITH w AS (SELECT {f}({c}) m FROM {t} WHERE {p}) SELECT * FROM {t} WHERE {c} {op} (SELECT m FROM w) AND {q}",
    "SELECT * FROM {t} o WHERE {p} AND o.{c} {op} (SELECT {f}({c}) FROM {t} i WHERE i.n1 = o.n1)",
    "SELECT * FROM {t} WHERE {c} {op} (SELECT {f}({c}) FROM {t} WHERE n2 < (SELECT max(n2) FROM {t} WHERE {p}))",
    "SELECT * FROM {t} WHERE {c} {op} (SELECT {c} FROM {t} WHERE n1 = 1)",
    "SELECT * FROM {t} WHERE ts {op} now() - INTERVAL {n} DAYS AND {p}",
    "SELECT *, d < current_date FROM {t} WHERE d {op} date_sub(current_date(), {n}) AND date(now()) = current_date",
    "SELECT * FROM {t} WHERE ntz {op} localtimestamp() AND ts {op} (SELECT max(ts) FROM {t} WHERE ts < now())",
    *[
        "SELECT {c} FROM {t} ORDER BY {c} {o} LIMIT {m}",
        "SELECT {c} FROM {t} WHERE {p} ORDER BY {c} {o}, n2 LIMIT {m}",
        "SELECT {c} AS k FROM (SELECT * FROM {t} WHERE n1 IS NOT NULL AND {p}) ORDER BY k {o} LIMIT {m} OFFSET 2",
        "SELECT x FROM (SELECT {c} AS x, n1 FROM {t} WHERE n1 < 3 ORDER BY x {o} LIMIT {m}) WHERE x IS NOT NULL",
        "SELECT * FROM {t} WHERE {q} AND {c} IN (SELECT {c} FROM {t} WHERE {p} ORDER BY {c} {o} LIMIT {m})",
        "SELECT count(*), max(k) FROM (SELECT {c} AS k FROM {t} ORDER BY {c} {o} LIMIT {m})",
        "SELECT count(*) FROM (SELECT * FROM {t} LIMIT {m})",
        "SELECT count(*), count({c}), min({c}), max({c}) AS m FROM {t}",
        "SELECT x.*, k FROM (SELECT n1, {c} FROM {t} WHERE {p}) x, (SELECT {f}({c}) AS k, count({c}) FROM {t}) y",
        "SELECT * FROM {t} WHERE {p} AND {c} {op} (SELECT {f}({c}) FROM {t}) AND n1 < (SELECT count(*) FROM {t})",
    ]
    * 2,
]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Iterator[str]:
    """A table of some forty files, the rows of each close together, with statistics of every column."""
    with settings(spark, {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/St_Johns"}):
        world = make_world(spark, SEED, 80)
        spark.sql("CREATE DATABASE t9")
        rows = world.rows.drop("lc").repartitionByRange(40, "file_id")
        rows.write.format("parquet").saveAsTable(TABLE)
        world.rows.unpersist()
        world.stats.unpersist()
        rebuild_stats(spark, TableName("t9", "t"), [name for name in [*COLUMNS, *LEAVES] if name != "lc"])
        yield TABLE
        spark.sql("DROP DATABASE t9 CASCADE")


def _asked(grammar: Grammar) -> str:
    """Return a query of a random shape over random predicates."""
    rng = grammar.rng
    one, two = rng.choice(JOINS[:4]), rng.choice(JOINS)
    predicates = {name: f"({grammar.predicate(rng.choice([0, 1, 1, 2]))})" for name in "pqr"}
    c = rng.choice([name for name in COLUMNS if name != "lc"])
    f, op, n = rng.choice(["max", "min"]), rng.choice(["<", "<=", "=", ">=", ">", "<=>"]), rng.choice([0, 400, 20000])
    o, m = rng.choice(["", "DESC", "NULLS LAST", "DESC NULLS FIRST"]), rng.choice([1, 2, 5, 20, 100, 300])
    return rng.choice(SHAPES).format(t=TABLE, one=one, two=two, c=c, f=f, op=op, n=n, o=o, m=m, **predicates)


def _rows(spark: SparkSession, pruned: Pruned) -> Counter[str]:
    rows = pruned.run(spark)
    packed = rows.toDF(*(f"c{number}" for number in range(len(rows.columns)))).selectExpr("to_json(struct(*))")
    return Counter(row[0] for row in packed.collect())


def test_no_row_is_lost(spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BYTES_AT_LEAST": 0, "FILES_AT_LEAST": 0, "_SHARE_AT_MOST": 1.0, "APART_AT_LEAST": -1}.items():
        monkeypatch.setattr(top_rows, name, value)
    grammar = Grammar(SEED)
    asked = pruned = 0
    session = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/St_Johns"}
    with settings(spark, {**session, "spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}):
        while asked < COUNT:
            sql = _asked(grammar)
            try:
                whole = _rows(spark, Pruned(sql))
            except (PySparkException, Py4JError) as exc:
                if "SCALAR_SUBQUERY_TOO_MANY_ROWS" in str(exc):
                    with pytest.raises((PySparkException, Py4JError), match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
                        _rows(spark, prepare(spark, sql))
                continue
            asked += 1
            fewer = prepare(spark, sql)
            if fewer.reads:
                pruned += 1
                found = _rows(spark, fewer)
                assert found == whole, f"seed {SEED}: {sql}\n{whole - found} lost, {found - whole} more\n{fewer}"
    print(f"T9 seed {SEED}: {asked} queries, {pruned} read fewer files")
    assert pruned >= asked * 0.3, "next to nothing was pruned, so nothing was tested"
