"""Files of another writer, in which sessions may read other dates and times."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from dbt_zorder.errors import ZorderError
from dbt_zorder.pruning import explain, scan, scan_sql
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats import collect
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from tests.support import settings, unique

CONVERTED = {"spark.sql.parquet.int96TimestampConversion": "true"}
REBASED = {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY", "spark.sql.parquet.int96RebaseModeInRead": "LEGACY"}
PLAIN = {
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.session.timeZone": "America/Los_Angeles",
}


@pytest.fixture(scope="module")
def table(spark: SparkSession, database: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("foreign")
    for number, year in enumerate((1000, 1850, 2020)):
        days = [dt.datetime(year, 3, 1), dt.datetime(year, 3, 20)]
        rows = pa.table(
            {"id": [number, number], "ts": pa.array(days, pa.timestamp("us")), "d": [one.date() for one in days]}
        )
        pq.write_table(rows, folder / f"{year}.parquet", use_deprecated_int96_timestamps=True)
    name = f"{database}.{unique('foreign')}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, ts TIMESTAMP, d DATE) USING parquet LOCATION '{folder}'")
    return name


@pytest.mark.parametrize("collected", [{}, CONVERTED, REBASED])
@pytest.mark.parametrize("read", [{}, CONVERTED, REBASED])
def test_no_row_is_lost_whatever_the_sessions_read(
    spark: SparkSession, table: str, collected: dict[str, str], read: dict[str, str]
) -> None:
    with settings(spark, {**PLAIN, **collected}):
        rebuild_stats(spark, TableName(*table.split(".")), ["id", "ts", "d"])
    with settings(spark, {**PLAIN, **read}):
        spark.sql(f"REFRESH TABLE {table}")
        for row in spark.table(table).select("d").collect():
            predicate = f"d = DATE '{row.d.isoformat()}'"
            assert scan(spark, table, predicate).count() == spark.table(table).where(predicate).count() >= 1
        micros = [one[0] for one in spark.table(table).selectExpr("unix_micros(ts)").collect()]
        for value in micros:
            predicate = f"ts = timestamp_micros({value}L)"
            assert scan(spark, table, predicate).count() == spark.table(table).where(predicate).count() >= 1
        assert explain(spark, table, "id = 2").files_read == 1
        if not collected and not read:
            assert explain(spark, table, "d = DATE '2020-03-01'").files_read == 1
            assert explain(spark, table, "ts < TIMESTAMP '1900-01-01'").files_read == 2


def test_bounds_that_are_of_this_session_alone_are_not_kept(spark: SparkSession, table: str) -> None:
    with settings(spark, {**PLAIN, **REBASED}):
        lows = {row["columns"].d.min_value is None for row in collect(spark, table, ["d"]).collect()}
        assert lows == {True, False}
    with settings(spark, {**PLAIN, **CONVERTED}):
        for row in collect(spark, table, ["ts", "id"]).collect():
            assert (row["columns"].ts.min_value, row["columns"].ts.max_value, row["columns"].ts.null_count) == (
                None,
                None,
                0,
            )
            assert row["columns"].id.min_value is not None


@pytest.mark.parametrize("column", ["d", "ts"])
@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_files_that_are_chosen_by_one_calendar_are_read_by_another(
    spark: SparkSession, table: str, column: str, zone: str
) -> None:
    """As where a hook sets it behind the compilation of its model."""
    plain = {**PLAIN, "spark.sql.session.timeZone": zone}
    number, literal = {
        "d": ("unix_date(d)", "d = date_from_unix_date({})"),
        "ts": ("unix_micros(ts)", "ts = timestamp_micros({}L)"),
    }[column]
    with settings(spark, plain):
        rebuild_stats(spark, TableName(*table.split(".")), ["id", "ts", "d"])
        assert explain(spark, table, "d >= DATE '2000-01-01'").files_read == 1
        assert explain(spark, table, "d < DATE '1800-01-01'").files_read == 1
    with settings(spark, {**plain, **REBASED}):
        spark.sql(f"REFRESH TABLE {table}")
        values = [row[0] for row in spark.table(table).selectExpr(number).collect()]
    for value in values:
        predicate = literal.format(value)
        with settings(spark, plain):
            text = scan_sql(spark, table, predicate)
        with settings(spark, {**plain, **REBASED}):
            assert spark.sql(f"SELECT * FROM {text}").count() == spark.table(table).where(predicate).count() >= 1


def test_columns_that_are_found_by_numbers_are_not_pruned_by(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    def of(a: int, b: int) -> StructType:
        fields = [StructField(name, LongType(), True, {"parquet.field.id": n}) for name, n in (("a", a), ("b", b))]
        return StructType(fields)

    for n in (1, 2):
        rows = spark.createDataFrame([(n, n * 100)], of(1, 2))
        rows.coalesce(1).write.mode("append").parquet(str(tmp_path / "t"))
    table = TableName(database, unique("ids"))
    spark.catalog.createTable(str(table), path=str(tmp_path / "t"), source="parquet", schema=of(2, 1))
    rebuild_stats(spark, table, ["a", "b"])
    assert explain(spark, str(table), "a = 1").files_read == 1
    with settings(spark, {"spark.sql.parquet.fieldId.read.enabled": "true"}):
        spark.sql(f"REFRESH TABLE {table.sql}")
        assert {row.a for row in spark.table(table.sql).collect()} == {100, 200}
        assert explain(spark, str(table), "a = 100").files_read == 2
        with pytest.raises(ZorderError, match=r"cannot be collected while spark.sql.parquet.fieldId.read.enabled is"):
            rebuild_stats(spark, table, ["a"])


def test_a_table_that_is_made_again_with_a_default_is_read_in_full(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int64())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": pa.array([3], pa.int64()), "b": pa.array([7], pa.int64())}), tmp_path / "2.parquet")
    table = TableName(database, unique("defaulted"))
    spark.sql(f"CREATE TABLE {table.sql} (a BIGINT, b BIGINT) USING parquet LOCATION '{tmp_path}'")
    rebuild_stats(spark, table, ["a", "b"])
    spark.sql(f"DROP TABLE {table.sql}")
    spark.sql(f"CREATE TABLE {table.sql} (a BIGINT, b BIGINT DEFAULT 5) USING parquet LOCATION '{tmp_path}'")
    assert scan(spark, str(table), "b = 5").count() == spark.table(table.sql).where("b = 5").count() == 2
    assert explain(spark, str(table), "a = 3").files_read == 1
