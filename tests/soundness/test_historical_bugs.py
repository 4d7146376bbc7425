"""T5: wrong results that other systems have given, each by the thread that reports it, on real files through ``scan``.

What does not apply to us is listed with the reason in ``NOT_OURS``.
"""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.pruning import scan
from dbt_zorder.spark.columns import resolve_all
from dbt_zorder.stats import collect
from dbt_zorder.stats.collect import collect_path
from dbt_zorder.stats.store import stats_path, write_stats
from tests.support import settings

NOT_OURS = {
    8: "there is one translator, and every test goes through it in a real query; an error in it is a full read (test_ansi)",
    15: "footers are never asked for floats: tests/unit/stats/test_footers.py",
    18: "bounds of floats come from a SQL aggregate, in which NaN is the largest value; foreign NaN files are 6 and 28",
    20: "bounds are cut only if Parquet is told to, and then outwards: tests/unit/stats/test_footers.py",
    27: "footers are trusted of Spark's own writer alone: tests/unit/stats/test_footers.py; 31 has such strings",
    33: "bounds never answer MIN or MAX",
    36: "commit protocol: tests of dbt_zorder.tables.parquet",
    37: "commit protocol: tests of dbt_zorder.tables.parquet",
    38: "commit protocol: tests of dbt_zorder.tables.parquet",
}

