"""What an error or warning of an incremental run advises is done here, and helps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError, ColumnError, ConfigError, SchemaChangeError, ZorderError
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch, describe_existing
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.rewrite import rewrite
from dbt_zorder.tables.report import IncrementReport
from tests.support import settings, unique
from tests.unit.tables.parquet.batches import folder, request, rows

STRUCT = "named_struct('a', id, 'b', id * 2)"
DECIMAL = "cast(id AS DECIMAL({}, {}))"
WIDER = "named_struct('a', id, 'n', 1, 'b', id * 2)"


def go(spark: SparkSession, query: str, wanted: BuildRequest, **batch: Any) -> IncrementReport:
    before = begin(spark, wanted.table)
    return increment(spark, spark.sql(query), wanted, Batch(may_rewrite=False, **batch), before)


def of(column: str) -> str:
    return f"SELECT id, {column} AS c FROM range(50)"


def full_refresh(spark: SparkSession, query: str, wanted: BuildRequest) -> None:
    build(spark, spark.sql(query), wanted)
    frames = (spark.table(wanted.table.sql), spark.sql(query))
    found, asked = ({column.name: column.dataType.simpleString() for column in frame.schema} for frame in frames)
    assert found == asked


@pytest.mark.parametrize(
    ("table_has", "query_has", "modes"),
    [
        (STRUCT, WIDER, ["append_new_columns", "sync_all_columns"]),
        (f"array({STRUCT})", f"array({WIDER})", ["append_new_columns", "sync_all_columns"]),
        (f"map('k', {STRUCT})", f"map('k', {WIDER})", ["append_new_columns", "sync_all_columns"]),
        (WIDER, STRUCT, ["append_new_columns", "sync_all_columns"]),
        ("map(cast(id AS INT), 1)", "map(id, 1)", ["sync_all_columns"]),
        (f"array({DECIMAL.format(20, 2)})", f"array({DECIMAL.format(24, 4)})", ["sync_all_columns"]),
        ("cast(id AS FLOAT)", "cast(id AS DOUBLE)", ["sync_all_columns"]),
        ("cast(id AS STRING)", "id", ["append_new_columns"]),
        ("concat('k', id)", STRUCT, []),
        (STRUCT, "concat('k', id)", []),
        ("date'2020-01-01'", "id", []),
        ("1 AS d, 1", "1", ["append_new_columns", "sync_all_columns"]),
        ("1", "1 AS d, 1", ["append_new_columns", "sync_all_columns"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["ignore", "fail"])
def test_modes_that_an_error_names_take_the_batch(
    spark: SparkSession, table: TableName, table_has: str, query_has: str, modes: list[str], mode: str
) -> None:
    wanted = request(table, by=("id",), files=1)
    old, batch = of(table_has), of(query_has)
    build(spark, spark.sql(old), wanted)
    if mode == "ignore":
        try:
            go(spark, batch, wanted)
            return  # what is new is left out, and a value that fits is cast
        except SchemaChangeError as exc:
            said = str(exc)
        build(spark, spark.sql(old), wanted)
    else:
        with pytest.raises(SchemaChangeError) as raised:
            go(spark, batch, wanted, on_schema_change="fail")
        said = str(raised.value)
    named = re.findall(r"'(append_new_columns|sync_all_columns)'", said)
    assert "--full-refresh" in said
    if mode == "fail":
        assert named == modes
    for one in named:
        build(spark, spark.sql(old), wanted)
        go(spark, batch, wanted, on_schema_change=one)
        assert spark.table(table.sql).count() == 100
    if "Give it the table's type in the query" in said:
        go(spark, old, wanted)
    full_refresh(spark, batch, wanted)


def test_what_the_config_names_is_there_after_what_an_error_advises(spark: SparkSession, table: TableName) -> None:
    wanted = replace(request(table, by=("c.b",), files=1), stats_columns=())
    old, batch = of(STRUCT), of("named_struct('a', id)")
    build(spark, spark.sql(old), wanted)
    for mode in ("ignore", "fail"):
        with pytest.raises(SchemaChangeError, match=r"[sS]et it to 'append_new_columns'[^']*$") as raised:
            go(spark, batch, wanted, on_schema_change=mode)
        assert "--full-refresh" not in str(raised.value), "a table without c.b cannot be ordered by it"
    go(spark, batch, wanted, on_schema_change="append_new_columns")
    assert spark.table(table.sql).where("c.b IS NULL").count() == 50
    wanted = replace(wanted, stats_columns=("none",))
    with pytest.raises(SchemaChangeError, match=r"Let the query give the table's columns"):
        go(spark, batch, wanted, on_schema_change="fail")


def test_a_column_that_is_left_out_comes_by_either_advice(spark: SparkSession, table: TableName) -> None:
    wanted = replace(request(table, by=("id",), files=1), stats_columns=())
    build(spark, spark.sql(of(STRUCT)), wanted)
    asked = replace(wanted, stats_columns=("c.n",))
    with pytest.raises(ColumnError, match="set it to 'append_new_columns', or run the model with --full-refresh"):
        go(spark, of(WIDER), asked)
    go(spark, of(WIDER), asked, on_schema_change="append_new_columns")
    assert spark.table(table.sql).where("c.n IS NULL").count() == 50
    full_refresh(spark, of(WIDER), asked)


def test_other_partitions_go_by_either_advice(spark: SparkSession, table: TableName) -> None:
    by_p, by_a = (request(table, by=("id",), files=1, partition_by=(name,)) for name in ("p", "a"))
    build(spark, spark.sql(rows(0, 30)), by_p)
    with pytest.raises(ConfigError, match=r"run the model with --full-refresh, or set partition_by back to p\."):
        go(spark, rows(0, 30), by_a, overwrite=True)
    go(spark, rows(0, 30), by_p, overwrite=True)
    full_refresh(spark, rows(0, 30).replace(" AS a, ", " AS a0, 1 AS a, "), by_a)


@pytest.mark.parametrize("now", ["DROP", "VIEW"])
def test_a_table_that_is_gone_is_built_by_the_next_run(spark: SparkSession, table: TableName, now: str) -> None:
    wanted = request(table, files=1)
    if now == "VIEW":
        spark.sql(f"CREATE VIEW {table.sql} AS {rows(0, 3)}")
    with pytest.raises(BuildError, match="Run the model again, with --full-refresh if"):
        describe_existing(spark, table)
    full_refresh(spark, rows(0, 10), wanted)


def test_a_table_of_another_format_is_replaced_by_a_full_refresh(spark: SparkSession, table: TableName) -> None:
    wanted = request(table, files=1)
    spark.sql(f"CREATE TABLE {table.sql} USING csv AS {rows(0, 3)}")
    with pytest.raises(ZorderError, match="run the model with --full-refresh to replace it"):
        go(spark, rows(0, 9), wanted)
    full_refresh(spark, rows(0, 10), wanted)
    assert go(spark, rows(10, 20), wanted).appended is not None


def by_build(spark: SparkSession, wanted: BuildRequest) -> None:
    full_refresh(spark, rows(0, 100), wanted)


@pytest.mark.parametrize("anew", [by_build, rewrite])
def test_other_columns_take_effect_when_the_table_is_built_anew(
    spark: SparkSession,
    table: TableName,
    anew: Callable[[SparkSession, BuildRequest], Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    wanted = replace(request(table, by=("a",), files=2), stats_columns=())
    build(spark, spark.sql(rows(0, 100)), wanted)
    asked = replace(wanted, spec=replace(wanted.spec, by=("id",)), stats_columns=("s",))
    go(spark, rows(100, 110), asked)
    assert "zorder_by of" in caplog.text
    assert "zorder_stats_columns of" in caplog.text
    anew(spark, asked)
    caplog.clear()
    go(spark, rows(110, 120), asked)
    assert not caplog.records


def test_char_columns_go_as_texts(spark: SparkSession, table: TableName) -> None:
    source, wanted = TableName(table.schema, unique("char")), request(table, by=("c",), files=1)
    wanted = replace(wanted, stats_columns=())
    spark.sql(f"CREATE TABLE {source.sql} (c CHAR(3), id BIGINT) USING parquet")
    spark.sql(f"INSERT INTO {source.sql} VALUES ('a', 1)")
    with pytest.raises(
        ColumnError,
        match=r"Write CAST.rtrim.`c`. AS STRING. AS `c` in the query, or CAST.`c` AS STRING. AS `c` to keep",
    ):
        build(spark, spark.sql(f"SELECT * FROM {source.sql}"), wanted)
    full_refresh(spark, f"SELECT CAST(`c` AS STRING) AS `c`, id FROM {source.sql}", wanted)
    assert spark.table(table.sql).where("c = 'a  '").count() == 1
    full_refresh(spark, f"SELECT CAST(rtrim(`c`) AS STRING) AS `c`, id FROM {source.sql}", wanted)
    assert spark.table(table.sql).where("c = 'a'").count() == 1
    # a table that has them already
    asked = replace(wanted, table=source)
    with pytest.raises(ColumnError, match="a table that has them already needs --full-refresh"):
        go(spark, "SELECT 'b' AS c, 2L AS id", asked)
    full_refresh(spark, "SELECT 'b' AS c, 2L AS id", asked)
    assert go(spark, "SELECT 'c' AS c, 3L AS id", asked).appended is not None


def test_files_of_another_run_are_heeded_when_it_runs_again(spark: SparkSession, table: TableName) -> None:
    wanted = request(table, files=1)
    build(spark, spark.sql(rows(0, 100)), wanted)
    before = begin(spark, table)
    assert before is not None
    with pytest.raises(BuildError, match="Run it again"):
        increment(spark, spark.sql(rows(100, 120)), wanted, Batch(), {**before, "gone.parquet": 1})
    assert go(spark, rows(100, 120), wanted).appended is not None
    assert spark.table(table.sql).count() == 120


def test_a_journal_of_another_release_goes_with_a_full_refresh(spark: SparkSession, table: TableName) -> None:
    wanted = request(table, files=1)
    build(spark, spark.sql(rows(0, 100)), wanted)
    entry = Path(folder(spark, table)) / "_zorder_journal" / "b20261121T021045254-00000000"
    entry.mkdir(parents=True)
    (entry / "plan.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="or run the model with --full-refresh"):
        go(spark, rows(100, 120), wanted)
    full_refresh(spark, rows(0, 50), wanted)
    assert go(spark, rows(50, 60), wanted).appended is not None


def test_types_that_the_config_cannot_take(spark: SparkSession, table: TableName) -> None:
    query = "SELECT id, cast(cast(id AS STRING) AS BINARY) AS b, cast(id AS DOUBLE) AS d, named_struct('p', id) AS s"
    wanted = replace(request(table, by=("id",), files=1), stats_columns=())
    parted = replace(wanted, spec=replace(wanted.spec, partition_by=("b",)))
    with pytest.raises(ConfigError, match=r"Write hex\(`b`\) in the query"):
        build(spark, spark.sql(f"{query} FROM range(9)"), parted)
    full_refresh(spark, f"SELECT id, d, hex(`b`) AS b FROM ({query} FROM range(9))", parted)
    with pytest.raises(ColumnError, match="Leave it out, or make it a decimal"):
        build(spark, spark.sql(f"{query} FROM range(9)"), replace(wanted, bloom=("d",)))
    full_refresh(
        spark, f"SELECT id, cast(d AS DECIMAL(9, 1)) AS d FROM ({query} FROM range(9))", replace(wanted, bloom=("d",))
    )
    with pytest.raises(ConfigError, match="only a whole column can part a table"):
        build(
            spark,
            spark.sql(f"{query} FROM range(9)"),
            replace(wanted, spec=replace(wanted.spec, partition_by=("s.p",))),
        )


def test_a_setting_in_the_way_is_set_as_the_error_says(spark: SparkSession, table: TableName) -> None:
    wanted = request(table, files=1)
    build(spark, spark.sql(rows(0, 10)), wanted)
    with settings(spark, {"spark.sql.parser.escapedStringLiterals": "true"}):
        with pytest.raises(ConfigError, match="leave it out, or set it to false"):
            go(spark, rows(10, 20), wanted)
        with settings(spark, {"spark.sql.parser.escapedStringLiterals": "false"}):
            assert go(spark, rows(10, 20), wanted).appended is not None
