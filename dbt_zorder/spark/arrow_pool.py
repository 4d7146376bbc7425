"""From whom Arrow takes its memory."""

from __future__ import annotations

import os
from functools import cache

import pyarrow as pa

_POOL = "ARROW_DEFAULT_MEMORY_POOL"
"""Variable of the environment by which users say it themselves."""

_KEPT_MS = 10_000
"""Arrow itself gives unused pages back after a second, and a build asks for them again: each is a fault then."""


@cache
def choose_arrow_pool() -> None:
    """Let Arrow take memory from jemalloc in this process, if it has it and nobody has said otherwise.

    The first large table of a process is written in three quarters of the seconds that PyArrow's own choice takes
    (docs/decisions/014), for as much memory.
    """
    if _POOL not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
        pa.jemalloc_set_decay_ms(_KEPT_MS)
