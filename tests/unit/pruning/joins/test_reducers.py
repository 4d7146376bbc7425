from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.joins.reducers import find_reducers
from dbt_zorder.pruning.plans.tree import read_tree


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """No statistics are read here, in memory or by a job."""


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE DATABASE reducers_unit")
    for name in ("f", "g", "d", "e"):
        spark.sql(f"CREATE TABLE reducers_unit.{name} ({name}a INT, {name}b INT, {name}c BIGINT) USING parquet")
    spark.sql("USE reducers_unit")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE reducers_unit CASCADE")


F, D = "f", "(SELECT * FROM d WHERE db = 1)"
CASES = [
    # statement, and the reducers of f as column, operator and column of the side
    (f"SELECT * FROM {F} JOIN {D} ON fa = da", {"fa = da"}),
    (f"SELECT * FROM {D} JOIN {F} ON fa = da", {"fa = da"}),
    (f"SELECT * FROM {F}, {D} WHERE fc = da AND fb > db", {"fc = da", "fb > db"}),
    (f"SELECT * FROM {F} WHERE fa IN (SELECT da FROM {D})", {"fa = da"}),
    (f"SELECT * FROM {F} WHERE EXISTS (SELECT 1 FROM {D} WHERE fa = da)", {"fa = da"}),
    (f"SELECT * FROM {F} LEFT JOIN {D} ON fa = da", set()),
    (f"SELECT * FROM {D} LEFT JOIN {F} ON fa = da", {"fa = da"}),
    (f"SELECT * FROM {F} RIGHT JOIN {D} ON fa = da", {"fa = da"}),
    (f"SELECT * FROM {F} FULL JOIN {D} ON fa = da", set()),
    (f"SELECT * FROM {F} WHERE fa NOT IN (SELECT da FROM {D} WHERE da IS NOT NULL)", set()),
    (f"SELECT * FROM {D} WHERE NOT EXISTS (SELECT 1 FROM {F} WHERE fa = da)", {"fa = da"}),
    (f"SELECT * FROM {F} JOIN {D} ON fa <=> da", set()),
    (f"SELECT * FROM {F} JOIN {D} ON fa = da OR fb = db", set()),
    (f"SELECT * FROM {F} JOIN {D} ON fa + 1 = da", set()),
    (f"SELECT * FROM (SELECT fa AS x, count(*) AS n FROM {F} GROUP BY fa) JOIN {D} ON x = da", {"fa = da"}),
    (f"SELECT * FROM (SELECT fb, max(fa) AS x FROM {F} GROUP BY fb) JOIN {D} ON x = da", set()),
    (f"SELECT * FROM (SELECT *, sum(fb) OVER (PARTITION BY fa) FROM {F}) JOIN {D} ON fa = da", {"fa = da"}),
    (f"SELECT * FROM (SELECT *, sum(fb) OVER (PARTITION BY fb) FROM {F}) JOIN {D} ON fa = da", set()),
    (f"SELECT * FROM (SELECT * FROM {F} ORDER BY fb LIMIT 5) JOIN {D} ON fa = da", set()),
    (f"SELECT * FROM (SELECT fa, fb, sum(fc) FROM {F} GROUP BY ROLLUP(fa, fb)) JOIN {D} ON fa = da", set()),
    (f"SELECT * FROM (SELECT fa FROM {F} UNION ALL SELECT ga FROM g) JOIN {D} ON fa = da", {"fa = da"}),
    (f"SELECT * FROM (SELECT ga FROM g UNION ALL SELECT fb FROM {F}) JOIN {D} ON ga = da", {"fb = da"}),
    (f"SELECT * FROM {F} JOIN g ON fa = ga JOIN {D} ON ga = da", {"fa = ga", "fa = da"}),
    (f"SELECT * FROM {F} LEFT JOIN g ON fb = gb JOIN {D} ON fa = da", {"fa = da"}),
    (f"SELECT * FROM g LEFT JOIN {F} ON ga = fa JOIN {D} ON ga = da", {"fa = ga", "fa = da"}),
    (f"SELECT * FROM g LEFT ANTI JOIN {F} ON ga = fa JOIN {D} ON ga = da", {"fa = ga", "fa = da"}),
    (f"SELECT * FROM {F} JOIN (SELECT da FROM {D} JOIN e ON db = eb) ON fa = da", {"fa = da"}),
    (f"SELECT *, (SELECT max(fb) FROM {F} JOIN {D} ON fa = da) FROM g", {"fa = da"}),
]


def test_a_side_has_reducers_of_its_own_from_further_up(spark: SparkSession, tables: None) -> None:
    sql = "SELECT * FROM f JOIN g ON fa = ga JOIN (SELECT * FROM d WHERE db = 1) ON gb = da"
    optimized = spark.sql(sql)._jdf.queryExecution().optimizedPlan()
    ((_, reducer),) = [one for found in find_reducers(read_tree(optimized)).values() for one in found if one[0] == "fa"]
    ((_, within),) = reducer.within
    assert (reducer.depth, within.op, within.within) == (2, "=", ())


@pytest.mark.parametrize(("sql", "wanted"), CASES, ids=[sql for sql, _ in CASES])
def test_the_sides_that_bound_the_rows_that_matter(
    spark: SparkSession, tables: None, sql: str, wanted: set[str]
) -> None:
    optimized = spark.sql(sql)._jdf.queryExecution().optimizedPlan()
    inner = optimized.subqueriesAll()
    found: set[str] = set()
    for root in (optimized, *(inner.apply(number) for number in range(inner.size()))):
        for reducers in find_reducers(read_tree(root)).values():
            for column, reducer in reducers:
                if column.startswith("f"):
                    names = {
                        one.attribute: one.fields["name"]
                        for leaf in reducer.side.walk()
                        for one in leaf.expressions("output")
                    }
                    found.add(f"{column} {reducer.op} {names[reducer.attribute]}")
    assert found == wanted


def test_two_scans_of_one_name_have_no_reducers(spark: SparkSession, tables: None) -> None:
    optimized = spark.sql(f"SELECT * FROM f JOIN {D} ON fa = da")._jdf.queryExecution().optimizedPlan()
    tree = read_tree(optimized)
    union = type(tree)("Union", {}, (tree, tree), ())
    assert find_reducers(tree)
    assert not find_reducers(union)
