"""Measure the memory of this machine, or of the container around this process."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path

import pyarrow as pa

_CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files with a container's memory limit in bytes, for both versions of Linux's control groups."""


def memory_here() -> int | None:
    """Return the total bytes of memory; None if the system does not report it."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    for limit in _CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no container, or "max"
            total = min(total, int(limit.read_text()))
    return total


_POOL = "ARROW_DEFAULT_MEMORY_POOL"
"""Environment variable by which users choose the pool themselves."""


_KEPT_MS = 10_000
"""Milliseconds until Arrow returns unused pages. By default it is one second; a build that needs them again faults."""


@cache
def choose_arrow_pool() -> None:
    """Make Arrow allocate from jemalloc in this process, if it is available and the user has not chosen a pool.

    The first large table of a process is then written in three quarters of the time with PyArrow's own choice
    (docs/decisions/014). The memory use is the same.
    """
    if _POOL not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
        pa.jemalloc_set_decay_ms(_KEPT_MS)
