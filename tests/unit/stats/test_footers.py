from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from dbt_zorder.spark.columns import ResolvedColumn, resolve_all
from dbt_zorder.spark.sql import glob_escape
from dbt_zorder.stats import footers
from dbt_zorder.stats.collect import collect_path, row_stats
from dbt_zorder.stats.footers import footer_stats
from dbt_zorder.stats.schema import stats_schema
from tests.support import settings

# every fifth row is NULL, and the last of four files holds nothing but NULL
DATA = """
    SELECT id, i % 2 = 0 AS truth, CAST(i % 100 - 50 AS tinyint) AS tiny, CAST(i - 10000 AS smallint) AS small,
      CAST(i * 90000 - 900000000 AS int) AS whole, i * 900000000000000 - 9000000000000000000 AS long,
      CAST((i - 10000) / 7 AS decimal(9, 4)) AS d9, CAST((10000 - i) * 12345678.9 AS decimal(18, 6)) AS d18,
      date_add(DATE'0001-01-01', CAST(i * 100 AS int)) AS day,
      timestamp_micros(i * 9000000000001 - 62135596800000000) AS at,
      TIMESTAMP_NTZ'1960-05-05 12:34:56.789012' + make_dt_interval(0, CAST(i AS int)) AS local,
      if(i = 7, '', concat(if(i % 3 = 0, 'Zürich', 'zebra '), i)) AS text, unhex(hex(i * 37)) AS bytes,
      if(i % 7 = 0, NULL, named_struct('x', named_struct('y z', i))) AS s, i AS `a.b`, array(id) AS x
    FROM (SELECT id, CASE WHEN id % 5 > 0 AND id < 14000 THEN id END AS i FROM range(20000))
"""
EXACT = ["id", "truth", "tiny", "small", "whole", "long", "d9", "d18", "day", "at", "local", "text", "bytes"]


def wrote(frame: DataFrame, path: Path, **options: str) -> str:
    frame.repartitionByRange(4, frame.columns[0]).write.options(**options).parquet(str(path))
    return str(path)


def stats_from_footers(frame: DataFrame, path: str, columns: Sequence[str]) -> DataFrame | None:
    return by_footers(frame, path, resolve_all(columns, frame.schema))


def by_footers(frame: DataFrame, path: str, columns: Sequence[ResolvedColumn]) -> DataFrame | None:
    found = footer_stats(frame.sparkSession, path, columns, "v1")
    return None if found is None else found.frame()


def by_rows(frame: DataFrame, path: str, columns: Sequence[ResolvedColumn]) -> DataFrame:
    return row_stats(frame.sparkSession.read.schema(frame.schema).parquet(glob_escape(path)), columns, "v1")


