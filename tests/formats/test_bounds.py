"""Bounds of a format that this process reads by itself, which must be those that Spark reads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import resolve_all
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.store import sizes_of
from dbt_zorder.stats.table_state import state_of
from tests.support import same_rows, settings

VALUES = {
    "tinyint": ("-128", "127"),
    "smallint": ("-32768", "12"),
    "int": ("-2147483648", "2147483647"),
    "bigint": ("-9223372036854775808", "9223372036854775807"),
    "decimal(9,2)": ("-1234567.89", "0.01"),
    "decimal(18,0)": ("-999999999999999999", "999999999999999999"),
    "decimal(38,10)": ("-1234567890123456789012345678.0123456789", "9999999999999999999999999999.9999999999"),
    "float": ("-0.1", "3.4028235e38"),
    "double": ("-1.7976931348623157e308", "0.1"),
    "date": ("0001-01-01", "9999-12-31"),
    "timestamp": ("1900-01-01 00:00:00.000001", "2038-01-19 03:14:07.999999"),
    "timestamp_ntz": ("0001-01-01 00:00:00", "9999-12-31 23:59:58.123456"),
    "string": ("", "\U0001f600 é a text of more than thirty-two characters"),
    "boolean": ("false", "true"),
}
"""Least and greatest of some values by their type."""


def statistics_of(spark: SparkSession, file_format: str, table: TableName, names: Sequence[str]) -> DataFrame:
    """Return what Spark reads of a table's files, which must be what this process reads by itself."""
    state, columns = state_of(spark, file_format, table), resolve_all(names, spark.table(table.sql).schema)
    computed, read = state.load_stats(columns), state.stats(columns)
    assert isinstance(computed, LocalStats)
    assert same_rows(computed.frame(), read)
    return read


def made(spark: SparkSession, file_format: str, table: TableName, rows: Sequence[Sequence[str | None]]) -> list[str]:
    """Make a table with a column of each type, a file a row and one of all, and return the columns' names."""
    names = [f"c{n}" for n in range(len(VALUES))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, VALUES, strict=True))
    spark.sql(f"CREATE TABLE {table.sql} ({columns}, st STRUCT<x: INT, y: STRING>) USING {file_format}")
    for some in [*([row] for row in rows), rows]:
        lines: list[str] = []
        for row in some:
            cast = (
                "NULL" if value is None else f"CAST('{value}' AS {kind})"
                for value, kind in zip(row, VALUES, strict=True)
            )
            lines.append(f"SELECT {', '.join(cast)}, named_struct('x', {len(lines)}, 'y', NULL)")
        df = spark.sql(" UNION ALL ".join(lines)).coalesce(1)
        df.write.insertInto(table.sql)
    return [*names, "st.x", "st.y"]


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kathmandu"])
def test_bounds_of_all_types_are_known_as_spark_reads_them(
    spark: SparkSession, table: TableName, file_format: str, zone: str
) -> None:
    ends = [[both[side] for both in VALUES.values()] for side in (0, 1)]
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        names = made(spark, file_format, table, [*ends, [None] * len(VALUES)])
        read = statistics_of(spark, file_format, table, names)
        assert read.count() == 4
        state = state_of(spark, file_format, table)
        sizes = [sizes_of(one).sort_by("file_size") for one in (state.load_stats([]), state.stats([]))]
        assert sizes[0].to_pylist() == sizes[1].to_pylist()


def test_floats_that_are_no_numbers_are_known_as_spark_reads_them(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    spark.sql(f"CREATE TABLE {table.sql} (a FLOAT, b DOUBLE) USING {file_format}")
    for one in ("NaN", "Infinity", "-Infinity", "-0.0"):
        spark.sql(f"INSERT INTO {table.sql} SELECT FLOAT('{one}'), DOUBLE('{one}')")
        spark.sql(f"INSERT INTO {table.sql} VALUES (1, 1), (FLOAT('{one}'), DOUBLE('{one}'))")
    statistics_of(spark, file_format, table, ["a", "b"])


def test_bounds_of_times_enclose_their_microseconds(spark: SparkSession, table: TableName, file_format: str) -> None:
    """Delta cuts them off (its protocol, per-file statistics)."""
    query = "SELECT TIMESTAMP'2024-01-01 00:00:00.000123' AS ts, TIMESTAMP_NTZ'2024-01-01 00:00:00.000123' AS n"
    spark.sql(f"CREATE TABLE {table.sql} USING {file_format} AS {query}")
    kept = spark.table(table.sql)
    bounds, value = statistics_of(spark, file_format, table, ["ts", "n"]).collect()[0]["columns"], kept.collect()[0]
    for name in ("ts", "n"):
        assert bounds[name].min_value <= value[name] <= bounds[name].max_value


def test_columns_by_other_names_in_the_files_and_of_wider_types_are_known(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    spark.sql(f"CREATE TABLE {table.sql} (a INT, b STRING, d DECIMAL(5, 2)) USING {file_format}")
    spark.sql(f"INSERT INTO {table.sql} VALUES (-7, 'x', 1.25)")
    if file_format == "delta":
        mapped = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
        spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({mapped})")
    else:
        spark.sql(f"ALTER TABLE {table.sql} ALTER COLUMN a TYPE BIGINT")
        spark.sql(f"ALTER TABLE {table.sql} ALTER COLUMN d TYPE DECIMAL(20, 2)")
    spark.sql(f"ALTER TABLE {table.sql} RENAME COLUMN a TO `a.new`")
    spark.sql(f"ALTER TABLE {table.sql} ADD COLUMNS (late DATE)")
    spark.sql(f"INSERT INTO {table.sql} VALUES (9, 'y', NULL, DATE'2024-02-29')")
    statistics_of(spark, file_format, table, ["`a.new`", "b", "d", "late"])


def test_what_is_not_known_here_is_left_to_spark(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"CREATE TABLE {table.sql} (a INT, b BINARY) USING {file_format}")
    spark.sql(f"INSERT INTO {table.sql} VALUES (1, X'00'), (2, X'FF')")
    schema = spark.table(table.sql).schema
    found = state_of(spark, file_format, table).load_stats(resolve_all(["a", "b"], schema))
    assert isinstance(found, DataFrame)
    assert sorted(found.select("row_count", "columns.a.max_value").collect()) == [(1, 1), (1, 2)]
    statistics_of(spark, file_format, table, ["a"])
    values = (
        "dbt_zorder.stats.iceberg.values._value" if file_format == "iceberg" else "dbt_zorder.stats.delta.values._value"
    )
    monkeypatch.setattr(values, lambda *_: 2**40)
    found = state_of(spark, file_format, table).load_stats(resolve_all(["a"], schema))
    assert isinstance(found, DataFrame)
