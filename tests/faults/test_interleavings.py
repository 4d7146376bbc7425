"""A build, and at each of its steps something else that runs from its beginning to its end: another build, a vacuum, a
rollback, a rebuild of the stats, readers that have just come and readers that have been there before.

CI takes every step once, the rivals in turn, and a vacuum just after the write; `make soak-faults` takes all of them at
each step.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.catalog import TableName
from dbt_zorder.errors import ZorderError
from dbt_zorder.stats.store import read_stats
from dbt_zorder.table.build import BuildReport
from dbt_zorder.table.checks import location_of
from dbt_zorder.table.restat import rebuild_stats
from dbt_zorder.table.rollback import rollback
from dbt_zorder.table.verify import verify_table
from tests.faults.points import POINTS, STEPS, Strike, armed
from tests.faults.victim import KINDS, Victim
from tests.support import checksum, unique

MOMENTS = [f"{when} {step}" for step in STEPS for when in ("before", "after")]
RIVALS = ("build", "vacuum", "rollback", "restat", "readers")
SOAK = bool(os.environ.get("SOAK_FAULTS"))
CASES = [
    (moment, rival)
    for number, moment in enumerate(MOMENTS)
    for rival in RIVALS
    if SOAK or rival == RIVALS[number % len(RIVALS)] or (moment, rival) == ("after write_data", "vacuum")
]
OLD, MINE, THEIRS = 300, 400, 500


@pytest.fixture(scope="module")
def schema() -> str:
    return "default"


@pytest.mark.parametrize(("moment", "rival"), CASES)
def test_the_loser_gives_up_and_nothing_is_torn(spark: SparkSession, schema: str, moment: str, rival: str) -> None:
    victim = Victim(spark, TableName(schema, unique("race")), KINDS[CASES.index((moment, rival)) % 2])
    grace = 0 if rival == "vacuum" else 24
    victim.build(OLD - 1, grace_hours=grace)
    victim.build(OLD, grace_hours=grace)
    rows = {victim.expected(number): number for number in (OLD - 1, OLD, MINE, THEIRS)}
    seen: list[int] = []
    before = victim.spark.table(victim.table.sql)
    before.count()

    def reader() -> None:
        new = spark.newSession()
        new.sql(f"REFRESH TABLE {victim.table.sql}")
        seen.append(rows[checksum(new.table(victim.table.sql))])
        seen.append(rows[checksum(before)])

    rivals: dict[str, Callable[[], object]] = {
        "build": lambda: victim.build(THEIRS, grace_hours=24),
        "vacuum": lambda: victim.vacuum(),
        "rollback": lambda: rollback(spark, victim.table),
        "restat": lambda: rebuild_stats(spark, victim.table),
        "readers": reader,
    }
    strike = Strike(_once(rivals[rival]))
    with armed(POINTS[moment], strike, spark, victim.root), contextlib.suppress(ZorderError):
        report: BuildReport | ZorderError | None = None
        try:
            report = victim.build(MINE, grace_hours=grace)
        except ZorderError as exc:
            report = exc
            raise
    assert strike.fired
    served = rows[victim.served()]
    swapped = POINTS[moment].new
    if rival in ("build", "rollback"):
        last = {"build": THEIRS, "rollback": OLD if swapped else OLD - 1}[rival]
        if not swapped and moment not in ("after check_base", "before publish"):
            assert isinstance(report, ZorderError), moment
            assert "Another run changed" in str(report)
            assert served == last
        elif not swapped:
            assert served == MINE, "who swaps last between another's last look and its swap: the documented window"
        else:
            assert served == last
    elif rival == "vacuum":
        assert served == (OLD if isinstance(report, ZorderError) else MINE)
    else:
        assert isinstance(report, BuildReport)
        assert served == MINE
        assert set(seen) <= ({OLD, MINE} if swapped else {OLD})
    assert verify_table(spark, victim.table).findings == []
    assert read_stats(spark, location_of(spark, victim.table)).count() > 0
    victim.build(MINE)
    assert rows[victim.served()] == MINE
    assert victim.vacuum() == []


def _once(rival: Callable[[], object]) -> Callable[[], None]:
    started = False

    def strike() -> None:
        nonlocal started
        if not started:  # a rival that builds comes by the same point itself
            started = True
            rival()

    return strike