def sorted_rows(stats: DataFrame) -> list[Row]:
    return sorted(stats.collect(), key=lambda row: str(row["file_path"]))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_footers_say_what_the_rows_do(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        frame = spark.sql(DATA)
        # a row group is closed as soon as Parquet first looks at its size
        path = wrote(frame, tmp_path / "a [b]{c} ü%20#?", **{"parquet.block.size": "100"})
        assert all(pq.read_metadata(file).num_row_groups > 9 for file in Path(path).glob("*.parquet"))
        columns = resolve_all([*EXACT, "s.x.`y z`", "a.b"], frame.schema)
        stats = by_footers(frame, path, columns)
        assert stats is not None
        assert stats.schema == stats_schema({column.name: column.data_type for column in columns})
        rows = sorted_rows(stats)
        assert rows == sorted_rows(by_rows(frame, path, columns))
    assert len(rows) == 4
    assert tuple(rows[-1]["columns"]["text"]) == (None, None, rows[-1]["row_count"])
    mixed = rows[2]["columns"]["whole"]
    assert mixed["min_value"] is not None
    assert mixed["null_count"] > rows[2]["row_count"] / 5, "row groups with bounds and some of nothing but NULL"


def test_footers_are_what_a_written_folder_is_measured_by(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(100).selectExpr("id", "CAST(id / 2 AS decimal(20, 2)) AS half")
    path = wrote(frame, tmp_path / "t")
    monkeypatch.setattr(sys.modules[collect_path.__module__], "row_stats", lambda *_: None)
    assert collect_path(spark, path, frame.schema, resolve_all(["id"], frame.schema), "v1") is not None
    assert collect_path(spark, path, frame.schema, resolve_all(["half"], frame.schema), "v1") is None


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ("CAST(id / 7 AS float)", True),
        ("CAST(if(id % 9 > 0, if(id % 7 > 0, id, 'NaN'), NULL) AS double)", True),
        ("CAST(if(id < 50, if(id % 7 > 0, NULL, 'NaN'), NULL) AS float)", True),
        ("named_struct('a.b', id, 'f', CAST(id AS double))", False),
        ("CAST(id AS decimal(20, 2))", False),
        ("make_ym_interval(0, CAST(id AS int))", False),
        ("array(id)", False),
        ("repeat('x', 2000) || id", True),
        ("repeat('x', 3000) || id", False),  # Parquet leaves out bounds of more than 4,096 bytes together
        ("CAST(unhex('ff') AS string)", False),  # no UTF-8, so Arrow has no such text
        ("CAST(NULL AS int)", True),
    ],
)
def test_what_footers_do_not_tell_exactly_is_left_to_the_rows(
    spark: SparkSession, tmp_path: Path, value: str, exact: bool
) -> None:
    frame = spark.range(100).selectExpr("id", f"{value} AS v")
    path = wrote(frame, tmp_path / "t")
    columns = resolve_all(["id", "v"], frame.schema)
    found = by_footers(frame, path, columns)
    assert (found is not None) is exact
    if found is not None:
        # as texts, since NaN equals nothing
        assert str(sorted_rows(found)) == str(sorted_rows(by_rows(frame, path, columns)))


def test_floats_in_structs_are_read_from_the_files(spark: SparkSession, tmp_path: Path) -> None:
    inner = "if(id % 5 > 0, named_struct('x y', if(id % 3 > 0, CAST(id AS double), NULL)), NULL)"
    frame = spark.range(100).selectExpr(
        "id", f"named_struct('f', {inner}, 'id', -id) AS s", "CAST(id AS float) AS `a.b`"
    )
    path = wrote(frame, tmp_path / "t")
    columns = resolve_all(["s.f.`x y`", "s.id", "`a.b`"], frame.schema)
    found = by_footers(frame, path, columns)
    assert found is not None
    assert sorted_rows(found) == sorted_rows(by_rows(frame, path, columns))


def test_more_floats_than_are_read_here_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(100).selectExpr("id", "CAST(id AS double) AS x")
    path = wrote(frame, tmp_path / "t")
    monkeypatch.setattr(footers, "MOST_VALUES", 100)
    assert stats_from_footers(frame, path, ["id", "x"]) is not None
    monkeypatch.setattr(footers, "MOST_VALUES", 99)
    assert stats_from_footers(frame, path, ["id", "x"]) is None
    assert stats_from_footers(frame, path, ["id"]) is not None


@pytest.mark.parametrize(
    ("key", "setting", "value"),
    [
        ("spark.sql.parquet.outputTimestampType", "INT96", "timestamp_micros(id)"),
        ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS", "timestamp_micros(id)"),
        ("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY", "date_add(DATE'1000-01-01', CAST(id AS int))"),
        ("spark.sql.parquet.writeLegacyFormat", "true", "CAST(id AS decimal(9, 2))"),
    ],
)
def test_what_a_session_writes_in_another_way_is_left_to_the_rows(
    spark: SparkSession, tmp_path: Path, key: str, setting: str, value: str
) -> None:
    frame = spark.range(100).selectExpr("id", f"{value} AS v")
    with settings(spark, {key: setting}):
        path = wrote(frame, tmp_path / "t")
    assert stats_from_footers(frame, path, ["v"]) is None
    assert stats_from_footers(frame, wrote(frame, tmp_path / "usual"), ["v"]) is not None


