from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import BuildError, ColumnError, ConfigError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.progress import report_phases_to
from dbt_zorder.pruning import explain, scan
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, schema_location
from dbt_zorder.tables.parquet import build as table_build
from dbt_zorder.tables.parquet.partition_discovery import BY_CATALOG
from dbt_zorder.tables.parquet.stats_view import stats_table
from dbt_zorder.tables.report import Outcome
from dbt_zorder.tables.save import save_table
from tests.support import same_rows, settings, unique, versions

TIMES = "spark.sql.parquet.outputTimestampType"
QUERY = "SELECT id, pmod(hash(id), 100) AS a, concat('k', id % 10) AS s FROM range({}, {})"


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.sql(QUERY.format(0, 2000))


def test_a_saved_table_is_pruned_and_its_outcome_says_what_was_done(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    done = save_table(rows, str(table), ["id", "a"], files=16, comment="about", options={"compression": "zstd"})
    assert same_rows(spark.table(table.sql), rows)
    assert str(done).startswith("16 files, point query on id reads ")
    assert {name: round(mean) <= 4 for name, mean in done.point_query_files.items()} == {"id": True, "a": True}
    assert (done.rows, done.files, done.version) == (2000, 16, versions(spark, table)[0])
    assert set(done.seconds) == {"query", "sample", "write", "stats", "swap"}
    assert (done.appended, done.replaced, done.rewritten) == (None, None, None)
    assert (explain(spark, str(table), "id = 1234").files_read or 16) <= 4
    assert scan(spark, str(table), "id = 1234").count() == 1
    info = describe(spark, table)
    assert info is not None
    assert info.comment == "about"
    written = Path(info.location.removeprefix("file:"))
    assert {path.suffixes[-2] for path in written.glob("part-*")} == {".zstd"}


def test_a_table_that_is_there_is_left_or_replaced(spark: SparkSession, table: TableName, rows: DataFrame) -> None:
    save_table(rows, str(table), "id", files=4)
    for mode in ("error", "errorifexists"):
        with pytest.raises(ConfigError, match=f"^{table}: The table exists, and mode is '{mode}'. 'overwrite'"):
            save_table(rows, str(table), "id", mode)
    # what it replaces may be what it reads
    done = save_table(spark.table(table.sql).where("id >= 1000"), str(table), ["a", "id"], "overwrite", files=2)
    assert done.rows == 1000
    assert len(versions(spark, table)) == 2
    assert same_rows(spark.table(table.sql), rows.where("id >= 1000"))


def test_columns_keep_their_comments_and_the_table_is_parted(spark: SparkSession, table: TableName) -> None:
    source = f"{table.schema}.{unique('source')}"
    spark.sql(f"CREATE TABLE {source} (id BIGINT COMMENT 'which', p STRING, `P q` INT COMMENT 'more') USING orc")
    spark.sql(f"INSERT INTO {source} SELECT id, concat('p', id % 3), 1 FROM range(90)")
    done = save_table(spark.table(source), str(table), ["id"], files=2, partition_by="p")
    assert done.files == 6
    info = describe(spark, table)
    assert info is not None
    assert info.partition_columns == ["p"]
    assert [(name, comment) for name, _, comment in info.columns] == [("id", "which"), ("P q", "more"), ("p", "")]


@pytest.fixture
def current(spark: SparkSession, database: str) -> Iterator[str]:
    before = spark.catalog.currentDatabase()
    spark.catalog.setCurrentDatabase(database)
    yield database
    spark.catalog.setCurrentDatabase(before)


@pytest.mark.parametrize("written", ["{}", " `{}` ", "spark_catalog.`{schema}`.{}"])
def test_a_table_may_be_named_as_in_sql(spark: SparkSession, current: str, rows: DataFrame, written: str) -> None:
    name = unique("n")
    save_table(rows, written.format(name, schema=current), "id", files=2)
    assert describe(spark, TableName(current, name)) is not None


def test_settings_mean_what_those_of_a_model_mean(spark: SparkSession, table: TableName, rows: DataFrame) -> None:
    with settings(spark, {TIMES: "INT96"}):  # a session of the user's own
        frame = rows.selectExpr("*", "timestamp_seconds(id * 1000) AS ts")
        for number in range(2):
            save_table(
                frame,
                str(table),
                ["a", "ts"],
                "overwrite",
                files=8,
                curve="linear",
                bloom="s",
                stats_columns=["id"],
                properties={"x": number, "y": None, "z": True},
                location_root=f"{schema_location(spark, table.schema)}/elsewhere/",
                keep_versions=0,
                grace_hours=0,
            )
        assert spark.conf.get(TIMES) == "INT96"
    assert same_rows(spark.table(table.sql), frame)
    info = describe(spark, table)
    assert info is not None
    folder = Path(info.location.removeprefix("file:"))
    assert folder.parent.parent.name == "elsewhere"
    assert len([*folder.parent.iterdir()]) == 1
    group = pq.read_metadata(next(folder.glob("part-*"))).row_group(0)
    chunks = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    assert chunks["ts"].is_stats_set
    assert chunks["s"].bloom_filter_offset
    assert not chunks["a"].bloom_filter_offset
    owned = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {table.sql}").collect()}
    assert {key: owned.get(key) for key in "xyz"} == {"x": "1", "y": None, "z": "true"}
    stats = spark.table(stats_table(table).sql)
    assert stats.selectExpr("columns.*").columns == ["a", "ts", "id"]
    bounds = stats.selectExpr("columns.a.min_value", "columns.a.max_value").collect()
    ordered = sorted((row[0], row[1]) for row in bounds)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(ordered))


