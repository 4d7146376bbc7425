from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException

pytest.importorskip("grpc", reason="PySpark is here without its client of Connect")

from pyspark.sql import functions as f

from dbt_zorder.spark.endpoint.client import EndpointSession, _error
from dbt_zorder.spark.endpoint.unsupported import UnsupportedError


class Recorder:
    """A connection that answers questions about a table of two columns, and records every other statement."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.asked: list[str] = []
        self.description: Any = None
        self._rows: list[tuple[Any, ...]] = []
        self.closed = 0

    def cursor(self) -> Recorder:
        self._cursor: Any = self
        return self

    def close(self) -> None:
        self.closed += 1

    def execute(self, statement: str) -> None:
        self.description, self._rows = [("answer",)], []
        if statement.startswith("DESCRIBE QUERY"):
            self.asked.append(statement)
            self._rows = [("a", "int", None), ("b", "string", None)]
        elif statement.startswith("SET `spark") and "=" not in statement:
            self.asked.append(statement)
            self._rows = [("key", "<undefined>" if "unset" in statement else "false")]
        else:
            self.statements.append(statement)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    monkeypatch.setitem(os.environ, "SPARK_CONNECT_MODE_ENABLED", "1")
    return Recorder()  # type: ignore[return-value]


@pytest.fixture
def spark(connection: Recorder) -> Any:
    return EndpointSession(connection, "shop")


def sql_of(df: Any) -> str:
    client = df.sparkSession.client
    return " ".join(client._writer.sql(df._plan.to_proto(client).root).split())


def test_filters_and_columns_join_the_select_that_reads_the_table(spark: Any) -> None:
    df = spark.table("s.t").where("a = 1").where(f.col("b").isNotNull()).select(f.col("_metadata.file_path"), "a")
    assert sql_of(df) == "SELECT `_metadata`.`file_path`, `a` FROM s.t WHERE (a = 1 ) AND isNotNull(`b`)"


def test_rows_are_sent_to_files_by_a_hint_and_sorted_inside_them(spark: Any) -> None:
    df = spark.sql("select * from x").repartition(4, f.expr("a div 2")).sortWithinPartitions(f.expr("b"))
    assert sql_of(df) == (
        "SELECT * FROM ( SELECT `a`, `b` FROM ( SELECT /*+ REPARTITION(4, __zorder_slot0) */ `a`, `b`, (a div 2 ) AS "
        "`__zorder_slot0` FROM ( select * from x ) ) ) SORT BY (b ) ASC NULLS FIRST"
    )


def test_a_column_is_replaced_in_its_place(spark: Any) -> None:
    df = spark.table("s.t").withColumn("A", f.lit(1)).withColumn("c", f.expr("b || 'x'"))
    assert sql_of(df).startswith(
        "SELECT `a`, `b`, (b || 'x' ) AS `c` FROM ( SELECT CAST(1 AS INT) AS `A`, `b` FROM s.t"
    )


def test_groups_joins_and_unions(spark: Any) -> None:
    one, two = spark.table("s.t").alias("one"), spark.table("s.u").alias("two")
    joined = one.join(two, f.expr("one.a = two.a"), "left_anti").groupBy(f.expr("a % 3").alias("p")).count()
    assert sql_of(joined) == (
        "SELECT (a % 3 ) AS `p`, count(CAST(1 AS INT)) AS `count` FROM s.t AS `one` LEFT ANTI JOIN s.u AS `two` "
        "ON (one.a = two.a ) GROUP BY (a % 3 )"
    )
    assert sql_of(spark.table("s.t").unionByName(spark.table("s.u"))) == (
        "(SELECT * FROM s.t ) UNION ALL (SELECT `a`, `b` FROM s.u )"
    )


@pytest.mark.parametrize("text", ["a = 1) OR (b = 2", "a = 'x", "a = 1; DROP TABLE t", "(a = 1", "a = 1 /* x"])
def test_a_text_that_is_not_one_expression_is_refused(spark: Any, text: str) -> None:
    with pytest.raises(ParseException):
        sql_of(spark.table("s.t").where(text))


def test_what_sql_cannot_say_is_an_error(spark: Any, connection: Recorder) -> None:
    with pytest.raises(UnsupportedError, match="tail"):
        spark.table("s.t").tail(1)
    with pytest.raises(UnsupportedError, match="existing table"):
        spark.table("s.t").write.saveAsTable("s.u")
    assert not connection.statements


def test_files_are_added_to_a_folder_by_a_view_or_for_partitions_by_a_table(spark: Any, connection: Recorder) -> None:
    spark.table("s.t").write.mode("append").option("compression", "zstd").parquet("/x")
    made, written, dropped = connection.statements
    assert made.startswith("CREATE TEMPORARY VIEW zorder_write_")
    assert made.endswith("(`a` int, `b` string) USING parquet OPTIONS ('compression' 'zstd', 'path' '/x')")
    assert written.endswith(" SELECT * FROM s.t")
    assert dropped.startswith("DROP VIEW IF EXISTS zorder_write_")
    connection.statements.clear()
    spark.table("s.t").write.mode("append").partitionBy("a").parquet("/x")
    asked, made, written, dropped = connection.statements
    assert asked == "DESCRIBE DATABASE `shop`"
    assert made.startswith("CREATE TABLE `shop`.`zorder_write_")
    assert made.endswith("__zorder_next` (`b` string, `a` int) USING parquet PARTITIONED BY (`a`) LOCATION '/x'")
    assert " SELECT `b`, `a` FROM (" in written
    assert dropped.startswith("DROP TABLE IF EXISTS `shop`.")


def test_a_fact_is_asked_for_once_until_a_statement_may_change_it(spark: Any, connection: Recorder) -> None:
    for _ in range(2):
        assert spark.conf.get("spark.sql.caseSensitive") == "false"
        assert spark.conf.get("spark.sql.unset", "none") == "none"
        _ = spark.table("s.t").schema
    assert len(connection.asked) == 3
    spark.sql("ALTER TABLE s.t ADD COLUMN c INT")
    _ = spark.table("s.t").schema, spark.conf.get("spark.sql.caseSensitive")
    assert len(connection.asked) == 4
    spark.conf.set("spark.sql.caseSensitive", "true")
    _ = spark.table("s.t").schema, spark.conf.get("spark.sql.caseSensitive")
    assert len(connection.asked) == 6
    # a server keeps the plan of a statement until its cursor is closed
    assert connection.closed == len(connection.asked) + len(connection.statements)
    assert connection._cursor is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("AnalysisException", AnalysisException),
        ("catalyst.analysis.NoSuchTableException", AnalysisException),
        ("catalyst.parser.ParseException", ParseException),
        ("SparkRuntimeException", PySparkException),
    ],
)
def test_a_servers_message_is_the_error_that_spark_raised(name: str, kind: type[PySparkException]) -> None:
    text = f"Error running query: [X] org.apache.spark.sql.{name}: [X] why\n\tat org.apache.spark.Y(Y.scala:1)\n"
    error = _error(text)
    assert type(error) is kind
    assert str(error) == "[X] why"
