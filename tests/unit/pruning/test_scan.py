from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ColumnError, PredicateError, UnresolvedError
from dbt_zorder.pruning import explain, scan, scan_sql
from dbt_zorder.pruning.files import exclusion
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from tests.unit.pruning.helpers import files_read, location

# predicate, files that it must read at most
PRUNED = [
    ("a = 5", 1),
    ("5 = a", 1),
    ("b between 100 and 110 and a > 3", 1),
    ("not (b < 900 or b > 910)", 1),
    ("s like 'k01%'", 2),
    (r"s like 'k01\_%' or s = 'k0999'", 2),
    ("s like 'k01!_%' escape '!'", 1),
    ("startswith(s, 'k05')", 2),
    ("s not like 'k%'", 0),
    ("ts >= '2023-12-01' and ts < '2023-12-03'", 1),
    ("ts >= timestamp '2023-12-01 00:00:00' and ts < date '2023-12-03'", 1),
    ("d = date '2024-02-01'", 1),
    ("d = '2024-02-01'::date", 1),
    ("st.f = 4", 1),
    ("st.g is null and st.f < 10", 1),
    ("x < 3", 1),
    ("n is null", 1),
    ("n is not null and n < 200", 2),
    ("n <=> null", 1),
    ("flag", 4),
    ("not flag", 4),
    ("flag is true and a < 5", 1),
    ("dec = 1.5", 1),
    ("dec = 1.5BD", 1),
    ("a in (1, 2, 999, null)", 2),
    (f"a in ({','.join(map(str, range(0, 300, 3)))})", 3),
    ("(a, s) in ((1, 'k0001'), (900, 'k0900'), (1, 'k0900'))", 2),
    ("year(d) = 2025", 0),
    ("date(ts) = '2023-12-01'", 2),
    ("cast(a as bigint) = 4L", 1),
    ("t.a = 4 or pruning_unit.t.b = 7", 1),
    ("substring(s, 1, 1) = 'k' and a = 1", 1),
    ("1 = 1 and a = 4 -- a comment", 1),
    ("a <=> 'x'", 0),
    ("a = b and a < 5", 1),
    ("s = 'o''k' or a = 1", 1),
    (r"s = 'k\u00300\x31' or a = 1", 2),
    ("a = 1 is null", 8),
    ("rand() >= 0 and a = 3", 1),
    ("s = 5", 8),
    ("d > current_date", 0),
    ("d < current_date", 8),
    ("extract(year from d) = 2024 and a = 1", 1),
    ("a !> 5", 8),
    ("a = 5 and try_cast(s as int) is null", 1),
    (
        "a = 5 and b in (select b from (select b, rank() over (order by b) n from pruning_unit.t) where n < 9)",
        16,
    ),
]


@pytest.mark.parametrize(("predicate", "files"), PRUNED)
def test_reads_few_files_and_every_row(spark: SparkSession, table: str, predicate: str, files: int) -> None:
    pruned = scan(spark, table, predicate)
    assert files_read(pruned) <= files
    assert sorted(pruned.collect()) == sorted(spark.table(table).where(predicate).collect())


def test_sql_gives_the_same_rows(spark: SparkSession, table: str) -> None:
    for predicate, _ in PRUNED[::8]:
        text = scan_sql(spark, table, predicate)
        got = spark.sql(f"SELECT * FROM {text} AS q WHERE true")
        assert sorted(got.collect()) == sorted(scan(spark, table, predicate).collect())


def test_alias_qualifies_columns(spark: SparkSession, table: str) -> None:
    text = scan_sql(spark, "`pruning_unit`.`t`", "o.a = 5 -- five", alias="o")
    df = spark.sql(f"SELECT o.a FROM {text} JOIN {text.removesuffix('`o`')} p ON o.a = p.a")
    assert df.collect() == [(5,)]
    assert 0 < files_read(df) <= 2


def test_schema_is_the_tables_own(spark: SparkSession, table: str) -> None:
    assert scan(spark, table, "a = 5").schema == spark.table(table).schema


@pytest.mark.parametrize(
    ("predicate", "error", "says"),
    [
        ("", PredicateError, "one boolean"),
        ("   ", PredicateError, "one boolean"),
        ("aa = 1", ColumnError, "Did you mean 'a'"),
        ("a", PredicateError, "boolean"),
        ("count(a) > 1", PredicateError, "INVALID_WHERE_CONDITION"),
        ("row_number() over (order by a) > 1", PredicateError, "window"),
        ("a in (select 1, 2)", PredicateError, "Spark refuses"),
        ("select a = 1", PredicateError, "Spark refuses"),
        ("a = 1; drop table pruning_unit.t", PredicateError, "';'"),
        ("a = 1)", PredicateError, "Spark refuses"),
        ("a = 1) or (1 = 1", PredicateError, "Spark refuses"),
        ("a = 1 or 1 = 1) union all select * from (values (1)", PredicateError, "Spark refuses"),
        ("a = 1 as q", PredicateError, "alias"),
        ("a = 1 /* never closed", PredicateError, "Spark refuses"),
        ("a = 'never closed", PredicateError, "Spark refuses"),
        ("drop table pruning_unit.t", PredicateError, "predicate|boolean"),
        ("a = 1, b = 2", PredicateError, "predicate"),
        ("a = 1 group by a", PredicateError, "predicate"),
        ("a = 1 limit 1", PredicateError, "predicate"),
    ],
)
def test_wrong_predicates_are_errors(
    spark: SparkSession, table: str, predicate: str, error: type[Exception], says: str
) -> None:
    for ask in (scan, scan_sql, explain):
        with pytest.raises(error, match=says):
            ask(spark, table, predicate)
    assert spark.catalog.tableExists(table)


