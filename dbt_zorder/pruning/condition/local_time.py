"""Slack for conversions between TIMESTAMP, an instant, and the clock of the session's time zone.

A clock that is set back or forward breaks the order: a later instant may have an earlier local time, and a local time
that a clock leaves out stands for a later instant than its successors. Three facts of the IANA database make bounds
safe. A test checks them for every zone of the JVM.

- No clock was ever set by more than 24 hours. So two instants, or two local times, that lie a day apart never change
  places, and bounds that are ``SLACK`` wider are always true.
- Two changes of one clock lie ``BETWEEN_CHANGES`` apart at least. So if the first and the last instant of a shorter
  period have the same offset, the clock does not change in between, and bounds need no slack.
- A local time that a clock leaves out, or shows twice, lies within 24 hours of the change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SLACK_HOURS = 25
CHANGES_APART_DAYS = 6

_HOUR = 3_600_000_000
SLACK = SLACK_HOURS * _HOUR
"""Slack in microseconds."""

BETWEEN_CHANGES = CHANGES_APART_DAYS * 24 * _HOUR
"""Microseconds between two changes of a clock, at least."""


@dataclass(frozen=True)
class Bounds:
    """SQL of both bounds of an expression in a file.

    Attributes:
        low, high: bounds if ``test`` is TRUE, or if there is none.
        test: SQL that is TRUE where these bounds hold.
        wide: bounds where the test is not TRUE; None if there are none.
    """

    low: str
    high: str
    test: str = ""
    wide: Bounds | None = None

    def only_if(self, test: str) -> Bounds:
        """Return bounds that are NULL unless a further test is TRUE."""
        if not self.test:
            return Bounds(self.low, self.high, test)
        return Bounds(self.low, self.high, f"{test} AND {self.test}", self.wide and self.wide.only_if(test))

    def ends(self) -> tuple[str, str]:
        """Return the SQL of each bound."""
        if not self.test:
            return self.low, self.high
        low, high = ("NULL", "NULL") if self.wide is None else self.wide.ends()
        return f"if({self.test}, {self.low}, {low})", f"if({self.test}, {self.high}, {high})"

    def struct(self) -> str:
        """Return SQL of both bounds as one struct of ``l`` and ``h``, which may be NULL."""
        both = f"named_struct('l', {self.low}, 'h', {self.high})"
        if not self.test:
            return both
        return f"if({self.test}, {both}, {'NULL' if self.wide is None else self.wide.struct()})"


def is_steady(low: str, high: str) -> str:
    """Return SQL that is TRUE if the clock does not change between two instants, nor within ``SLACK`` of them.

    The two offsets are equal if the local times are as far apart as the instants.
    """
    first, last = f"unix_micros({low}) - {SLACK}", f"unix_micros({high}) + {SLACK}"
    local = f"{_local(f'timestamp_micros({last})')} - {_local(f'timestamp_micros({first})')}"
    passed = f"({last} - ({first}))"
    return f"if({passed} < {BETWEEN_CHANGES}, {local} = {passed} * INTERVAL '0.000001' SECOND, false)"


def moved(instant: str, *, back: bool) -> str:
    """Return SQL of an instant that is ``SLACK`` earlier or later."""
    return f"timestamp_micros(unix_micros({instant}) {'-' if back else '+'} {SLACK})"


def to_local(low: str, high: str, function: Callable[[str], str]) -> Bounds:
    """Return bounds of an increasing function of the local time of instants between ``low`` and ``high``."""
    wide = Bounds(function(moved(low, back=True)), function(moved(high, back=False)))
    return Bounds(function(low), function(high), is_steady(low, high), wide)


def to_instant(low: str, high: str) -> Bounds:
    """Return bounds of the instants of local times between ``low`` and ``high``."""
    first, last = _instant(low), _instant(high)
    slack = f"INTERVAL '{SLACK_HOURS}' HOUR"
    wide = Bounds(_instant(f"{low} - {slack}"), _instant(f"{high} + {slack}"))
    return Bounds(first, last, is_steady(first, last), wide)


def through_local(low: str, high: str, function: Callable[[str], str]) -> Bounds:
    """Return bounds of a function from instants to instants that computes by the local time, as ``date_trunc``."""
    first, last = function(moved(low, back=True)), function(moved(high, back=False))
    wide = Bounds(moved(first, back=True), moved(last, back=False))
    steady = f"{is_steady(low, high)} AND {is_steady(function(low), function(high))}"
    return Bounds(function(low), function(high), steady, wide)


def _local(instant: str) -> str:
    return f"CAST({instant} AS TIMESTAMP_NTZ)"


def _instant(local: str) -> str:
    return f"CAST({local} AS TIMESTAMP_LTZ)"
