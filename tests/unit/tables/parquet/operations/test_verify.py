from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.stats.store import read_stats, write_stats
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.rewrite import optimize, request_from_marker
from dbt_zorder.tables.parquet.stats_view import stats_table
from tests.support import unique

QUERY = "SELECT id, if(id % 7 = 0, null, concat('k', id)) AS s, id % 3 AS p, cast('NaN' AS double) AS d FROM range(90)"


@pytest.fixture(params=["plain", "parted"])
def table(spark: SparkSession, database: str, request: pytest.FixtureRequest) -> TableName:
    name = TableName(database, unique("t"))
    spec = LayoutSpec(by=["id", "s"], files=2, partition_by=["p"] if request.param == "parted" else [])
    build(spark, spark.sql(QUERY), BuildRequest(name, spec, stats_columns=["d"]))
    return name


def test_names_with_dots_in_structs_are_found_again(spark: SparkSession, database: str) -> None:
    name = TableName(database, unique("t"))
    rows = spark.sql("SELECT id, named_struct('a.b', CAST(id % 50 AS INT)) AS st FROM range(2000)")
    build(spark, rows, BuildRequest(name, LayoutSpec(by=["st.`a.b`"], files=4)))
    assert verify_table(spark, name).findings == []
    assert optimize(spark, request_from_marker(spark, name), dry_run=False).files_after == 1


def folder(spark: SparkSession, table: TableName) -> Path:
    info = describe(spark, table)
    assert info is not None
    return Path(unquote(urlsplit(info.location).path))


def a_file(spark: SparkSession, table: TableName) -> Path:
    return next(
        path for path in sorted(folder(spark, table).rglob("part-*.parquet")) if "_zorder" not in path.parent.name
    )


def findings(spark: SparkSession, table: TableName) -> str:
    return "\n".join(verify_table(spark, table).findings)


def test_a_table_as_it_was_built_has_no_findings(spark: SparkSession, table: TableName) -> None:
    found = verify_table(spark, table)
    assert (found.rows, found.findings) == (90, [])
    assert str(found) == f"{table}: {found.files} files, 90 rows, listing, stats and footers agree"
    assert found.files in (2, 6)


def test_an_empty_table_has_no_findings(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("t"))
    build(spark, spark.sql(QUERY + " WHERE false"), BuildRequest(table, LayoutSpec(by=["id"], files=2)))
    assert verify_table(spark, table).findings == []


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_lost_live_file_is_found(spark: SparkSession, table: TableName, how: str) -> None:
    file = a_file(spark, table)
    rows = pq.read_metadata(file).num_rows
    file.unlink()
    if how == "emptied":
        file.touch()
    text = findings(spark, table)
    assert f"{file.name} is lost: the stats know it with {rows} rows" in text
    assert f"The table has {90 - rows} rows, and its stats count 90" in text


def test_a_foreign_file_is_found(spark: SparkSession, table: TableName) -> None:
    file = a_file(spark, table)
    rows = pq.read_metadata(file).num_rows
    shutil.copy(file, file.with_name("foreign.parquet"))
    assert f"foreign.parquet with {rows} rows is unknown to the stats" in findings(spark, table)


def test_what_spark_does_not_read_is_no_finding(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("t"))
    build(spark, spark.sql(QUERY), BuildRequest(table, LayoutSpec(by=["id"], files=2)))
    (folder(spark, table) / "sub").mkdir()
    shutil.copy(a_file(spark, table), folder(spark, table) / "sub" / "foreign.parquet")
    assert verify_table(spark, table).findings == []


def test_a_file_that_was_replaced_is_found(spark: SparkSession, table: TableName) -> None:
    file = a_file(spark, table)
    content = pq.ParquetFile(file).read()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    pq.write_table(content.slice(1), file)
    text = findings(spark, table)
    assert f"{file.name} has {file.stat().st_size:,} bytes, and its stats are of one of" in text
    assert f"{file.name} has {len(content) - 1} rows by its footer" in text
    assert "holds another number of rows than its stats count" in text


def test_a_file_without_a_footer_is_found(spark: SparkSession, table: TableName) -> None:
    file = a_file(spark, table)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    file.write_bytes(b"x" * file.stat().st_size)
    text = findings(spark, table)
    assert f"{file.name} has no footer that can be read" in text
    assert "The table cannot be read" in text
    assert "is not a Parquet file" in text, "which Spark says in a cause alone"


@pytest.mark.parametrize(
    ("column", "field", "value", "wrong"),
    [
        ("id", "min_value", 1000, True),
        ("id", "max_value", -1, True),
        ("id", "null_count", 1, True),
        ("s", "max_value", "a", True),
        ("d", "max_value", 1.0, True),  # NaN is above it
        ("id", "min_value", -5, False),  # wider than need be: prunes less, never wrongly
        ("id", "max_value", None, False),
    ],
)
def test_bounds_that_do_not_hold_are_found(
    spark: SparkSession, table: TableName, column: str, field: str, value: object, wrong: bool
) -> None:
    place = str(folder(spark, table))
    stats = read_stats(spark, place)
    changed = stats.withColumn(
        "columns",
        f.col("columns").withField(
            f"{column}.{field}", f.lit(value).cast(stats.select(f"columns.{column}.{field}").schema[0].dataType)
        ),
    )
    rows = changed.collect()
    write_stats(spark.createDataFrame(rows, stats.schema), place)
    found = verify_table(spark, table)
    assert len(found.findings) == (found.files if wrong else 0)
    assert all(f"the stats of {column} do not hold for its rows" in text for text in found.findings)


def test_duplicate_stats_and_a_stale_relation_are_found(spark: SparkSession, table: TableName) -> None:
    place = str(folder(spark, table))
    stats = read_stats(spark, place)
    rows = stats.collect()
    write_stats(spark.createDataFrame([*rows, rows[0]], stats.schema), place)
    spark.sql(f"ALTER TABLE {stats_table(table).sql} SET LOCATION '{place[:-1]}/_zorder_stats'")
    text = findings(spark, table)
    assert "has two rows of stats" in text
    assert "does not show the stats of the version that is served" in text


def test_a_table_without_stats_is_an_error(spark: SparkSession, table: TableName) -> None:
    with pytest.raises(ZorderError, match=r"never has no stats that can be read: build its model with zorder_by"):
        verify_table(spark, TableName(table.schema, "never"))
