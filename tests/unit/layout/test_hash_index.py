from __future__ import annotations

import random

import pytest

from dbt_zorder.layout.hash_index import fitting_buckets, splits_into


@pytest.mark.parametrize(
    ("files", "columns", "now", "buckets"),
    [
        ([64], 2, 0, 4), ([64], 1, 0, 8), ([64], 3, 0, 4), ([32], 3, 0, 2), ([1], 1, 0, 2), ([], 2, 0, 2),
        ([4096], 2, 0, 16), ([1000], 2, 0, 8), ([64, 64, 64], 2, 0, 4), ([1, 1, 190], 2, 0, 4),
        ([64], 2, 8, 8), ([512], 2, 4, 8), ([64], 2, 6, 6), ([1_000_000], 1, 0, 1024),
    ],
)  # fmt: skip
def test_buckets_cost_what_the_key_costs_as_one_more_column(
    files: list[int], columns: int, now: int, buckets: int
) -> None:
    assert fitting_buckets(files, columns, now) == buckets


@pytest.mark.parametrize(("now", "wanted", "is_split"), [
    (4, 8, True), (4, 64, True), (3, 6, True), (3, 24, True), (6, 12, True),
    (4, 4, False), (8, 4, False), (4, 12, False), (4, 6, False), (0, 8, False), (5, 100_000, False),
])  # fmt: skip
def test_only_a_power_of_two_times_the_buckets_is_a_split(now: int, wanted: int, is_split: bool) -> None:
    assert splits_into(now, wanted) is is_split


def test_a_row_stays_in_its_bucket_or_moves_by_a_multiple() -> None:
    draw = random.Random(7)
    hashes = [-(2**31), 2**31 - 1, -1, 0, *(draw.randrange(-(2**31), 2**31) for _ in range(5000))]
    for now in (1, 2, 3, 6, 7, 12, 64, 50_000):
        for times in (2, 8):
            assert all(value % (now * times) % now == value % now for value in hashes)
