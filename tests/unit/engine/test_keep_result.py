from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine import keep_result as module
from dbt_zorder.engine.keep_result import _physical_plan, reason_to_stage, staged
from tests.support import settings

SIXTY = ", ".join(f"id + {n} AS c{n}" for n in range(60))


@pytest.fixture(scope="module")
def source(spark: SparkSession, database: str) -> str:
    name = f"{database}.source"
    spark.sql(
        f"CREATE TABLE {name} USING parquet AS "
        "SELECT id, id % 7 AS g, array(id) AS a, 'Window' AS t, id AS creditLimit FROM range(50)"
    )
    return name


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id, g + 1 AS h FROM {t} WHERE g > 3", None),
        ("SELECT id AS `HashAggregate`, g AS `Window x` FROM {t}", None),
        ("SELECT * FROM {t} UNION ALL SELECT * FROM {t}", None),
        ("SELECT * FROM range(10)", None),
        ("SELECT * FROM VALUES (1), (2) AS v(a)", None),
        ("SELECT x.id FROM {t} x JOIN {t} y ON x.id = y.g", "join"),
        ("SELECT x.id FROM {t} x CROSS JOIN {t} y", "join"),
        ("SELECT * FROM {t} x WHERE EXISTS (SELECT 1 FROM {t} y WHERE y.g = x.id)", "join"),
        ("SELECT g, count(*) AS n FROM {t} GROUP BY g", "aggregate"),
        ("SELECT DISTINCT g FROM {t}", "aggregate"),
        ("SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM {t}", "window"),
        ("SELECT * FROM {t} DISTRIBUTE BY g", "shuffle"),
        ("SELECT * FROM {t} ORDER BY id", "shuffle"),
        ("SELECT * FROM {t} WHERE rand() < 0.5", "function of chance"),
        ("SELECT id, uuid() AS u FROM {t}", "function of chance"),
        ("SELECT * FROM {t} TABLESAMPLE (10 PERCENT)", None),
        ("SELECT id, explode(a) AS e FROM {t}", "Scala or Java function"),
        ("SELECT * FROM {t} LIMIT 10", "LIMIT"),
        ("SELECT * FROM {t} LIMIT 10 OFFSET 3", "LIMIT"),
        ("SELECT * FROM {t} OFFSET 3", "LIMIT"),
        ("SELECT * FROM {t} ORDER BY g LIMIT 10", "LIMIT"),
        ("SELECT * FROM {t} TABLESAMPLE (5 ROWS)", "LIMIT"),
        ("SELECT id AS `GlobalLimit`, g AS `UDF` FROM {t}", None),
        ("SELECT creditLimit + 1 AS c FROM {t} WHERE creditLimit > 3 AND t <> 'HashJoin'", None),
        ("SELECT TRANSFORM(id) USING 'cat' AS (x) FROM {t}", "script"),
        ("SELECT reflect('java.lang.System', 'nanoTime') AS n FROM {t}", "function of chance"),
        (
            "SELECT " + ", ".join(f"id + {n} AS c{n}" for n in range(60)) + ", rand() AS r FROM {t}",
            "function of chance",
        ),
        ("SELECT 1 AS a", None),
    ],
)
def test_only_a_query_that_is_dear_to_run_twice_is_kept(
    spark: SparkSession, source: str, query: str, reason: str | None
) -> None:
    assert reason_to_stage(spark.sql(query.format(t=source))) == reason


def test_rows_from_this_process_and_python_functions_are_kept(spark: SparkSession) -> None:
    assert reason_to_stage(spark.createDataFrame([(1,)], "a int")) == "source other than Parquet or ORC"
    twice = f.udf(lambda value: value * 2, "bigint")
    assert reason_to_stage(spark.range(3).select(twice("id"))) == "Python function"


def test_a_python_function_that_makes_rows_is_kept(spark: SparkSession) -> None:
    class Twice:
        def eval(self, value: int) -> Iterator[tuple[int]]:
            yield (value,)
            yield (value,)

    spark.udtf.register("zorder_twice", f.udtf(Twice, returnType="v bigint"))  # type: ignore[arg-type]
    assert reason_to_stage(spark.sql("SELECT v FROM range(3), LATERAL zorder_twice(id)")) is not None
    assert "EvalPythonUDTF" in _physical_plan(spark.sql("SELECT v FROM range(3), LATERAL zorder_twice(id)"))


def test_a_function_of_hive_is_kept(spark: SparkSession) -> None:
    spark.sql("CREATE TEMPORARY FUNCTION zorder_log AS 'org.apache.hadoop.hive.ql.udf.UDFLog10'")
    try:
        assert reason_to_stage(spark.sql("SELECT zorder_log(id) AS x FROM range(3)")) == "Scala or Java function"
    finally:
        spark.sql("DROP TEMPORARY FUNCTION zorder_log")


