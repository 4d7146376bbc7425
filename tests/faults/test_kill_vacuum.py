"""SIGKILL, Python and JVM both, at every step of a vacuum: the served version is whole, and the next completes it.

CI kills at one step; ``make soak-faults`` at all of them, in both kinds of table.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.faults.struck_vacuum import POINTS
from tests.faults.test_kill import FIRST_ROWS, run
from tests.faults.victim import KINDS

SHARE = [("files:_delete:1", "plain")]


def test_a_killed_vacuum_leaves_the_served_version_and_the_next_completes_it(tmp_path: Path) -> None:
    soak = bool(os.environ.get("SOAK_FAULTS"))
    kill_vacuums(tmp_path, [(point, kind) for kind in KINDS for point in POINTS] if soak else SHARE)


def kill_vacuums(directory: Path, chain: Sequence[tuple[str, str]], settings: Mapping[str, str] | None = None) -> None:
    """Kill a vacuum at each point of a chain, of the kind of table beside it; after each the next process looks."""
    rows = dict.fromkeys(KINDS, FIRST_ROWS)
    struck: tuple[str, str] | None = None
    for point, kind in [*chain, ("", chain[-1][1])]:
        printed, ended = run(directory, str(rows[kind]), kind, point, program="struck_vacuum", settings=settings)
        where = f"after {struck}: {printed}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        assert ended.returncode == (-signal.SIGKILL if point else 0), where
        assert printed.get("fired", False) == bool(point), where
        assert (printed["served"], printed["left"], printed["old"]) == (True, [], 1), where
        if not point:
            assert printed["in the end"] == [[], True], where
        struck = (point, kind)
        rows[kind] += 1
    print(f"{len(chain)} vacuums were killed")  # noqa: T201
