"""A build that is killed, Python and JVM both, at every step: the table is whole after it, and the next run succeeds.

Derby serves one process at a time, so every look at the warehouse is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEFORE_SWAP = ["plan_layout", "write_data", "mid-write", "write_stats", "publish"]
AFTER_SWAP = ["publish_stats", "collect_old"]


def run(directory: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the driver in a process group of its own, which it kills as a whole."""
    return subprocess.run(
        [sys.executable, "-m", "tests.functional.killed_build", str(directory), *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        start_new_session=True,
    )


def result(done: subprocess.CompletedProcess[str]) -> tuple[int, int]:
    """Return the rows and the checksum that the driver printed."""
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert lines, done.stdout + done.stderr
    return int(lines[-1][1]), int(lines[-1][2])


def test_a_killed_build_leaves_a_whole_table_and_the_next_succeeds(tmp_path: Path) -> None:
    # each run is the one after the last killed one: it must succeed, and its look at the table comes first
    before = result(run(tmp_path, "build", "", "20000"))
    assert before[0] == 20_000
    for number, step in enumerate([*BEFORE_SWAP, *AFTER_SWAP]):
        rows = 20_001 + number
        killed = run(tmp_path, "build", step, str(rows))
        assert killed.returncode == -9, (step, killed.stdout, killed.stderr)
        looked = result(run(tmp_path, "check"))
        if step in BEFORE_SWAP:
            assert looked == before, f"killed before {step}"
        else:
            assert looked[0] == rows, f"killed before {step}"
            before = looked
    after = result(run(tmp_path, "build", "", "30000"))
    assert after[0] == 30_000
    assert after == result(run(tmp_path, "check"))
    versions = list((tmp_path / "warehouse" / "victim__zorder").glob("v*"))
    assert len(versions) <= 3, "what killed builds left is collected"
