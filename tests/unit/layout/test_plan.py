from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.plan import make_plan, plan_layout, resize_plan
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.engine.spark.order_grid import SparkLayout
from dbt_zorder.errors import ConfigError
from dbt_zorder.layout import plan as module
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import LayoutSpec


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.sql(
        "SELECT id, id % 10 AS g, cast(id AS string) AS s, struct(id AS x) AS st, map(1, id) AS m FROM range(1000)"
    )


def layout(frame: DataFrame, by: Sequence[str] = ("id",), **spec: object) -> Layout:
    return plan_layout(frame, LayoutSpec(by=by, **spec))  # type: ignore[arg-type]


@pytest.mark.parametrize("files", [1, 2, 7, 16])
def test_the_number_of_files_is_the_one_asked_for(frame: DataFrame, files: int) -> None:
    found = layout(frame, files=files)
    assert (found.files, found.rows) == (files, 1000)


def test_there_are_never_more_files_than_rows(spark: SparkSession) -> None:
    assert layout(spark.range(3), files=10).files == 3
    assert layout(spark.range(0), files=10).files == 1


def test_more_files_than_a_driver_can_plan_are_an_error(frame: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_zorder.layout.plan.MOST_FILES", 90)
    with pytest.raises(ConfigError, match="would have 100 files by zorder_files=100, and 90 is the most"):
        layout(frame, files=100)
    with pytest.raises(ConfigError, match="by a file size of '1KB'"):
        layout(frame, file_size="1KB", row_bytes=1000.0)
    assert layout(frame, files=90).files == 90


def test_files_are_counted_by_partition(frame: DataFrame) -> None:
    assert layout(frame, partition_by=["g"], files=3).files == 30


def test_a_small_table_stays_one_file(frame: DataFrame) -> None:
    assert layout(frame).files == 1


def test_a_size_of_a_file_gives_their_number(frame: DataFrame) -> None:
    assert layout(frame, file_size=1000, row_bytes=10.0).files == 10
    assert layout(frame, file_size="1KB", row_bytes=1.024).files == 1
    assert layout(frame, file_size=1000, row_bytes=10.0, partition_by=["g"]).files == 10


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
def test_a_plan_is_corrected_by_the_bytes_of_a_row(
    frame: DataFrame, monkeypatch: pytest.MonkeyPatch, curve: str
) -> None:
    plan = make_plan(frame, LayoutSpec(by=["id", "g"], file_size=1000, row_bytes=10.0, curve=curve))
    assert repr(resize_plan(plan, 10.0).layout) == repr(plan.layout)
    assert [resize_plan(plan, row_bytes).layout.files for row_bytes in (1.0, 5.0, 20.0)] == [1, 5, 20]
    monkeypatch.setattr(module, "MOST_FILES", 90)
    with pytest.raises(ConfigError, match="would have 100 files by a file size of 1000, and 90 is the most"):
        resize_plan(plan, 100.0)


def test_a_row_is_measured_where_its_size_is_not_known(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, uuid() AS u FROM range(10000)")
    assert 8 <= layout(frame, by=["u"], file_size=40_000).files <= 14


@pytest.mark.parametrize(
    "value",
    [
        "concat_ws('', transform(sequence(1, 100), i -> sha1(concat(id, i))))",
        "cast(concat_ws('', transform(sequence(1, 100), i -> sha1(concat(id, i)))) AS binary)",
        "transform(sequence(1, 1000), i -> hash(id, i))",
    ],
)
def test_long_values_are_measured_though_rows_are_few(spark: SparkSession, value: str) -> None:
    frame = spark.sql(f"SELECT id, {value} AS payload FROM range(5000)")
    assert 4 <= layout(frame, file_size="4MB").files <= 6  # 20 MB that Snappy makes little of


def test_short_text_in_few_rows_is_not_measured(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> float:
        raise AssertionError

    monkeypatch.setattr("dbt_zorder.layout.plan.probe_row_bytes", fail)
    frame = spark.sql("SELECT id, string(id) AS s FROM range(1500)")
    assert layout(frame).files == 1
    assert layout(spark.range(100_000), file_size="1MB").files == 1
    assert layout(frame, files=3).files == 3


def test_what_is_far_below_a_file_by_its_source_is_not_measured(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql("SELECT id, string(id) AS s, string(id) AS t FROM range(900000)").write.parquet(f"{tmp_path}/rows")
    frame = spark.read.parquet(f"{tmp_path}/rows")
    found = layout(frame, by=["id", "s"])
    measured = []

    def noted(*_: object) -> float:
        measured.append(True)
        return 400.0

    monkeypatch.setattr("dbt_zorder.layout.plan.probe_row_bytes", noted)
    assert layout(frame, by=["id", "s"]).files == found.files == 1
    assert not measured
    assert layout(frame, by=["id", "s"], file_size="128MB").files == 3, "whoever names a size has it measured"
    assert layout(frame.selectExpr("id", "concat(s, t) AS s"), by=["id", "s"]).files == 3
    assert len(measured) == 2


def test_numbers_that_another_writer_packed_are_measured(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = pa.table({"id": pa.array(range(1_000_000), pa.int64()), "s": ["x"] * 1_000_000})
    packed = {"use_dictionary": ["s"], "column_encoding": {"id": "DELTA_BINARY_PACKED"}}
    pq.write_table(ids, f"{tmp_path}/packed.parquet", **packed)
    measured = []

    def noted(*_: object) -> float:
        measured.append(True)
        return 8.0

    monkeypatch.setattr("dbt_zorder.layout.plan.probe_row_bytes", noted)
    layout(spark.read.parquet(f"{tmp_path}/packed.parquet"))
    assert measured


@pytest.mark.parametrize("weight", [10**400, -(10**400), float("inf"), float("nan"), True])
def test_a_weight_that_is_no_finite_number_is_an_error(frame: DataFrame, weight: float) -> None:
    with pytest.raises(ConfigError, match="'weights' must be 2 positive numbers"):
        layout(frame, by=["id", "g"], weights=[1, weight])


def test_a_bad_size_is_an_error(frame: DataFrame) -> None:
    with pytest.raises(ConfigError, match="'-1MB'"):
        layout(frame, file_size="-1MB")


def test_the_same_input_gives_the_same_layout(frame: DataFrame) -> None:
    one, other = (layout(frame, by=["id", "s"], files=5, seed=4) for _ in range(2))
    assert one.levels == other.levels


def test_thousands_of_partitions_are_a_few_tasks(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, id % 5000 AS p FROM range(20000)")
    found = layout(frame, by=["id"], partition_by=["p"])
    assert (found.files, SparkLayout.beside(found).tasks) == (5000, 79)
    rows = apply_layout(frame, found).select("p", f.spark_partition_id().alias("task")).distinct().collect()
    assert len(rows) == 5000, "a partition is in one task alone"


@pytest.mark.parametrize("name", ["parquet.page.row.count.limit", "spark.hadoop.parquet.page.row.count.limit"])
def test_the_rows_of_a_page_may_stand_in_the_session(spark: SparkSession, name: str) -> None:
    frame = spark.range(40_000).selectExpr("id", "hash(id) AS h")

    def levels(**spec: object) -> int:
        found = layout(frame, by=["id", "h"], files=2, **spec)
        return len(found.levels) - found.file_levels

    assert (levels(), levels(page_rows=500)) == (4, 7)
    spark.conf.set(name, "250")
    try:
        assert (levels(), levels(page_rows=500)) == (8, 7)
        spark.conf.set(name, "many")
        assert levels() == 4, "the writer itself will say what is wrong with it"
    finally:
        spark.conf.unset(name)


def test_partitions_that_are_too_many_do_not_all_come_to_the_driver(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark.range(5_000).selectExpr("id", "id AS g")
    monkeypatch.setattr(module, "MOST_FILES", 100)
    monkeypatch.setattr(module, "fetch_keys", lambda *_: None)  # as for a query that is not small
    collect = type(df).collect
    seen: list[int] = []

    def counted(frame: DataFrame) -> list[Row]:
        rows = collect(frame)
        seen.append(len(rows))
        return rows

    monkeypatch.setattr(type(df), "collect", counted)
    with pytest.raises(ConfigError, match="and 100 is the most"):
        plan_layout(df, LayoutSpec(by=["id"], partition_by=["g"], files=1))
    assert seen == [101]
