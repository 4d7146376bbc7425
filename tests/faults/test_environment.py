"""What surrounds a build fails: a full disk, a folder that may not be written, a catalog whose replies are lost, stats
that cannot be read. Each time the table is the old or the new one, the next run succeeds and nothing is left.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.files import delete_path
from dbt_zorder.stats.store import stats_path, write_stats
from dbt_zorder.tables import metastore
from dbt_zorder.tables.parquet import build as build_module
from dbt_zorder.tables.parquet import conflicts as checks
from dbt_zorder.tables.parquet import swap
from tests.faults.points import Injected
from tests.faults.victim import KINDS, Victim
from tests.support import unique

ROWS = 20_000


@pytest.fixture(params=KINDS)
def victim(spark: SparkSession, request: pytest.FixtureRequest) -> Victim:
    made = Victim(spark, TableName("default", unique(request.param)), request.param)
    made.build(ROWS)
    return made


def converges(victim: Victim, served: int) -> None:
    """Check what is served, that at most one folder was left, and that the next run and a vacuum set all right."""
    assert victim.served() == victim.expected(served)
    assert len(victim.others()) <= 1
    victim.build(ROWS + 1)
    assert victim.served() == victim.expected(ROWS + 1)
    assert victim.vacuum() == []


@contextlib.contextmanager
def files_at_most(spark: SparkSession, size: int) -> Iterator[None]:
    """Let every write beyond ``size`` bytes of a file fail, as one to a full disk or beyond a quota does."""
    gateway: Any = spark.sparkContext._gateway
    limits = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in (gateway.proc.pid, os.getpid())}
    for pid, before in limits.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        for pid, before in limits.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("step", "size"), [("write_data", 8000), ("write_stats", 500)])
def test_no_space_for_a_file(victim: Victim, monkeypatch: pytest.MonkeyPatch, step: str, size: int) -> None:
    real = getattr(build_module, step)

    def cramped(*args: Any) -> None:
        with files_at_most(victim.spark, size):
            real(*args)

    monkeypatch.setattr(build_module, step, cramped)
    with pytest.raises(Exception, match="File too large"):
        victim.build(ROWS + 1)
    monkeypatch.undo()
    converges(victim, ROWS)


def test_a_full_disk(victim: Victim, tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a file system of its own needs root; test_no_space_for_a_file needs none")
    try:
        with pytest.raises(Exception, match="No space left on device"):
            victim.build(ROWS + 1, location_root=str(tmp_path))
        assert list(tmp_path.rglob("v*")) == [], "what was written is deleted at once"
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)
    converges(victim, ROWS)


def test_permission_denied(victim: Victim) -> None:
    # not even root may make a folder there
    with pytest.raises(Exception, match=r"/proc/zorder"):
        victim.build(ROWS + 1, location_root="/proc/zorder")
    converges(victim, ROWS)


def test_old_versions_that_may_not_be_deleted_fail_no_build(
    victim: Victim, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused = []

    def refuse(_: Any, path: str, last: Any = ()) -> None:
        refused.append(path)
        raise PermissionError(path)

    monkeypatch.setattr("dbt_zorder.tables.parquet.retention.deletions.delete_path", refuse)
    victim.build(ROWS + 2)
    assert refused
    assert "zorder_vacuum tries again" in caplog.text
    monkeypatch.undo()
    converges(victim, ROWS + 2)


@pytest.mark.parametrize("carried_out", [True, False])
def test_the_reply_of_a_replacement_is_lost(victim: Victim, monkeypatch: pytest.MonkeyPatch, carried_out: bool) -> None:
    struck = []
    replace = metastore.replace_entry

    def lost(*args: Any) -> bool:
        struck.append(args)
        if carried_out:
            assert replace(*args)
            return False  # what it says of whatever goes wrong in it
        raise Injected

    monkeypatch.setattr(swap, "replace_entry", lost)
    victim.spark.sql(f"COMMENT ON TABLE {victim.table.sql} IS 'so that the entry is replaced, not its location alone'")
    with contextlib.nullcontext() if carried_out else pytest.raises(BuildError, match="did not accept"):
        victim.build(ROWS + 2)
    assert struck
    monkeypatch.undo()
    converges(victim, ROWS + 2 if carried_out else ROWS)


def test_a_catalog_that_is_gone_after_the_swap_deletes_nothing(victim: Victim, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = swap.publish

    def gone(*_: Any) -> None:
        raise Injected

    def then_gone(*args: Any) -> None:
        publish(*args)
        for module in (build_module, swap, checks):
            monkeypatch.setattr(module, "describe", gone)
        raise Injected

    monkeypatch.setattr(build_module, "publish", then_gone)
    with pytest.raises(Injected):
        victim.build(ROWS + 2)
    monkeypatch.undo()
    converges(victim, ROWS + 2)


@pytest.mark.parametrize("how", ["garbage", "empty", "missing"])
def test_stats_that_are_spoiled_before_the_swap_lose_no_row(
    victim: Victim, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    write = write_stats
    struck = []

    def corrupt(stats: Any, location: str) -> Any:
        written = write(stats, location)
        struck.append(spoil(victim, location, how))
        return written

    monkeypatch.setattr(build_module, "write_stats", corrupt)
    with pytest.raises(BuildError, match="its stats cannot be read") if how == "missing" else contextlib.nullcontext():
        victim.build(ROWS + 2)
    assert struck
    monkeypatch.undo()
    assert pruning.scan(victim.spark, victim.table.sql, "id = 77").count() == 1
    converges(victim, ROWS if how == "missing" else ROWS + 2)


@pytest.mark.parametrize("how", ["garbage", "empty", "missing"])
def test_corrupt_stats_of_the_version_served_lose_no_row(victim: Victim, how: str) -> None:
    spoil(victim, str(victim.root / victim.current()), how)
    assert pruning.scan(victim.spark, victim.table.sql, "id = 77").count() == 1
    converges(victim, ROWS)


def spoil(victim: Victim, location: str, how: str) -> str:
    path = stats_path(location)
    if how == "missing":
        delete_path(victim.spark, path)
        return how
    file = next(Path(path.removeprefix("file:")).glob("part-*"))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    file.write_bytes(b"x" * 500 if how == "garbage" else b"")
    return how
