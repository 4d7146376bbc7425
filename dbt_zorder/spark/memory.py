"""Measure the memory of this machine, or of the container around this process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

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