@pytest.mark.parametrize(
    "predicate",
    [
        "a = 5 and b in (select b from made_by_a_hook)",
        "a = 5 and b in (select c from made_by_a_hook)",
        "exists (select 1 from made_by_a_hook h where h.c = a) and a = 5 -- a comment",
        "made_by_a_hook(a) = 5",
    ],
)
def test_what_is_not_there_yet_is_for_the_query_to_judge(spark: SparkSession, table: str, predicate: str) -> None:
    spark.sql("DROP VIEW IF EXISTS made_by_a_hook")
    spark.sql("DROP TEMPORARY FUNCTION IF EXISTS made_by_a_hook")
    if " c " in predicate:
        spark.sql("CREATE TEMPORARY VIEW made_by_a_hook AS SELECT 5 AS b")
    for ask in (scan, explain):
        with pytest.raises(UnresolvedError, match="Spark refuses"):
            ask(spark, table, predicate)
    text = scan_sql(spark, table, predicate)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW made_by_a_hook AS SELECT b, a AS c FROM {table} WHERE a = 5")
    spark.udf.register("made_by_a_hook", lambda a: a, "int")
    try:
        assert spark.sql(f"SELECT a FROM {text} AS q").collect() == [(5,)]
    finally:
        spark.sql("DROP VIEW made_by_a_hook")
        spark.sql("DROP TEMPORARY FUNCTION made_by_a_hook")


@pytest.mark.parametrize(
    "predicate", ["a = 5) or (b in (select b from no_such_table)", "no_such_function(a) = 5) or (1 = 1"]
)
def test_what_is_not_there_yet_cannot_leave_its_parentheses(spark: SparkSession, table: str, predicate: str) -> None:
    with pytest.raises(PredicateError, match="Spark refuses"):
        scan_sql(spark, table, predicate)


@pytest.mark.parametrize(
    "predicate",
    [
        "s = '${pruning_test}'",
        "s like '${pruning_test}%'",
        "a = cast('${pruning_test}' as int)",
        "a = ${pruning_test} -- 5",
    ],
)
@pytest.mark.parametrize("before", ["", "k0007"])
def test_a_variable_that_a_hook_sets_loses_no_row(spark: SparkSession, table: str, predicate: str, before: str) -> None:
    value = "k0005" if predicate.startswith("s") else "5"
    spark.conf.unset("pruning_test")
    if before:
        spark.conf.set("pruning_test", before if predicate.startswith("s") else "7")
    text = scan_sql(spark, table, predicate)
    spark.conf.set("pruning_test", value)
    try:
        assert spark.sql(f"SELECT a FROM {text} AS q").collect() == [(5,)]
        assert scan(spark, table, predicate).select("a").collect() == [(5,)]
        assert "${...}" in explain(spark, table, predicate).reason
    finally:
        spark.conf.unset("pruning_test")


