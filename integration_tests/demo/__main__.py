"""Builds the project and shows all parts of the demo: ``python -m integration_tests.demo``."""

from __future__ import annotations

import os
import subprocess
import sys

from rich.console import Console

from dbt_zorder.adapter.session.open import SESSION_DIRECTORY
from dbt_zorder.api import open_session
from integration_tests.demo.files_read import show_files_read
from integration_tests.demo.project import FOLDER, SETTINGS, run_dbt
from integration_tests.demo.second_run import show_second_run

if __name__ == "__main__":
    os.chdir(FOLDER)  # its sources are named from there
    console = Console()
    run_dbt("build", "--full-refresh", "--exclude", "test_name:zorder_sound")
    show_files_read(open_session(SETTINGS, str(FOLDER / SESSION_DIRECTORY)), console)
    # a process has one warehouse
    subprocess.run([sys.executable, "-m", "integration_tests.demo.slow_storage"], cwd=FOLDER.parent, check=True)
    show_second_run(console)
