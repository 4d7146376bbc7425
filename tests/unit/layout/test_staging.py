from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.layout.staging import reason_to_stage, staged


@pytest.fixture(scope="module")
def source(spark: SparkSession, database: str) -> str:
    name = f"{database}.source"
    spark.sql(
        f"CREATE TABLE {name} USING parquet AS SELECT id, id % 7 AS g, array(id) AS a, 'Window' AS t FROM range(50)"
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


def test_a_csv_file_is_kept(spark: SparkSession, tmp_path: object) -> None:
    spark.range(3).write.csv(f"{tmp_path}/csv")
    assert reason_to_stage(spark.read.csv(f"{tmp_path}/csv")) == "source other than Parquet or ORC"


def test_what_is_kept_is_let_go_also_after_a_failure(spark: SparkSession) -> None:
    frame = spark.range(10).groupBy("id").count()

    def use_and_fail() -> None:
        with staged(frame) as kept:
            assert kept.is_cached
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use_and_fail()
    assert not frame.is_cached


def test_a_plain_scan_is_not_kept(spark: SparkSession, source: str) -> None:
    with staged(spark.table(source)) as kept:
        assert not kept.is_cached


def test_looking_at_a_plan_leaves_no_view(spark: SparkSession) -> None:
    before = len(spark.catalog.listTables())
    reason_to_stage(spark.range(1))
    assert len(spark.catalog.listTables()) == before


def test_what_the_user_or_another_thread_keeps_stays_kept(spark: SparkSession) -> None:
    query = "SELECT id % 3 AS g, count(*) AS n FROM range(10) GROUP BY 1"
    users = spark.sql(query).persist()
    with staged(spark.sql(query)) as one:
        with staged(spark.sql(query)) as other:
            assert other.count() == 3
        assert one.storageLevel.useMemory
        assert one.count() == 3
    assert not one.storageLevel.useMemory
    assert users.storageLevel.useMemory
    users.unpersist()
