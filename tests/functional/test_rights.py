"""Files and folders that this process writes have the rights of those that Spark writes beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine import choose
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark import local_disk as disk
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.files import open_path
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet import journal
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.retention.replacements import note_replaced
from dbt_zorder.tables.parquet.rewrite import optimize
from tests.support import unique
from tests.unit.tables.parquet.batches import folder, request, rows

UMASK = "fs.permissions.umask-mode"


@pytest.fixture(scope="module")
def database(spark: SparkSession) -> Iterator[str]:
    name = unique("rights")
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture(params=["by default", "for a group", "below a folder that passes its group on"])
def root(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Return a folder for tables, in a process that gives nobody else any rights by itself."""
    conf = open_path(spark, str(tmp_path))[0].getConf()
    before = conf.get(UMASK)
    conf.set(UMASK, "002" if request.param == "for a group" else before)
    monkeypatch.setattr(disk, "_umasks", WeakKeyDictionary())
    place = tmp_path / "root"
    place.mkdir()
    if "passes" in request.param:
        place.chmod(0o2775)
    mask = os.umask(0o077)
    yield place
    os.umask(mask)
    conf.set(UMASK, before)


@pytest.fixture(params=["here", "from disk", "by Spark"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "from disk":
        monkeypatch.setattr(choose, "_is_small", lambda _: False)
    if request.param == "by Spark":
        monkeypatch.setattr(choose, "_writer", lambda *_: "a test wants it so")
    return str(request.param)


def modes(folder: Path) -> dict[str, set[str]]:
    """Return the rights of a folder and all below it, of folders and of files."""
    below = [folder, *(path for path in folder.rglob("*") if not path.name.endswith(".crc"))]
    return {
        kind: {oct(path.stat().st_mode & 0o7777) for path in below if path.is_dir() == (kind == "folders")}
        for kind in ("folders", "files")
    }


@pytest.mark.parametrize("parts", [(), ("p",)], ids=["plain", "parted"])
def test_they_are_those_of_a_table_of_sparks_own(
    spark: SparkSession, database: str, root: Path, way: str, parts: tuple[str, ...], monkeypatch: Any
) -> None:
    plain = spark.sql(rows(0, 30)).write
    (plain.partitionBy(*parts) if parts else plain).parquet(f"{root}/plain")
    wanted = modes(root / "plain")
    assert all(len(found) == 1 for found in wanted.values()), "Spark itself gives one kind of rights"

    table = TableName(database, unique("t"))
    asked: BuildRequest = request(table, partition_by=parts, location_root=str(root / "deeper" / "root"))
    seen: list[dict[str, set[str]]] = []
    real = journal.make_ready

    def staged(*args: Any) -> None:
        real(*args)
        seen.append(modes(folder(spark, table)))

    monkeypatch.setattr(journal, "make_ready", staged)
    build(spark, spark.sql(rows(0, 300)), asked)
    begin(spark, table)
    for first in (300, 340):
        increment(spark, spark.sql(rows(first, first + 40)), asked, Batch(may_rewrite=False))
    if parts:
        increment(spark, spark.sql(rows(900, 940)), asked, Batch(overwrite=True, may_rewrite=False))
    note_replaced(spark, str(folder(spark, table)))
    optimize(spark, asked, dry_run=False)
    assert [found for found in seen if found != wanted] == []
    assert len(seen) == (3 if parts else 2)
    assert modes(root / "deeper") == wanted
