"""Readers beside swaps: eight threads in the session that swaps, and two processes with sessions of their own.

All share a Hive metastore in a process of its own. One reading process looks the table up anew for each read, the other
keeps what it knows for 30 seconds; old versions are collected 180 seconds after they were replaced. `make test-all`
swaps 12 times; `make soak-faults` 200 times, and until 10,000 reads are done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.metastore import metastore

ROOT = Path(__file__).parents[2]
SWAPS, READS = (200, 10_000) if os.environ.get("SOAK_FAULTS") else (12, 0)


def start(uri: str, directory: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.swapping", uri, str(directory), *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=(directory / f"stderr_{args[0]}_{args[1]}").open("w"),
        text=True,
    )


def printed_by(process: subprocess.Popen[str], directory: Path) -> dict[str, Any]:
    out, _ = process.communicate(timeout=7200)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    assert lines, "\n".join(path.read_text()[-3000:] for path in directory.glob("stderr_*"))
    found: dict[str, Any] = json.loads(lines[-1])
    return found


@pytest.mark.slow
def test_no_reader_sees_anything_but_a_committed_version(tmp_path: Path) -> None:
    with metastore(tmp_path / "metastore") as uri:
        processes = [
            start(uri, tmp_path, *args) for args in (("swap", str(SWAPS), str(READS)), ("read", "0"), ("read", "30"))
        ]
        try:
            writer = printed_by(processes[0], tmp_path)
            readers = [printed_by(process, tmp_path) for process in processes[1:]]
        finally:
            for process in processes:
                process.kill()
    committed = set(writer["committed"])
    counts = [sum(one["seen"].values()) for one in (writer, *readers)]
    versions = {key for one in (writer, *readers) for key in one["seen"]}
    print(f"{SWAPS} swaps, reads: {counts}, versions seen: {len(versions)}, collected: {writer['collected']}")  # noqa: T201
    assert [error for one in (writer, *readers) for error in one["errors"]] == []
    assert versions <= committed, "torn or unknown content"
    assert len(committed) == SWAPS + 2
    assert all(counts)
    assert sum(counts) >= READS
    assert len(versions) > min(SWAPS, 20) / 2, "the readers were there while tables were swapped"
    assert bool(writer["collected"]) or not READS, "old versions were collected meanwhile"
