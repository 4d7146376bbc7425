"""Files of another writer, of which sessions may read other dates and times."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName
from dbt_zorder.pruning import explain, scan
from dbt_zorder.stats import collect
from dbt_zorder.table.restat import rebuild_stats
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
