"""Batches whose structs have other fields than the table has, also inside arrays and maps, by ``on_schema_change``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder import pruning
from dbt_zorder.errors import ColumnError, SchemaChangeError
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.report import IncrementReport
from tests.support import settings, unique
from tests.unit.tables.parquet.batches import request, stats_rows

KEY = "pmod(hash(id), 50)"
OLD = (
    f"if(id % 7 = 3, NULL, named_struct('k', {KEY}, 'b', id * 2)) AS s",
    "if(id % 5 = 0, array(), array(named_struct('x', cast(id AS INT), 'y', concat('y', id % 3)), NULL)) AS r",
    "map('m', named_struct('x', cast(id AS INT))) AS m",
)
MORE = (
    f"if(id % 7 = 3, NULL, named_struct('n', {{n}}, 'b', id * 2, 'K', {KEY})) AS S",
    "if(id % 5 = 0, array(), array(named_struct('y', concat('y', id % 3), 'n', {n}, 'x', id), NULL)) AS r",
    "map('m', named_struct('n', {n}, 'x', cast(id AS INT))) AS m",
)
AFTER = (
    f"if(id % 7 = 3, NULL, named_struct('k', {KEY}, 'b', id * 2, 'n', {{n}})) AS s",
    "if(id % 5 = 0, array(), array(named_struct('x', cast(id AS {x}), 'y', concat('y', id % 3), 'n', {n}), NULL)) AS r",
    "map('m', named_struct('x', cast(id AS INT), 'n', {n})) AS m",
)
NEW, NONE = "concat('n', id)", "cast(NULL AS STRING)"


def rows(first: int, end: int, columns: tuple[str, ...] = OLD, **given: str) -> str:
    return f"SELECT id, {', '.join(columns).format(**given)}, id % 3 AS p FROM range({first}, {end})"


@pytest.fixture
def table(spark: SparkSession, database: str) -> TableName:
    name = TableName(database, unique("t"))
    build(spark, spark.sql(rows(0, 200)), wanted(name))
    return name


def wanted(table: TableName, **more: Any) -> BuildRequest:
    return request(table, by=more.pop("by", ("s.k", "id")), **more)


def go(spark: SparkSession, wanted: BuildRequest, query: str, **batch: Any) -> IncrementReport:
    before = begin(spark, wanted.table)
    return increment(spark, spark.sql(query), wanted, Batch(may_rewrite=False, **batch), before)


def texts(df: DataFrame) -> list[str]:
    names = ", ".join(sorted(df.columns, key=str.lower))
    return sorted(
        row[0] for row in df.selectExpr(f"to_json(struct({names}), map('ignoreNullFields', 'false'))").collect()
    )


def check(spark: SparkSession, table: TableName, *queries: str) -> None:
    expected = sorted(text for query in queries for text in texts(spark.sql(query)))
    for vectorized in ("true", "false"):
        with settings(spark, {"spark.sql.parquet.enableNestedColumnVectorizedReader": vectorized}):
            assert texts(spark.table(table.sql)) == expected
            if "n" in spark.table(table.sql).select("s.*").columns:  # no other field of theirs is read
                items = spark.sql(f"SELECT explode(r.n) FROM {table.sql}")
                assert items.count() == 2 * spark.table(table.sql).where("id % 5 <> 0").count()
                filled = spark.table(table.sql).where("s IS NOT NULL AND coalesce(s.n, '') >= ''")
                assert filled.count() == spark.table(table.sql).where("id % 7 <> 3").count()
    assert pruning.sound(spark, table.sql, ["s.k < 20 AND id > 50", "s.k = 7 OR s IS NULL"]) == []
    assert stats_rows(spark, table)[0][2] == len(expected)


def test_ignore_leaves_new_fields_out_and_adds_in_place(spark: SparkSession, table: TableName) -> None:
    report = go(spark, wanted(table), rows(200, 230, MORE, n=NEW))
    assert report.appended is not None
    check(spark, table, rows(0, 230))


def test_ignore_does_not_do_without_a_field(spark: SparkSession, table: TableName) -> None:
    less = (OLD[0], "array(named_struct('x', cast(id AS INT))) AS r", OLD[2])
    with pytest.raises(SchemaChangeError, match=r"missing: r\.element\.y string"):
        go(spark, wanted(table), rows(200, 230, less))
    check(spark, table, rows(0, 200))


def test_fail_fails_unless_only_the_order_differs(spark: SparkSession, table: TableName) -> None:
    found = r"new: s\.n string, r\.element\.n string, m\.value\.n string; of another type: r\.element\.x bigint"
    with pytest.raises(SchemaChangeError, match=found):
        go(spark, wanted(table), rows(200, 230, MORE, n=NEW), on_schema_change="fail")
    turned = (f"if(id % 7 = 3, NULL, named_struct('B', id * 2, 'k', {KEY})) AS s", *OLD[1:])
    assert go(spark, wanted(table), rows(200, 230, turned), on_schema_change="fail").appended is not None
    check(spark, table, rows(0, 230))


@pytest.mark.parametrize(("mode", "x"), [("append_new_columns", "INT"), ("sync_all_columns", "BIGINT")])
@pytest.mark.parametrize("parts", [(), ("p",)])
def test_new_fields_are_null_in_older_rows(
    spark: SparkSession, database: str, mode: str, x: str, parts: tuple[str, ...]
) -> None:
    table = TableName(database, unique("t"))
    asked = wanted(table, partition_by=parts)
    first = build(spark, spark.sql(rows(0, 200)), asked)
    report = go(spark, asked, rows(200, 230, MORE, n=NEW), on_schema_change=mode)
    assert (report.appended, report.built is not None) == (None, True)
    old, new = rows(0, 200, AFTER, n=NONE, x=x), rows(200, 230, AFTER, n=NEW, x=x)
    check(spark, table, old, new)
    again = go(spark, asked, rows(230, 250, MORE, n=NEW), on_schema_change=mode)
    assert again.appended is not None, "the table has those fields now, and the layout that was saved with them"
    check(spark, table, old, rows(200, 250, AFTER, n=NEW, x=x))
    rollback(spark, table, first.version)
    check(spark, table, rows(0, 200))


def test_a_missing_field_is_null_in_the_batch_or_dropped(spark: SparkSession, table: TableName) -> None:
    less = (f"named_struct('k', {KEY}) AS s", "array(named_struct('x', cast(id AS INT))) AS r", OLD[2])
    report = go(spark, wanted(table), rows(200, 230, less), on_schema_change="append_new_columns")
    assert report.appended is not None
    filled = (
        f"named_struct('k', {KEY}, 'b', cast(NULL AS BIGINT)) AS s",
        "array(named_struct('x', cast(id AS INT), 'y', cast(NULL AS STRING))) AS r",
        OLD[2],
    )
    check(spark, table, rows(0, 200), rows(200, 230, filled))
    go(spark, wanted(table), rows(230, 240, less), on_schema_change="sync_all_columns")
    old = (
        f"if(id % 7 = 3, NULL, named_struct('k', {KEY})) AS s",
        "if(id % 5 = 0, array(), array(named_struct('x', cast(id AS INT)), NULL)) AS r",
        OLD[2],
    )
    check(spark, table, rows(0, 200, old), rows(200, 240, less))


def test_only_partitions_with_new_rows_are_replaced_where_a_field_is_new(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("t"))
    asked = wanted(table, partition_by=("p",))
    build(spark, spark.sql(rows(0, 90)), asked)
    batch = f"SELECT * FROM ({rows(200, 230, MORE, n=NEW)}) WHERE p = 1"
    go(spark, asked, batch, overwrite=True, on_schema_change="append_new_columns")
    kept, new = rows(0, 90, AFTER, n=NONE, x="INT"), rows(200, 230, AFTER, n=NEW, x="INT")
    check(spark, table, f"SELECT * FROM ({kept}) WHERE p <> 1", f"SELECT * FROM ({new}) WHERE p = 1")


def test_a_batch_that_replaces_all_rows_heeds_fields_too(spark: SparkSession, table: TableName) -> None:
    go(spark, wanted(table), rows(0, 30, MORE, n=NEW), overwrite=True)
    check(spark, table, rows(0, 30))
    # no old row has to become anything
    other = (OLD[0], "'text' AS r", OLD[2])
    go(spark, wanted(table), rows(0, 40, other), overwrite=True, on_schema_change="sync_all_columns")
    check(spark, table, rows(0, 40, other))


def test_a_table_that_is_none_of_ours_yet_gets_new_fields(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("t"))
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {rows(0, 50)}")
    go(spark, wanted(table), rows(50, 60, MORE, n=NEW), on_schema_change="sync_all_columns")
    check(spark, table, rows(0, 50, AFTER, n=NONE, x="BIGINT"), rows(50, 60, AFTER, n=NEW, x="BIGINT"))


def test_a_value_that_does_not_fit_changes_nothing(spark: SparkSession, table: TableName) -> None:
    large = (OLD[0], "array(named_struct('x', id * 100000000000, 'y', 'y')) AS r", OLD[2])
    with pytest.raises(Exception, match=r"A value of column r\.element\.x does not fit into int: 2\d+"):
        go(spark, wanted(table), rows(200, 230, large))
    small = (OLD[0], "array(named_struct('x', 1Y, 'y', 'y')) AS r", OLD[2])
    with pytest.raises(Exception, match=r"A value of column r\.element\.x does not fit into tinyint: 1\d\d"):
        go(spark, wanted(table), rows(200, 230, small), on_schema_change="sync_all_columns")
    check(spark, table, rows(0, 200))


def test_a_field_that_the_config_names_and_ignore_leaves_out_is_named(spark: SparkSession, table: TableName) -> None:
    asked = (wanted(table, by=("s.n",)), replace(wanted(table), stats_columns=("s.n",)))
    for one in asked:
        with pytest.raises(ColumnError, match=r"new columns \(s\.n, .*which on_schema_change 'ignore' leaves out"):
            go(spark, one, rows(200, 230, MORE, n=NEW))
    with pytest.raises(ColumnError, match=r"no column 's\.none'") as raised:
        go(spark, replace(wanted(table), stats_columns=("s.none",)), rows(200, 230, MORE, n=NEW))
    assert "leaves out" not in str(raised.value), "the query has no such field either"


def test_a_field_that_the_table_is_ordered_by_may_not_go(spark: SparkSession, table: TableName) -> None:
    less = ("named_struct('b', id) AS s", *OLD[1:])
    with pytest.raises(ColumnError, match=r"zorder_by: There is no column 's\.k'"):
        go(spark, wanted(table), rows(200, 230, less), on_schema_change="sync_all_columns")
    go(spark, wanted(table, by=("s.b",)), rows(200, 230, less), on_schema_change="sync_all_columns")
    kept = ("if(id % 7 = 3, NULL, named_struct('b', id * 2)) AS s", *OLD[1:])
    assert texts(spark.table(table.sql)) == sorted(
        [*texts(spark.sql(rows(0, 200, kept))), *texts(spark.sql(rows(200, 230, less)))]
    )