def test_a_table_of_text_in_hive_is_kept(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.hive (a int) STORED AS TEXTFILE")
    found = reason_to_stage(spark.sql(f"SELECT a + 1 AS b FROM {database}.hive WHERE a > 1"))
    assert found == "source other than Parquet or ORC"


def test_a_table_of_another_database_is_kept(spark: SparkSession, tmp_path: object) -> None:
    reader = spark.read.format("jdbc").option("url", f"jdbc:derby:;databaseName={tmp_path}/db;create=true")
    table = reader.option("driver", "org.apache.derby.jdbc.EmbeddedDriver").option("dbtable", "SYS.SYSTABLES").load()
    assert reason_to_stage(table) == "source other than Parquet or ORC"


@pytest.mark.parametrize(
    ("kind", "reason"), [("parquet", None), ("orc", None), ("csv", "source other than Parquet or ORC")]
)
def test_sources_of_the_second_kind_are_told_apart(
    spark: SparkSession, tmp_path: object, kind: str, reason: str | None
) -> None:
    spark.range(3).write.format(kind).save(f"{tmp_path}/{kind}")
    with settings(spark, {"spark.sql.sources.useV1SourceList": ""}):
        assert reason_to_stage(spark.read.format(kind).load(f"{tmp_path}/{kind}")) == reason


@pytest.mark.parametrize(
    ("scan", "reason"),
    [
        ("BatchScan spark_catalog.db.t[id#1L] spark_catalog.db.t (branch=null) [filters=, groupedBy=] x", None),
        ("BatchScan local.db.t[id#1L] IcebergScan(table=local.db.t, filters=[]) RuntimeFilters: []", None),
        ("BatchScan kafka[key#1] class KafkaSourceProvider$KafkaScan", "source other than Parquet or ORC"),
    ],
)
def test_a_plan_of_what_is_not_installed_here(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, scan: str, reason: str | None
) -> None:
    monkeypatch.setattr("dbt_zorder.engine.keep_result._physical_plan", lambda _: f"*(1) Project [id#1L]\n+- {scan}")
    assert reason_to_stage(spark.range(1)) == reason


def test_a_csv_file_is_kept(spark: SparkSession, tmp_path: object) -> None:
    spark.range(3).write.csv(f"{tmp_path}/csv")
    assert reason_to_stage(spark.read.csv(f"{tmp_path}/csv")) == "source other than Parquet or ORC"


@pytest.mark.parametrize("copies", [True, False])
def test_what_is_kept_is_let_go_also_after_a_failure(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, copies: bool
) -> None:
    monkeypatch.setattr(module, "can_spool", lambda _: copies)
    frame = spark.range(10).groupBy("id").count()
    files: list[str] = []

    def use_and_fail() -> None:
        with staged(frame) as copy:
            assert copy.is_kept
            assert copy.rows.is_cached is not copies
            assert copy.count_kept() == 10
            files.extend(copy.rows.inputFiles())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use_and_fail()
    assert not frame.is_cached
    assert bool(files) is copies
    assert not any(Path(file.removeprefix("file://")).exists() for file in files)


def test_what_is_not_asked_for_is_not_run(spark: SparkSession) -> None:
    fails = spark.sql("SELECT raise_error('it ran') AS a, count(*) AS n FROM range(3) GROUP BY 1")
    with staged(fails) as copy:
        assert copy.is_kept


@pytest.mark.parametrize("copies", [True, False])
def test_a_kept_query_runs_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, copies: bool) -> None:
    monkeypatch.setattr(module, "can_spool", lambda _: copies)
    with staged(spark.sql("SELECT id, uuid() AS u FROM range(20)")) as copy:
        assert sorted(copy.rows.collect()) == sorted(copy.rows.collect())


NESTED = "named_struct('a', array(id), 'm', map('k', cast(id AS decimal(30, 2))), 'd', DATE'1200-01-01')"


@pytest.mark.parametrize("mode", ["CORRECTED", "EXCEPTION"])
@pytest.mark.parametrize("value", [NESTED, "INTERVAL '1' DAY", "id", "TIMESTAMP'1000-01-01'", "NULL"])
def test_each_value_is_kept_as_it_is(spark: SparkSession, value: str, mode: str) -> None:
    frame = spark.sql(f"SELECT id AS `a.b`, id AS `B ,;`, {value} AS v, count(*) OVER () AS n FROM range(9)")
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": mode}), staged(frame) as copy:
        assert copy.rows.schema.simpleString() == frame.schema.simpleString()
        assert sorted(map(repr, copy.rows.collect())) == sorted(map(repr, frame.collect()))


def test_a_plain_scan_is_not_kept(spark: SparkSession, source: str) -> None:
    with staged(spark.table(source)) as copy:
        assert not copy.is_kept
        assert not copy.rows.is_cached
        assert copy.count_kept() is None


def test_the_filter_of_an_incremental_model_is_told_without_planning(
    spark: SparkSession, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> str:
        raise AssertionError

    monkeypatch.setattr("dbt_zorder.engine.keep_result._physical_plan", fail)
    assert (
        reason_to_stage(spark.sql(f"SELECT * FROM {source} WHERE id > (SELECT max(id) FROM {source})")) == "aggregate"
    )
    assert reason_to_stage(spark.sql(f"SELECT {SIXTY} FROM {source} JOIN {source} USING (id)")) == "join"


def test_looking_at_a_plan_leaves_no_view(spark: SparkSession) -> None:
    before = len(spark.catalog.listTables())
    reason_to_stage(spark.range(1))
    assert len(spark.catalog.listTables()) == before


def test_what_the_user_or_another_thread_keeps_stays_kept(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_spool", lambda _: False)
    query = "SELECT id % 3 AS g, count(*) AS n FROM range(10) GROUP BY 1"
    users = spark.sql(query).persist()
    with staged(spark.sql(query)) as one:
        with staged(spark.sql(query)) as other:
            assert other.count_kept() == 3
        assert one.rows.storageLevel.useMemory
        assert one.count_kept() == 3
    assert not one.rows.storageLevel.useMemory
    assert users.storageLevel.useMemory
    users.unpersist()


def test_a_plan_is_seen_whole_in_a_thread_of_dbts(spark: SparkSession, source: str) -> None:
    """Of one that has no active session Spark would name 25 columns."""
    df = spark.sql(f"SELECT {SIXTY}, rand() AS r FROM {source}")
    with ThreadPoolExecutor(1) as dbts:
        assert dbts.submit(reason_to_stage, df).result() == "function of chance"
