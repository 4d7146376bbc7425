from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.arrow import collect_arrow
from dbt_zorder.columns import resolve
from dbt_zorder.layout import fetched as module
from dbt_zorder.layout.fetched import Fetched, count_few, fetch, most_bytes_of, width_of
from dbt_zorder.layout.hashing import partition_hash
from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.plan import LayoutSpec, keys_for, plan_layout
from tests.support import settings
from tests.unit.layout.frames import mixed
from tests.unit.layout.test_keys import TYPES

MOST = 10_000_000


@pytest.mark.parametrize(("name", "values"), TYPES, ids=[name for name, _ in TYPES])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_keys_are_what_spark_makes_of_them(spark: SparkSession, zone: str, name: str, values: list[str]) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        frame = spark.sql(" UNION ALL ".join(f"SELECT CAST({value} AS {name}) AS v" for value in [*values, "NULL"]))
        if width_of(frame.schema) is None:
            assert "interval" in name or "<" in name
            return
        key = key_of(resolve("v", frame.schema))
        found = fetch(frame, [key], MOST)
        assert found is not None
        wanted = collect_arrow(frame.select(f.expr(key.sampled).alias("k0")))
        assert found.keys.schema.field("k0").type == wanted.schema.field("k0").type
        assert repr(found.keys["k0"].to_pylist()) == repr(wanted["k0"].to_pylist())
        rows = collect_arrow(frame)
        assert found.rows.schema.field("v").type == rows.schema.field("v").type
        assert plain(found.rows["v"]) == plain(rows["v"])


def plain(column: pa.ChunkedArray) -> str:
    """Also of times that Python has none for."""
    return repr((column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist())


def test_a_plan_of_fetched_rows_is_that_of_their_keys(spark: SparkSession) -> None:
    frame = spark.sql(mixed(5000)).coalesce(1)
    spec = LayoutSpec(by=["a", "s", "d", "n"], files=7)
    found = fetch(frame.select("a", "s", "d", "n", "id"), keys_for(frame, spec), MOST)
    assert found is not None
    assert found.count == 5000
    assert repr(plan_layout(frame, spec, found)) == repr(plan_layout(frame, spec))


@pytest.mark.parametrize("known", [True, False])
def test_no_more_is_fetched_than_is_allowed(spark: SparkSession, *, known: bool) -> None:
    frame = spark.range(0, 1000, 1, 4)
    rows = 1000 if known else None
    assert fetch(frame, [], 8 * 1100, rows) is not None
    if not known:
        assert fetch(frame, [], 8 * 900) is None
        assert fetch(frame, [], 8) is None
        uneven = frame.where("id < 10 OR id > 740")
        assert fetch(uneven, [], 8 * 900) is None, "one partition has more than its share"
    long = frame.selectExpr("id", "repeat('x', 1000) AS t")
    assert fetch(long, [], 24 * 1100, rows) is None
    assert fetch(long, [], 2_000_000, rows) is not None
    # one that is long, far behind: the rows before it may have been as long
    assert fetch(frame.selectExpr("id", "repeat('x', if(id = 999, 9000, 1)) AS t"), [], 24 * 1100, rows) is None


def test_names_are_those_of_the_query(spark: SparkSession) -> None:
    names = ["_zorder_number", "a.b", "c`d", "x y", "Ä", "_ZORDER_number_"]
    frame = spark.range(3).select(*(f.col("id").alias(name) for name in names))
    keys = [key_of(resolve(f"`{name.replace('`', '``')}`", frame.schema)) for name in names]
    found = fetch(frame, keys, MOST)
    assert found is not None
    assert found.rows.column_names == names
    assert all(column.to_pylist() == [0, 1, 2] for column in [*found.rows.columns, *found.keys.columns])
    assert all(field.nullable for field in found.rows.schema)


def test_a_query_is_counted_where_its_files_do_not_tell_that_it_is_small(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(1000).write.mode("overwrite").parquet(str(tmp_path))
    scan = spark.read.parquet(str(tmp_path))
    assert count_few(scan, MOST, None) == (True, None)
    assert count_few(scan, MOST, 1000) == (True, 1000)
    assert count_few(scan, 7999, 1000) == (False, 1000)
    assert count_few(scan, 0, None) == (False, None)
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    assert count_few(scan.where("id < 10"), 100, None) == (True, 10)
    assert count_few(scan, 100, None) == (False, 1000)


def test_what_arrow_and_spark_do_not_store_alike_stays_there(spark: SparkSession) -> None:
    assert width_of(spark.sql("SELECT 1 AS a, 'x' AS s, 1.5BD AS d, true AS b").schema) == 4 + 16 + 16 + 1
    for other in ("array(1)", "map(1, 2)", "named_struct('a', 1)", "INTERVAL '1' DAY", "NULL"):
        assert width_of(spark.sql(f"SELECT 1 AS a, {other} AS v").schema) is None


def test_the_memory_of_spark_is_a_limit_too(spark: SparkSession) -> None:
    assert most_bytes_of(spark, 1000) == 1000
    assert 10_000_000 < most_bytes_of(spark, 1 << 60) < 1 << 36


def test_no_rows(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS a, 'x' AS s").where("a > 1")
    found = fetch(frame, keys_for(frame, LayoutSpec(by=["s", "a"])), MOST)
    assert isinstance(found, Fetched)
    assert (found.count, found.keys.num_rows, found.rows.column_names) == (0, 0, ["a", "s"])


def test_partitions_have_the_folders_that_spark_gives_them(spark: SparkSession, tmp_path: Path) -> None:
    values = """
        ('a/b=c %{}#:?\\'"', DATE'2024-02-29', TIMESTAMP'2024-03-10 02:30:00.5', double('NaN'), X'0041', true, 1.50BD),
        ('', NULL, NULL, NULL, NULL, NULL, NULL),
        (NULL, DATE'0001-01-01', TIMESTAMP'1900-01-01', -0.0D, X'', false, 0BD),
        ('ü ', DATE'9999-12-31', TIMESTAMP'2024-01-01', 1e300D, X'FF', true, -1BD)"""
    frame = spark.sql(f"SELECT 7 AS `v`, * FROM VALUES {values} AS t(`s p`, day, `Ts`, d, b, flag, n)")
    for names in (["s p"], ["day", "s p"], ["Ts", "d"], ["flag", "n", "day"]):
        parts = [resolve(f"`{name}`", frame.schema) for name in names]
        found = fetch(frame, [], MOST, partition_by=parts)
        assert found is not None
        folder = tmp_path / "".join(names)
        frame.write.partitionBy(*names).parquet(str(folder))
        written = {str(file.parent.relative_to(folder)) for file in folder.rglob("*.parquet")}
        assert set(found.folders) == written
        assert len(found.folder_of) == 4
        assert found.rows.column_names == [name for name in frame.columns if name not in names]
        hashes = collect_arrow(frame.select(f.expr(partition_hash([part.sql for part in parts])).alias("p")))
        assert found.keys["p"].to_pylist() == hashes["p"].to_pylist()
    assert fetch(frame, [], MOST, partition_by=[resolve("b", frame.schema)]) is None
