from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import ColumnError, ZorderError
from dbt_zorder.spark.columns import resolve_all
from dbt_zorder.stats import collect, stats_schema
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.collect import collect_path
from tests.support import settings

DATA = """
    SELECT id, CASE WHEN id % 4 > 0 THEN id END AS n, CAST(NULL AS string) AS nothing,
      CASE WHEN id % 10 = 0 THEN double('NaN') ELSE id / 2D END AS d,
      CASE WHEN id % 5 > 0 THEN named_struct('x', named_struct('y z', id)) END AS s, concat('k', id) AS `a.b`,
      id AS _metadata, id % 2 AS p
    FROM range(100)
"""


@pytest.fixture(scope="module")
def table(spark: SparkSession, database: str) -> str:
    frame = spark.sql(DATA).repartitionByRange(4, "id")
    frame.write.partitionBy("p").saveAsTable(f"{database}.measured")
    return f"{database}.measured"


def test_stats_have_their_schema_and_one_row_a_file(spark: SparkSession, table: str) -> None:
    stats = collect(spark, table, ["id", "n", "d"])
    types = {field.name: field.dataType for field in spark.table(table).schema}
    wanted = stats_schema({name: types[name] for name in ("id", "n", "d")})
    assert [(f.name, f.dataType.simpleString()) for f in stats.schema] == [
        (f.name, f.dataType.simpleString()) for f in wanted
    ]
    assert stats.count() == len(set(spark.table(table).inputFiles()))


def test_stats_are_those_of_the_files(spark: SparkSession, table: str) -> None:
    rows = collect(spark, table, ["id", "n", "nothing", "d", "s.x.`y z`", "a.b", "_metadata", "p"]).collect()
    by_file: dict[str, list[dict[str, object]]] = {}
    for row in spark.table(table).selectExpr("input_file_name() AS file", "*").collect():
        by_file.setdefault(row["file"].replace("file:///", "file:/"), []).append(row.asDict(recursive=True))
    assert {row["file_path"] for row in rows} == set(by_file)
    for row in rows:
        data = by_file[row["file_path"]]
        stats = row["columns"]
        assert row["row_count"] == len(data)
        assert row["file_size"] > 0
        ids = [int(str(r["id"])) for r in data]
        assert stats["id"][:3] == (min(ids), max(ids), 0)
        assert stats["_metadata"][:3] == (min(ids), max(ids), 0)
        values = [i for i in ids if i % 4]
        assert stats["n"][:3] == (min(values), max(values), len(ids) - len(values))
        assert stats["nothing"][:3] == (None, None, len(ids))
        inner = [i for i in ids if i % 5]
        assert stats["s.x.y z"][:3] == (min(inner), max(inner), len(ids) - len(inner))
        assert stats["a.b"]["min_value"] == min(f"k{i}" for i in ids)
        assert stats["p"]["min_value"] == stats["p"]["max_value"]
        if any(i % 10 == 0 for i in ids):
            assert str(stats["d"]["max_value"]) == "nan"  # above all numbers, as Spark compares


@pytest.mark.parametrize(("columns", "message"), [(["idd"], "Did you mean 'id'"), (["id", "ID"], "named twice")])
def test_a_wrong_column_is_an_error(spark: SparkSession, table: str, columns: list[str], message: str) -> None:
    with pytest.raises(ColumnError, match=message):
        collect(spark, table, columns)


def test_a_folder_with_odd_characters_is_measured(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "a [b]{c,d} *e?% ü")
    frame = spark.sql("SELECT id, CASE WHEN id > 5 THEN 'x y/z' END AS p FROM range(10)")
    frame.write.partitionBy("p").parquet(path)
    schema = frame.schema
    stats = collect_path(spark, path, schema, resolve_all(["id", "p"], schema), "v1")
    assert isinstance(stats, DataFrame), "of a partition column no footer tells"
    rows = stats.collect()
    assert (
        sorted(row["columns"]["id"]["max_value"] for row in rows if row["columns"]["p"]["min_value"] is None)[-1] == 5
    )
    assert sum(row["row_count"] for row in rows) == 10
    assert {row["version"] for row in rows} == {"v1"}


@pytest.mark.parametrize("column", ["id", "half"])
def test_files_that_are_yet_to_be_moved_are_named_as_they_will_be(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    frame = spark.range(9).selectExpr("id", "CAST(id / 2 AS decimal(20, 2)) AS half")
    frame.coalesce(1).write.parquet(str(tmp_path / "v/_journal/data"))
    columns = resolve_all([column], frame.schema)
    stats = collect_path(spark, str(tmp_path / "v/_journal/data"), frame.schema, columns, "v", "/_journal/data/")
    assert isinstance(stats, LocalStats) is (column == "id")
    (row,) = (stats.frame() if isinstance(stats, LocalStats) else stats).collect()
    assert Path(row["file_path"].removeprefix("file:")).parent.resolve() == (tmp_path / "v").resolve()


def test_files_that_may_be_read_in_part_give_no_stats(spark: SparkSession, table: str) -> None:
    with (
        settings(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}),
        pytest.raises(ZorderError, match="ignoreCorruptFiles is on"),
    ):
        collect(spark, table, ["id"])
