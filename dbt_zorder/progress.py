"""Seconds by phase of what is done to a table, and who wants to know of each phase as it begins."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


class Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the seconds of the block under a name."""
        tell(name)
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - started, 3)


def tell(phase: str) -> None:
    """Tell whoever listens that a phase begins, or goes on: where the run was cancelled, what listens raises."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(phase)


@contextlib.contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Call ``listener`` with the name of every phase that this thread begins while the block runs.

    One that listened before hears of it first; what either raises ends the phase before it begins.
    """
    before = _LISTENER.get()

    def both(phase: str) -> None:
        if before is not None:
            before(phase)
        listener(phase)

    token = _LISTENER.set(both)
    try:
        yield
    finally:
        _LISTENER.reset(token)
