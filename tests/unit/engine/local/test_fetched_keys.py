from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.local import fetched_keys as module
from dbt_zorder.engine.local.fetched_keys import fetch
from dbt_zorder.engine.local.place import rows_of_files
from dbt_zorder.engine.local.row_estimate import estimated_row_bytes
from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.layout import plan as layouts
from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.known_keys import Fetched
from dbt_zorder.layout.partitions import partition_hash
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.columns import resolve
from tests.support import settings
from tests.unit.layout.frames import cast_values, mixed
from tests.unit.layout.test_keys import TYPES

MOST = 10_000_000


@pytest.mark.parametrize(("name", "values"), TYPES, ids=[name for name, _ in TYPES])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_keys_are_what_spark_makes_of_them(spark: SparkSession, zone: str, name: str, values: list[str]) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        frame = spark.sql(cast_values(name, [*values, "NULL"]))
        if estimated_row_bytes(frame.schema) is None:
            assert "interval" in name or "<" in name
            return
        key = key_of(resolve("v", frame.schema))
        found = fetch(frame, [key], MOST)
        assert found is not None
        wanted = collect_arrow(frame.select(f.expr(key.sampled).alias("k0")))
        assert found.sampled.schema.field("k0").type == wanted.schema.field("k0").type
        assert repr(found.sampled["k0"].to_pylist()) == repr(wanted["k0"].to_pylist())
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
    # rows that are placed here go down the tree itself: Spark alone needs a grid
    assert repr(plan_layout(frame, spec, found)) == repr(layouts.plan_layout(frame, spec))


def test_no_more_is_fetched_than_is_allowed(spark: SparkSession) -> None:
    frame = spark.range(0, 1000, 1, 4)
    assert fetch(frame, [], 32 * 1100) is not None
    assert fetch(frame, [], 32 * 900) is None
    assert fetch(frame, [], 32) is None
    uneven = frame.where("id < 10 OR id > 740")
    assert fetch(uneven, [], 32 * 900) is None, "one partition has more than its share"
    long = frame.selectExpr("id", "repeat('x', 1000) AS t")
    assert fetch(long, [], 32 * 1100) is None
    assert fetch(long, [], 2_000_000) is not None
    # one that is long, far behind: the rows before it may have been as long
    assert fetch(frame.selectExpr("id", "repeat('x', if(id = 999, 9000, 1)) AS t"), [], 32 * 1100) is None


def test_names_are_those_of_the_query(spark: SparkSession) -> None:
    names = ["_zorder_row_number", "a.b", "c`d", "x y", "Ä", "_ZORDER_row__long"]
    frame = spark.range(3).select(*(f.col("id").alias(name) for name in names))
    keys = [key_of(resolve(f"`{name.replace('`', '``')}`", frame.schema)) for name in names]
    found = fetch(frame, keys, MOST)
    assert found is not None
    assert found.rows.column_names == names
    assert all(column.to_pylist() == [0, 1, 2] for column in [*found.rows.columns, *found.keys.columns])
    assert all(field.nullable for field in found.rows.schema)


def test_long_text_is_cut_in_a_sample_alone(spark: SparkSession) -> None:
    frame = spark.sql("SELECT repeat('x', 300) || id AS s, id FROM range(20) ORDER BY id DESC").coalesce(1)
    found = fetch(frame, keys_for(frame, LayoutSpec(by=["s"])), MOST)
    assert found is not None
    assert found.sampled["k0"].to_pylist() == [b"x" * 256] * 20
    (rows,) = rows_of_files(found.keys, plan_layout(frame, LayoutSpec(by=["s"]), found)).values()
    assert found.rows["s"].take(pa.array(rows)).to_pylist() == sorted(found.rows["s"].to_pylist())


def test_long_offsets_of_text_are_as_good(spark: SparkSession) -> None:
    with settings(spark, {"spark.sql.execution.arrow.useLargeVarTypes": "true"}):
        frame = spark.sql("SELECT string(id) AS s, cast(string(id) AS binary) AS b FROM range(3)")
        found = fetch(frame, keys_for(frame, LayoutSpec(by=["s", "b"])), MOST)
    assert found is not None
    assert found.rows.schema.types == [pa.string(), pa.binary()]
    assert found.keys.schema.types == [pa.binary()] * 2


def test_many_partitions_are_not_named_here(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.range(20).selectExpr("id", "id AS p")
    parts = [resolve("p", frame.schema)]
    assert fetch(frame, [], MOST, partition_by=parts) is not None
    monkeypatch.setattr(module, "_MOST_FOLDERS", 19)
    assert fetch(frame, [], MOST, partition_by=parts) is None


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
