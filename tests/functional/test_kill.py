"""A build that is killed, Python and JVM both, at every step: the table is whole after it, and the next run succeeds.

Derby serves one process at a time, so each process first looks at what the killed one before it has left.
"""

from __future__ import annotations

import os
import signal
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


def results(done: subprocess.CompletedProcess[str]) -> list[tuple[int, int]]:
    """Return rows and checksum of the table before the build and, if the process lived to tell, after it."""
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert lines, done.stdout + done.stderr
    return [(int(line[1]), int(line[2])) for line in lines]


def test_a_killed_build_leaves_a_whole_table_and_the_next_succeeds(tmp_path: Path) -> None:
    whole = results(run(tmp_path, "20000"))[1]
    assert whole[0] == 20_000
    previous = "nothing"
    swapped = 0  # rows of a version that must be served now, though its build was killed
    for number, step in enumerate([*BEFORE_SWAP, *AFTER_SWAP, ""]):
        rows = 20_001 + number
        done = run(tmp_path, str(rows), step)
        looked, *built = results(done)
        if swapped:
            assert looked[0] == swapped, f"killed before {previous}"
        else:
            assert looked == whole, f"killed before {previous}"
        assert done.returncode == (-signal.SIGKILL if step else 0), done.stdout + done.stderr
        assert [rows for rows, _ in built] == ([] if step else [rows])
        swapped = rows if step in AFTER_SWAP else 0
        previous = step
    versions = list((tmp_path / "warehouse" / "victim__zorder").glob("v*"))
    assert len(versions) <= 3, "what killed builds left is collected"
