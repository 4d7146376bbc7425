"""Tables in Delta Lake and Iceberg: what a reader without any helper reads, and what is there after each build."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError, ColumnError, ConfigError
from dbt_zorder.pruning import explain, scan
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark import catalog
from dbt_zorder.spark.catalog import FORMAT_SUFFIX, TableName, describe, properties, schema_location
from dbt_zorder.spark.columns import resolve_all
from dbt_zorder.spark.scan_metrics import scan_metrics
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.delta import log as delta_log
from dbt_zorder.stats.delta.log import delta_state
from dbt_zorder.tables.lakehouse.state import current_version
from dbt_zorder.tables.parquet.build import build as build_parquet
from dbt_zorder.tables.reserved import mark_folder
from tests.formats.tables import build, failing, last_whole_layout, request, rewrite, rows
from tests.support import same_rows, settings

SHORT = {"spark.sql.files.maxRecordsPerFile": "100"}
OPTIMIZED = {"spark.databricks.delta.optimizeWrite.enabled": "true"}
RESHUFFLING = {
    "delta": ({**SHORT, **OPTIMIZED}, {"delta.autoOptimize.optimizeWrite": "true"}),
    "iceberg": (SHORT, {"write.distribution-mode": "hash", "write.target-file-size-bytes": "1000"}),
}


def files_read(spark: SparkSession, query: str) -> int:
    """Files that Spark itself says it read for a plain query."""
    df = spark.sql(query).selectExpr("sum(hash(*))")  # Iceberg answers a count of whole partitions without reading
    df.collect()
    return scan_metrics(df).files


def test_a_plain_select_reads_the_minimum_of_files(spark: SparkSession, table: TableName, file_format: str) -> None:
    report = build(spark, rows(spark, 0, 40_000), request(table, file_format))
    assert report.summary.files == 16
    assert report.summary.rows == 40_000
    for column, value in (("a", "{}"), ("s", "'k{:04d}'")):
        found = [
            files_read(spark, f"SELECT * FROM {table.sql} WHERE {column} = {value.format(n)}")
            for n in range(0, 5000, 250)
        ]
        assert statistics.mean(found) <= 1.15 * 4, (column, found)
        assert report.summary.point_query_files[column] == pytest.approx(statistics.mean(found), rel=0.2)


def test_partition_columns_may_have_any_name(spark: SparkSession, table: TableName, file_format: str) -> None:
    names = ["p q", "p-q", "select"]
    df = rows(spark, 0, 500).selectExpr("*", *(f"id % 2 AS `{name}`" for name in names))
    kept = {"delta.columnMapping.mode": "name"} if file_format == "delta" else {}
    asked = request(table, file_format, partition_by=[quote_name(name) for name in names], properties=kept)
    build(spark, df, asked)
    info = describe(spark, table)
    assert info is not None
    assert list(info.partition_columns) == names
    assert same_rows(spark.table(table.sql), df)
    rewrite(spark, asked, "auto")
    assert same_rows(spark.table(table.sql), df)


def test_explain_tells_what_the_format_skips(spark: SparkSession, table: TableName, file_format: str) -> None:
    build(spark, rows(spark, 0, 5_000), request(table, file_format))
    predicate = "a = 77 AND s > 'k2'"
    found = explain(spark, table.sql, predicate)
    assert found.skipped_by == file_format
    assert found.files_total == 16
    assert found.files_read == files_read(spark, f"SELECT * FROM {table.sql} WHERE {predicate}")
    assert f"{file_format} skips files by its own statistics" in str(found)
    pruned = scan(spark, table.sql, predicate)
    assert same_rows(pruned, spark.table(table.sql).where(predicate))


def test_a_commit_of_all_files_is_read_by_itself_while_it_is_the_last(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if file_format != "delta":
        pytest.skip("Iceberg's metadata need no putting together")
    for first in (0, 100):  # the second replaces files, too
        build(spark, rows(spark, first, 5_000), request(table, file_format))
    note = spark.sql(f"DESCRIBE HISTORY {table.sql}").select("userMetadata").first()
    assert note is not None
    token = json.loads(note[0])["token"]
    columns = resolve_all(["a", "st.y"], spark.table(table.sql).schema)
    by_commit, by_checksum = (delta_state(spark, table).stats(columns, one) for one in (token, ""))
    with monkeypatch.context() as patch:
        patch.setattr(delta_log, "items", failing(ValueError("no checksum")))
        by_log = delta_state(spark, table).stats(columns)
    plans = [str(one._jdf.queryExecution().optimizedPlan()) for one in (by_commit, by_checksum, by_log)]
    assert ["LocalRelation" in plan for plan in plans] == [True, True, False]
    assert by_commit.count() == 16
    assert same_rows(by_commit, by_log)
    assert same_rows(by_checksum, by_log)
    rows(spark, 5_000, 5_100).coalesce(1).writeTo(table.sql).append()
    assert delta_state(spark, table).stats(columns, token).count() == 17


def test_nothing_moves_the_rows_again(spark: SparkSession, table: TableName, file_format: str) -> None:
    session, own = RESHUFFLING[file_format]
    wanted = request(table, file_format, properties=own)
    for by in (wanted, replace(wanted, in_memory=0)):  # the latter by Spark
        with settings(spark, session):
            report = build(spark, rows(spark, 0, 10_000), by)
        assert report.summary.files == 16
        assert max(report.summary.point_query_files.values()) <= 5


def test_a_rebuild_is_one_commit_and_the_version_before_is_kept(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    wanted = request(table, file_format, properties={"team": "me"})
    build(spark, rows(spark, 0, 900), wanted)
    before = current_version(spark, file_format, table)
    report = build(spark, rows(spark, 0, 1000), wanted)
    assert report.version != before
    assert spark.sql(f"SELECT count(*) FROM {table.sql} VERSION AS OF {before}").collect()[0][0] == 900
    assert same_rows(spark.table(table.sql), rows(spark, 0, 1000))
    assert properties(spark, table)["team"] == "me"
    assert last_whole_layout(spark, file_format, table).rows == 1000


def test_partitions_have_trees_of_their_own(spark: SparkSession, table: TableName, file_format: str) -> None:
    wanted = request(table, file_format, partition_by=["p"], files=4)
    report = build(spark, rows(spark, 0, 6_000), wanted)
    assert report.summary.files == 12
    info = describe(spark, table)
    assert info is not None
    assert list(info.partition_columns) == ["p"]
    assert files_read(spark, f"SELECT * FROM {table.sql} WHERE p = 1") == 4
    assert same_rows(spark.table(table.sql), rows(spark, 0, 6_000).select(*spark.table(table.sql).columns))


def test_leaves_and_late_columns_keep_statistics(spark: SparkSession, table: TableName, file_format: str) -> None:
    wide = rows(spark, 0, 2_000).selectExpr(*(f"id + {n} AS c{n}" for n in range(120)), "st", "a")
    report = build(spark, wide, request(table, file_format, by=["st.x", "c118", "a"], files=8))
    assert set(report.summary.point_query_files) == {"st.x", "c118", "a"}
    assert files_read(spark, f"SELECT * FROM {table.sql} WHERE c118 = 700") < 8


@pytest.mark.parametrize("before", ["zordered", "plain", "view"])
def test_a_table_of_another_format_is_replaced(
    spark: SparkSession, table: TableName, file_format: str, before: str
) -> None:
    if before == "zordered":
        build_parquet(spark, rows(spark, 0, 50), BuildRequest(table, request(table, file_format).spec))
    else:
        kind = "VIEW" if before == "view" else "TABLE"
        spark.sql(f"CREATE {kind} {table.sql} {'' if before == 'view' else 'USING parquet'} AS SELECT 1 AS one")
    with pytest.raises(ColumnError):
        build(spark, rows(spark, 0, 500), request(table, file_format, by=["nowhere"]))
    assert spark.table(table.sql).count() in (50, 1)
    build(spark, rows(spark, 0, 500), request(table, file_format))
    info = describe(spark, table)
    assert info is not None
    assert info.provider == file_format
    assert same_rows(spark.table(table.sql), rows(spark, 0, 500))
    left = [row["tableName"] for row in spark.sql(f"SHOW TABLES IN {table.schema}").collect()]
    assert [name for name in left if name.startswith(table.identifier)] == [table.identifier]
    # what a run that was killed between drop and rename has left goes with the next
    following = TableName(table.schema, table.identifier + FORMAT_SUFFIX)
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {following.sql}")
    with pytest.raises(ConfigError, match=f"{following} is in the way of {table}"):
        build(spark, rows(spark, 0, 500), request(table, file_format))
    assert spark.table(following.sql).count(), "what is not marked is somebody else's"
    mark_folder(spark, table, following)
    build(spark, rows(spark, 0, 500), request(table, file_format))
    left = [row["tableName"] for row in spark.sql(f"SHOW TABLES IN {table.schema}").collect()]
    assert [name for name in left if name.startswith(table.identifier)] == [table.identifier]
    # and back again
    build_parquet(spark, rows(spark, 0, 70), BuildRequest(table, request(table, file_format).spec))
    assert spark.table(table.sql).count() == 70


def test_location_root_is_where_the_table_lies(
    spark: SparkSession, table: TableName, file_format: str, tmp_path: Path
) -> None:
    build(spark, rows(spark, 0, 100), request(table, file_format, location_root=str(tmp_path)))
    assert list((tmp_path / table.identifier).rglob("*.parquet"))
    assert same_rows(spark.table(table.sql), rows(spark, 0, 100))


@pytest.mark.parametrize("taken", [False, True])
def test_location_root_is_where_it_lies_after_another_kind_of_table(
    spark: SparkSession,
    table: TableName,
    file_format: str,
    tmp_path: Path,
    taken: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = tmp_path / table.identifier
    if taken:
        spark.sql(f"CREATE TABLE {table.sql} USING parquet LOCATION '{before}' AS SELECT 1 AS one")
    else:
        spark.sql(f"CREATE VIEW {table.sql} AS SELECT 1 AS one")
    wanted = request(table, file_format, location_root=str(tmp_path))
    for end in (100, 200):
        build(spark, rows(spark, 0, end), wanted)
        assert same_rows(spark.table(table.sql), rows(spark, 0, end))
    info = describe(spark, table)
    assert info is not None
    assert info.location.rstrip("/").endswith(f"/{table.identifier}") is not taken
    assert ("other files" in caplog.text) is taken
    if taken:
        assert len(list(before.glob("*.parquet"))) == 1


def test_that_there_is_no_table_is_known_as_well_as_can_be(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(spark, rows(spark, 0, 10), request(table, file_format))
    assert describe(spark, table) is not None
    nowhere = TableName(table.schema, "nowhere")
    if file_format == "delta":  # whose tables are all in Spark's own catalog

        def fail(*_: object) -> None:
            raise AssertionError

        monkeypatch.setattr(catalog, "described", fail)
    assert describe(spark, nowhere) is None


def test_properties_that_keep_no_statistics_are_an_error(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    own = {
        "delta": {"delta.dataSkippingStatsColumns": "id, s"},
        "iceberg": {"write.metadata.metrics.column.a": "counts"},
    }
    if file_format == "delta":
        with pytest.raises(ConfigError, match="dataSkippingNumIndexedCols is 'all', but it must be a whole number"):
            build(
                spark,
                rows(spark, 0, 100),
                request(table, file_format, properties={"delta.dataSkippingNumIndexedCols": "all"}),
            )
    with pytest.raises(ConfigError, match="keeps no statistics of 'a'"):
        build(spark, rows(spark, 0, 100), request(table, file_format, properties=own[file_format]))
    assert describe(spark, table) is None


def test_columns_are_named_in_any_case(spark: SparkSession, table: TableName, file_format: str) -> None:
    wanted = replace(request(table, file_format, by=("A",), partition_by=["P"], files=1), bloom=["ID"])
    report = build(spark, rows(spark, 0, 300), wanted)
    assert report.summary.rows == 300
    info = describe(spark, table)
    assert info is not None
    assert list(info.partition_columns) == ["p"]
    if file_format == "iceberg":
        assert properties(spark, table)["write.parquet.bloom-filter-enabled.column.id"] == "true"


def test_rows_that_a_format_does_not_count_fail_no_build(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    with settings(spark, {"spark.databricks.delta.stats.collect": "false"}):
        report = build(spark, rows(spark, 0, 300), request(table, file_format, files=2))
    assert report.summary.files == 2
    assert spark.table(table.sql).count() == 300


@pytest.mark.parametrize("kind", ["view", "external"])
def test_files_in_the_place_of_a_table_lose_no_table(
    spark: SparkSession, table: TableName, file_format: str, kind: str
) -> None:
    """Spark renames no managed table to where a folder is."""
    folder = Path(urlsplit(schema_location(spark, table.schema)).path) / table.identifier
    folder.mkdir()
    (folder / "left").write_text("x")
    if kind == "view":
        spark.sql(f"CREATE VIEW {table.sql} AS SELECT 1 AS one")
    else:
        spark.sql(f"CREATE TABLE {table.sql} (one INT) USING csv LOCATION '{folder}'")
        spark.sql(f"INSERT INTO {table.sql} VALUES (1)")
    before = spark.table(table.sql).count()
    wanted = request(table, file_format, files=1)
    if file_format == "iceberg":  # it renames the entry alone
        build(spark, rows(spark, 0, 100), wanted)
        assert spark.table(table.sql).count() == 100
    else:
        with pytest.raises(BuildError, match=f"{table.identifier} is in the way"):
            build(spark, rows(spark, 0, 100), wanted)
        assert spark.table(table.sql).count() == before
    assert (folder / "left").exists()
