from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt_zorder.curve.rank_bits import rank_slots
from dbt_zorder.engine.spark.curve_sql import search_sql
from dbt_zorder.engine.spark.lookup_tables import long_table

ranks = st.lists(st.integers(0, 40), max_size=200).map(lambda found: dense(np.asarray(found, dtype=np.int32)))


def dense(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Ranks without gaps, as those of a sample are; 0 stays NULL."""
    present = np.unique(values[values > 0])
    return np.where(values > 0, np.searchsorted(present, values) + 1, 0).astype(np.int32)


@given(ranks, st.integers(2, 6), st.booleans())
def test_codes_increase_and_fit_their_bits(values: npt.NDArray[np.int32], bits: int, has_nan: bool) -> None:
    slots = rank_slots(values, bits, has_nan=has_nan)
    assert slots.codes[0] == 0
    assert len(slots.codes) == len(slots.cuts) + 2 + has_nan
    assert all(a < b for a, b in itertools.pairwise(slots.codes))
    assert slots.codes[-1] < 1 << bits
    assert all(a < b for a, b in itertools.pairwise([1, *slots.cuts]))
    assert all(cut <= values.max() for cut in slots.cuts)


@given(ranks)
def test_few_values_have_a_slot_each(values: npt.NDArray[np.int32]) -> None:
    assert rank_slots(values, 6, has_nan=False).cuts == list(range(2, int(values.max(initial=0)) + 1))


def test_many_values_share_slots_of_equal_mass() -> None:
    values = np.repeat(np.arange(1, 10_001), 3).astype(np.int32)
    slots = rank_slots(values, 5, has_nan=False)
    counts = np.bincount(np.searchsorted(slots.cuts, values, side="right"))
    assert len(counts) == 31
    assert counts.max() <= counts.min() + 6


def test_a_rank_tells_the_share_of_rows_below() -> None:
    # half of the rows NULL, then two values of a quarter each: the top bit parts NULL from the rest
    slots = rank_slots(np.asarray([0] * 50 + [1] * 25 + [2] * 25, dtype=np.int32), 4, has_nan=False)
    assert slots.codes == [0, 8, 12]


def test_nan_has_the_last_slot_whether_sampled_or_not() -> None:
    seen = rank_slots(np.asarray([1, 2, 3, 3], dtype=np.int32), 4, has_nan=True, nan_rank=3)
    assert (seen.cuts, len(seen.codes)) == ([2], 4)
    unseen = rank_slots(np.asarray([1, 2], dtype=np.int32), 4, has_nan=True)
    assert (unseen.cuts, len(unseen.codes)) == ([2], 4)
    only = rank_slots(np.asarray([1, 1], dtype=np.int32), 4, has_nan=True, nan_rank=1)
    assert (only.cuts, len(only.codes)) == ([], 3)


@pytest.mark.parametrize("boundaries", [[5], [5, 8], [-3, 0, 4], list(range(0, 30, 3)), list(range(15))])
def test_the_search_finds_the_slot_of_every_value(spark: SparkSession, boundaries: list[int]) -> None:
    found, array = "CAST(v IS NOT NULL AS INT)", long_table(boundaries)
    for place in reversed(range(len(boundaries).bit_length())):
        found = search_sql("v", found, array, 1 << place)
    frame = spark.sql("SELECT id - 10 AS v FROM range(50) UNION ALL SELECT NULL")
    for value, index in frame.selectExpr("v", found).collect():
        assert index == (0 if value is None else 1 + sum(boundary <= value for boundary in boundaries))