def test_times_have_bounds_in_a_session_that_says_nothing_of_them(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    before = str(spark.conf.get(TIMES))
    spark.conf.unset(TIMES)
    try:
        save_table(rows.selectExpr("id", "timestamp_seconds(id) AS ts"), str(table), "ts", files=2, in_memory="never")
        assert spark.conf.get(TIMES) == "INT96"
    finally:
        spark.conf.set(TIMES, before)
    info = describe(spark, table)
    assert info is not None
    for file in Path(info.location.removeprefix("file:")).glob("part-*"):
        assert pq.read_metadata(file).row_group(0).column(1).is_stats_set


def test_rows_are_laid_out_here_unless_that_is_not_wanted(
    spark: SparkSession, table: TableName, rows: DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dbt_zorder")
    for in_memory, here in (("never", False), (None, True), ("64MB", True)):
        caplog.clear()
        save_table(rows, str(table), ["id", "a"], "overwrite", files=4, in_memory=in_memory)
        assert (f"{table} is laid out and written here" in caplog.text) == here


def test_weights_sizes_encodings_and_seeds_have_an_effect(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    def saved(**more: Any) -> Outcome:
        return save_table(rows, str(table), ["id", "a"], "overwrite", **more)

    even = saved(files=16).point_query_files
    for weights in ([1, 50], {"a": 50}):
        favoured = saved(files=16, weights=weights).point_query_files
        assert favoured["a"] < even["a"]
        assert favoured["id"] > even["id"]
    by_size = saved(file_size=4000)
    assert by_size.files == pytest.approx(saved(files=1).bytes / 4000, rel=0.5)
    assert saved(file_size="1GB").files == 1
    along = [saved(files=16, curve="hilbert", encoding=encoding) for encoding in ("bits", "rank")]
    assert along[0].point_query_files != along[1].point_query_files


def test_the_seed_and_all_else_of_a_layout_are_passed_on(
    spark: SparkSession, table: TableName, rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[LayoutSpec] = []

    real = table_build.build

    def build(spark: SparkSession, df: DataFrame, request: BuildRequest, *more: Any, **named: Any) -> Any:
        asked.append(request.spec)
        return real(spark, df, request, *more, **named)

    monkeypatch.setattr(table_build, "build", build)
    options = {"compression": "zstd", "parquet.page.row.count.limit": 500}
    more: dict[str, Any] = {"curve": "hilbert", "encoding": "bits", "seed": 9, "partition_by": "s", "options": options}
    save_table(rows, str(table), ["id", "a"], file_size="2MB", **more)
    assert asked == [
        LayoutSpec(
            by=("id", "a"),
            file_size="2MB",
            partition_by=("s",),
            seed=9,
            curve="hilbert",
            encoding="bits",
            page_rows=500,
            compression="zstd",
        )
    ]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "mode": ({"mode": "overwite"}, "mode is 'overwite', but only 'error', .* is allowed. Did you mean 'overwrite'"),
    "mode of no text": ({"mode": None}, "mode is None, but only 'error'"),
    "append": ({"mode": "append"}, "mode is 'append', but only 'error', 'errorifexists', 'overwrite' is allowed"),
    "name": ({"table": "a.b.c.d"}, "A table is named like 'orders' or 'sales.orders'; given was 'a.b.c.d'"),
    "no name": ({"table": ""}, "A table is named like"),
    "half a name": ({"table": "a."}, "A table is named like"),
    "catalog": ({"table": "lake.a.b"}, "lake.a.b: its catalog is lake, and the session's is spark_catalog"),
    "schema": ({"table": "nosuch.t"}, "nosuch.t: There is no schema nosuch; make it by CREATE SCHEMA `nosuch`"),
    "identifier": ({"table": "{}.`my table`"}, "SCHEMA.my table: 'my table' is no name for a table"),
    "format": ({"file_format": "parket"}, "TABLE: file_format is 'parket', .* Did you mean 'parquet'"),
    "column": ({"by": ["idd"]}, "TABLE: zorder_by: .*idd.*Did you mean 'id'"),
    "columns": ({"by": []}, "TABLE: Between 1 and 8 columns"),
    "no text": ({"by": [1]}, r"TABLE: by is \[1\], but it must be a column name or a list"),
    "nothing": ({"by": None}, "TABLE: by is None, but it must be a column name"),
    "files": ({"files": 0}, "TABLE: files is 0, but it must be a whole number, 1 or more"),
    "size": ({"file_size": "many"}, "TABLE: file_size is 'many', but it must be 'auto'"),
    "weights": ({"weights": [1.0, 2.0]}, r"TABLE: weights is \[1.0, 2.0\], but it must be 1 positive numbers"),
    "named weights": ({"weights": {"idd": 2.0}}, "TABLE: weights is .* 'idd' is not in zorder_by. Did you mean 'id'"),
    "keep": ({"keep_versions": 1.5}, "TABLE: keep_versions is 1.5, but it must be a whole number, 0 or more"),
    "hours": ({"grace_hours": -1}, "TABLE: grace_hours is -1, but it must be a number of hours"),
    "memory": ({"in_memory": "1TB"}, "TABLE: in_memory is '1TB', but it must be 'never'"),
    "bloom": ({"bloom": "nope"}, "TABLE: zorder_bloom: .*nope"),
    "partition": ({"partition_by": "id"}, "TABLE: .*'id' is a partition column"),
    "partitions": ({"partition_by": {"a"}}, "TABLE: partition_by is {'a'}, but it must be a column name or a list"),
    "option": ({"options": {"parquet.page.row.count.limit": "x"}}, "TABLE: options is .* must be a positive whole"),
    "property": ({"properties": {"location": "/x"}}, "TABLE: properties is .* use location_root"),
    "folder": ({"location_root": Path("/x")}, "TABLE: location_root is .*, but it must be the path or URI"),
    "comment": ({"comment": None}, "TABLE: comment is None, but it must be a text"),
    "seed": ({"seed": "x"}, "TABLE: .*seed.*'x'"),
    "ninth column": ({"by": [*"abcdefghi"]}, "TABLE: .*Between 1 and 8 columns can be clustered by; given were 9"),
    "negative size": ({"file_size": -5}, "TABLE: file_size is -5, but it must be 'auto'"),
    "curve": ({"curve": "hilbet"}, "TABLE: curve is 'hilbet', .* Did you mean 'hilbert'"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_done_is_told_before_anything_begins(
    spark: SparkSession, table: TableName, rows: DataFrame, case: str
) -> None:
    given, message = BAD[case]
    if "{}" in str(given.get("table")):
        given = {"table": given["table"].format(table.schema)}
    phases: list[str] = []
    message = message.replace("TABLE", str(table)).replace("SCHEMA.", f"{table.schema}.")
    with report_phases_to(phases.append), pytest.raises((ColumnError, ConfigError), match="^" + message):
        save_table(rows, **{"table": str(table), "by": ["id"], **given})
    assert phases == []
    assert describe(spark, table) is None
    assert versions(spark, table) == []


def test_only_a_batch_of_spark_can_be_saved(spark: SparkSession, table: TableName, rows: DataFrame) -> None:
    with pytest.raises(ConfigError, match=r"^df is a stream, not a batch DataFrame\."):
        save_table(spark.readStream.format("rate").load(), str(table), "value")
    with pytest.raises(ConfigError, match=r"^df is a DataFrame, not a batch DataFrame\."):
        save_table(rows.toPandas(), str(table), "id")


def test_a_view_is_never_replaced(spark: SparkSession, table: TableName, rows: DataFrame) -> None:
    spark.sql(f"CREATE VIEW {table.sql} AS SELECT 1 AS id")
    for mode in ("error", "overwrite"):
        with pytest.raises(ConfigError, match=f"^{table}: It is a view"):
            save_table(rows, str(table), "id", mode)
    assert spark.table(table.sql).count() == 1


def test_a_table_that_another_run_makes_meanwhile_is_not_replaced(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    def meddle(phase: str) -> None:
        if phase == "stats":
            spark.sql(f"CREATE TABLE {table.sql} USING parquet AS SELECT 1 AS id")

    with (
        report_phases_to(meddle),
        pytest.raises(BuildError, match=f"^{table}: Another run has made the table meanwhile"),
    ):
        save_table(rows, str(table), "id", files=2)
    assert spark.table(table.sql).count() == 1
    assert versions(spark, table) == []


def test_a_table_of_sparks_own_is_replaced_by_one_of_that_name_elsewhere_and_by_a_part_of_itself(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    spark.sql(f"CREATE SCHEMA {table.schema}_raw")
    try:
        rows.write.saveAsTable(f"{table.schema}_raw.{table.identifier}")
        rows.limit(10).write.partitionBy("s").saveAsTable(str(table))
        save_table(spark.table(f"{table.schema}_raw.{table.identifier}"), str(table), "id", "overwrite")
        assert same_rows(spark.table(table.sql), rows)
        spark.sql(f"DROP TABLE {table.sql}")
        rows.write.partitionBy("s").saveAsTable(f"{table}_parts")
        save_table(spark.table(f"{table}_parts").where("s = 'k1'"), f"{table}_parts", "id", "overwrite")
        assert spark.table(f"{table}_parts").count() == 200
    finally:
        spark.sql(f"DROP SCHEMA {table.schema}_raw CASCADE")


def test_a_table_whose_folder_is_gone_can_be_replaced(spark: SparkSession, table: TableName, rows: DataFrame) -> None:
    save_table(rows, str(table), "id")
    info = describe(spark, table)
    assert info is not None
    shutil.rmtree(info.location.removeprefix("file:"))
    save_table(rows, str(table), "id", "overwrite")
    assert same_rows(spark.table(table.sql), rows)


def test_a_parted_table_has_its_rows_in_a_session_that_asks_the_catalog(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    with settings(spark, {BY_CATALOG: "true"}):
        for _ in range(2):
            save_table(rows, str(table), "id", "overwrite", files=1, partition_by="s")
            assert spark.conf.get(BY_CATALOG) == "true"
            assert same_rows(spark.table(table.sql).select("id", "a", "s"), rows)
            assert scan(spark, str(table), "s = 'k3' and id < 1000").count() == 100


def test_a_table_of_another_format_is_replaced(spark: SparkSession, table: TableName, rows: DataFrame) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING orc AS SELECT id FROM range(10)")
    save_table(rows.join(spark.table(table.sql), "id"), str(table), "id", "overwrite", files=2)
    assert spark.table(table.sql).count() == 10
    info = describe(spark, table)
    assert info is not None
    assert info.provider == "parquet"
