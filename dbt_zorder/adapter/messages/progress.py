"""Progress lines of a long build, written through dbt's own log, which honors --quiet and NO_COLOR."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

from dbt_zorder.progress import report_phases_to

_LOG = logging.getLogger("dbt_zorder")

TERMINAL_SECONDS = 5.0
LOG_SECONDS = 30.0
"""Seconds between two lines. Output to a terminal is updated more often than output to a file, as in CI."""

Tasks = tuple[int, int]
"""Numbers of completed and of all tasks in the running stages."""


@contextlib.contextmanager
def progress(spark: SparkSession, name: str, every: float | None = None) -> Iterator[None]:
    """Log, every few seconds, the phase and the tasks of the Spark jobs that this thread runs in the block.

    Args:
        spark: the session. Spark Connect does not report tasks by thread, so that only the phase is logged there.
        name: name of the model.
        every: seconds between two lines, by default 5 in a terminal, else 30.
    """
    watch = _Watch(name, every or (TERMINAL_SECONDS if sys.stdout.isatty() else LOG_SECONDS))
    with report_phases_to(watch.begin), _own_jobs(spark, name) as tasks:
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
        """Start a phase, unless it is the current one."""
        if phase != self._phase:
            self._phase, self._phase_started = phase, time.monotonic()

    def run(self, tasks: Callable[[], Tasks]) -> None:
        """Log a line at each interval until the block has ended."""
        while not self.ended.wait(self.every):
            with contextlib.suppress(Exception):  # an error in the progress report must not fail a build
                _LOG.info(self.line(tasks()))

    def line(self, tasks: Tasks) -> str:
        """Return the current progress line."""
        now = time.monotonic()
        done, total = tasks
        of = f", {done} of {total} tasks done" if total else ""
        return f"{self.name}: {self._phase}{of}, {now - self._phase_started:.0f} s ({now - self._started:.0f} s in all)"


@contextlib.contextmanager
def _own_jobs(spark: SparkSession, name: str) -> Iterator[Callable[[], Tasks]]:
    """Yield a function that counts the tasks of the jobs that this thread starts in the block."""
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
            context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None removes a property