def test_user_column_named_metadata(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE IF NOT EXISTS pruning_unit.m USING parquet AS SELECT id AS _metadata FROM range(3)")
    assert scan(spark, "pruning_unit.m", "_metadata = 1").count() == 1
    assert "_metadata" in explain(spark, "pruning_unit.m", "_metadata = 1").reason


def test_views_and_tables_without_stats_are_read_in_full(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE OR REPLACE VIEW pruning_unit.v AS SELECT * FROM {table}")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW pruning_tv AS SELECT * FROM {table}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS pruning_unit.plain USING parquet AS SELECT * FROM {table}")
    for name, why in (("pruning_unit.v", "view"), ("pruning_tv", "view"), ("pruning_unit.plain", "no statistics")):
        assert scan(spark, name, "a = 5").count() == 1
        assert spark.sql(f"SELECT * FROM {scan_sql(spark, name, 'a = 5')}").count() == 1
        assert why in explain(spark, name, "a = 5").reason


def test_column_pruning_and_pushdown_still_work(spark: SparkSession, table: str) -> None:
    plan = scan(spark, table, "a = 5").select("b")._jdf.queryExecution().executedPlan().toString()
    assert "EqualTo(a,5)" in plan
    assert "ReadSchema: struct<a:int,b:bigint>" in plan


def test_lists_of_numbers_lose_no_digits(spark: SparkSession, table: str) -> None:
    name = "pruning_unit.digits"
    rows = "VALUES (1L, 1e-9D), (2L, 16777217D), (3L, 1e30D)"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW digits AS SELECT * FROM {rows} AS v(id, x)")
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT /*+ repartition(3, id) */ * FROM digits")
    rebuild_stats(spark, TableName(*name.split(".")), ["id", "x"])
    far = [f"{number}0000000000000000000000000000.5BD" for number in range(10, 27)]
    for column, values in (
        ("id", [far[0], "1.000000000000000001BD"]),
        ("x", [*far, "0.000000001BD"]),
        ("x", ["16777217", *(f"{number}.5F" for number in range(17))]),
    ):
        predicate = f"{column} in ({', '.join(values)})"
        assert scan(spark, name, predicate).count() == spark.table(name).where(predicate).count() == 1


@pytest.mark.parametrize(
    "test",
    [
        "rand(42) < 0.5",
        "RANDN(7) > 0",
        "monotonically_increasing_id() % 3 = 0",
        "spark_partition_id() >= 0",
        "input_file_name() > ''",
        "input_file_block_start() >= 0",
        "case when rand(7) < 0.5 then true end",
        "reflect('java.lang.Math', 'abs', a) >= 0",
    ],
)
def test_what_depends_on_rows_that_are_read_beside_is_read_in_full(spark: SparkSession, table: str, test: str) -> None:
    predicate = f"a between 300 and 700 and {test}"
    assert explain(spark, table, predicate).files_read == 8
    assert sorted(scan(spark, table, predicate).collect()) == sorted(spark.table(table).where(predicate).collect())


def test_a_function_of_the_session_that_hides_one_of_sparks_is_not_taken_for_it(
    spark: SparkSession, table: str
) -> None:
    session = spark.newSession()
    session.udf.register("year", lambda value: 1, "int")
    if session.sql("SELECT year(DATE '2024-01-01')").collect()[0][0] != 1:
        pytest.skip("this Spark lets no function hide its own")
    assert scan(session, table, "year(d) = 1").count() == 1000
    explained = explain(session, table, "year(d) = 1 and a = 5")
    assert (explained.files_read, scan(session, table, "year(d) = 1 and a = 5").count()) == (1, 1)
    assert any("year()" in part.reason for part in explained.parts)
    other = spark.newSession()
    other.udf.register("upper", lambda value: value, "string")
    explained = explain(other, table, "upper(s) = 'k0005' and a = 5")
    assert (explained.files_read, scan(other, table, "upper(s) = 'k0005' and a = 5").count()) == (1, 1)
    assert any("hides" in part.reason for part in explained.parts)


def test_what_the_catalog_does_not_describe_is_read_in_full(spark: SparkSession, table: str) -> None:
    path = location(spark, table).removeprefix("file:")
    assert scan(spark, f"parquet.`{path}`", "a = 5").count() == 1
    assert "does not describe" in explain(spark, f"parquet.`{path}`", "a = 5").reason
    assert spark.sql(f"SELECT * FROM {scan_sql(spark, f'parquet.`{path}`', 'a = 5')}").count() == 1


def test_of_too_many_files_the_largest_are_left_out_and_the_others_counted(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = explain(spark, table, "a = 5")
    monkeypatch.setattr(exclusion, "LIST_UP_TO", 1)
    monkeypatch.setattr(exclusion, "LIST_AT_MOST", 2)
    explained = explain(spark, table, "a = 5")
    assert (whole.files_read, explained.files_read, explained.files_total) == (1, 6, 8)
    assert files_read(scan(spark, table, "a = 5")) == 6
    assert explained.warnings == ["5 files that cannot match are read: their names have no numbers to exclude them by"]
    kept = exclusion.exclude([("file:/a", 10), ("file:/b", 30), ("file:/c", 20)])
    assert [size for _, size in kept.files] == [30, 20]
    assert explained.bytes_total is not None
    assert explained.bytes_read is not None
    assert explained.bytes_total > explained.bytes_read


def test_a_table_with_char_columns_is_read_in_full_where_spark_pads_them(spark: SparkSession, table: str) -> None:
    name, under = "pruning_unit.padded", "pruning_unit.under_padded"
    for one in (name, under):
        spark.sql(f"DROP TABLE IF EXISTS {one}")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, c CHAR(3)) USING parquet")
    query = "SELECT /*+ repartition_by_range(4, id) */ id, if(id < 25, NULL, 'ab') FROM range(100)"
    spark.sql(f"INSERT INTO {name} {query}")
    spark.sql(f"CREATE TABLE {under} (id BIGINT, c STRING) USING parquet LOCATION '{location(spark, name)}'")
    rebuild_stats(spark, TableName(*under.split(".")), ["id", "c"])
    for predicate in ("id = 5", "c IS NULL"):
        assert explain(spark, under, predicate).files_read == 1
        if spark.version < "4.2":
            assert explain(spark, name, predicate).files_read == 4
        assert scan(spark, name, predicate).count() == spark.table(name).where(predicate).count()
