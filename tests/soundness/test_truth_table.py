"""T6: collected statistics against brute force, over files of three writers and several row groups."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.stats import collect

ROWS = 300


def _values() -> dict[str, tuple[pa.DataType, list[Any]]]:
    def spread(pool: list[Any]) -> list[Any]:
        return [None if n % 17 == 3 else pool[n * 7 % len(pool)] for n in range(ROWS)]

    words = ["", " ", "a", "Z", "é", "～", "😀", "\U0010ffff", "x" * 5000, "pre_1"]
    times = [
        dt.datetime(1850, 1, 1, 0, 0, 30),
        dt.datetime(2024, 1, 1, 0, 0, 0, 456789),
        dt.datetime(9999, 12, 31, 23, 59),
    ]
    return {
        "i": (pa.int32(), spread([-(2**31), 0, 2**31 - 1, 5])),
        "l": (pa.int64(), spread([-(2**63), 2**53 + 1, 2**63 - 1])),
        "x": (pa.float64(), spread([math.nan, -0.0, 1.5, math.inf])),
        "y": (pa.float64(), spread([-1e300, 1e-300, 7.0])),
        "dec": (
            pa.decimal128(38, 10),
            spread([decimal.Decimal("-1e20"), decimal.Decimal("0.0000000001"), decimal.Decimal(7)]),
        ),
        "s": (pa.string(), spread(words)),
        "b": (pa.binary(), spread([b"\x80", b"\xff\xff", b"", b"\x7f"])),
        "d": (pa.date32(), spread([dt.date(1900, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29)])),
        "t": (pa.timestamp("us", tz="UTC"), spread(times)),
        "ok": (pa.bool_(), spread([True, False])),
        "none": (pa.int32(), [None] * ROWS),
    }


def _write_pyarrow(table: pa.Table, path: Path, groups: int, spark: SparkSession) -> None:
    pq.write_table(table, path / "f.parquet", row_group_size=math.ceil(ROWS / groups))


def _write_duckdb(table: pa.Table, path: Path, groups: int, spark: SparkSession) -> None:
    with duckdb.connect() as connection:
        connection.register("given", table)
        size = max(1, ROWS // groups)
        connection.execute(f"COPY given TO '{path}/f.parquet' (FORMAT parquet, ROW_GROUP_SIZE {size})")


def _write_spark(table: pa.Table, path: Path, groups: int, spark: SparkSession) -> None:
    pq.write_table(table, path / "raw.parquet")
    rows = spark.read.parquet(str(path / "raw.parquet")).coalesce(1)
    rows.write.option("parquet.block.row.count.limit", str(ROWS // groups)).mode("append").parquet(str(path / "spark"))
    for found in (path / "spark").glob("*.parquet"):
        found.rename(path / "f.parquet")
    (path / "raw.parquet").unlink()


@pytest.fixture(scope="module", autouse=True)
def database(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE DATABASE IF NOT EXISTS truth")
    yield
    spark.sql("DROP DATABASE truth CASCADE")


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize("groups", [1, 2, 50])
@pytest.mark.parametrize("writer", [_write_pyarrow, _write_duckdb, _write_spark])
def test_bounds_are_exact(spark: SparkSession, tmp_path: Path, writer: Any, groups: int) -> None:
    values = _values()
    writer(pa.table({name: pa.array(items, kind) for name, (kind, items) in values.items()}), tmp_path, groups, spark)
    name = f"truth.{writer.__name__}_{groups}"
    spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{tmp_path}'")
    rows = collect(spark, name, list(values)).selectExpr("row_count", "file_size", "columns.*").collect()
    assert len(rows) == 1
    assert rows[0].row_count == ROWS
    assert rows[0].file_size == (tmp_path / "f.parquet").stat().st_size
    for column, (_, items) in values.items():
        found = rows[0][column]
        present = sorted((item for item in items if item is not None), key=_key)
        assert found.null_count == ROWS - len(present), column
        if not present:
            assert (found.min_value, found.max_value) == (None, None)
            continue
        if column == "t":  # the session's zone would get in between: Spark compares for itself
            low, high = (value.replace(tzinfo=dt.timezone.utc).isoformat() for value in (present[0], present[-1]))
            bounds = collect(spark, name, ["t"]).where(
                f"columns.t.min_value = timestamp '{low}' AND columns.t.max_value = timestamp '{high}'"
            )
            assert bounds.count() == 1
            continue
        assert (_key(found.min_value), _key(found.max_value)) == (_key(present[0]), _key(present[-1])), column
