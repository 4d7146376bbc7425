"""The same tables by engines that are not Spark: the same rows, and files that they skip by the same statistics."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe, properties
from tests.formats.tables import build, request, rows

VALUE = 77
ROWS = 8_000
MOST_FILES = 6
"""Of 16, where four is the minimum and values lie on the bounds of a file now and then."""


@pytest.fixture
def folder(spark: SparkSession, table: TableName, file_format: str) -> Path:
    build(spark, rows(spark, 0, ROWS), request(table, file_format))
    info = describe(spark, table)
    assert info is not None
    return Path(urlsplit(info.location).path)


def expected(spark: SparkSession) -> list[tuple[int, str]]:
    return sorted((row["id"], row["s"]) for row in rows(spark, 0, ROWS).where(f"a = {VALUE}").collect())


def by_duckdb(found: pa.Table | ds.Dataset) -> list[tuple[int, str]]:
    """Ask DuckDB, over what another library has listed."""
    with duckdb.connect() as connection:
        connection.register("found", found)
        return connection.sql(f"SELECT id, s FROM found WHERE a = {VALUE} ORDER BY id, s").fetchall()


def test_delta_rs_and_duckdb(spark: SparkSession, folder: Path, file_format: str) -> None:
    if file_format != "delta":
        pytest.skip("a table of another format")
    from deltalake import DeltaTable

    dataset = DeltaTable(str(folder)).to_pyarrow_dataset()
    assert by_duckdb(dataset) == expected(spark)
    assert len(list(dataset.get_fragments())) == 16
    assert len(list(dataset.get_fragments(ds.field("a") == VALUE))) <= MOST_FILES


def test_pyiceberg_and_duckdb(spark: SparkSession, table: TableName, folder: Path, file_format: str) -> None:
    if file_format != "iceberg":
        pytest.skip("a table of another format")
    from pyiceberg.table import StaticTable

    assert properties(spark, table)["format"] == "iceberg/parquet"
    latest = max((folder / "metadata").glob("*.metadata.json"), key=lambda file: file.name)
    scan = StaticTable.from_metadata(str(latest)).scan(row_filter=f"a = {VALUE}")
    assert by_duckdb(scan.to_arrow()) == expected(spark)
    assert len(list(scan.plan_files())) <= MOST_FILES
