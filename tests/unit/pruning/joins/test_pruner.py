from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import prune_statement, query
from dbt_zorder.pruning.joins import pruner
from dbt_zorder.pruning.plain_sql import catalyst, statement
from dbt_zorder.pruning.plain_sql.statement import prepare
from dbt_zorder.pruning.plans import pins
from tests.support import settings, unique
from tests.unit.pruning.helpers import files_read

T, D, E = "pruning_unit.t", "joins_unit.d", "joins_unit.e"


@pytest.fixture(scope="module")
def sides(spark: SparkSession, table: str) -> Iterator[None]:
    """Two small tables: d has a key and a group of ten keys, e has the groups' names.

    A filter on the key itself would become one on the large table, by Spark's own optimizer.
    """
    spark.sql("CREATE DATABASE joins_unit")
    spark.sql(f"CREATE TABLE {D} USING parquet AS SELECT /*+ coalesce(1) */ id AS k, id div 10 AS g FROM range(1000)")
    spark.sql(
        f"CREATE TABLE {E} USING parquet AS SELECT /*+ coalesce(1) */ id AS g, concat('g', id) AS name FROM range(100)"
    )
    yield
    spark.sql("DROP DATABASE joins_unit CASCADE")


# a statement, and the files that it reads at most: of 8 of the table, and one of each side
JOINED = [
    (f"SELECT t.* FROM {T} t JOIN {D} d ON t.b = d.k WHERE d.g = 1", 2),
    (f"SELECT t.* FROM {T} t, {D} d WHERE t.b = d.k AND d.g IN (0, 99)", 3),
    (f"SELECT count(*) FROM {T} t JOIN {D} d ON t.a = d.k WHERE d.g IN (0, 99)", 3),
    (f"SELECT * FROM {T} WHERE b IN (SELECT k FROM {D} WHERE g = 1)", 2),
    (f"SELECT * FROM {T} t WHERE EXISTS (SELECT 1 FROM {D} d WHERE d.k = t.b AND d.g = 7)", 2),
    (f"SELECT * FROM {T} t JOIN {D} d ON t.b = d.k JOIN {E} e ON d.g = e.g WHERE e.name = 'g5'", 3),
    (f"WITH c AS (SELECT k FROM {D} WHERE g = 5) SELECT * FROM c LEFT JOIN {T} t ON t.b = c.k", 2),
    (f"SELECT * FROM (SELECT b, count(*) FROM {T} GROUP BY b) JOIN {D} ON b = k WHERE g = 5", 2),
    (f"SELECT * FROM {T} t JOIN (SELECT max(k) AS m FROM {D} WHERE g = 0) ON t.b <= m", 2),
    (f"SELECT * FROM {T} t CROSS JOIN (SELECT max(k) AS m FROM {D}) WHERE t.b >= m", 2),
    (f"SELECT * FROM {T} t JOIN VALUES (5), (6) AS v(k) ON t.b = v.k", 1),
    (f"SELECT * FROM {T} t JOIN {D} d ON t.b = d.k WHERE d.g < 0", 1),
    (f"SELECT t.a FROM {T} t JOIN {D} d ON t.b = d.k WHERE d.g = 5 UNION ALL SELECT a FROM {T} WHERE a = 999", 3),
    (f"SELECT t.a FROM {T} t JOIN {T} u ON t.b = u.b JOIN {D} d ON u.b = d.k WHERE d.g = 5", 3),
    (f"SELECT * FROM {T} t JOIN {D} d ON t.b = d.k WHERE d.g = 5 AND t.a < 200", 2),
]


@pytest.mark.parametrize(("sql", "files"), JOINED, ids=[sql for sql, _ in JOINED])
def test_joins_exclude_files(spark: SparkSession, sides: None, sql: str, files: int) -> None:
    assert files_read(query(spark, sql)) <= files
    assert Counter(map(str, query(spark, sql).collect())) == Counter(map(str, spark.sql(sql).collect()))


WHOLE = [
    f"SELECT * FROM {T} t LEFT JOIN {D} d ON t.b = d.k AND d.g = 5",
    f"SELECT * FROM {T} t FULL JOIN {D} d ON t.b = d.k AND d.g = 5",
    f"SELECT * FROM {T} t LEFT ANTI JOIN {D} d ON t.b = d.k AND d.g = 5",
    f"SELECT * FROM {T} WHERE b NOT IN (SELECT k FROM {D} WHERE g < 90)",
    f"SELECT * FROM {T} t JOIN {D} d ON t.b = d.k",
    f"SELECT * FROM (SELECT * FROM {T} ORDER BY a DESC LIMIT 1000000) t JOIN {D} d ON t.b = d.k AND d.g < 99",
]


@pytest.mark.parametrize("sql", WHOLE)
def test_joins_that_keep_every_row_exclude_no_file(spark: SparkSession, sides: None, sql: str) -> None:
    assert prepare(spark, sql).reads == ()
    assert Counter(map(str, query(spark, sql).collect())) == Counter(map(str, spark.sql(sql).collect()))


