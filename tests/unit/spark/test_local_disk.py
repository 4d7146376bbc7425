from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark import local_disk as disk
from dbt_zorder.spark.files import open_path
from dbt_zorder.spark.local_disk import LocalPath, on_disk


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


@pytest.mark.parametrize(("umask", "passes_on"), [(0o022, False), (0o002, False), (0o027, True)])
def test_rights_are_hadoops_whatever_the_umask_of_the_process(tmp_path: Path, umask: int, passes_on: bool) -> None:
    place, inner = LocalPath(str(tmp_path), "", umask), tmp_path / "a" / "b"
    if passes_on:
        tmp_path.chmod(0o2700)
    before = os.umask(0o077)
    try:
        assert place.make_folders(str(inner)) == [str(inner.parent), str(inner)]
        assert place.make_folders(str(inner)) == []
        with pytest.raises(FileExistsError):
            place.make_folder(str(inner))
        (inner / "file").touch()
        place.set_permissions(inner / "file")
    finally:
        os.umask(before)
    wanted = (0o777 & ~umask) | (0o2000 if passes_on else 0)
    assert [path.stat().st_mode & 0o7777 for path in (inner.parent, inner)] == [wanted, wanted]
    assert (inner / "file").stat().st_mode & 0o7777 == 0o666 & ~umask


@pytest.mark.parametrize("name", ["plain", "a b"])
def test_the_setting_is_that_of_the_file_system(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    conf = open_path(spark, str(tmp_path))[0].getConf()
    before = conf.get("fs.permissions.umask-mode")
    conf.set("fs.permissions.umask-mode", "002")
    monkeypatch.setattr(disk, "_umasks", WeakKeyDictionary())
    try:
        place = on_disk(spark, f"{tmp_path}/{name}")
        assert place is not None
        assert (place.mode, place.folder_mode) == (0o664, 0o775)
    finally:
        conf.set("fs.permissions.umask-mode", before)


def test_what_lies_elsewhere_does_not(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_OWN", {"another"})
    monkeypatch.setattr(disk, "_umasks", WeakKeyDictionary())
    assert on_disk(spark, str(tmp_path)) is None
    assert on_disk(spark, f"{tmp_path}/a b") is None
    for place in ("s3a://bucket/x", "hdfs://host/x", "pfile:/x"):
        assert on_disk(spark, place) is None
    remote: Any = object()
    assert on_disk(remote, str(tmp_path)) is None
