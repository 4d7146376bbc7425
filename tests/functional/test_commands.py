"""dbt's commands that build nothing: debug, init, clean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dbt.clients.yaml_helper import load_yaml_text
from dbt.task.init import _get_adapter_plugin_names
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession


class TestCommands:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": "{{ config(materialized='table', zorder_by='id', zorder_files=2) }} select id from range(9)"}

    def test_debug_tries_a_small_table(self, project: Any, spark: SparkSession) -> None:
        _, text = run_dbt_and_capture(["debug"])
        assert "All checks passed!" in text
        assert "write and prune: 4 files written, 2 read for one id" in text
        for fact in ("java: ", "spark: ", "warehouse: ", f"schema {project.test_schema}: "):
            assert fact in text
        assert spark.sql(f"show tables in {project.test_schema} like 'zorder_debug*'").isEmpty()

    def test_debug_says_what_is_wrong(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dbt_zorder.pruning.scan", lambda spark, *_: spark.range(7))
        _, text = run_dbt_and_capture(["debug"], expect_pass=False)
        assert "gave 7 rows from 2 files with pruning and 1 without" in " ".join(text.split())

    def test_clean_leaves_tables_alone(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        run_dbt(["clean"])
        assert not Path("target").exists()
        assert spark.table(f"{project.test_schema}.m").count() == 9
        assert len(run_dbt(["run"])) == 1


def test_init_asks_for_a_schema_and_threads(tmp_path: Path) -> None:
    number = list(_get_adapter_plugin_names()).index("spark_zorder") + 1
    done = subprocess.run(
        [sys.executable, "-c", "from dbt.cli.main import cli; cli()", "init", "shop", "--profiles-dir", str(tmp_path)],
        cwd=tmp_path,
        input=f"{number}\nsales\n3\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    profile = load_yaml_text((tmp_path / "profiles.yml").read_text())
    assert profile is not None
    assert profile["shop"]["outputs"]["dev"] == {"type": "spark_zorder", "schema": "sales", "threads": 3}
    assert (tmp_path / "shop" / "dbt_project.yml").is_file()
