"""From whom Arrow takes its memory, and how long what it has freed stays with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cache

import pyarrow as pa

_POOL = "ARROW_DEFAULT_MEMORY_POOL"
"""Variable of the environment by which users say it themselves."""

_KEPT_MILLISECONDS = 1000
"""By default jemalloc gives back at once what is freed, and each piece of rows has its pages made anew."""


@contextlib.contextmanager
def arrow_memory() -> Iterator[None]:
    """Let Arrow have memory as fast as can be while a block runs, and give back what it does not use then."""
    _choose()
    try:
        yield
    finally:
        pa.default_memory_pool().release_unused()


@cache
def _choose() -> None:
    """Let Arrow take memory from jemalloc in this process, if it has it and nobody has said otherwise.

    Large tables are written in four fifths of the seconds that PyArrow's own choice takes, for a tenth more memory
    (docs/decisions/014).
    """
    if _POOL not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
        pa.jemalloc_set_decay_ms(_KEPT_MILLISECONDS)
