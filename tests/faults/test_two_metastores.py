"""Two embedded metastores over the same folders: a project that was copied whole, and one ``location_root`` for two."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.faults import embedded


def run(directory: Path, *steps: list[Any], root: Path | str = "") -> list[int | None]:
    """Return the rows of the table after each step of a process."""
    call = [sys.executable, "-m", embedded.__name__, str(directory), str(root), json.dumps([*steps, ["look"]])]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = [json.loads(line)[0] for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(printed) == len(steps) + 1
    return printed


def test_a_copied_project_and_its_original_leave_each_other_alone(tmp_path: Path) -> None:
    original, copy = tmp_path / "original" / ".spark_zorder", tmp_path / "copy" / ".spark_zorder"
    assert run(original, ["build", 10]) == [10, 10]
    shutil.copytree(original.parent, copy.parent)
    assert run(copy, ["append", 10, 15], ["append", 15, 20], ["vacuum"]) == [15, 20, 20, 20]
    assert run(original, ["append", 10, 12], ["vacuum"], ["build", 7], ["vacuum"]) == [12, 12, 7, 7, 7]
    assert run(copy, ["look"], ["build", 30], ["vacuum"], ["drop"]) == [20, 30, 30, None, None]
    assert run(original) == [7]


def test_a_plain_table_of_a_copied_project_keeps_its_rows(tmp_path: Path) -> None:
    original, copy = tmp_path / "original" / ".spark_zorder", tmp_path / "copy" / ".spark_zorder"
    assert run(original, ["plain", 10]) == [10, 10]
    shutil.copytree(original.parent, copy.parent)
    assert run(copy, ["build", 20]) == [20, 20]
    assert run(original) == [10]


def test_two_metastores_share_a_location_root(tmp_path: Path) -> None:
    root = tmp_path / "shared"
    assert run(tmp_path / "one", ["build", 10], root=root) == [10, 10]
    printed = run(tmp_path / "two", ["build", 20], ["build", 30], ["append", 30, 35], ["vacuum"], ["drop"], root=root)
    assert printed == [20, 30, 35, 35, None, None]
    assert run(tmp_path / "one", ["append", 10, 15], ["vacuum"], root=root) == [15, 15, 15]
