"""Where a build can be struck: before, after and in the middle of each of its steps, by an exception or by SIGKILL.

A point wraps one function by which the build is done. What it strikes with is the caller's: `Strike`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog_entry import move_entry
from dbt_zorder.spark.files import delete_path
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.store import write_stats
from dbt_zorder.tables.parquet import build as build_module
from dbt_zorder.tables.parquet import swap as swap_module
from dbt_zorder.tables.parquet.retention import deletions as collect_module

STEPS = (
    "make_plan", "write_marker", "write_data", "write_stats", "verify", "check_version", "check_base", "publish",
    "note_replaced", "publish_stats", "collect_old",
)  # fmt: skip


class Injected(Exception):  # noqa: N818
    """The fault itself, so that no other error is taken for it."""


@dataclass(frozen=True)
class Point:
    """A place in a build.

    Attributes:
        name: as tests are called.
        new: whether the new version must be served after a fault here.
    """

    name: str
    new: bool


def _points() -> list[Point]:
    points = []
    for step in STEPS:
        swapped = STEPS.index(step) >= STEPS.index("note_replaced")
        points += [Point(f"before {step}", swapped), Point(f"after {step}", swapped or step == "publish")]
    mid = {"mid write_data": False, "mid write_stats": False, "mid publish": True, "mid collect_old": True}
    return points + [Point(name, new) for name, new in mid.items()]


POINTS = {point.name: point for point in _points()}


class Strike:
    """A fault that waits at a point; `fired` tells whether the build came by."""

    def __init__(self, strike: Callable[[], None]) -> None:
        self._strike = strike
        self.fired = False

    def __call__(self) -> None:
        self.fired = True
        self._strike()


def raise_injected() -> None:
    """Strike by an exception."""
    raise Injected


@contextlib.contextmanager
def armed(point: Point, strike: Strike, spark: SparkSession, root: Path) -> Iterator[None]:
    """Let ``strike`` wait at a point of every build while the block runs.

    Args:
        root: folder of the table's versions.
    """
    when, step = point.name.split()
    if when == "mid":
        with _MIDDLES[step](strike, spark, root):
            yield
        return
    real = getattr(build_module, step)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            strike()
        result = real(*args, **kwargs)
        if when == "after":
            strike()
        return result

    with patch.object(build_module, step, wrapped):
        yield


@contextlib.contextmanager
def _mid_write(strike: Strike, spark: SparkSession, root: Path) -> Iterator[None]:
    """Strike while Spark writes: some files of the version are there, and others are not."""
    real = build_module.write_data
    before = set(root.rglob("*.parquet"))

    def wrapped(*args: Any) -> None:
        done = threading.Event()

        def watch() -> None:
            while not done.is_set():
                if any(one not in before for one in root.rglob("part-*.parquet")):
                    with contextlib.suppress(Injected):
                        strike()
                    spark.sparkContext.cancelAllJobs()
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            real(*args)
        except Exception as exc:
            raise Injected from exc
        finally:
            done.set()
            watcher.join()
        raise Injected  # the write was quicker than the cancellation, but struck it is

    with patch.object(build_module, "write_data", wrapped):
        yield


@contextlib.contextmanager
def _mid_stats(strike: Strike, spark: SparkSession, root: Path) -> Iterator[None]:
    """Strike when the stats of one file are written and those of the others are not."""
    real = write_stats

    def wrapped(stats: Any, location: str) -> None:
        first = replace(stats, rows=stats.rows[:1]) if isinstance(stats, LocalStats) else stats.limit(1)
        real(first, location)
        strike()

    with patch.object(build_module, "write_stats", wrapped):
        yield


@contextlib.contextmanager
def _mid_publish(strike: Strike, spark: SparkSession, root: Path) -> Iterator[None]:
    """Strike when the catalog has carried out the swap and its reply is on its way."""
    real = move_entry
    struck = False

    def wrapped(*args: Any) -> bool:
        nonlocal struck
        moved = real(*args)
        if not struck:
            assert moved
            struck = True
            strike()
        return moved

    with patch.object(swap_module, "move_entry", wrapped):
        yield


@contextlib.contextmanager
def _mid_collect(strike: Strike, spark: SparkSession, root: Path) -> Iterator[None]:
    """Strike when a part of an old version is deleted and the rest of it is not."""
    real = delete_path

    def wrapped(spark: SparkSession, path: str, last: Any = ()) -> None:
        folder = root / path.rsplit("/", 1)[-1]
        real(spark, str(next(one for one in sorted(folder.iterdir()) if one.name[0] not in "._")))
        strike()

    with patch.object(collect_module, "delete_path", wrapped):
        yield


_MIDDLES = {"write_data": _mid_write, "write_stats": _mid_stats, "publish": _mid_publish, "collect_old": _mid_collect}
