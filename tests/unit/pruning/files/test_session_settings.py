from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyspark
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import scan, scan_sql
from dbt_zorder.pruning.files import session_settings as meaning
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from tests.support import settings
from tests.unit.pruning.helpers import files_read

ANSI = "spark.sql.ansi.enabled"


@pytest.mark.parametrize(
    ("predicate", "chosen", "run"),
    [
        ("f < 16777217", {ANSI: "false"}, {ANSI: "true"}),
        ("i NOT IN ('05')", {ANSI: "true"}, {ANSI: "false"}),
        ("i IN ('05')", {ANSI: "false"}, {ANSI: "true"}),
        (
            "day < '2024-1-1'",
            {ANSI: "false", "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false"},
            {ANSI: "false", "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true"},
        ),
        (
            "n < CAST(1 AS DECIMAL(20, 10)) / CAST(3 AS DECIMAL(20, 10))",
            {},
            {"spark.sql.decimalOperations.allowPrecisionLoss": "false"},
        ),
        (r"s = 'a\\b'", {}, {"spark.sql.parser.escapedStringLiterals": "true"}),
        pytest.param(
            "s = 'a''b'",
            {},
            {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"},
            marks=pytest.mark.skipif(pyspark.__version__ < "4", reason="two texts side by side are one in 3.5"),
        ),
    ],
)
def test_files_chosen_under_some_settings_are_not_left_out_under_others(
    spark: SparkSession, table: str, predicate: str, chosen: dict[str, str], run: dict[str, str]
) -> None:
    name = "pruning_unit.settings"
    if not spark.catalog.tableExists(name):
        rows = r"""VALUES (5, 16777216F, DATE'2024-01-05', 'a\\\\b'), (6, 3e8F, DATE'2024-02-05', 'a\\b'),
            (7, 4e8F, DATE'2024-03-05', 'x'), (8, 5e8F, DATE'2024-04-05', 'a\'b'), (9, 6e8F, DATE'2024-05-05', 'ab')
            AS v(i, f, day, s)"""
        third = "CAST(IF(i = 5, 0.333333333333333333BD, 0.9BD) AS DECIMAL(20, 18))"
        spark.sql(
            f"CREATE TABLE {name} USING parquet AS SELECT /*+ repartition_by_range(5, i) */ *, {third} AS n FROM {rows}"
        )
        rebuild_stats(spark, TableName(*name.split(".")), ["i", "f", "day", "s", "n"])
    with settings(spark, chosen):
        text = scan_sql(spark, name, predicate)
        there = sorted(spark.table(name).where(predicate).collect())
        assert sorted(spark.sql(f"SELECT * FROM {text}").collect()) == there
        assert files_read(spark.sql(f"SELECT * FROM {text}")) <= max(1, len(there))
    with settings(spark, run):
        wanted = sorted(spark.table(name).where(predicate).collect())
        assert wanted != there
        assert sorted(spark.sql(f"SELECT * FROM {text}").collect()) == wanted


def test_a_text_in_double_quotes_may_be_a_column_where_the_query_runs(spark: SparkSession, table: str) -> None:
    name = "pruning_unit.quoted"
    if not spark.catalog.tableExists(name):
        for s, u in (("b", "q"), ("u", "z"), ("w", "w")):
            spark.sql(f"SELECT '{s}' AS s, '{u}' AS u").coalesce(1).write.mode("append").saveAsTable(name)
    rebuild_stats(spark, TableName(*name.split(".")), ["s", "u"])
    predicate = 's = "u"'
    with settings(spark, {ANSI: "false"}):
        assert files_read(spark.sql(f"SELECT * FROM {scan_sql(spark, name, predicate)}")) == 1
    with settings(spark, {ANSI: "true"}):
        text = scan_sql(spark, name, predicate)
        assert spark.sql(f"SELECT s FROM {text}").collect() == [("u",)]
        assert files_read(scan(spark, name, predicate)) == 1
        with settings(spark, {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}):
            assert spark.sql(f"SELECT s FROM {text}").collect() == [("w",)]


def test_a_predicate_is_read_by_the_settings_of_its_own_session(spark: SparkSession, table: str) -> None:
    """Also where another session is active, and in a thread where none is, as in those of dbt."""
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    for predicate in (
        "ts >= timestamp '2023-12-01 00:00:00' and ts < timestamp '2023-12-03 00:00:00'",
        "ts < '2023-12-01 12:00:00'",
    ):
        for session in (other, spark):
            wanted = sorted(session.sql(f"SELECT * FROM {table} WHERE {predicate}").collect())
            with ThreadPoolExecutor(1) as pool:
                in_a_thread = pool.submit(lambda *asked: sorted(scan(*asked).collect()), session, table, predicate)
                assert in_a_thread.result() == wanted
            assert sorted(scan(session, table, predicate).collect()) == wanted
            assert files_read(scan(session, table, predicate)) < files_read(session.table(table))


def test_tests_of_settings_are_done_before_files_are_listed(spark: SparkSession, table: str) -> None:
    pruned = scan(spark, table, "a = 5")
    plan = pruned._jdf.queryExecution().optimizedPlan().toString()
    assert "typeof" not in plan
    assert " IN ('01')" not in plan
    assert "16777217" not in plan
    assert files_read(pruned) == 1


def test_what_was_answered_while_a_setting_changed_is_not_kept(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "_answers", {})
    with settings(spark, {ANSI: "false"}):
        before = meaning.read_settings(spark)
    with settings(spark, {ANSI: "true"}):
        meaning.bind_to_settings(spark, "true", before, zoned=False)
        assert not meaning._answers
        now = meaning.read_settings(spark)
        filters = [meaning.bind_to_settings(spark, "true", now, zoned=zoned) for zoned in (False, True, True)]
    assert list(meaning._answers) == [(now, False), (now, True)]
    assert filters[1] == filters[2]
    assert meaning.ZONE_SQL in filters[1]
    assert meaning.ZONE_SQL not in filters[0]
