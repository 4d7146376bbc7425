"""SIGKILL, Python and JVM both, at every step of a batch: it is in the table as a whole, or the next run repeats it.

CI kills at one step; `make soak-faults` at all of them, appending and overwriting.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.faults.struck_batch import KINDS, POINTS
from tests.faults.test_kill import run

SHARE = [("journal:move:1", "overwrite")]
MOVES = {"append": 2, "overwrite": 4}
"""Files that a batch moves at least: its own, their stats, and those that it replaces."""


def test_a_killed_batch_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    chain = SHARE
    if os.environ.get("SOAK_FAULTS"):
        every = [(point, kind) for point in POINTS for kind in KINDS]
        chain = [(point, kind) for point, kind in every if int([*point.split(":"), "0"][2]) < MOVES[kind]]
    kill_batches(tmp_path, chain)


def kill_batches(directory: Path, chain: Sequence[tuple[str, str]], settings: Mapping[str, str] | None = None) -> None:
    """Kill a batch at each point of a chain, of the kind beside it; after each the next process looks."""
    struck: tuple[str, str] | None = None
    for done, (point, kind) in enumerate([*chain, ("", KINDS[0])]):
        printed, ended = run(directory, str(done), kind, point, program="struck_batch", settings=settings)
        where = f"after {struck}: {printed}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        assert ended.returncode == (-signal.SIGKILL if point else 0), where
        assert printed.get("fired", False) == bool(point), where
        for one in KINDS:
            if struck is not None:
                assert printed[f"rows of {one}"] == ("new" if one == struck[1] and POINTS[struck[0]] else "old"), where
            assert printed[f"in the end {one}"] == [True, [], []], where
        struck = (point, kind)
    print(f"{len(chain)} batches were killed")  # noqa: T201
