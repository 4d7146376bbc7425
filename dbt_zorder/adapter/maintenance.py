"""Maintain the tables of a project in one run: rewrite what gains, delete old versions, verify, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbt_zorder import option_parsers as values
from dbt_zorder.humanize import counted, size_text
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.tables.health import TableHealth


@dataclass(frozen=True)
class Steps:
    """The steps of one table; None for a step that its format does not have.

    Attributes:
        name: name of the table.
        health: function that measures it; None if it is not built, or is a view.
        optimize: function that rewrites it, and returns its number of files afterwards.
        collect: function that deletes old versions, and returns their number.
        verify: function that compares the table with its stats, and returns findings.
    """

    name: str
    health: Callable[[], TableHealth] | None
    optimize: Callable[[], int]
    collect: Callable[[], int] | None
    verify: Callable[[], Sequence[str]] | None


@dataclass(frozen=True)
class Budget:
    """The limits of one run.

    Attributes:
        bytes: bytes of the tables that are rewritten; None for no limit.
        seconds: time after which no step begins; None for no limit.
    """

    bytes: int | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, size: object, minutes: object) -> Budget:
        """Return the budget of the operation's arguments.

        Raises:
            ConfigError: an argument is not allowed.
        """
        parsed = values.optional("zorder_maintain: budget_minutes", minutes, values.positive, None)
        return cls(
            values.optional("zorder_maintain: budget_bytes", size, values.size, None),
            None if parsed is None else 60 * parsed,
        )


@dataclass
class Maintenance:
    """One run over the tables of a project. A table that fails does not stop the others.

    Attributes:
        budget: limits of the run.
        dry_run: change nothing.
        show: function that prints one line.
        failed: what failed, one line each.
        seconds: duration of each phase.
    """

    budget: Budget
    dry_run: bool
    show: Callable[[str], None]
    failed: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _tables: int = 0
    _left: int = 0
    _rewritten: int = 0
    _files: int = 0
    _bytes: int = 0
    _began: float = field(default_factory=time.monotonic)

    def run(self, tables: Sequence[Steps]) -> str:
        """Maintain tables, the ones with the most gain in reads first, and return the closing summary."""
        measured = [(steps, health) for steps in tables if (health := self._measure(steps)) is not None]
        for steps, health in sorted(measured, key=lambda one: _gain(one[1]), reverse=True):
            self._tables += 1
            done: list[str] = []
            try:
                self._maintain(steps, health, done)
            except Exception as exc:  # the other tables are maintained all the same
                self._fail(steps.name, exc)
            self.show(f"{steps.name}: {', '.join(done) or 'nothing to do'}")
        return self._summary()

    def _measure(self, steps: Steps) -> TableHealth | None:
        if steps.health is None:
            self.show(f"{steps.name}: not a table here, nothing to do")
            return None
        try:
            with self._phase("health"):
                return steps.health()
        except Exception as exc:
            self._fail(steps.name, exc)
            return None

    def _maintain(self, steps: Steps, health: TableHealth, done: list[str]) -> None:
        if health.gains:
            why = self._why_not(health)
            if why:
                self._left += 1
                done.append(f"a rewrite of {size_text(health.bytes)} is left, {why}")
            elif self.dry_run:
                self._count(health)
                done.append(f"{counted(health.files, 'file')} of {size_text(health.bytes)} would be rewritten")
            else:
                with self._phase("optimize"):
                    files = steps.optimize()
                self._count(health)
                done.append(f"{counted(health.files, 'file')} of {size_text(health.bytes)} rewritten into {files:,}")
        if steps.collect is not None and not self._is_late():
            with self._phase("collect"):
                versions = steps.collect()
            if versions:
                done.append(f"{counted(versions, 'old version')} {'would be ' if self.dry_run else ''}deleted")
        if steps.verify is not None and not self.dry_run and not self._is_late():
            with self._phase("verify"):
                findings = steps.verify()
            done.append(f"verified, {counted(len(findings), 'finding')}")
            self.failed += [f"{steps.name}: {one}" for one in findings]

    def _why_not(self, health: TableHealth) -> str:
        if self.budget.bytes is not None and self._bytes + health.bytes > self.budget.bytes:
            return f"as the budget is {size_text(self.budget.bytes)}"
        return "as the time is over" if self._is_late() else ""

    def _is_late(self) -> bool:
        return self.budget.seconds is not None and time.monotonic() - self._began >= self.budget.seconds

    def _count(self, health: TableHealth) -> None:
        self._rewritten += 1
        self._files += health.files
        self._bytes += health.bytes

    def _fail(self, name: str, exc: Exception) -> None:
        self.failed.append(f"{name}: {in_one_line(exc)}")

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began

    def _summary(self) -> str:
        done = "would be rewritten" if self.dry_run else "rewritten"
        head = (
            f"{counted(self._tables, 'table')}: {self._rewritten} {done} ({counted(self._files, 'file')}, "
            f"{size_text(self._bytes)}), {self._left} left, {counted(len(self.failed), 'failure')}."
        )
        spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        hint = ["Nothing was changed: this was a dry run, add dry_run: false."] if self.dry_run else []
        return "\n".join([f"{head} Seconds: {spent or 'none'}.", *(f"  {one}" for one in self.failed), *hint])


def _gain(health: TableHealth) -> float:
    """Return the share of the table's files that a query reads less after a rewrite, for the best column."""
    return max((now - after for now, after in health.shares), default=0.0)
