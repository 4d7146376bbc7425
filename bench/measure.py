"""Wall time, and CPU seconds of JVM and Python (tasks, compilers, garbage collection), which vary less."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

Item = TypeVar("Item")
_PROCESS = Path("/proc/self")
SETTINGS = {"spark.sql.ansi.enabled": "false", "spark.ui.liveUpdate.period": "0ms"}
"""Of sessions that are measured: Spark keeps what tasks have read up to date at once, not ten times a second."""

COUNTED = {"parquet.hadoop.vectored.io.enabled": "false"}
"""Of runs whose bytes are counted: a vectored read of a local file counts its footer alone."""


def in_order_of(turn: int, items: Iterable[Item]) -> list[Item]:
    """Return all items in the order of a turn: each begins with another one, and every other one goes backwards.

    So over some turns all stand first and last; orders that were drawn had the same one first in each of three.
    """
    listed = list(items)
    first = turn % max(1, len(listed))
    rotated = listed[first:] + listed[:first]
    return rotated[::-1] if turn % 2 else rotated


def bytes_read(spark: SparkSession) -> int:
    """Return the bytes that the tasks of a session have read until now: see ``COUNTED``."""
    # the one executor of local mode is called driver; its sums are kept by a listener, which may be behind
    context: Any = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    return int(context.statusStore().executorSummary("driver").totalInputBytes())


def seconds(work: Callable[[], object]) -> float:
    """Return how long ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def seconds_in_turn(runs: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Return the median seconds of each function over a number of turns; empty if there are none."""
    took: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(turns):
        for name in in_order_of(turn, runs):
            took[name].append(seconds(runs[name]))
    return {name: round(statistics.median(found), 3) for name, found in took.items() if found}


@dataclass(frozen=True)
class Cost:
    """What one run cost.

    Attributes:
        wall, cpu: seconds.
        peak: the most bytes that its memory held at a time: of the JVM its heap, garbage among it, and what Python took
            besides what it had before.
        read: bytes that Spark's tasks say they read: of local Parquet files only those of the footers, so that beside a
            plain copy it tells how often the files were opened.
    """

    wall: float
    cpu: float
    peak: int = 0
    read: int = 0

    @classmethod
    def median(cls, costs: Sequence[Cost]) -> Cost:
        """Return the medians of some runs, and the highest of their peaks."""
        return cls(
            statistics.median(cost.wall for cost in costs),
            statistics.median(cost.cpu for cost in costs),
            max(cost.peak for cost in costs),
            int(statistics.median(cost.read for cost in costs)),
        )


class Meter:
    """Measures functions that run Spark jobs in this process's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        gateway: Any = spark.sparkContext._gateway
        self._jvm = Path(f"/proc/{gateway.proc.pid}")
        self._runtime = jvm.java.lang.Runtime.getRuntime()
        pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        self._heap = [pool for pool in pools if str(pool.getType()) == "Heap memory"]
        self._spark = spark

    def measure(self, run: Callable[[], object]) -> Cost:
        """Run a function once, after a garbage collection."""
        self._runtime.gc()
        memory = PythonMemory()
        for pool in self._heap:
            pool.resetPeakUsage()
        read = bytes_read(self._spark)
        cpu = self._jvm_seconds()
        python = time.process_time()
        started = time.monotonic()
        run()
        wall = time.monotonic() - started
        used = self._jvm_seconds() - cpu + time.process_time() - python
        peak = sum(int(pool.getPeakUsage().getUsed()) for pool in self._heap)
        return Cost(wall, used, peak + max(0, memory.peak() - memory.before), bytes_read(self._spark) - read)

    def _jvm_seconds(self) -> float:
        # fields 14 and 15 of proc(5)'s stat, counted behind the command's name: user and system time in clock ticks
        fields = (self._jvm / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def in_turn(self, runs: Mapping[str, Callable[[], object]], repeats: int, warmups: int = 1) -> dict[str, Cost]:
        """Run all functions in turn, ``warmups + repeats`` times; return the median cost of each.

        In turn, so that a machine that slows down slows all of them down, and each turn in another order, so that a
        session that is still getting faster serves none more than another.
        """
        costs: dict[str, list[Cost]] = {name: [] for name in runs}
        for turn in range(warmups + repeats):
            for name in in_order_of(turn, runs):
                cost = self.measure(runs[name])
                if turn >= warmups:
                    costs[name].append(cost)
        return {name: Cost.median(found) for name, found in costs.items()}


class PythonMemory:
    """What this process has in memory, from here on.

    Attributes:
        before: bytes that it has now, without what Arrow keeps for later.
    """

    def __init__(self) -> None:
        gc.collect()
        pa.default_memory_pool().release_unused()
        (_PROCESS / "clear_refs").write_text("5")  # proc(5): forget the most that was resident so far
        self.before = self._bytes("VmRSS:")

    def peak(self) -> int:
        """Return the most bytes since."""
        return self._bytes("VmHWM:")

    @staticmethod
    def _bytes(name: str) -> int:
        lines = (_PROCESS / "status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


class ProcessMeter:
    """Measures functions that work in this process alone."""

    def measure(self, run: Callable[[], object]) -> Cost:
        """Run a function once."""
        memory = PythonMemory()
        cpu = time.process_time()
        started = time.monotonic()
        run()
        wall = time.monotonic() - started
        return Cost(wall, time.process_time() - cpu, memory.peak())
