"""Room in this process's memory, shared by all of dbt's threads: what holds rows waits until there is some."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class MemoryBudget:
    """Counts the bytes that are taken."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reserved = 0

    @contextlib.contextmanager
    def reserve(self, size: int, most: int) -> Iterator[Callable[[int], None]]:
        """Take ``size`` bytes while the block runs, once no more than ``most`` are taken with them, or none without.

        Gives a function that says how many they are after all, which does not wait. Who takes some asks for no more
        meanwhile, so nobody waits for who waits.
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
