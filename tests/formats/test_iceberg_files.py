"""Files that this process writes for an Iceberg table: what is in them, and when Iceberg writes its own."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.local.small_table import InMemoryRows
from dbt_zorder.engine.parquet.writer import ArrowWriter
from dbt_zorder.errors import BuildError
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, properties
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.iceberg.target import IcebergTarget
from dbt_zorder.tables.lakehouse import state as state_module
from dbt_zorder.tables.lakehouse.sink import write_files
from tests.conftest import FORMATS_HERE
from tests.formats.tables import BY_SPARK, HERE, build, failing, increment, read_state, request, rows, same
from tests.support import same_rows, settings
from tests.unit.engine.local.test_large_table import write_in_parts
from tests.unit.engine.parquet.test_column_options import needs_bloom_filters
from tests.unit.engine.parquet.test_writer import needs_page_limit

pytestmark = [
    needs_page_limit,
    pytest.mark.skipif(FORMATS_HERE[:1] != ["iceberg"], reason="only Iceberg takes files of this process"),
]

NAN = "CASE WHEN id % 10 = 0 THEN double('NaN') WHEN id % 7 = 0 THEN NULL ELSE id * 1.5 END"
ALL = [
    "id",
    "CAST(id % 100 AS TINYINT) AS tiny",
    "CAST(pmod(hash(id), 5000) AS SMALLINT) AS a",
    "CAST(id AS INT) AS i",
    "concat('k', pmod(hash(id, 7), 5000)) AS s",
    f"{NAN} AS x",
    "CAST(id / 3 AS FLOAT) AS y",
    "CAST(IF(id % 2 = 0, -0.0D, 0.0D) AS FLOAT) AS zero",
    "CAST(NULL AS DOUBLE) AS nothing",
    "CAST(id AS TIMESTAMP) AS t",
    "CAST(CAST(id AS TIMESTAMP) AS TIMESTAMP_NTZ) AS n",
    "array(id, NULL) AS ar",
    "map('a', id) AS m",
    f"named_struct('q', {NAN}, 'Upper', array(named_struct('z', CAST(id AS TINYINT)))) AS st",
    "CAST(id AS DECIMAL(7, 2)) AS d7",
    "CAST(id AS DECIMAL(12, 2)) AS d12",
    "CAST(id AS DECIMAL(30, 2)) AS d30",
    "date'1500-01-01' + CAST(id % 1000 AS INT) AS dt",
    "id % 2 = 0 AS b",
    "encode(CAST(id AS STRING), 'utf-8') AS bi",
    "repeat(s, 200) AS `long text`",
]


def all_types(spark: SparkSession, count: int = 4000) -> DataFrame:
    return spark.range(count).selectExpr(*(one for one in ALL))


def files_of(spark: SparkSession, table: TableName) -> list[Path]:
    found = spark.table(f"{table.sql}.files").select("file_path").orderBy("file_path").collect()
    return [Path(urlsplit(row[0]).path) for row in found]


def on_disk(spark: SparkSession, table: TableName) -> set[Path]:
    info = describe(spark, table)
    assert info is not None
    return set(Path(urlsplit(info.location).path).rglob("*.parquet"))


@pytest.mark.parametrize(
    "version", [pytest.param("1", marks=pytest.mark.slow), "2", pytest.param("3", marks=pytest.mark.slow)]
)
def test_a_table_is_what_spark_would_have_made_of_it(
    spark: SparkSession, table: TableName, file_format: str, way: Any, version: str
) -> None:
    df = all_types(spark)
    wanted = request(table, file_format, files=1, properties={"format-version": version, "mine": "1"})
    written = {}
    for in_memory, who in ((1 << 28, HERE), (0, BY_SPARK)):
        report = build(spark, df, replace(wanted, in_memory=in_memory, comment="a comment"))
        assert way(table) == who
        assert same(spark.table(table.sql), df)
        metrics = spark.table(f"{table.sql}.files").selectExpr(
            "record_count", "content", "file_format", "spec_id", "sort_order_id", "readable_metrics.*"
        )
        (row,) = metrics.collect()
        measured = row.asDict(recursive=True)
        for column in measured.values():
            if isinstance(column, dict):
                del column["column_size"]
        (snapshot,) = spark.table(f"{table.sql}.snapshots").orderBy("committed_at").tail(1)
        summary = {name: value for name, value in snapshot["summary"].items() if "size" not in name}
        assert len(summary.pop("dbt_zorder.token")) == 32
        written[who] = (
            spark.table(table.sql).schema,
            {name: value for name, value in properties(spark, table).items() if name != "current-snapshot-id"},
            measured,
            {**summary, "operation": snapshot["operation"]},
            replace(report.summary, bytes=0),
        )
    for here, by_spark in zip(written[HERE], written[BY_SPARK], strict=True):
        assert here == by_spark


def test_what_a_query_asks_of_floats_and_of_what_is_nested(
    spark: SparkSession, table: TableName, file_format: str, way: Any
) -> None:
    df = all_types(spark)
    build(spark, df, request(table, file_format, by=("x", "s")))
    assert way(table) == HERE
    for where in (
        "isnan(x)",
        "x IS NULL",
        "x = 1.5",
        "zero = 0",
        "st.q < 3",
        "nothing IS NULL",
        "d30 = 7",
        "m['a'] = 5",
    ):
        found = spark.table(table.sql).where(where)
        assert same(found, df.where(where)), where
        assert found.count() > 0


@pytest.mark.parametrize("copied", [False, True])
def test_columns_are_found_by_their_numbers(
    spark: SparkSession, table: TableName, file_format: str, way: Any, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if copied:
        monkeypatch.setattr("dbt_zorder.engine.choose.SMALL_BYTES", -1)
    df, wanted = rows(spark, 0, 2000), request(table, file_format, files=4)
    build(spark, df, wanted)
    assert way(table) == HERE
    spark.sql(f"ALTER TABLE {table.sql} RENAME COLUMN a TO renamed")
    spark.sql(f"ALTER TABLE {table.sql} ALTER COLUMN p FIRST")
    spark.sql(f"ALTER TABLE {table.sql} DROP COLUMN st")
    spark.sql(f"ALTER TABLE {table.sql} ADD COLUMN st STRUCT<y: STRING, x: BIGINT>")
    batch = rows(spark, 2000, 2300).selectExpr("id", "s", "p", "a AS renamed", "named_struct('y', 'w', 'x', id) AS st")
    by_now = replace(wanted, spec=replace(wanted.spec, by=("renamed", "s")))
    report = increment(spark, lambda: batch, by_now, Batch(), "never")
    assert way(table) == HERE
    assert report.appended is not None
    assert report.appended.rows == 300
    old = df.selectExpr("id", "s", "p", "a AS renamed", "CAST(NULL AS STRUCT<y: STRING, x: BIGINT>) AS st")
    assert same_rows(spark.table(table.sql).select(*batch.columns), old.unionByName(batch))
    # a new table by the same name has numbers of its own, and what was before is still read by the old ones
    build(spark, df, wanted)
    assert same_rows(spark.table(table.sql), df)
    (first,) = spark.table(f"{table.sql}.history").orderBy("made_current_at").take(1)
    assert same_rows(spark.sql(f"SELECT * FROM {table.sql} VERSION AS OF {first['snapshot_id']}"), df)


def test_files_are_as_the_table_asks(spark: SparkSession, table: TableName, file_format: str, way: Any) -> None:
    asked = {"write.parquet.compression-codec": "snappy", "write.parquet.page-row-limit": "300"}
    build(spark, rows(spark, 0, 3000), request(table, file_format, files=2, properties=asked))
    assert way(table) == HERE
    for file in files_of(spark, table):
        footer = pq.read_metadata(file)
        assert footer.row_group(0).column(0).compression == "SNAPPY"
        assert b"iceberg.schema" in footer.metadata


@pytest.mark.slow
def test_files_are_of_the_size_that_was_asked_for(
    spark: SparkSession, table: TableName, file_format: str, way: Any
) -> None:
    asked = request(table, file_format, files=None)
    asked = replace(asked, spec=replace(asked.spec, file_size="200 KB"))
    build(spark, all_types(spark, 20_000), asked)
    assert way(table) == HERE
    sizes = [file.stat().st_size for file in files_of(spark, table)]
    assert len(sizes) > 5
    assert statistics.median(sizes) == pytest.approx(200 << 10, rel=0.15)
    assert max(sizes) < 1.5 * (200 << 10)


@needs_bloom_filters
def test_bloom_filters_are_there(spark: SparkSession, table: TableName, file_format: str, way: Any) -> None:
    wanted = replace(request(table, file_format, files=1), bloom=["id"])
    build(spark, rows(spark, 0, 3000), wanted)
    assert way(table) == HERE
    (file,) = files_of(spark, table)
    with_filter = file.stat().st_size
    assert spark.table(table.sql).where("id = 77").count() == 1
    assert spark.table(table.sql).where("id = 3077").count() == 0
    increment(spark, partial(rows, spark, 3000, 3100), wanted, Batch(), "never")
    assert way(table) == HERE
    without = TableName(table.schema, f"{table.identifier}_without")
    build(spark, rows(spark, 0, 3000), replace(wanted, table=without, bloom=[]))
    (file,) = files_of(spark, without)
    assert file.stat().st_size < with_filter - 2000


def test_a_file_may_have_many_row_groups(
    spark: SparkSession, table: TableName, file_format: str, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_parts(monkeypatch, 40_000)
    monkeypatch.setattr("dbt_zorder.engine.choose.SMALL_BYTES", -1)
    df = all_types(spark, 3000)
    build(spark, df, request(table, file_format, files=1))
    assert way(table) == HERE
    assert same(spark.table(table.sql), df)
    (row,) = spark.table(f"{table.sql}.files").collect()
    footer = pq.read_metadata(files_of(spark, table)[0])
    assert footer.num_row_groups == len(row["split_offsets"]) > 5
    assert row["split_offsets"] == sorted(row["split_offsets"])
    assert row["split_offsets"][0] == 4


@pytest.mark.parametrize("kind", ["STRING", "BINARY"])
def test_a_value_that_is_too_long_for_a_bound_does_not_hide_its_row_group(
    spark: SparkSession, table: TableName, file_format: str, way: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    write_in_parts(monkeypatch, 40_000)
    monkeypatch.setattr("dbt_zorder.engine.choose.SMALL_BYTES", -1)
    text = "concat(lpad(id, 6, '0'), IF(id >= 3000, repeat('x', 5000), ''))"
    df = spark.range(4000).selectExpr("id", f"CAST({text} AS {kind}) AS t", "id % 7 AS a")
    build(spark, df, request(table, file_format, by=("id",), files=1))
    assert way(table) == HERE
    (file,) = files_of(spark, table)
    assert pq.read_metadata(file).num_row_groups > 2
    for where in (f"t >= CAST('003000' AS {kind})", f"t = CAST(concat('003500', repeat('x', 5000)) AS {kind})"):
        assert spark.table(table.sql).where(where).count() == df.where(where).count() > 0


def test_floats_of_any_name_are_found(spark: SparkSession, table: TableName, file_format: str, way: Any) -> None:
    names = ["a b", "Ü.x", "select", "x-y"]
    nan = "IF(id % 3 = 0, double('NaN'), id * 1.0)"
    df = spark.range(900).selectExpr(
        "id", *(f"{nan} AS `{name}`" for name in names), f"named_struct('In Ner', {nan}) AS `St`"
    )
    build(spark, df, request(table, file_format, by=("id",), files=4))
    assert way(table) == HERE
    for column in (*(f"`{name}`" for name in names), "St.`In Ner`"):
        for where in (f"isnan({column})", f"{column} = 7", f"{column} > 880 AND NOT isnan({column})"):
            assert spark.table(table.sql).where(where).count() == df.where(where).count() > 0
            greatest = spark.table(table.sql).where(f"NOT isnan({column})").agg(f.expr(f"max({column})")).collect()
            assert greatest[0][0] == 899


@pytest.mark.slow
def test_a_table_of_an_old_iceberg_keeps_its_codec(
    spark: SparkSession, table: TableName, file_format: str, way: Any
) -> None:
    wanted = request(table, file_format, files=2)
    build(spark, rows(spark, 0, 300), wanted)
    spark.sql(f"ALTER TABLE {table.sql} UNSET TBLPROPERTIES ('write.parquet.compression-codec')")
    before = set(files_of(spark, table))
    way(table)
    increment(spark, partial(rows, spark, 300, 400), wanted, Batch(may_rewrite=False), "never")
    assert way(table) == HERE
    (new,) = set(files_of(spark, table)) - before
    assert pq.read_metadata(new).row_group(0).column(0).compression == "GZIP"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "session"),
    [
        ({"properties": {"write.parquet.row-group-size-bytes": "1048576"}}, {}),
        ({"properties": {"write.parquet.compression-codec": "lz4"}}, {}),
        ({"properties": {"write.format.default": "orc"}}, {}),
        ({"properties": {"write.object-storage.enabled": "true"}}, {}),
        ({"properties": {"write.parquet.bloom-filter-enabled.column.id": "true"}}, {}),
        ({"options": {"compression-codec": "gzip"}}, {}),
        ({"in_memory": 0}, {}),
        ({}, {"spark.sql.iceberg.compression-codec": "gzip"}),
        ({}, {"spark.sql.iceberg.snapshot-property.team": "us"}),
    ],
)
def test_spark_writes_what_only_iceberg_knows(
    spark: SparkSession, table: TableName, file_format: str, way: Any, more: Any, session: Mapping[str, str]
) -> None:
    df, wanted = rows(spark, 0, 500), replace(request(table, file_format, files=4), **more)
    with settings(spark, session):
        build(spark, df, wanted)
        assert way(table) == BY_SPARK
        assert same_rows(spark.table(table.sql), df)
        if "options" not in more:
            increment(spark, partial(rows, spark, 500, 600), wanted, Batch(), "never")
            assert way(table) == BY_SPARK
            assert same_rows(spark.table(table.sql), rows(spark, 0, 600))


def test_a_table_with_a_column_that_is_never_null_takes_batches_of_spark(
    spark: SparkSession, table: TableName, file_format: str, way: Any
) -> None:
    wanted = request(table, file_format)
    build(spark, rows(spark, 0, 500), wanted)
    assert way(table) == HERE
    spark.sql(f"CREATE OR REPLACE TABLE {table.sql} (id BIGINT NOT NULL, a INT, s STRING) USING iceberg")
    batch = rows(spark, 0, 300).select("id", "a", "s")
    increment(spark, lambda: batch, wanted, Batch(), "never")
    assert way(table) == BY_SPARK
    assert same_rows(spark.table(table.sql), batch)


def build_that_fails(spark: SparkSession, wanted: BuildRequest, error: type[BaseException], match: str) -> set[Path]:
    """Return the files that a failed build has left, beside those of the table, which is as it was."""
    table = wanted.table
    before, files = spark.table(table.sql).collect(), on_disk(spark, table)
    with pytest.raises(error, match=match):
        build(spark, rows(spark, 500, 900), wanted)
    assert sorted(spark.table(table.sql).collect()) == sorted(before)
    return on_disk(spark, table) - files


def test_what_fails_leaves_the_table_as_it_was(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 500), wanted)

    def refused(self: Any, files: Any) -> None:
        jvm: Any = self.spark._jvm
        nothing = self.spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 0)
        jvm.org.apache.iceberg.exceptions.ValidationException.check(False, "Missing required files", nothing)

    def unknown(self: Any, files: Any) -> None:
        raise RuntimeError("nobody knows")

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTarget, "commit", refused)
        assert build_that_fails(spark, wanted, Exception, "Missing required files") == set()
        patch.setattr(IcebergTarget, "commit", unknown)
        assert len(build_that_fails(spark, wanted, RuntimeError, "nobody knows")) == 4
    for what in ("lakehouse.written_file.pq.read_metadata", "lakehouse.written_file.os.path.getsize"):
        with monkeypatch.context() as patch:
            patch.setattr(f"dbt_zorder.tables.{what}", failing(RuntimeError("no such luck")))
            assert build_that_fails(spark, wanted, RuntimeError, "no such luck") == set()
    with monkeypatch.context() as patch:
        patch.setattr("dbt_zorder.engine.parquet.writer.os.chmod", failing(OSError(28, "no space")))
        assert build_that_fails(spark, wanted, BuildError, "no space") == set()


def test_rows_that_are_lost_on_the_way_are_found_before_the_commit(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 500), wanted)
    files = ArrowWriter.files
    monkeypatch.setattr(ArrowWriter, "files", lambda self: files(self)[1:])
    left = build_that_fails(spark, wanted, BuildError, "400 rows were laid out")
    assert len(left) == 1  # which this test has hidden


def test_behind_a_batch_a_table_is_known_as_if_it_were_read_anew(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 2000), wanted)
    asked: list[object] = []
    original = state_module.read_state_or_sizes

    def noted(*args: Any) -> Any:
        asked.append(args)
        return original(*args)

    monkeypatch.setattr(state_module, "read_state_or_sizes", noted)

    def add(first: int) -> None:
        report = increment(spark, partial(rows, spark, first, first + 100), wanted, Batch(), "never")
        assert report.table == read_state(spark, wanted).overlap(wanted.spec).now
        assert report.appended is not None
        assert report.appended.files == 1

    add(2000)
    assert not asked
    commit = IcebergTarget.commit

    def with_others(self: IcebergTarget, files: Any) -> None:
        rows(spark, 3000, 3010).coalesce(1).writeTo(table.sql).append()
        commit(self, files)

    monkeypatch.setattr(IcebergTarget, "commit", with_others)
    with pytest.raises(AssertionError, match="2"):  # files: those of others count, as the format is asked
        add(2100)
    assert len(asked) == 1
    assert same_rows(spark.table(table.sql), rows(spark, 0, 2200).unionByName(rows(spark, 3000, 3010)))


def test_columns_that_come_meanwhile_leave_the_batch_to_spark(
    spark: SparkSession, table: TableName, file_format: str, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=2)
    build(spark, rows(spark, 0, 300), wanted)
    way(table)

    def put(*args: Any) -> Any:
        spark.sql(f"ALTER TABLE {table.sql} ADD COLUMN more DOUBLE")
        return write_files(*args)

    monkeypatch.setattr("dbt_zorder.tables.lakehouse.incremental.write_files", put)
    # PySpark 3.5 says that the batch lacks the column, 4 reads it as NULL
    with contextlib.suppress(AnalysisException):
        increment(spark, partial(rows, spark, 300, 400), wanted, Batch(may_rewrite=False), "never")
    assert way(table) == BY_SPARK
    assert spark.table(table.sql).count() in (300, 400)
    assert on_disk(spark, table) == set(files_of(spark, table))


def test_a_table_of_another_catalog_is_that_catalogs(
    spark: SparkSession, table: TableName, file_format: str, way: Any, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.catalog.apart", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.apart.type", "hadoop")
    spark.conf.set("spark.sql.catalog.apart.warehouse", str(tmp_path))
    wanted = request(table, file_format, files=2)
    try:
        spark.sql("USE apart")
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {table.schema}")
        for first, end in ((0, 50), (0, 80)):
            build(spark, rows(spark, first, end), wanted)
            assert way(table) == BY_SPARK
            assert spark.table(table.sql).count() == end
        increment(spark, partial(rows, spark, 80, 90), wanted, Batch(may_rewrite=False), "never")
        assert way(table) == BY_SPARK
        assert spark.table(table.sql).count() == 90
    finally:
        spark.sql("USE spark_catalog")
    assert describe(spark, table) is None


def test_a_folder_that_was_made_for_nothing_goes(
    spark: SparkSession, table: TableName, file_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=2, location_root=f"file:{tmp_path}")
    spark.sql(f"CREATE TABLE {table.sql} (id BIGINT) USING parquet")
    monkeypatch.setattr(InMemoryRows, "write", lambda *_: False)  # as if a part took too much
    build(spark, rows(spark, 0, 100), wanted)
    assert [path.name for path in tmp_path.iterdir()] == [table.identifier]
    assert spark.table(table.sql).count() == 100


def test_a_build_that_is_left_to_spark_asks_no_catalog(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbt_zorder.tables.iceberg.sink.staged_iceberg", failing(AssertionError("was asked")))
    wanted = request(table, file_format, files=2)
    build(spark, rows(spark, 0, 100), replace(wanted, in_memory=0))
    assert spark.table(table.sql).count() == 100


def test_no_rows_and_few_rows(spark: SparkSession, table: TableName, file_format: str) -> None:
    wanted = request(table, file_format)
    for count in (0, 1, 7, 0):
        report = build(spark, rows(spark, 0, count), wanted)
        assert report.summary.rows == spark.table(table.sql).count() == count
    for first, end in ((0, 0), (0, 3), (3, 3), (3, 400)):
        increment(spark, partial(rows, spark, first, end), wanted, Batch(), "never")
    assert same_rows(spark.table(table.sql), rows(spark, 0, 400))
