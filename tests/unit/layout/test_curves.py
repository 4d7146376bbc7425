from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.cluster import cluster
from dbt_zorder.engine.plan import make_plan
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.curves import curve_of
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from tests.support import settings
from tests.unit.layout.frames import mixed

MIXED = mixed(3000)
OTHERS = [("zorder", "bits"), ("hilbert", "rank"), ("hilbert", "bits"), ("linear", "rank")]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.sql(MIXED).coalesce(1)


def files(df: DataFrame) -> list[list[int]]:
    """The ids in each file, in order."""
    found: dict[int, list[int]] = {}
    for file, row_id in df.select(f.spark_partition_id(), "id").collect():
        found.setdefault(file, []).append(row_id)
    return [found[file] for file in sorted(found)]


def flat(lists: Iterable[list[int]]) -> list[int]:
    return sorted(value for values in lists for value in values)


@pytest.mark.parametrize(("curve", "encoding"), OTHERS)
@pytest.mark.parametrize("by", [["s", "a"], ["a", "s", "d", "t", "n", "b", "flag", "id"]], ids=["2", "8"])
def test_every_row_is_in_one_file_and_files_are_even(
    spark: SparkSession, frame: DataFrame, curve: str, encoding: str, by: list[str]
) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": "true" if len(by) == 8 else "false"}):
        one, again = (files(cluster(frame, by, files=7, seed=5, curve=curve, encoding=encoding)) for _ in range(2))
    assert flat(one) == list(range(3000))
    assert len(one) == 7
    assert max(map(len, one)) <= 1.6 * 3000 / 7
    assert one == again


@pytest.mark.parametrize("by", [["d", "a"], ["s", "t", "flag"], ["n", "b"]])
def test_linear_is_the_order_of_the_columns_through_all_files(
    spark: SparkSession, frame: DataFrame, by: list[str]
) -> None:
    placed = [row for file in files(cluster(frame, [*by, "id"], files=6, curve="linear")) for row in file]
    assert placed == [row[0] for row in frame.orderBy(*by, "id").select("id").collect()]


def test_linear_follows_an_array_by_its_first_element_only(spark: SparkSession) -> None:
    frame = spark.sql("SELECT array(id % 50, id % 7) AS v, id FROM range(500)")
    placed = files(cluster(frame, ["v", "id"], files=4, curve="linear"))
    assert flat(placed) == list(range(500))
    firsts = [{row % 50 for row in file} for file in placed]
    assert all(max(one) <= min(other) for one, other in itertools.pairwise(firsts))


@pytest.mark.parametrize("encoding", ["rank", "bits"])
def test_hilbert_files_are_ranges_of_the_key(spark: SparkSession, frame: DataFrame, encoding: str) -> None:
    plan = make_plan(frame, LayoutSpec(by=["id", "t"], files=5, curve="hilbert", encoding=encoding))
    assert plan.forest.cuts[0].shape[0] == 1
    assert plan.layout.curve is not None
    assert plan.layout.curve.carrier == ("bigint" if encoding == "rank" else "binary")
    # t follows id: along the diagonal, the curve visits it in steps near one another
    placed = files(apply_layout(frame, plan.layout))
    assert sum(max(file) - min(file) for file in placed) < 3 * 3000


@pytest.mark.parametrize(("curve", "encoding"), OTHERS)
def test_partitions_have_files_of_their_own(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, curve: str, encoding: str
) -> None:
    clustered = cluster(frame, ["a", "s"], files=2, partition_by="p", curve=curve, encoding=encoding)
    clustered.write.partitionBy("p").parquet(str(tmp_path / "out"))
    assert len(list((tmp_path / "out").rglob("*.parquet"))) == 8
    assert spark.read.parquet(str(tmp_path / "out")).agg(f.sum("id"), f.count("*")).first() == (4498500, 3000)


@pytest.mark.parametrize(("curve", "encoding"), OTHERS)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, id AS a, 'x' AS b FROM range(0)",
        "SELECT id, id AS a, 'x' AS b FROM range(1)",
        "SELECT id, 7 AS a, 'x' AS b FROM range(200)",
        "SELECT id, CAST(NULL AS double) AS a, CAST(NULL AS string) AS b FROM range(200)",
        "SELECT id, if(id < 160, 5, id) AS a, if(id < 160, 'x', sha1(string(id))) AS b FROM range(200)",
    ],
    ids=["empty", "one row", "one value", "all NULL", "heavy value"],
)
def test_odd_data_loses_no_row_and_leaves_no_giant(spark: SparkSession, curve: str, encoding: str, query: str) -> None:
    frame = spark.sql(query).coalesce(1)
    placed = files(cluster(frame, ["a", "b"], files=4, curve=curve, encoding=encoding))
    assert flat(placed) == list(range(frame.count()))
    assert max(map(len, placed), default=0) <= 90


@pytest.mark.parametrize(("curve", "encoding"), [("hilbert", "rank"), ("zorder", "bits"), ("linear", "bits")])
def test_one_column_needs_no_curve(frame: DataFrame, curve: str, encoding: str) -> None:
    found = curve_of(curve, encoding, 1)
    assert found is not None
    assert found.curve == "linear"


def test_the_default_has_no_key_of_its_own(frame: DataFrame) -> None:
    assert curve_of("zorder", "rank", 3) is None
    assert make_plan(frame, LayoutSpec(by=["a", "s"], files=3)).layout.curve is None


@pytest.mark.parametrize(
    ("curve", "encoding", "message"),
    [
        ("hillbert", "rank", "There is no curve 'hillbert'; only .*Did you mean 'hilbert'"),
        ("zorder", "bit", "There is no encoding 'bit'; only 'rank', 'bits' is allowed. Did you mean 'bits'"),
    ],
)
def test_a_curve_that_does_not_exist_is_an_error(frame: DataFrame, curve: str, encoding: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        keys_for(frame, LayoutSpec(by=["a"], curve=curve, encoding=encoding))
