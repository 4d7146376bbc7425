"""A build, and at each of its steps something else that runs from its beginning to its end: another build, a vacuum, a
rollback, a rebuild of the stats, readers that have just come and readers that have been there before.

CI strikes every step once, the rivals in turn, and a vacuum just after the write; `make soak-faults` strikes all of
them at each step.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import TableName, location_of
from dbt_zorder.stats.store import read_stats
from dbt_zorder.tables.parquet.operations import rollback as rollback_module
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.retention import deletions as collect_module
from dbt_zorder.tables.parquet.retention.deletions import RetentionDecision, delete_planned
from dbt_zorder.tables.report import BuildReport
from tests.faults.points import POINTS, STEPS, Injected, Strike, armed, raise_injected
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


DELETION = ("before raise_tombstone", "after raise_tombstone", "after describe", "mid delete_path", "after delete_path")


@pytest.mark.parametrize("looked", [False, True], ids=["", "who looked at the version before"])
@pytest.mark.parametrize("moment", DELETION)
def test_a_version_that_is_being_deleted_is_not_served(
    spark: SparkSession, schema: str, moment: str, looked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback to a version, from beginning to end, at each step of the deletion of that version."""
    victim = Victim(spark, TableName(schema, unique("race")), "plain")
    for rows in (OLD - 1, OLD):
        victim.build(rows, grace_hours=24, keep_versions=9)
    outcome: list[bool] = []

    def roll_back() -> None:
        with monkeypatch.context() as patched:
            if looked:
                patched.setattr(rollback_module, "check_version", lambda *_: None)
            try:
                rollback(spark, victim.table)
                outcome.append(True)
            except ZorderError:
                outcome.append(False)

    with _struck(monkeypatch, moment, _once(roll_back)):
        victim.vacuum()
    assert outcome == [moment == "before raise_tombstone"]
    assert victim.served() == victim.expected(OLD - 1 if outcome[0] else OLD)
    assert verify_table(spark, victim.table).findings == []
    assert victim.vacuum() == []


@pytest.mark.parametrize("moment", ["before check_version", "after check_version", "before publish", "after publish"])
@pytest.mark.parametrize("cut", [None, "after raise_tombstone", "mid delete_path", "after delete_path"])
def test_a_deletion_beside_a_rollback_loses_nothing(
    spark: SparkSession, schema: str, moment: str, cut: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion that was judged right before, or one that dies on its way, at each step of a rollback."""
    victim = Victim(spark, TableName(schema, unique("race")), "plain")
    old = victim.build(OLD - 1, grace_hours=24, keep_versions=9)
    victim.build(OLD, grace_hours=24, keep_versions=9)
    decisions = [RetentionDecision(f"{victim.root}/{old.version}", True, "")]

    def delete() -> None:
        struck = _struck(monkeypatch, cut, raise_injected) if cut else contextlib.nullcontext()
        with contextlib.suppress(Injected), struck:
            delete_planned(spark, victim.table, decisions)

    when, step = moment.split()
    real = getattr(rollback_module, step)

    def wrapped(*args: object) -> object:
        if when == "before":
            delete()
        result = real(*args)
        if when == "after":
            delete()
        return result

    with monkeypatch.context() as patched, contextlib.suppress(ZorderError):
        patched.setattr(rollback_module, step, wrapped)
        rollback(spark, victim.table)
    whole = moment == "after publish" and cut != "after raise_tombstone"
    assert victim.served() == victim.expected(OLD - 1 if whole else OLD)
    assert verify_table(spark, victim.table).findings == []
    assert victim.vacuum() == []
    victim.build(MINE)
    assert victim.served() == victim.expected(MINE)


@contextlib.contextmanager
def _struck(monkeypatch: pytest.MonkeyPatch, moment: str, strike: Callable[[], None]) -> Iterator[None]:
    """Strike at a moment of every deletion while the block runs; mid-way, what is left is the marker and less."""
    when, step = moment.split()
    real = getattr(collect_module, step)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            strike()
        if when == "mid":
            for path in Path(args[1].removeprefix("file:")).iterdir():
                if path.name[0] not in "._":
                    path.unlink()
            strike()
        result = real(*args, **kwargs)
        if when == "after":
            strike()
        return result

    with monkeypatch.context() as patched:
        patched.setattr(collect_module, step, wrapped)
        yield


def _once(rival: Callable[[], object]) -> Callable[[], None]:
    started = False

    def strike() -> None:
        nonlocal started
        if not started:  # a rival that builds comes by the same point itself
            started = True
            rival()

    return strike
