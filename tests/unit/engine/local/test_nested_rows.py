"""Structs, arrays and maps go the way of all rows that are copied."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.local import large_table as module
from dbt_zorder.engine.local.shuffle import ShuffleBuffer
from dbt_zorder.engine.parquet.encodings import VERSION_OPTION
from dbt_zorder.layout.page_order import PAGE_ROWS_OPTION
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.pruning.plain_sql.statement import query
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.build import build
from tests.support import same_rows, unique
from tests.unit.engine.local.test_large_table import rows_of, write_in_parts, writers_of
from tests.unit.engine.parquet.test_writer import needs_page_limit
from tests.unit.layout.frames import nested

pytestmark = needs_page_limit


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize(
    "spec",
    [
        LayoutSpec(by=["a", "s.id"], files=5),
        LayoutSpec(by=["s.`x.y`"], files=3),
        LayoutSpec(by=["s.in.f", "id", "s.in.day"], files=4, partition_by=["p"]),
    ],
    ids=lambda spec: f"{spec.by}",
)
def test_nested_columns_and_keys_in_them_go_the_same_way(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch, spec: LayoutSpec, in_parts: bool
) -> None:
    if in_parts:
        write_in_parts(monkeypatch, 60_000)
        monkeypatch.setattr(module, "ShuffleBuffer", lambda _, folder: ShuffleBuffer(30_000, folder))
    table, every = TableName(database, unique("t")), nested(2000)
    few = {PAGE_ROWS_OPTION: "50"}  # so that lists lie across pages that readers pass over
    few[VERSION_OPTION] = "v2" if in_parts else "v1"
    request = BuildRequest(table, spec, stats_columns=["s.in.f", "s.in.day"], options=few)
    build(spark, spark.sql(every), request)
    assert writers_of(spark, table) == {"parquet-cpp"}
    batch = spark.sql(every).where("id % 3 = 0").withColumn("id", f.col("id") + 9000)
    append(spark, batch, request)
    assert writers_of(spark, table) == {"parquet-cpp"}
    wanted = spark.sql(every).unionByName(batch)
    found = spark.table(table.sql)
    assert dict(found.dtypes) == dict(wanted.dtypes)
    assert same_rows(entries(found), entries(wanted))
    for filters in (
        "id BETWEEN 200 AND 230",
        "s.in.f = 0",
        "s.in.f = double('NaN')",
        "s.in.day = DATE'2020-02-04'",
        "s.`x.y` > 'e' AND s.id IN (3, 5, 7)",
    ):
        count = wanted.where(filters).count()
        assert 0 < count == query(spark, f"SELECT * FROM {table.sql} WHERE {filters}").count(), filters


def entries(frame: DataFrame) -> DataFrame:
    """Return rows that Spark compares: it does not compare maps."""
    plain = "transform(deep, x -> struct(x.t, x.n, map_entries(x.m)))"
    return frame.selectExpr("id", "a", "s", "l", f"{plain} AS deep", "map_entries(m) AS m", "fs", "p")


def test_nested_files_are_like_sparks_own(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(nested(3000))
    with rows_of(spark, nested(3000), LayoutSpec(by=["a"], files=1), tmp_path) as (rows, layout):
        sizes = [rows.spool.read(chunk).nbytes for chunk in rows.spool.chunks]
        assert sum(sizes) == pytest.approx(rows.spool.nbytes, rel=0.4)
        assert rows.write(spark, layout, str(tmp_path / "here"))
    frame.coalesce(1).write.parquet(str(tmp_path / "there"))
    here, there = (
        pq.read_metadata(next(Path(tmp_path, name).glob("*.parquet"))).row_group(0) for name in ("here", "there")
    )
    assert here.num_columns == there.num_columns
    for ours, theirs in zip(*(map(one.column, range(one.num_columns)) for one in (here, there)), strict=True):
        path = ours.path_in_schema
        has_nan = path in {"s.in.f", "fs.list.element"}  # and -0.0
        assert (path, ours.physical_type, ours.num_values) == (
            theirs.path_in_schema,
            theirs.physical_type,
            theirs.num_values,
        )
        assert ours.has_dictionary_page == (theirs.has_dictionary_page and not has_nan)
        if ours.is_stats_set:
            assert ours.statistics.null_count == theirs.statistics.null_count
        assert (ours.is_stats_set and ours.statistics.has_min_max) == (theirs.statistics.has_min_max and not has_nan)
        assert ours.has_offset_index


@pytest.mark.parametrize("key", ["l", "s", "deep"])
def test_what_only_spark_orders_is_left_to_it(spark: SparkSession, database: str, key: str) -> None:
    table = TableName(database, unique("t"))
    build(spark, spark.sql(nested(300)), BuildRequest(table, LayoutSpec(by=[key, "id"], files=2)))
    assert writers_of(spark, table) == {"parquet-mr "}
    assert same_rows(entries(spark.table(table.sql)), entries(spark.sql(nested(300))))