# number of the row in the research's table (b), thread, SQL of the files (each a SELECT), predicates
CASES: list[tuple[int, str, list[str], list[str]]] = [
    (1, "hudi#18791", ["SELECT 'Xa' s UNION ALL SELECT 'Xz'", "SELECT 'Y' s"], ["s LIKE 'X%'", "startswith(s, 'X')", "s LIKE 'Xa_%' OR s LIKE 'X%'"]),
    (2, "hudi#5224", ["SELECT 1 a UNION ALL SELECT NULL", "SELECT CAST(NULL AS INT) a"], ["a IS NOT NULL", "NOT a IS NULL", "NOT (a <=> NULL)"]),
    (3, "hudi#19645, #19646", ["SELECT CAST(NULL AS INT) a", "SELECT 1 a"], ["a IS NULL", "a <=> NULL", "NULL <=> a"]),
    (6, "hudi#18754, #18792", ["SELECT double('NaN') x UNION ALL SELECT 99.0D", "SELECT 1D x"], ["x > 50", "x = double('NaN')", "x >= double('NaN')"]),
    (7, "hudi#19445, #4996", ["SELECT 4294967297L a UNION ALL SELECT 5L", "SELECT -9L a"], ["CAST(a AS INT) = 1", "a * -2 > 10", "a * -2 < -9"]),
    (9, "hudi#14161, #17601, #13711", ["SELECT TIMESTAMP '2024-01-01 00:00:00.123456' t", "SELECT TIMESTAMP '1850-01-01 00:00:00' t"], ["t > TIMESTAMP '2024-01-01 00:00:00.123'", "t < '1900-01-01'"]),
    (11, "delta#6080, #5568", ["SELECT TIMESTAMP '1850-01-01 00:00:30' t", "SELECT TIMESTAMP '1850-01-01 12:00:00' t"], ["t = TIMESTAMP '1850-01-01 00:00:30'", "t <= '1850-01-01 00:00:30'"]),
    (12, "delta#2462, kernel-rs#1003, delta-rs#3288, trino#31231, delta#7444", ["SELECT TIMESTAMP '2024-01-01 00:00:00.456789' t"], ["t > TIMESTAMP '2024-01-01 00:00:00.456'"]),
    (13, "delta#1014", ["SELECT 1 a UNION ALL SELECT NULL"], ["NOT (a <=> 1)", "a IS DISTINCT FROM 1"]),
    (14, "kernel-rs#248", ["SELECT 1 a UNION ALL SELECT 5", "SELECT 9 a"], [f"NOT (a {op} 5)" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")]),
    (17, "delta-rs#1411", ["SELECT double('Infinity') x UNION ALL SELECT double('-Infinity')", "SELECT 0D x"], ["x > 1e308", "x < -1e308D", "x = double('Infinity')"]),
    (19, "iceberg#14216, PR 14500, trino#12834", ["SELECT X'80' b UNION ALL SELECT X'01'", "SELECT X'7F' b"], ["b > X'7F'", "b = X'80'", "b < X'02'"]),
    (21, "iceberg#17655", ["SELECT 'pa' s UNION ALL SELECT 'pb' UNION ALL SELECT NULL"], ["s NOT LIKE 'p%'", "s NOT LIKE 'p%' OR s IS NULL", "NOT startswith(s, 'p') <=> NULL"]),
    (22, "iceberg-python#3921", ["SELECT 1D x UNION ALL SELECT double('NaN')"], ["x NOT IN (1, 2)", "x NOT IN (1D, double('NaN'))"]),
    (23, "ClickHouse#118110, #118112, #121481, #107074", ["SELECT 1D x UNION ALL SELECT double('NaN')", "SELECT double('NaN') x"], ["x <> 1", "NOT (x = 1)", "NOT (x < 5)", "NOT (x > 5)", "NOT (x <= 5)", "x NOT IN (1)"]),
    (24, "ClickHouse#116972", ["SELECT 1 a UNION ALL SELECT 2", "SELECT -7 a"], ["a > 0.5", "a < 1.5", "a < 1099511627776", "a > -1099511627776L", "a <> 1.00000000001", "a IN (1.0, 2.5)"]),
    (25, "spark#44006", ["SELECT 1 a", "SELECT 2147483647 a"], ["a < 9223372036854775807", "a >= -9223372036854775808L", "a <> 9223372036854775807"]),
    (26, "parquet-java#2291, #1028", ["SELECT 1 a UNION ALL SELECT NULL", "SELECT 1 a"], ["a <> 1", "a NOT IN (1)", "NOT (a <=> 1)"]),
    (28, "parquet-java#2145, trino#5127", ["SELECT double('-0.0') x", "SELECT 0.0D x"], ["x = 0.0", "x = double('-0.0')", "x <= -0.0D", "CAST(x AS STRING) = '-0.0'", "1 / x < 0"]),
    (29, "datafusion#560", ["SELECT 'A' s UNION ALL SELECT 'Z'", "SELECT 'M' s"], ["s <> 'M'", "NOT (s = 'M')"]),
    (30, "datafusion#9230, #10049", ["SELECT 1 a UNION ALL SELECT NULL UNION ALL SELECT NULL"], ["a IS NOT NULL", "NOT (a IS NULL)", "a IS NULL"]),
    (32, "duckdb#5533", ["SELECT TIMESTAMP '2024-01-01 00:00:00.001' t"], ["t > '2024-01-01'", "t < '2024-01-01 00:00:01'"]),
    (34, "spark#45262, #46832, #38151", ["SELECT 'ABC' COLLATE UTF8_LCASE s", "SELECT 'x' COLLATE UTF8_LCASE s"], ["s = 'abc'", "s LIKE 'ab%'", "s > 'X'", "s IN ('X')"]),
    (35, "paimon#6931, spark#50932", ["SELECT 1 a UNION ALL SELECT NULL", "SELECT CAST(NULL AS INT) a"], ["NOT (a <=> 1)", "!(a <=> 1)", "NOT (a <=> NULL)"]),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def database(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE DATABASE IF NOT EXISTS history")
    with settings(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        yield
    spark.sql("DROP DATABASE history CASCADE")


def make(spark: SparkSession, path: Path, name: str, files: list[str], columns: list[str] | None = None) -> str:
    """A table over one file for each query, with statistics."""
    for query in files:
        spark.sql(query).coalesce(1).write.mode("append").parquet(str(path))
    spark.sql(f"CREATE TABLE history.{name} USING parquet LOCATION '{path}'")
    if columns != []:
        table = f"history.{name}"
        schema = spark.table(table).schema
        resolved = resolve_all(columns or schema.names, schema)
        write_stats(collect_path(spark, str(path), schema, resolved, "v1"), str(path))
    return f"history.{name}"


def assert_same(spark: SparkSession, table: str, predicates: list[str]) -> None:
    for predicate in predicates:
        # Without pushdown: by itself, Spark loses NaN rows of foreign files through their footers.
        with settings(spark, {"spark.sql.parquet.filterPushdown": "false"}):
            got = scan(spark, table, predicate).selectExpr("to_json(struct(*))").collect()
            expected = spark.table(table).where(predicate).selectExpr("to_json(struct(*))").collect()
        assert sorted(got) == sorted(expected), f"{table}: {predicate}"


@pytest.mark.parametrize(
    ("number", "thread", "files", "predicates"), CASES, ids=lambda v: v if isinstance(v, str) else None
)
def test_thread(
    spark: SparkSession, tmp_path: Path, number: int, thread: str, files: list[str], predicates: list[str]
) -> None:
    assert_same(spark, make(spark, tmp_path / "t", f"t{number}", files), predicates)


def test_lists_whose_common_type_has_fewer_digits(spark: SparkSession, tmp_path: Path) -> None:
    table = make(
        spark, tmp_path / "t", "lists", ["SELECT 5L a, 1e-9D x", "SELECT 6L a, 16777217D x", "SELECT 7L a, 1D x"]
    )
    far = ", ".join(f"{number}0000000000000000000000000000.5BD" for number in range(10, 27))
    floats = ", ".join(f"{number}.5F" for number in range(17))
    lists = [f"a IN ({far}, 5.000000000000000001BD)", f"x IN ({far}, 0.000000001BD)", f"x IN (16777217, {floats})"]
    assert_same(spark, table, [*lists, "a IN (100000000000000000000000000000.5BD, 5.000000000000000001BD)"])


def test_hudi_10389_10427_columns_with_and_without_stats(spark: SparkSession, tmp_path: Path) -> None:
    files = ["SELECT 1 a, 1 b", "SELECT 2 a, 9 b"]
    table = make(spark, tmp_path / "t", "t4", files, ["a"])
    assert_same(spark, table, ["a = 1 OR b = 9", "a = 1 AND b = 1", "b = 9", "NOT (a = 1 AND b = 1)", "a = b OR b = 9"])


def test_hudi_18755_one_long_string(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", "t5", ["SELECT repeat('x', 5000) s, 1 a", "SELECT 'y' s, 2 a"])
    assert_same(spark, table, ["s LIKE 'x%'", "s IS NOT NULL", "s > 'w'", "a = 1 AND s < 'y'"])


def test_hudi_5275_and_16_delta_rs_3173_columns_added_later(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.sql("SELECT 1 a").coalesce(1).write.parquet(str(path))
    spark.sql("SELECT 2 a, 5 b").coalesce(1).write.mode("append").parquet(str(path))
    spark.sql(f"CREATE TABLE history.t10 (a INT, b INT) USING parquet LOCATION '{path}'")
    write_stats(collect(spark, "history.t10", ["a"]), str(path))
    assert_same(spark, "history.t10", ["b = 5", "b IS NULL", "a = 1 OR b = 5", "b <=> NULL AND a = 1"])
    write_stats(collect(spark, "history.t10", ["a", "b"]), str(path))
    assert_same(spark, "history.t10", ["b = 5", "b IS NULL", "a = 1 OR b = 5", "NOT (b <=> 5)"])
    spark.sql("DROP TABLE history.t10")
    spark.sql(f"CREATE TABLE history.t10 (a INT, b STRING) USING parquet LOCATION '{tmp_path / 'other'}'")


@pytest.mark.parametrize(("number", "thread"), [(31, "datafusion#1433, duckdb#4907, #2057"), (6, "foreign NaN")])
def test_files_of_other_writers(spark: SparkSession, tmp_path: Path, number: int, thread: str) -> None:
    path = tmp_path / "t"
    path.mkdir()
    strings = ["a", "\u00e9", "\uff5e", "\U0001f600", "", " ", "zz", None]
    floats = [1.0, float("nan"), -0.0, 0.0, float("inf"), None, 2.0, 3.0]
    for n in range(4):
        pq.write_table(
            pa.table({"s": strings[n * 2 :][:2], "x": pa.array(floats[n * 2 :][:2], pa.float64())}),
            path / f"{n}.parquet",
        )
    spark.sql(f"CREATE TABLE history.w{number} USING parquet LOCATION '{path}'")
    write_stats(collect(spark, f"history.w{number}", ["s", "x"]), str(path))
    predicates = [
        "s > 'z'",
        "s = '\uff5e'",
        "s >= '\U0001f600'",
        "s < 'a'",
        "s = ''",
        "s IS NULL",
        "x > 2",
        "x = double('NaN')",
    ]
    assert_same(spark, f"history.w{number}", [*predicates, "x = 0", "x < 1", "x <> 0", "NOT (x <= 1)"])


def test_spark_38151_char_padding(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE history.t34c (c CHAR(5), v VARCHAR(5)) USING parquet LOCATION '{tmp_path / 't'}'")
    spark.sql("INSERT INTO history.t34c VALUES ('ab', 'ab')")
    spark.sql("INSERT INTO history.t34c VALUES ('cd', 'cd ')")
    files = spark.read.schema("c STRING, v STRING").parquet(str(tmp_path / "t"))
    bounds = ", ".join(
        f"'{c}', named_struct('min_value', min({c}), 'max_value', max({c}), 'null_count', 0L)" for c in "cv"
    )
    stats = files.groupBy(files.metadataColumn("_metadata").file_path, files.metadataColumn("_metadata").file_size).agg(
        f.expr("count(*) AS row_count"), f.expr(f"named_struct({bounds}) AS columns")
    )
    write_stats(
        stats.toDF("file_path", "file_size", "row_count", "columns").selectExpr(
            "file_path", "file_size", "row_count", "'' version", "columns"
        ),
        str(tmp_path / "t"),
    )
    assert_same(
        spark,
        "history.t34c",
        ["c = 'ab'", "c = 'ab   '", "c > 'ab'", "v = 'cd'", "v = 'cd '", "c IN ('cd')", "c LIKE 'ab'"],
    )


def test_spark_23074_22721_16514_stale_sessions(spark: SparkSession, tmp_path: Path) -> None:
    """39: old table or new, with old statistics or new: all four give every row of the table that is read."""
    first, second = tmp_path / "v1", tmp_path / "v2"
    table = make(spark, first, "t39", ["SELECT 1 a", "SELECT 2 a"])
    spark.sql("SELECT 1 a UNION ALL SELECT 3").coalesce(1).write.parquet(str(second))
    assert_same(spark, table, ["a = 1", "a = 3"])
    spark.sql(f"ALTER TABLE {table} SET LOCATION '{second}'")
    spark.read.parquet(stats_path(str(first))).write.parquet(
        stats_path(str(second))
    )  # the statistics of the version before
    spark.catalog.refreshTable(table)
    assert_same(spark, table, ["a = 1", "a = 3", "a = 2"])
    assert scan(spark, table, "a = 3").count() == 1
    write_stats(collect(spark, table, ["a"]), str(first))  # and the other way round
    spark.sql(f"ALTER TABLE {table} SET LOCATION '{first}'")
    spark.catalog.refreshTable(table)
    assert_same(spark, table, ["a = 1", "a = 3", "a = 2"])


def test_delta_7101_and_others_do_not_apply() -> None:
    covered = {number for number, *_ in CASES} | {4, 5, 10, 16, 31, 34, 39}
    assert covered | set(NOT_OURS) == set(range(1, 40))
    assert not covered & set(NOT_OURS)


def test_ansi_errors_in_a_condition_are_a_full_read(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", "tansi", ["SELECT 'x' s, 1 a", "SELECT '5' s, 2 a", "SELECT '6' s, 2 a"])
    with settings(spark, {"spark.sql.ansi.enabled": "true"}):
        assert scan(spark, table, "a = 2 AND CAST(s AS INT) = 5").count() == 1
        assert scan(spark, table, "a = 99999999999 OR a = 2").count() == 2
