"""Clock that measures the phases of an operation on a table, and notifies a listener when a phase begins."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar

_LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


class Clock:
    """A clock of phases.

    Attributes:
        seconds: elapsed seconds by phase, in milliseconds' precision.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Report the phase to the listener, and add the seconds of the block to it."""
        report_phase(name)
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - started, 3)


def add_seconds(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds by phase of two operations together."""
    return {name: round(one.get(name, 0.0) + other.get(name, 0.0), 3) for name in {**one, **other}}


def report_phase(phase: str) -> None:
    """Report to the listener that a phase begins or continues. The listener raises if the run was cancelled."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(phase)


@contextlib.contextmanager
def report_phases_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Call ``listener`` with the name of every phase that this thread begins while the block runs.

    The listener of an outer block is called first. An error from either prevents the phase.
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