def test_text_that_the_writer_shortens_has_wider_bounds(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 'customer-000' || id AS v, unhex('ffffff') || cast(id AS binary) AS b FROM range(9)")
    path = wrote(frame.coalesce(1), tmp_path / "t", **{"parquet.statistics.truncate.length": "8"})
    stats = stats_from_footers(frame, path, ["v", "b"])
    assert stats is not None
    for found, real in zip(
        sorted_rows(stats), sorted_rows(by_rows(frame, path, resolve_all(["v", "b"], frame.schema))), strict=True
    ):
        for name in ("v", "b"):
            assert found["columns"][name]["min_value"] <= real["columns"][name]["min_value"]
            assert found["columns"][name]["max_value"] >= real["columns"][name]["max_value"]
    assert min(len(row["columns"]["v"]["min_value"]) for row in stats.collect()) == 8


def test_a_path_that_two_leaves_share_is_left_to_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT id AS `a.b`, named_struct('b', -id) AS a FROM range(9)")
    path = wrote(frame, tmp_path / "t")
    assert stats_from_footers(frame, path, ["a.b"]) is None
    assert stats_from_footers(frame, path, ["`a`.b"]) is None


def test_columns_that_differ_by_case_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        frame = spark.sql("SELECT id AS a, id + 100 AS A FROM range(9)")
        path = wrote(frame, tmp_path / "t")
        columns = resolve_all(["A", "a"], frame.schema, sensitive=True)
        stats = by_footers(frame, path, columns)
        assert stats is not None
        assert sorted_rows(stats) == sorted_rows(by_rows(frame, path, columns))


def test_a_partition_column_is_in_no_footer(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT id, if(id > 5, 'x y/z%', NULL) AS p FROM range(9)")
    path = str(tmp_path / "t")
    frame.write.partitionBy("p").parquet(path)
    assert stats_from_footers(frame, path, ["p"]) is None
    stats = stats_from_footers(frame, path, ["id"])
    assert stats is not None
    assert sorted_rows(stats) == sorted_rows(by_rows(frame, path, resolve_all(["id"], frame.schema)))


def test_a_file_without_rows_has_no_row_of_stats(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0).toDF("id")
    path = wrote(frame, tmp_path / "t")
    assert list(Path(path).glob("*.parquet")), "Spark writes one all the same"
    stats = stats_from_footers(frame, path, ["id"])
    assert stats is not None
    assert stats.collect() == by_rows(frame, path, resolve_all(["id"], frame.schema)).collect() == []
    frame = spark.range(0).selectExpr("id", "id AS p")
    frame.write.partitionBy("p").parquet(str(tmp_path / "parted"))
    stats = stats_from_footers(frame, str(tmp_path / "parted"), ["id"])
    assert stats is not None
    assert stats.collect() == []


@pytest.mark.skipif(not hasattr(DataFrame, "toArrow"), reason="the parquet-mr of Spark 3.5 always keeps them")
def test_a_writer_that_keeps_no_statistics_is_left_to_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(9).toDF("id")
    path = wrote(frame, tmp_path / "t", **{"parquet.column.statistics.enabled": "false"})
    assert stats_from_footers(frame, path, ["id"]) is None


def test_files_elsewhere_are_left_to_spark(spark: SparkSession) -> None:
    assert stats_from_footers(spark.range(9), "hdfs://elsewhere/t", ["id"]) is None


class Unwrapped(pe.KmsClient):  # type: ignore[misc]
    """Keys as they are."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return key_bytes

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return wrapped_key


def _another_writer(file: Path) -> None:
    pq.write_table(pa.table({"id": pa.array(range(9), pa.int64())}), file)


def encrypted(file: Path) -> None:
    keys = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["id"]}, plaintext_footer=True)
    factory = pe.CryptoFactory(lambda _: Unwrapped())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), keys)
    with pq.ParquetWriter(file, pa.schema({"id": pa.int64()}), encryption_properties=properties) as writer:
        writer.write_table(pa.table({"id": pa.array(range(9), pa.int64())}))


def _cut(file: Path) -> None:
    file.write_bytes(b"PAR1 but no more")


@pytest.mark.parametrize("spoil", [_cut, _another_writer, encrypted])
def test_a_file_that_spark_did_not_write_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    frame = spark.range(9).toDF("id")
    path = wrote(frame, tmp_path / "t")
    assert stats_from_footers(frame, path, ["id"]) is not None
    spoil(next(Path(path).glob("*.parquet")))
    assert stats_from_footers(frame, path, ["id"]) is None
