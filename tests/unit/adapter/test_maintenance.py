from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dbt_zorder.adapter.maintenance import Budget, Maintenance, Steps
from dbt_zorder.errors import ConfigError, ZorderError
from dbt_zorder.tables.health import ColumnHealth, TableHealth

BAD = TableHealth(
    table="t",
    files=100,
    bytes=1_000_000,
    rows=1,
    target_bytes=100,
    small_files=0,
    without_stats=0,
    new_files=None,
    new_bytes=None,
    files_after=100,
    columns={"a": ColumnHealth(depth=100, deepest=100, overlaps=99, unbounded=0, after=10, at_build=None)},
    command="",
)
GOOD = replace(BAD, columns={"a": replace(BAD.columns["a"], depth=10)})


class Project:
    """Tables whose steps are noted, and the lines that a run prints."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.lines: list[str] = []

    def table(self, name: str, health: TableHealth | Exception, findings: Sequence[str] = (), fails: str = "") -> Steps:
        def act(step: str, result: Any) -> Any:
            def run() -> Any:
                self.acts.append(f"{step} {name}")
                if step == fails:
                    msg = "no disk"
                    raise ZorderError(msg)
                return result

            return run

        def measure() -> TableHealth:
            if isinstance(health, Exception):
                raise health
            return health

        return Steps(name, measure, act("optimize", 12), act("collect", 1), act("verify", findings))

    def run(self, *tables: Steps, budget: Budget | None = None, dry_run: bool = False) -> tuple[Maintenance, str]:
        run = Maintenance(budget or Budget(), dry_run, self.lines.append)
        return run, run.run(tables)


def test_what_gains_is_rewritten_and_all_is_collected_and_verified() -> None:
    project = Project()
    _, text = project.run(project.table("good", GOOD), project.table("bad", BAD))
    assert project.acts == ["optimize bad", "collect bad", "verify bad", "collect good", "verify good"]
    assert project.lines == [
        "bad: 100 files of 1.0 MB rewritten into 12, 1 old version deleted, verified, 0 findings",
        "good: 1 old version deleted, verified, 0 findings",
    ]
    assert text.startswith(
        "2 tables: 1 rewritten (100 files, 1.0 MB), 0 left, 0 failures. Seconds: health 0.0, optimize"
    )


def test_a_dry_run_rewrites_nothing() -> None:
    project = Project()
    _, text = project.run(project.table("bad", BAD), dry_run=True)
    assert project.acts == ["collect bad"]
    assert project.lines == ["bad: 100 files of 1.0 MB would be rewritten, 1 old version would be deleted"]
    assert text.endswith("Nothing was changed: this was a dry run, add dry_run: false.")


def test_a_table_that_fails_does_not_stop_the_others() -> None:
    project = Project()
    run, text = project.run(
        project.table("first", BAD, fails="optimize"),
        project.table("second", ZorderError("no stats")),
        project.table("third", GOOD, findings=["a file is lost"]),
        Steps("fourth", None, lambda: 0, None, None),
    )
    assert run.failed == ["second: no stats", "first: no disk", "third: a file is lost"]
    assert project.acts == ["optimize first", "collect third", "verify third"]
    assert "fourth: not a table here, nothing to do" in project.lines
    assert "3 failures" in text
    assert "  first: no disk" in text


def test_a_budget_of_bytes_leaves_what_exceeds_it() -> None:
    project = Project()
    small = replace(BAD, bytes=400_000)
    _, text = project.run(project.table("large", BAD), project.table("small", small), budget=Budget(bytes=500_000))
    assert [act for act in project.acts if "optimize" in act] == ["optimize small"]
    assert "large: a rewrite of 1.0 MB is left, as the budget is 500.0 kB, 1 old version deleted" in project.lines[0]
    assert "1 rewritten (100 files, 400.0 kB), 1 left" in text


def test_no_step_begins_when_the_time_is_over() -> None:
    project = Project()
    _, text = project.run(project.table("bad", BAD), budget=Budget(seconds=1e-9))
    assert project.acts == []
    assert project.lines == ["bad: a rewrite of 1.0 MB is left, as the time is over"]
    assert "1 left" in text


@pytest.mark.parametrize(
    ("size", "minutes", "message"),
    [
        ("big", None, "zorder_maintain: budget_bytes is 'big', but it must be a number of bytes"),
        ("auto", None, "budget_bytes is 'auto', but"),
        (None, 0, "zorder_maintain: budget_minutes is 0, but it must be a number above 0"),
        (None, "60", "budget_minutes is '60', but"),
    ],
)
def test_a_budget_that_is_not_allowed_is_named(size: object, minutes: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Budget.of(size, minutes)
    assert Budget.of("1GB", 2) == Budget(1 << 30, 120)
