"""Write docs/reference/compatibility.md from the results of the suites' two runs: ``python -m tests.compatibility``.

Reads the JUnit files that ``make suites`` leaves in build/, and fails if a test failed: what the page says was run.
Where there are several of one run, because some suites were run again, the last result of each test counts.
"""

from __future__ import annotations

import importlib.metadata
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

RUNS = ("plain", "zordered")
RESULTS = "suites-{}*.xml"
PAGE = "docs/reference/compatibility.md"

DBT_SPARK_SESSION: Mapping[str, int] = {
    "basic": 4,
    "data_types": 7,
    "dbt_show": 2,
    "empty": 3,
    "incremental": 2,
    "simple_seed": 1,
    "unit_testing": 3,
    "utils": 22,
}
"""Classes of each suite that dbt-spark runs for its session profile, by the markers of its own tests (1.11)."""


@dataclass(frozen=True)
class Case:
    """One test of one run.

    Attributes:
        suite: its file, without ``test_``.
        group: its class, without ``Test``.
        outcome: ``passed``, ``skipped`` or ``failed``.
        reason: why it was skipped.
    """

    suite: str
    group: str
    outcome: str
    reason: str = ""


def read_cases(paths: Iterable[Path]) -> list[Case]:
    """Return the tests of JUnit files; a later file replaces an earlier one."""
    nodes = {}
    for path in paths:
        for node in ET.parse(path).iter("testcase"):
            if node.get("classname", "").startswith("tests.functional.adapter."):
                nodes[node.attrib["classname"], node.attrib["name"]] = node
    cases = []
    for (place, _), node in nodes.items():
        module, _, group = place.rpartition(".")
        skipped = node.find("skipped")
        failed = node.find("failure") is not None or node.find("error") is not None
        outcome = "failed" if failed else "passed" if skipped is None else "skipped"
        reason = "" if skipped is None else skipped.attrib.get("message", "")
        cases.append(Case(module.rpartition(".test_")[2], group.removeprefix("Test"), outcome, reason))
    return cases


def render(runs: Mapping[str, Sequence[Case]]) -> str:
    """Return the page."""
    lines = [*_head(), ""]
    lines += ["| suite | dbt-spark's session: classes | plain: classes, tests | z-ordered: the same | left out |"]
    lines += ["|---|---|---|---|---|"]
    for suite in sorted({case.suite for case in runs[RUNS[0]]}):
        parts = [[case for case in runs[run] if case.suite == suite] for run in RUNS]
        spark = str(DBT_SPARK_SESSION.get(suite, 0) or "-")
        lines.append(f"| {suite} | {spark} | {_counts(parts[0])} | {_counts(parts[1])} | {_left_out(parts)} |")
    totals = " | ".join(f"**{_counts(runs[run])}**" for run in RUNS)
    left = " / ".join(str(sum(case.outcome == "skipped" for case in runs[run])) for run in RUNS)
    lines.append(f"| **all** | **{sum(DBT_SPARK_SESSION.values())}** | {totals} | {left} tests |")
    return "\n".join([*lines, "", "## Why tests are left out", "", *_reasons(runs), ""])


def _head() -> Iterable[str]:
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("dbt-core", "dbt-spark", "dbt-tests-adapter", "pyspark")
    )
    return f"""\
# What of dbt works here

dbt gives adapters a set of test suites, `dbt-tests-adapter`. `make suites` runs them twice: **plain**, as they are,
and **z-ordered**, where every table, incremental model, snapshot and seed has a `zorder_by` of the first of its columns
that has an order. This page is written from the results of both runs ({versions}).

The suites are written for Postgres. Where one is changed here, it is in its names of types, in the SQL by which the
test itself looks or changes rows (Parquet has neither UPDATE nor DELETE), or as its file says. The column of dbt-spark
counts the classes that its own tests run for its session profile, by their markers.
""".splitlines()


def _counts(cases: Sequence[Case]) -> str:
    if not cases:
        return "not run"
    passed = [case for case in cases if case.outcome == "passed"]
    return f"{len({(case.suite, case.group) for case in passed})}, {len(passed)}"


def _left_out(parts: Sequence[Sequence[Case]]) -> str:
    counts = [sum(case.outcome == "skipped" for case in part) for part in parts if part]
    if not any(counts):
        return ""
    text = " / ".join(str(count) for count in (counts if len(set(counts)) > 1 else counts[:1]))
    return f"{text} test{'' if text == '1' else 's'}"


def _reasons(runs: Mapping[str, Sequence[Case]]) -> Iterable[str]:
    by_reason: dict[str, dict[str, set[str]]] = {}
    for run in RUNS:
        for case in runs[run]:
            if case.outcome == "skipped":
                name = f"{case.suite}: {case.group}"
                by_reason.setdefault(case.reason, {}).setdefault(name, set()).add(run)
    for reason, names in sorted(by_reason.items(), key=lambda item: min(item[1])):
        listed = [f"{name} ({found.pop()})" if len(found) == 1 else name for name, found in sorted(names.items())]
        yield f"- {reason}: {', '.join(listed)}."


def main() -> None:
    """Read both runs, refuse a failed one, and write the page."""
    build = Path("build")
    runs = {
        run: read_cases(sorted(build.glob(RESULTS.format(run)), key=lambda path: path.stat().st_mtime)) for run in RUNS
    }
    failed = [f"{run}: {case.suite} {case.group}" for run in RUNS for case in runs[run] if case.outcome == "failed"]
    if failed:
        sys.exit("Not written, because tests failed:\n" + "\n".join(failed))
    Path(PAGE).write_text(render(runs))


if __name__ == "__main__":
    main()
