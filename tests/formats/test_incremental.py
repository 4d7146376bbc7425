"""Batches, merges and new layouts of tables in Delta Lake and Iceberg."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import BuildError, ConfigError, SchemaChangeError, ZorderError
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.lakehouse import incremental
from dbt_zorder.tables.lakehouse.state import LakehouseState
from dbt_zorder.tables.parquet.build import build as build_parquet
from dbt_zorder.tables.parquet.incremental import increment as increment_parquet
from dbt_zorder.tables.registry import lakehouse_table
from dbt_zorder.tables.report import IncrementReport
from tests.formats.tables import build, increment, merge, optimize, read_state, request, rewrite, rows
from tests.support import same_rows


def test_small_batches_are_files_of_their_own_until_a_new_layout_pays(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    wanted = request(table, file_format)
    with pytest.raises(BuildError, match="is not there any more"):
        increment(spark, lambda: rows(spark, 8_000, 8_500), wanted, Batch(), "auto")
    build(spark, rows(spark, 0, 8_000), wanted)
    first = increment(spark, lambda: rows(spark, 8_000, 8_500), wanted, Batch(), "auto")
    assert first.built is None
    assert first.appended is not None
    assert (first.appended.rows, first.appended.files) == (500, 1)
    second = increment(spark, lambda: rows(spark, 8_500, 17_000), wanted, Batch(), "auto")
    assert second.built is not None
    assert second.built.summary.files == 16
    assert same_rows(spark.table(table.sql), rows(spark, 0, 17_000))
    assert not read_state(spark, wanted).overlap(wanted.spec).is_due
    third = increment(spark, lambda: rows(spark, 0, 0), wanted, Batch(), "auto")
    assert third.built is None
    assert third.version == second.version


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_that_finds_nothing_new_asks_for_no_figures(
    spark: SparkSession, table: TableName, file_format: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format)
    built = build(spark, rows(spark, 0, 1_000), wanted)
    newest = f"id > (SELECT max(id) FROM {table.sql})" if kept else "id > 999"
    if kept:

        def fail(*_: object) -> LakehouseState:
            raise AssertionError

        monkeypatch.setattr(incremental, "read_state_or_sizes", fail)
    report = increment(spark, lambda: rows(spark, 0, 1_000).where(newest), wanted, Batch(), "auto")
    assert report.appended is not None
    assert (report.appended.rows, report.appended.files) == (0, 0)
    assert (report.built, report.table, report.version) == (None, None, built.version)
    assert "sample" in report.appended.seconds


def test_only_partitions_with_new_rows_are_replaced(spark: SparkSession, table: TableName, file_format: str) -> None:
    wanted = request(table, file_format, partition_by=["p"], files=2)
    build(spark, rows(spark, 0, 3_000), wanted)
    batch = rows(spark, 0, 600).where("p = 1")
    report = increment(spark, lambda: batch, wanted, Batch(overwrite=True, may_rewrite=False), "never")
    assert report.appended is not None
    assert report.appended.removed == 2
    kept = rows(spark, 0, 3_000).where("p <> 1").unionAll(batch)
    assert same_rows(spark.table(table.sql).select(kept.columns), kept)


def merge_sql(table: TableName, source: DataFrame) -> str:
    source.createOrReplaceTempView("merged")
    return (
        f"MERGE INTO {table.sql} AS d USING merged AS s ON d.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


@pytest.mark.parametrize("how", ["auto", "native"])
def test_a_merge_updates_and_a_due_layout_follows(
    spark: SparkSession, table: TableName, file_format: str, how: str
) -> None:
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 1_000), wanted)
    changed = rows(spark, 500, 6_000).selectExpr("id", "a + 1 AS a", "s", "p", "st")
    report = merge(spark, merge_sql(table, changed), wanted, Batch(), how)
    assert report.appended is not None
    assert report.appended.rows is None
    expected = rows(spark, 0, 500).unionAll(changed)
    assert same_rows(spark.table(table.sql), expected)
    rewrite(spark, wanted, how)
    assert same_rows(spark.table(table.sql), expected)


def test_columns_change_as_on_schema_change_says(spark: SparkSession, table: TableName, file_format: str) -> None:
    wanted = request(table, file_format, files=2)
    build(spark, rows(spark, 0, 100), wanted)
    more = rows(spark, 100, 120).selectExpr("*", "id * 2 AS extra")
    with pytest.raises(SchemaChangeError):
        increment(spark, lambda: more, wanted, Batch(on_schema_change="fail"), "never")
    increment(spark, lambda: more, wanted, Batch(on_schema_change="append_new_columns", may_rewrite=False), "never")
    assert spark.table(table.sql).where("extra IS NULL").count() == 100
    less = rows(spark, 120, 130).drop("st")
    report = increment(spark, lambda: less, wanted, Batch(on_schema_change="sync_all_columns"), "never")
    assert report.built is not None
    assert set(spark.table(table.sql).columns) == {"id", "a", "s", "p"}
    assert spark.table(table.sql).count() == 130


STRUCT = "named_struct('x', id, 'y', 'z') AS st, array(named_struct('k', id)) AS r, map('m', named_struct('k', 1)) AS m"
OTHER = (
    "named_struct('n', 1Y, 'y', 'z', 'x', id) AS st, array(named_struct('n', 'n', 'k', id)) AS r, "
    "map('m', named_struct('n', 'n', 'k', 1)) AS m"
)
AFTER = (
    "named_struct('x', id, 'y', 'z', 'n', cast({} AS {})) AS st, array(named_struct('k', id, 'n', {})) AS r, "
    "map('m', named_struct('k', 1, 'n', {})) AS m"
)


def nested(first: int, end: int, columns: str) -> str:
    return f"SELECT id, {columns} FROM range({first}, {end})"


def check_nested(spark: SparkSession, table: TableName, file_format: str, old: int, end: int) -> None:
    """Compare a table whose rows below ``old`` had fewer fields with what it has to hold."""
    kind = "INT" if file_format == "iceberg" else "TINYINT"
    null = "cast(NULL AS STRING)"
    before, new = AFTER.format("NULL", kind, null, null), AFTER.format(1, kind, "'n'", "'n'")
    both = [
        df.selectExpr("id", "st", "r", "to_json(m, map('ignoreNullFields', 'false')) AS m")
        for df in (spark.table(table.sql), spark.sql(f"{nested(0, old, before)} UNION ALL {nested(old, end, new)}"))
    ]
    assert same_rows(*both)


@pytest.mark.parametrize("mode", ["append_new_columns", "sync_all_columns"])
def test_fields_of_structs_change_as_the_error_advises(
    spark: SparkSession, table: TableName, file_format: str, mode: str
) -> None:
    wanted = request(table, file_format, by=("st.x", "id"), files=2)
    build(spark, spark.sql(nested(0, 100, STRUCT)), wanted)
    with pytest.raises(SchemaChangeError, match="Set it to 'append_new_columns' or 'sync_all_columns', or run the"):
        go_nested(spark, wanted, 100, "fail")
    go_nested(spark, wanted, 100, mode)
    check_nested(spark, table, file_format, 100, 110)
    report = go_nested(spark, wanted, 110, mode)
    assert report.built is None, "the table has those fields now"
    check_nested(spark, table, file_format, 100, 120)
    build(spark, spark.sql(nested(0, 50, OTHER)), wanted)  # --full-refresh
    assert spark.table(table.sql).where("st.n = 1").count() == 50


def test_fields_that_are_new_are_left_out_by_ignore(spark: SparkSession, table: TableName, file_format: str) -> None:
    wanted = request(table, file_format, by=("st.x",), files=2)
    build(spark, spark.sql(nested(0, 100, STRUCT)), wanted)
    report = go_nested(spark, wanted, 100, "ignore")
    assert report.built is None
    assert spark.table(table.sql).where("st.x = id AND r[0].k = id AND m['m'].k = 1").count() == 110


def go_nested(spark: SparkSession, wanted: BuildRequest, first: int, mode: str) -> IncrementReport:
    batch = Batch(on_schema_change=mode, may_rewrite=False)
    return increment(spark, lambda: spark.sql(nested(first, first + 10, OTHER)), wanted, batch, "never")


@pytest.mark.parametrize("mode", ["append_new_columns", "sync_all_columns"])
def test_a_merge_brings_fields_as_the_error_advises(
    spark: SparkSession, table: TableName, file_format: str, mode: str
) -> None:
    wanted = request(table, file_format, by=("st.x", "id"), files=2)
    build(spark, spark.sql(nested(0, 100, STRUCT)), wanted)
    source = spark.sql(nested(90, 110, OTHER))
    with pytest.raises(SchemaChangeError, match="Set it to 'append_new_columns' or 'sync_all_columns', or run the"):
        lakehouse_table(spark, wanted).merge_source(source, wanted, Batch(on_schema_change="fail"))
    rows = lakehouse_table(spark, wanted).merge_source(source, wanted, Batch(on_schema_change=mode))
    merge(spark, merge_sql(table, rows), wanted, Batch(may_rewrite=False), "never")
    check_nested(spark, table, file_format, 90, 110)
    again = spark.sql(nested(110, 120, OTHER))
    rows = lakehouse_table(spark, wanted).merge_source(again, wanted, Batch(on_schema_change="fail"))
    merge(spark, merge_sql(table, rows), wanted, Batch(may_rewrite=False), "never")
    check_nested(spark, table, file_format, 90, 120)
    plain = spark.range(3).toDF("id")
    assert lakehouse_table(spark, wanted).merge_source(plain, wanted, Batch()) is plain


def test_a_table_of_another_format_goes_by_either_advice(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    wanted = request(table, file_format, files=2)
    build(spark, rows(spark, 0, 100), wanted)
    parquet = replace(wanted, file_format="parquet")
    with pytest.raises(ZorderError, match=f"set file_format: {file_format} to keep it, or run the model with --full-"):
        increment_parquet(spark, rows(spark, 100, 120), parquet, Batch())
    increment(spark, lambda: rows(spark, 100, 120), wanted, Batch(may_rewrite=False), "never")
    assert spark.table(table.sql).count() == 120
    build_parquet(spark, rows(spark, 0, 50), parquet)
    with pytest.raises(ZorderError, match="build it anew, with --full-refresh if it is incremental"):
        increment(spark, lambda: rows(spark, 50, 60), wanted, Batch(), "never")
    build(spark, rows(spark, 0, 60), wanted)
    assert spark.table(table.sql).count() == 60


def test_a_query_may_read_the_table_that_gets_a_new_column(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    wanted = request(table, file_format, files=2)
    build(spark, rows(spark, 0, 100), wanted)

    def query() -> DataFrame:
        return spark.sql(
            f"SELECT id + 100 AS id, a, s, p, st, 1 AS extra FROM {table.sql} "
            f"WHERE id > (SELECT max(id) - 10 FROM {table.sql})"
        )

    batch = Batch(on_schema_change="append_new_columns", may_rewrite=False)
    increment(spark, query, wanted, batch, "never")
    assert spark.table(table.sql).where("extra = 1").count() == 10
    assert spark.table(table.sql).count() == 110


def test_changed_partitions_lose_no_row(spark: SparkSession, table: TableName, file_format: str) -> None:
    build(spark, rows(spark, 0, 900), request(table, file_format, files=2))
    parted = request(table, file_format, partition_by=["p"], files=2)
    batch = rows(spark, 0, 30).where("p = 1")
    increment(spark, lambda: batch, parted, Batch(overwrite=True), "never")
    kept = rows(spark, 0, 900).where("p <> 1").unionAll(batch)
    assert same_rows(spark.table(table.sql).select(kept.columns), kept)
    other = request(table, file_format, by=["id"], partition_by=["a"], files=2)
    with pytest.raises(ConfigError, match="is partitioned by p, and its model by a now"):
        increment(spark, lambda: batch, other, Batch(overwrite=True), "never")
    assert same_rows(spark.table(table.sql).select(kept.columns), kept)


def test_a_table_of_another_format_is_not_added_to(spark: SparkSession, table: TableName, file_format: str) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS SELECT 1 AS a, 's' AS s")
    with pytest.raises(ZorderError, match="is parquet, and its model has file_format"):
        increment(spark, lambda: spark.table(table.sql), request(table, file_format), Batch(), "auto")


def test_a_dry_run_changes_nothing(spark: SparkSession, table: TableName, file_format: str) -> None:
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 500), wanted)
    for first in range(500, 800, 100):
        increment(spark, partial(rows, spark, first, first + 100), wanted, Batch(may_rewrite=False), "never")
    planned = optimize(spark, wanted, "auto", dry_run=True)
    assert not planned.version
    assert planned.files == 7
    done = optimize(spark, wanted, "auto", dry_run=False)
    assert done.version
    assert done.files_after == 4
    assert same_rows(spark.table(table.sql), rows(spark, 0, 800))


def test_the_empty_text_is_a_partition_of_its_own_where_the_format_has_it_so(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    """Iceberg keeps it apart from NULL; in Delta Lake it is NULL."""
    region = "SELECT id, pmod(hash(id), 50) AS a, {} AS region, {} AS note FROM range({}, {})"
    wanted = request(table, file_format, by=("a",), partition_by=["region"], files=1)
    old = region.format("if(id < 10, NULL, '')", "1", 0, 15) + " UNION ALL " + region.format("'x'", "1", 15, 20)
    build(spark, spark.sql(old), wanted)
    batch = Batch(overwrite=True, on_schema_change="sync_all_columns")
    increment(spark, lambda: spark.sql(region.format("''", "'n'", 100, 103)), wanted, batch, "never")
    found = {row[0]: row[1] for row in spark.table(table.sql).groupBy("region").count().collect()}
    assert found == ({None: 10, "": 3, "x": 5} if file_format == "iceberg" else {None: 3, "x": 5})


def test_small_whole_numbers_inside_others_are_added_again(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    text = (
        "SELECT id, CAST(id AS SMALLINT) AS n, named_struct('x', CAST(id AS SMALLINT), 'y', array(CAST(1 AS TINYINT))) "
        "AS s, map('k', CAST(id AS TINYINT)) AS m FROM range({}, {})"
    )
    wanted = request(table, file_format, by=("id",), files=1)
    build(spark, spark.sql(text.format(0, 50)), wanted)
    increment(spark, lambda: spark.sql(text.format(50, 100)), wanted, Batch(), "never")
    assert spark.table(table.sql).where("s.x = n AND s.y[0] = 1 AND m['k'] = id").count() == 100


def test_a_layout_by_the_formats_own_command_counts_as_one(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 1_000), wanted)
    for first in range(1_000, 5_000, 1_000):
        increment(spark, partial(rows, spark, first, first + 1_000), wanted, Batch(may_rewrite=False), "never")
    rewrite(spark, wanted, "native")
    now = read_state(spark, wanted)
    assert now.built.bytes == pytest.approx(now.size[0])
    assert not now.overlap(wanted.spec).is_due
    if file_format == "iceberg":  # one that orders nothing is no layout, though it rewrites every file
        increment(spark, partial(rows, spark, 5_000, 6_000), wanted, Batch(may_rewrite=False), "never")
        spark.sql(
            f"CALL spark_catalog.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
        ).collect()
        assert read_state(spark, wanted).built.bytes == now.built.bytes


def test_a_table_without_a_snapshot_is_not_laid_out(spark: SparkSession, table: TableName, file_format: str) -> None:
    if file_format == "delta":
        pytest.skip("making it is its first version")
    spark.sql(f"CREATE TABLE {table.sql} (id BIGINT, a BIGINT) USING iceberg")
    with pytest.raises(ZorderError, match="has no snapshot, so there is nothing to lay out"):
        rewrite(spark, request(table, file_format, by=("a",)), "auto")


def test_a_batch_that_replaces_the_whole_table_heeds_on_schema_change(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    wanted = request(table, file_format, files=1)
    build(spark, rows(spark, 0, 100), wanted)
    less = rows(spark, 0, 20).drop("st")
    for mode in ("fail", "ignore"):
        with pytest.raises(SchemaChangeError, match="missing: st"):
            increment(spark, lambda: less, wanted, Batch(overwrite=True, on_schema_change=mode), "never")
    assert same_rows(spark.table(table.sql), rows(spark, 0, 100))
    increment(spark, lambda: less, wanted, Batch(overwrite=True, on_schema_change="sync_all_columns"), "never")
    assert same_rows(spark.table(table.sql), less)
