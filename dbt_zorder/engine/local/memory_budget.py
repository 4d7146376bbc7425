"""Limits the memory for rows in this process, which all of dbt's threads share."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class MemoryBudget:
    """Counts reserved bytes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reserved = 0

    @contextlib.contextmanager
    def reserve(self, size: int, most: int) -> Iterator[Callable[[int], None]]:
        """Reserve ``size`` bytes for the block; wait until the total fits ``most``, or nothing else is reserved.

        Yields a function that corrects the size without waiting. A block must not reserve more, so that no deadlock can
        occur.
        """
        reserved = 0

        def correct(actual: int) -> None:
            nonlocal reserved
            with self._changed:
                self._reserved += actual - reserved
                reserved = actual
                self._changed.notify_all()

        with self._changed:
            self._changed.wait_for(lambda: not self._reserved or self._reserved + size <= most)
            correct(size)
        try:
            yield correct
        finally:
            correct(0)
