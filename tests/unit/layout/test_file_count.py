from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.file_count import (
    MEGABYTE,
    auto_size,
    files_for,
    guessed_row_bytes,
    parse_size,
    probe_row_bytes,
    row_bytes_in_files,
    widest_row_bytes,
)
from dbt_zorder.spark.arrow import collect_arrow
from tests.support import settings


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("auto", None),
        (" AUTO ", None),
        (1000, 1000),
        (np.int64(4096), 4096),
        (67108864, 64 * MEGABYTE),
        ("64MB", 64 * MEGABYTE),
        ("64mb", 64 * MEGABYTE),
        ((1 << 63) - 1, (1 << 63) - 1),
        ("8388607TB", 8388607 << 40),
        (" 64 MiB ", 64 * MEGABYTE),
        ("64M", 64 * MEGABYTE),
        ("1.5GB", 1536 * MEGABYTE),
        ("2TB", 2 << 40),
        ("8k", 8 << 10),
        ("4096", 4096),
        ("4096B", 4096),
    ],
)
def test_a_size_is_auto_bytes_or_a_text_with_a_unit(value: str | int, size: int | None) -> None:
    assert parse_size(value) == size


@pytest.mark.parametrize(
    "value",
    [
        "",
        "MB",
        "-1MB",
        "0",
        "0MB",
        0,
        -5,
        "64 parsecs",
        "1e3",
        "64MBB",
        True,
        1.5,
        None,
        [],
        10**400,
        1 << 63,
        "9" * 400 + "MB",
        "8388608TB",
    ],
)
def test_anything_else_is_an_error_that_says_what_a_size_is(value: object) -> None:
    with pytest.raises(ConfigError, match="'auto', a number of bytes from 1000, or a text like '64MB'"):
        parse_size(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [128, "128", "128B", 999])
def test_a_number_too_small_for_a_footer_lacks_its_unit(value: str | int) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean '(128|999)MB'\?"):
        parse_size(value)


@pytest.mark.parametrize(
    ("table", "file"),
    [(0, 128), (100 << 30, 128), ((100 << 30) + 1, 256), (5 << 40, 256), ((5 << 40) + 1, 1024), (1 << 50, 1024)],
)
def test_files_grow_with_the_table(table: int, file: int) -> None:
    assert auto_size(table) == file * MEGABYTE


@pytest.mark.parametrize(("rows", "files"), [(0, 1), (1, 1), (149, 1), (150, 2), (250, 2), (1000, 10), (1049, 10)])
def test_a_table_is_cut_only_where_the_halves_come_near_the_target(rows: int, files: int) -> None:
    assert files_for(rows, 10.0, 1000) == files


@pytest.mark.parametrize("rows", range(150, 4000, 37))
def test_no_file_is_above_one_and_a_half_targets(rows: int) -> None:
    assert rows / files_for(rows, 1.0, 100) <= 150


def test_the_guess_of_a_row_is_on_the_generous_side(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT id, cast(id AS string) s, id * 1.5 d, array(id) a, struct(id) st, map(id, id) m FROM range(500)"
    )
    assert guessed_row_bytes(frame.schema) > probe_row_bytes(frame, ["id"])
    assert guessed_row_bytes(StructType()) == widest_row_bytes(StructType()) == 0


@pytest.mark.parametrize("kind", ["string", "binary", "array<int>", "map<int, int>", "struct<a: int, b: string>"])
def test_text_and_collections_may_be_of_any_width(spark: SparkSession, kind: str) -> None:
    schema = spark.sql(f"SELECT CAST(NULL AS {kind}) AS v").schema
    assert widest_row_bytes(schema) > 100 * guessed_row_bytes(schema)
    fixed = spark.sql("SELECT 1 AS i, 1.5 AS n, current_date() AS d, INTERVAL '1' DAY AS t, NULL AS x").schema
    assert widest_row_bytes(fixed) == guessed_row_bytes(fixed) == 48


def test_a_row_is_measured_as_it_is_written(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, uuid() AS u FROM range(5000)")
    assert 36 <= probe_row_bytes(frame, ["`id`"]) <= 60


def test_no_rows_have_a_size_too(spark: SparkSession) -> None:
    assert math.isfinite(probe_row_bytes(spark.range(0).toDF("id"), ["id"]))


def test_a_type_that_arrow_cannot_carry_is_guessed(spark: SparkSession) -> None:
    frame = spark.sql("SELECT make_interval(1, 2) AS i, id FROM range(5)")
    assert probe_row_bytes(frame, ["id"]) == guessed_row_bytes(frame.schema)


def test_rows_that_the_driver_does_not_take_at_once_are_measured_by_fewer(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small_driver(df: DataFrame) -> pa.Table:
        table = collect_arrow(df)
        if table.nbytes > 500_000:
            raise MemoryError
        return table

    monkeypatch.setattr("dbt_zorder.layout.file_count.collect_arrow", small_driver)
    frame = spark.sql(
        "SELECT id, concat_ws('', transform(sequence(1, 250), i -> sha1(concat(id, i)))) AS t FROM range(1200)"
    )
    assert probe_row_bytes(frame, ["id"]) == pytest.approx(10_000, rel=0.1)


def test_only_the_first_splits_are_read_for_a_measure(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def remembered(df: DataFrame) -> pa.Table:
        seen.append(collect_arrow(df))
        return seen[-1]

    monkeypatch.setattr("dbt_zorder.layout.file_count.collect_arrow", remembered)
    frame = spark.range(0, 64_000, 1, 64).selectExpr("id", "spark_partition_id() AS split")
    assert probe_row_bytes(frame, ["id"]) < 40
    assert [table.num_rows for table in seen] == [20_000]
    assert max(seen[0]["split"].to_pylist()) == 19


def test_a_row_is_measured_in_the_codec_that_it_is_written_in(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, hex(id % 1000) || '-' || hex(hash(id)) AS s FROM range(20000)")
    plain, packed = (probe_row_bytes(frame, ["id"], 0.0, codec) for codec in ("uncompressed", "ZSTD"))
    assert packed < plain / 1.3
    with settings(spark, {"spark.sql.parquet.compression.codec": "zstd"}):
        assert probe_row_bytes(frame, ["id"]) == packed


def test_wide_rows_are_measured_by_no_more_than_fit(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    frame = spark.sql("SELECT id, repeat(sha1(string(id)), 250) AS t FROM range(30000)")
    with caplog.at_level("DEBUG", "dbt_zorder"):
        assert 200 <= probe_row_bytes(frame, ["id"]) <= 10_100
    assert not caplog.records, "none of its probes failed"


@pytest.mark.parametrize(
    ("files", "target", "found"),
    [
        ([(6_200, 1)], None, None),
        ([(6_200, 1)] * 1000, 64 * MEGABYTE, None),
        ([(260_000, 10_000), (6_200, 1)], 64 * MEGABYTE, 26.0),
        ([(2 * MEGABYTE, 512), (6_200, 1)], 64 * MEGABYTE, 4096.0),
        ([(900, 30), (500, 20), (9, 1)], 1000, 28.0),
        ([(None, None), (20_000, 10_000)], None, 2.0),
        ([], None, None),
        (None, None, None),
    ],
)
def test_only_files_that_hold_enough_tell_what_a_row_takes(
    files: list[tuple[int, int]] | None, target: int | None, found: float | None
) -> None:
    schema = pa.schema([("file_size", pa.int64()), ("row_count", pa.int64())])
    table = None
    if files is not None:
        table = pa.Table.from_pylist([{"file_size": size, "row_count": rows} for size, rows in files], schema)
    assert row_bytes_in_files(table, target) == found
