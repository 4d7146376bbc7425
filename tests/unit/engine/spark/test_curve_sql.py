"""What Spark adds to a row is what the driver computes for the sample: the same query, all of its rows sampled."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.plan import make_plan
from dbt_zorder.engine.spark.curve_sql import add_curve
from dbt_zorder.layout.curve import Curve
from dbt_zorder.layout.curves import grid, rank_along, sampled_keys
from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.sample import draw
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.columns import resolve
from tests.unit.layout.test_curves import MIXED


@pytest.mark.parametrize("most_fields", [100, 0])
@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
@pytest.mark.parametrize("by", ["d,a", "s,d,t,n", "a,s,d,t,n,b,flag,id"])
def test_keys_of_ranks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most_fields: int, curve: str, by: str
) -> None:
    monkeypatch.setattr("dbt_zorder.engine.spark.curve_sql._MOST_FIELDS", most_fields)
    frame = spark.sql(MIXED).coalesce(1)
    keys = [key_of(resolve(name, frame.schema)) for name in by.split(",")]
    sample = make_plan(frame, LayoutSpec(by=by.split(","), files=2)).sample
    complete, tables = grid(Curve(curve, "rank", cuts_files=True), sample, keys)
    distinct, numbers = rank_along(complete, tables, sample)
    found = add_curve(frame, complete, keys, "__k")
    assert found.columns == [*frame.columns, "__k"]
    assert [row[0] for row in found.select("__k").collect()] == distinct.take(numbers).to_pylist()
    assert complete.bits * len(keys) <= 63


@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
@pytest.mark.parametrize("by", ["d,a", "a,s,d,t,n,b,flag,id"])
def test_keys_of_bits(spark: SparkSession, curve: str, by: str) -> None:
    frame = spark.sql(MIXED).coalesce(1)
    keys = [key_of(resolve(name, frame.schema)) for name in by.split(",")]
    wanted = Curve(curve, "bits", cuts_files=True)
    sample = draw(
        frame,
        sampled_keys(wanted, keys),
        3000,
        3000,
        0,
        None,
        make_plan(frame, LayoutSpec(by=["id"])).layout.partition_hashes,
    )
    complete, tables = grid(wanted, sample, keys)
    distinct, numbers = rank_along(complete, tables, sample)
    found = [bytes(row[0]) for row in add_curve(frame, complete, keys, "__k").select("__k").collect()]
    assert found == distinct.take(numbers).to_pylist()
    assert {len(key) for key in found} == {8 * len(keys)}
