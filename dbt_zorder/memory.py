"""How much memory this machine, or the container around this process, has, and from whom Arrow takes its own."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path

import pyarrow as pa

_CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Bytes that a container may take, by both versions of Linux's control groups."""

_POOL = "ARROW_DEFAULT_MEMORY_POOL"
"""Variable of the environment by which users say it themselves."""


@cache
def choose_arrow_pool() -> None:
    """Let Arrow take memory from jemalloc in this process, if it has it and nobody has said otherwise.

    The first large table of a process is written in three quarters of the seconds that PyArrow's own choice takes
    (docs/decisions/014), for as much memory.
    """
    if _POOL not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())


def memory_here() -> int | None:
    """Return the bytes of memory that there are, None where the system does not tell."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    for limit in _CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no container, or "max"
            total = min(total, int(limit.read_text()))
    return total
