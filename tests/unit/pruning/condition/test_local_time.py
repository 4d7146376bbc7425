"""What is true of every clock of the JVM, on which the slack of local times rests."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.condition.local_time import BETWEEN_CHANGES, SLACK


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Statistics play no part here."""


_CHANGE = re.compile(r"(?:Gap|Overlap) at ([-0-9T:]+?)(Z|[+-]\d\d:\d\d(?::\d\d)?) to (Z|[+-]\d\d:\d\d(?::\d\d)?)\]")
MICROS = 1_000_000


def _seconds(offset: str) -> int:
    if offset == "Z":
        return 0
    hours, minutes, seconds = (*map(int, offset[1:].split(":")), 0)[:3]
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if offset[0] == "-" else 1)


def _changes(text: str) -> list[tuple[int, int]]:
    """Return the instant in seconds, and the change in seconds, of each transition in a text of Java's."""
    found = []
    for time, before, after in _CHANGE.findall(text):
        local = dt.datetime.fromisoformat(time).replace(tzinfo=dt.timezone.utc)
        found.append((int(local.timestamp()) - _seconds(before), _seconds(after) - _seconds(before)))
    return found


def test_no_clock_changes_by_more_than_a_day_nor_twice_within_days(spark: SparkSession) -> None:
    zones = spark._jvm.java.time.ZoneId  # type: ignore[union-attr]
    names = [str(name) for name in zones.getAvailableZoneIds().toArray()]
    most, least, changes = 0, 10**9, 0
    for name in names:
        rules = zones.of(name).getRules()
        texts = [str(rules.getTransitions().toString())]
        yearly = rules.getTransitionRules()
        for number in range(yearly.size()):
            texts += [str(yearly[number].createTransition(year).toString()) for year in (2038, 2039)]
        found = sorted(set(_changes(" ".join(texts))))
        changes += len(found)
        most = max([most, *(abs(change) for _, change in found)])
        least = min([least, *(later - earlier for (earlier, _), (later, _) in pairwise(found))])
    assert len(names) > 500
    assert changes > 20_000
    assert most * MICROS < SLACK
    assert least * MICROS > BETWEEN_CHANGES
