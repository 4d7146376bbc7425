from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.adapter.models.frames import arrow_frame, spark_frame
from tests.support import settings

MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 678901)


@pytest.mark.parametrize("version", ["4.1.0", "3.5.6"])
def test_an_arrow_table_is_the_same_by_either_way(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    table = pa.table(
        {"n": [1, None], "x": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)), "d": [dt.date(2020, 1, 2), None],
         "at": [MOMENT, None], "l": [["a"], None]}
    )  # fmt: skip
    df = arrow_frame(spark, table)
    types = ["bigint", "decimal(5,2)", "date", "timestamp", "array<string>"]
    assert [field.dataType.simpleString() for field in df.schema] == types
    assert df.collect() == [(1, Decimal("1.50"), dt.date(2020, 1, 2), MOMENT, ["a"]), (None,) * 5]
    assert arrow_frame(spark, table.slice(0, 0)).count() == 0


class Stream:
    """What knows no more than to give itself as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.table({"a": [1, 2]}).__arrow_c_stream__(requested_schema)


def test_what_gives_an_arrow_stream_is_taken(spark: SparkSession) -> None:
    df = spark_frame(spark, Stream())
    assert df is not None
    assert df.collect() == [(1,), (2,)]
    own = spark.range(1)
    assert spark_frame(spark, own) is own
    assert spark_frame(spark, [(1,)]) is None
    assert spark_frame(spark, None) is None


@pytest.mark.parametrize("version", ["4.1.0", "3.5.6"])
def test_a_time_without_a_zone_is_in_that_of_the_session(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
            df = arrow_frame(spark, pa.table({"a b": [dt.datetime(2020, 1, 2, 3, 4, 5)]}))
            assert df.selectExpr("cast(`a b` as string)").collect() == [("2020-01-02 03:04:05",)]
            assert df.schema["a b"].dataType.simpleString() == "timestamp"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_types_that_polars_gives_are_taken(spark: SparkSession) -> None:
    class Frame(Stream):
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            table = pa.table({"u": pa.array([255], pa.uint8()), "big": pa.array([2**64 - 1], pa.uint64())})
            if hasattr(pa, "string_view"):
                table = table.append_column("s", pa.array(["x"], pa.string_view()))
            return table.__arrow_c_stream__(requested_schema)

    df = spark_frame(spark, Frame())
    assert df is not None
    assert list(df.collect()[0])[:2] == [255, Decimal(2**64 - 1)]


def test_types_that_spark_lacks_are_taken_inside_others_too(spark: SparkSession) -> None:
    small = pa.array([7, None], pa.uint8())
    struct = pa.StructArray.from_arrays([small, pa.array([1, 2], pa.float16())], ["u", "h"])
    table = pa.table({"l": pa.array([[1], []], pa.list_(pa.uint32())), "s": struct, "ll": pa.array([[[2]], None])})
    table = table.set_column(2, "ll", table["ll"].cast(pa.large_list(pa.large_list(pa.uint16()))))
    table = table.append_column("m", pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.uint64())))
    table = table.append_column("c", pa.array([9, 9], pa.uint8()).dictionary_encode())
    table = table.append_column("f", pa.array([[1, 2], [3, 4]], pa.list_(pa.uint8(), 2)))
    df = spark_frame(spark, table)
    assert df is not None
    first, second = (row.asDict(recursive=True) for row in df.collect())
    assert first == {"l": [1], "s": {"u": 7, "h": 1.0}, "ll": [[2]], "m": {"k": 1}, "c": 9, "f": [1, 2]}
    assert second == {"l": [], "s": {"u": None, "h": 2.0}, "ll": None, "m": {}, "c": 9, "f": [3, 4]}


def test_unsigned_numbers_of_pandas_are_taken(spark: SparkSession) -> None:
    pandas = pytest.importorskip("pandas")
    df = spark_frame(spark, pandas.DataFrame({"u": pandas.Series([1, 2**32 - 1], dtype="uint32")}))
    assert df is not None
    assert [row.u for row in df.collect()] == [1, 2**32 - 1]


@pytest.mark.parametrize("version", ["4.1.0", "3.5.6"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "GMT+02:00"])
def test_times_of_a_change_of_clocks_are_taken_as_spark_takes_them(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, version: str, zone: str
) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    texts = ["2024-10-27 02:30:00", "2024-03-31 02:30:00"]
    times = [dt.datetime.fromisoformat(text) for text in texts]
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        table = pa.table({"at": pa.array(times, pa.timestamp("ns")), "n": [1, 2]})
        found = arrow_frame(spark, table).orderBy("n").selectExpr("unix_micros(at)").collect()
        assert found == [spark.sql(f"SELECT unix_micros(TIMESTAMP '{text}')").first() for text in texts]


def test_times_inside_others_are_not_moved_by_the_zone_of_the_process(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "3.5.6")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
            df = arrow_frame(spark, pa.table({"l": [[dt.datetime(2020, 1, 2, 3, 4, 5)]]}))
            assert df.selectExpr("cast(l[0] as string)").collect() == [("2020-01-02 03:04:05",)]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("version", ["4.1.0", "3.5.6"])
def test_maps_are_kept(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    table = pa.table({"m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64()))})
    assert [row.m for row in arrow_frame(spark, table).collect()] == [{"k": 1}, None]
