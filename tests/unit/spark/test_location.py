from __future__ import annotations

import pytest

from dbt_zorder.spark.location import is_same_place, is_within

SAME = [
    ("hdfs://nn:8020/a/b", "/a/b"),
    ("hdfs://nn:8020/a/b", "hdfs:///a/b/"),
    ("hdfs://NN/a/b", "hdfs://nn:8020/a//b"),
    ("file:/a/b", "/a/b"),
    ("file:///a/b", "file:/a/b"),
    ("file:/a%20b", "/a b"),
    ("s3a://bucket/a", "s3a://bucket/a/"),
]
OTHERS = [
    ("s3a://one/a", "s3a://two/a"),
    ("/a/b", "/a/bc"),
    ("abfss://c@one.net/a", "abfss://d@one.net/a"),
    ("hdfs://nn:8020/a", "hdfs://other:8020/a"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_folder_by_two_names(one: str, other: str) -> None:
    assert is_same_place(one, other)
    assert is_same_place(other, one)
    assert is_within(one, other)
    assert is_within(f"{one.rstrip('/')}/sub", other)
    assert not is_within(one, f"{other.rstrip('/')}/sub")


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_two_folders(one: str, other: str) -> None:
    assert not is_same_place(one, other)
    assert not is_within(one, other)
    assert not is_within(other, one)
