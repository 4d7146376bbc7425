from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.spark.hash_slots import murmur3_int, slots

EDGES = [0, 1, -1, 42, 127, -128, 65536, 2**31 - 1, -(2**31)]


def test_the_hash_is_sparks_own(spark: SparkSession) -> None:
    values = EDGES + np.random.default_rng(0).integers(-(2**31), 2**31, 500).tolist()
    expected = [
        row[0] for row in spark.createDataFrame([(v,) for v in values], "v int").selectExpr("hash(v)").collect()
    ]
    assert murmur3_int(values).tolist() == expected


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 16, 61, 200, 1000, 10_000])
def test_there_is_one_slot_for_every_partition(partitions: int) -> None:
    found = slots(partitions)
    assert (found >= 0).all()
    assert np.mod(murmur3_int(found).astype(np.int64), partitions).tolist() == list(range(partitions))


def test_slots_are_the_smallest_that_fit() -> None:
    homes = np.mod(murmur3_int(np.arange(10_000)).astype(np.int64), 17)
    assert slots(17).tolist() == [int(np.argmax(homes == home)) for home in range(17)]


@pytest.mark.parametrize("partitions", [1, 2, 5, 16, 61])
def test_repartition_sends_a_slot_to_its_partition(spark: SparkSession, partitions: int) -> None:
    rows = [(int(slot), home) for home, slot in enumerate(slots(partitions))]
    placed = spark.createDataFrame(rows, "slot int, home int").repartition(partitions, "slot")
    got = placed.select("home", f.spark_partition_id().alias("at")).collect()
    assert len(got) == partitions
    assert all(row["home"] == row["at"] for row in got)
