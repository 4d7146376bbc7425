"""SIGKILL, Python and JVM both, at every step of a merge: it is in the table as a whole, or the next run repeats it.

CI kills at one step; ``make soak-faults`` at all of them, with a hash index and without.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.faults.points import POINTS
from tests.faults.struck_merge import KINDS
from tests.faults.test_kill import run
from tests.faults.test_merges import STRUCK

# the few files of a merge are written before a kill in the middle could strike
KILLED = [name for name in STRUCK if name != "mid write_data"]
SHARE = [("before publish", "indexed")]


def test_a_killed_merge_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    chain = [(name, kind) for name in KILLED for kind in KINDS] if os.environ.get("SOAK_FAULTS") else SHARE
    struck: tuple[str, str] | None = None
    for done, (name, kind) in enumerate([*chain, ("", KINDS[0])]):
        printed, ended = run(tmp_path, str(done), kind, name, program="struck_merge")
        where = f"after {struck}: {printed}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        assert ended.returncode == (-signal.SIGKILL if name else 0), where
        assert printed.get("fired", False) == bool(name), where
        for one in KINDS:
            if struck is not None:
                assert printed[f"rows of {one}"] == ("new" if one == struck[1] and POINTS[struck[0]].new else "old"), (
                    where
                )
            assert printed[f"in the end {one}"] == [True, 0, []], where
        struck = (name, kind)
    print(f"{len(chain)} merges were killed")  # noqa: T201
