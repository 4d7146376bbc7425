"""What is reckoned here is what Spark adds to a row."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.local.curve_keys import curve_cuts, curve_values
from dbt_zorder.engine.local.fetched_keys import fetch
from dbt_zorder.engine.plan import make_plan
from dbt_zorder.engine.spark.curve_sql import add_curve
from dbt_zorder.layout.curve import Curve
from dbt_zorder.layout.curves import grid
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from tests.unit.layout.frames import mixed


@pytest.mark.parametrize("encoding", ["rank", "bits"])
@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
@pytest.mark.parametrize("by", ["d,a", "s,d,t,n", "a,s,d,t,n,b,flag,id"])
def test_keys_are_those_of_spark(spark: SparkSession, curve: str, encoding: str, by: str) -> None:
    frame = spark.sql(mixed(2000)).coalesce(1)
    spec = LayoutSpec(by=by.split(","), files=2)
    keys = keys_for(frame, spec)
    # boundaries of fewer rows than there are
    sample = make_plan(frame.where("id % 3 = 0"), spec).sample
    complete, _ = grid(Curve(curve, encoding), sample, keys)
    found = fetch(frame, keys, 1 << 26)
    assert found is not None
    wanted = [row[0] for row in add_curve(frame, complete, keys, "__k").select("__k").collect()]
    columns = [column.combine_chunks() for column in found.keys.columns]
    assert curve_values(complete, curve_cuts(complete, keys), keys, columns).to_pylist() == wanted


def test_of_nothing_but_null_there_are_no_boundaries(spark: SparkSession) -> None:
    frame = spark.sql("SELECT CAST(NULL AS double) AS d, CAST(NULL AS string) AS s, id FROM range(5)").coalesce(1)
    spec = LayoutSpec(by=["d", "s", "id"], files=1)
    keys = keys_for(frame, spec)
    complete, _ = grid(Curve("hilbert"), make_plan(frame, spec).sample, keys)
    found = fetch(frame, keys, 1 << 20)
    assert found is not None
    wanted = [row[0] for row in add_curve(frame, complete, keys, "__k").select("__k").collect()]
    columns = [column.combine_chunks() for column in found.keys.columns]
    assert curve_values(complete, curve_cuts(complete, keys), keys, columns).to_pylist() == wanted
