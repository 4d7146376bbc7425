"""Choose Arrow's memory pool."""

from __future__ import annotations

import os
from functools import cache

import pyarrow as pa

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
