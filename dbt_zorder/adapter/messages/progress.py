"""How far a long build is: a line now and then through dbt's own log, to which --quiet and NO_COLOR apply."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

from dbt_zorder.progress import listening

_LOG = logging.getLogger("dbt_zorder")

TERMINAL_SECONDS = 5.0
LOG_SECONDS = 30.0
"""Between two lines: where somebody looks on, and where the output goes into a file, as in CI."""

Tasks = tuple[int, int]
"""Tasks done and in all, of the stages that run."""


@contextlib.contextmanager
def progress(spark: SparkSession, name: str, every: float | None = None) -> Iterator[None]:
    """Log the phase and the tasks of the Spark jobs that this thread runs in the block, every few seconds.

    Args:
        spark: the session; over Spark Connect tasks cannot be told by thread, and only the phase is logged.
        name: of the model.
        every: seconds between two lines; by default 5 in a terminal, else 30.
    """
    watch = _Watch(name, every or (TERMINAL_SECONDS if sys.stdout.isatty() else LOG_SECONDS))
    with listening(watch.begin), _own_jobs(spark, name) as tasks:
        thread = threading.Thread(target=watch.run, args=(tasks,), name=f"progress of {name}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            watch.ended.set()
            thread.join()


class _Watch:
    def __init__(self, name: str, every: float) -> None:
        self.name = name
        self.every = every
        self.ended = threading.Event()
        self._phase = "query"
        self._started = self._phase_started = time.monotonic()

    def begin(self, phase: str) -> None:
        """Take note of a phase, or that one goes on."""
        if phase != self._phase:
            self._phase, self._phase_started = phase, time.monotonic()

    def run(self, tasks: Callable[[], Tasks]) -> None:
        """Log a line now and then until the block has ended."""
        while not self.ended.wait(self.every):
            with contextlib.suppress(Exception):  # a look at the progress must not fail a build
                _LOG.info(self.line(tasks()))

    def line(self, tasks: Tasks) -> str:
        """Return what is to be said now."""
        now = time.monotonic()
        done, total = tasks
        of = f", {done} of {total} tasks done" if total else ""
        return f"{self.name}: {self._phase}{of}, {now - self._phase_started:.0f} s ({now - self._started:.0f} s in all)"


@contextlib.contextmanager
def _own_jobs(spark: SparkSession, name: str) -> Iterator[Callable[[], Tasks]]:
    """Give what tells the tasks of the jobs that this thread starts in the block."""
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has none
        yield lambda: (0, 0)
        return
    tracker = context.statusTracker()
    group = f"zorder {name} {uuid.uuid4().hex[:8]}"

    def tasks() -> Tasks:
        done = total = 0
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            if info is None or info.status != "RUNNING":
                continue
            for stage in map(tracker.getStageInfo, info.stageIds):
                if stage is not None and stage.numActiveTasks:
                    done += stage.numCompletedTasks
                    total += stage.numTasks
        return done, total

    before = {key: context.getLocalProperty(key) for key in ("spark.jobGroup.id", "spark.job.description")}
    context.setJobGroup(group, name)
    try:
        yield tasks
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None takes a property away
