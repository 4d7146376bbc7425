"""What one dbt process builds, the next sees: with nothing but type and schema in the profile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def project_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    (folder / "models").mkdir()
    (folder / "dbt_project.yml").write_text("name: two\nprofile: two\nflags: {send_anonymous_usage_stats: false}\n")
    (folder / "profiles.yml").write_text(
        "two: {target: dev, outputs: {dev: {type: spark_zorder, schema: two_schema}}}\n"
    )
    (folder / "models" / "m.sql").write_text(
        "{{ config(materialized='table', zorder_by=['id', 'b'], zorder_files=2) }} "
        "select id, id % 7 as b from range(100)"
    )
    return folder


def dbt(folder: Path, *args: str) -> str:
    call = [
        sys.executable,
        "-c",
        "from dbt.cli.main import cli; cli()",
        "--no-use-colors",
        *args,
        "--profiles-dir",
        ".",
    ]
    env = {key: value for key, value in os.environ.items() if not key.startswith("DBT_")}
    done = subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_second_process_sees_the_tables_of_the_first(project_dir: Path) -> None:
    said = dbt(project_dir, "run")
    assert "[zorder: 2 files, point query on id reads " in said
    inline = "select count(*) as n, sum(id) as total from {{ zorder_scan(ref('m'), 'id >= 90') }}"
    shown = dbt(project_dir, "show", "--inline", inline)
    assert "| 10 |   945 |" in shown
    assert (project_dir / ".spark_zorder" / "warehouse" / "two_schema.db" / "m__zorder").is_dir()
    stray = {"metastore_db", "spark-warehouse", "derby.log", "artifacts"} & {
        path.name for path in project_dir.iterdir()
    }
    assert not stray, "nothing is left beside the session's own folder"


KILLED = """
import json, os, sys, threading, time
from dbt.cli.main import dbtRunner
from pyspark import SparkContext

def run(*args):
    found = dbtRunner().invoke(["--quiet", "run", "--profiles-dir", ".", *args])
    return found.result.results[0].message

def kill():
    os.kill(SparkContext._gateway.proc.pid, 9)

said = [run()]
kill()
time.sleep(1)
said.append(run())
threading.Timer(1, kill).start()
said.append(run("--vars", "{rows: 3000000000}"))
said.append(run())
print(json.dumps(said), file=sys.stderr)
"""


@pytest.mark.slow
def test_where_java_is_killed_the_next_run_starts_it_anew(project_dir: Path) -> None:
    (project_dir / "models" / "m.sql").write_text(
        "{{ config(materialized='table', zorder_by=['id', 'b'], zorder_files=2) }} "
        "select id, id % 7 as b from range({{ var('rows', 100) }})"
    )
    call = [sys.executable, "-c", KILLED]
    done = subprocess.run(call, cwd=project_dir, capture_output=True, text=True, timeout=300, check=True)
    first, second, killed, last = json.loads(done.stderr.splitlines()[-1])
    assert first == second == last
    assert first.startswith("zorder: 2 files")
    assert "Spark's Java process has ended" in killed
