"""SIGKILL, Python and JVM both, at every point of a build: the table is whole after it, the next run succeeds.

Derby serves one process at a time, so each process first looks at what the killed one before it has left. CI kills at
one point; `make soak-faults` at every point, both kinds of table.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.faults.points import POINTS
from tests.faults.victim import KINDS

ROOT = Path(__file__).parents[2]
SHARE = ["mid publish"]
FIRST_ROWS = 1000


def run(
    directory: Path, *args: str, program: str = "struck", settings: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    """Run one process in a process group of its own, which it kills as a whole; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.faults.{program}", str(directory), *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "STRUCK_SETTINGS": json.dumps(settings or {})},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        start_new_session=True,
    )
    printed: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            printed.update(json.loads(line))
    return printed, done


def test_a_killed_build_leaves_a_whole_table_and_the_next_succeeds(tmp_path: Path) -> None:
    soak = bool(os.environ.get("SOAK_FAULTS"))
    chain = [(name, kind) for name in POINTS for kind in KINDS]
    if not soak:
        chain = [(name, KINDS[number % 2]) for number, name in enumerate(SHARE)]
    kill_builds(tmp_path, chain)


def kill_builds(directory: Path, chain: Sequence[tuple[str, str]], settings: Mapping[str, str] | None = None) -> None:
    """Kill a build at each point of a chain, of the kind of table beside it; after each the next process looks."""
    rows = FIRST_ROWS
    struck: tuple[str, str] | None = None
    for name, kind in [*chain, ("", KINDS[0])]:
        printed, done = run(directory, str(rows), kind, name, settings=settings)
        where = f"after {struck}: {printed}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        assert done.returncode == (-signal.SIGKILL if name else 0), where
        assert printed.get("fired", False) == bool(name), where
        for one in KINDS:
            (served, others), (new, old) = printed[f"served {one}"], printed[f"expected {one}"]
            if struck is None:
                assert (served, others) == ([0, 0], []), where
            else:
                assert served == (new if one == struck[1] and POINTS[struck[0]].new else old), where
                assert len(others) <= 1, where
            assert printed[f"built {one}"] == [new, []], where
        struck, rows = (name, kind), rows + 1
    print(f"{len(chain)} builds were killed")  # noqa: T201
