from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark import local_disk as disk
from dbt_zorder.spark.local_disk import on_disk


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_path_on_this_disk_is_told_as_it_is_and_as_hadoop_writes_it(
    spark: SparkSession, tmp_path: Path, prefix: str
) -> None:
    found = on_disk(spark, f"{prefix}{tmp_path}/a b%20/")
    assert found is not None
    assert found.path == f"{tmp_path}/a b%20"
    assert found.uri == f"file:{tmp_path}/a%20b%2520"
    assert found.mode == 0o644, "by Hadoop's own mask"


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
@pytest.mark.parametrize("name", ["", "/", "/.a/", "/a..b/-c=1_2.d", "/...", "/./x", "/a/../b", "//x//", "/..x/."])
def test_a_plain_path_is_told_without_the_jvm_as_by_it(
    spark: SparkSession, tmp_path: Path, prefix: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = on_disk(spark, f"{prefix}{tmp_path}{name}")
    monkeypatch.setattr(disk, "_PLAIN", re.compile("no path"))
    assert here is not None
    assert here == on_disk(spark, f"{prefix}{tmp_path}{name}")


def test_what_lies_elsewhere_does_not(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_OWN", {"another"})
    monkeypatch.setattr(disk, "_umasks", WeakKeyDictionary())
    assert on_disk(spark, str(tmp_path)) is None
    assert on_disk(spark, f"{tmp_path}/a b") is None
    for place in ("s3a://bucket/x", "hdfs://host/x", "pfile:/x"):
        assert on_disk(spark, place) is None
    remote: Any = object()
    assert on_disk(remote, str(tmp_path)) is None