def test_a_side_is_run_once_however_often_it_is_named(spark: SparkSession, sides: None, runs: list[Any]) -> None:
    one = f"SELECT t.a FROM {T} t JOIN {D} d ON t.b = d.k WHERE d.g = 5"
    assert len(prepare(spark, f"{one} UNION ALL {one} UNION ALL SELECT max(a) FROM ({one})").reads) == 3
    assert len(runs) == 1


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT t.* FROM {T} t JOIN {D} d ON t.b = d.k WHERE d.g = 5",
        f"SELECT * FROM {T} WHERE b > (SELECT max(k) - 9 FROM {D})",
        f"SELECT * FROM {T} WHERE ts > now()",
    ],
)
def test_a_text_that_runs_later_is_not_pruned_by_what_may_change(spark: SparkSession, sides: None, sql: str) -> None:
    assert prepare(spark, sql).reads
    later = prune_statement(spark, sql)
    assert (later.sql, later.reads) == (sql, ())


def test_a_large_side_is_not_run(spark: SparkSession, sides: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruner, "SIDE_SHARE_AT_MOST", 0.001)
    assert not prepare(spark, f"SELECT t.* FROM {T} t JOIN {D} d ON t.b = d.k WHERE d.g = 5").reads


def test_rules_say_which_join_excludes_files(spark: SparkSession, sides: None) -> None:
    sql = f"SELECT t.* FROM {T} t JOIN {D} d ON t.b = d.k WHERE d.g = 5 AND t.a < 500"
    (read,) = prepare(spark, sql).reads
    assert read.rules == ("filter", "join with d on b (10 keys)")
    assert (read.files, read.files_read) == (8, 1)
    assert 0 < read.bytes_read < read.bytes


@pytest.mark.parametrize("often", ["once", "twice"])
@pytest.mark.parametrize("how", ["overwritten", "appended"])
def test_a_side_that_changes_between_planning_and_running(
    spark: SparkSession, sides: None, monkeypatch: pytest.MonkeyPatch, how: str, often: str
) -> None:
    name = f"joins_unit.{unique(how)}"
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT 5L AS k, 1 AS g")
    # a table that is read twice is marked, and the statement's own text is analysed
    more = f" WHERE t.a >= (SELECT min(a) FROM {T})" if often == "twice" else ""
    sql = f"SELECT t.b FROM {T} t JOIN {name} d ON t.b = d.k AND d.g = 1{more} ORDER BY 1"
    changed: list[str] = []
    refused: list[bool] = []

    def change() -> None:
        if not changed:
            changed.append(how)
            spark.sql(f"INSERT {'OVERWRITE' if how == 'overwritten' else 'INTO'} {name} VALUES (995L, 1)")

    def filter_relations(spark: SparkSession, analyzed: Any, tests: Any) -> Any:
        plan = catalyst.filter_relations(spark, analyzed, tests)
        change()  # Spark lists the files of the plan's relations anew
        return plan

    def plan_query(spark: SparkSession, query: Any) -> Any:
        if "_metadata.file_path" in str(query.toString()):  # the statement's own text, after its keys were read
            change()
        return catalyst.plan_query(spark, query)

    def are_same(given: Any, plan: Any) -> bool:
        refused.append(not pins.are_same(given, plan))
        return not refused[-1]

    monkeypatch.setattr(statement, "filter_relations", filter_relations)
    monkeypatch.setattr(statement, "plan_query", plan_query)
    monkeypatch.setattr(statement, "are_same", are_same)
    rows = [row[0] for row in query(spark, sql).collect()]
    assert refused == [True]
    assert rows == [row[0] for row in spark.sql(sql).collect()] == ([995] if how == "overwritten" else [5, 995])


def test_a_side_whose_files_are_listed_when_it_is_read_excludes_no_file(spark: SparkSession, sides: None) -> None:
    name = f"joins_unit.{unique('p')}"
    sql = f"SELECT t.* FROM {T} t JOIN {name} d ON t.b = d.k WHERE d.g = 5"
    with settings(spark, {"spark.sql.hive.manageFilesourcePartitions": "true"}):
        spark.sql(f"CREATE TABLE {name} USING parquet PARTITIONED BY (g) AS SELECT * FROM {D} WHERE k < 100")
        assert not prepare(spark, sql).reads
        assert query(spark, sql).count() == 10


def test_insert_and_create_table_run_once(spark: SparkSession, sides: None) -> None:
    asked = f"SELECT t.b FROM {T} t JOIN {D} d ON t.b = d.k WHERE d.g = 5 AND t.a % 10 < 2"
    name = f"joins_unit.{unique('made')}"
    for sql in (f"CREATE TABLE {name} USING parquet AS {asked}", f"INSERT INTO {name} {asked}"):
        pruned = prepare(spark, sql)
        assert "join with d on b (10 keys)" in pruned.reads[0].rules
        pruned.run(spark)
    assert sorted(row[0] for row in spark.table(name).collect()) == [50, 50, 51, 51]
