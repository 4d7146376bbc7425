"""Errors of Spark as dbt shows them: the message and the SQL; the Java stack trace is in the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.factory import FACTORY
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt_zorder.engine.plan import make_plan
from dbt_zorder.tables.parquet import build
from tests.support import settings
from tests.unit.snapshots import tree

CONFIGS = {
    "table": "materialized='table'",
    "view": "materialized='view'",
    "incremental": "materialized='incremental'",
    "zordered": "materialized='table', zorder_by='id'",
}
ANALYSIS = "select id, nonsense\nfrom range(3)"
PARSE = "select id,\n  id id2 id3\nfrom range(3)\nwhere true\n-- end"
RUNTIME = "select id, id / (id - 1) as x from range(3)"


class TestModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        found = {}
        for name, config in CONFIGS.items():
            head = "{{ config(" + config + ") }}\n"
            found[f"{name}_analysis.sql"] = head + ANALYSIS
            found[f"{name}_parse.sql"] = head + PARSE
            if name != "view":
                found[f"{name}_runtime.sql"] = head + RUNTIME
        return found

    def test_an_error_is_its_message_and_the_sql(self, project: Any, spark: SparkSession) -> None:
        with settings(spark, {"spark.sql.ansi.enabled": "true"}):
            results, text = run_dbt_and_capture(["run"], expect_pass=False)
        assert len(results) == 11
        for result in results:
            message, kind = str(result.message), result.node.name.rpartition("_")[2]
            assert message.startswith(f"Database Error in model {result.node.name}")
            lines = message.splitlines()
            assert len(lines) <= 10, message
            if kind == "analysis":
                place = next(n for n, line in enumerate(lines) if line.strip() == "select id, nonsense")
                assert lines[place + 1].index("^^^^^^^^") == lines[place].index("nonsense")
            elif kind == "parse":
                assert "Syntax error" in message or "extra input" in message
                assert "id id2 id3" in message
                assert "-- end" not in message
            else:
                assert "[DIVIDE_BY_ZERO]" in message
                assert "id / (id - 1)" in message
        for java in ("\tat ", "org.apache.spark", "Traceback", "'Project", "Driver stacktrace"):
            assert java not in text

    def test_debug_shows_the_stack_trace(self, project: Any) -> None:
        _, text = run_dbt_and_capture(["--debug", "run", "--select", "table_analysis"], expect_pass=False)
        assert "\tat org.apache.spark" in text


class TestGrants:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        granted = "materialized='incremental', zorder_by='id', grants={'select': ['bob'], 'modify': []}"
        return {"granted.sql": "{{ config(" + granted + ") }} select id from range(3)"}

    def test_what_cannot_be_granted_is_said_before_anything_is_built(self, project: Any, spark: SparkSession) -> None:
        results = run_dbt(["run"], expect_pass=False)
        assert "grants asks for modify: nobody; select: bob, and this Spark session has no GRANT" in results[0].message
        assert not spark.catalog.tableExists(f"{project.test_schema}.granted")


class TestQueries:
    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"broken.sql": "select id from range(3) where id > cast(raise_error('no such luck') as int)"}

    def test_a_query_that_fails_while_its_rows_are_read(self, project: Any) -> None:
        results, text = run_dbt_and_capture(["test"], expect_pass=False)
        assert "no such luck" in str(results.results[0].message)
        assert str(results.results[0].message).startswith("Database Error")
        for java in ("\tat ", "org.apache.spark", "Traceback"):
            assert java not in text


class TestCancelled:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": "{{ config(materialized='table', zorder_by='id', zorder_files=2) }} select id from range(9)"}

    def test_no_write_begins_once_a_run_is_cancelled(
        self, project: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run"])
        before = spark.table(f"{project.test_schema}.m").inputFiles()

        def plan(*args: Any) -> Any:
            """Plan, while dbt cancels all connections: no job runs just now."""
            found = make_plan(*args)
            FACTORY.adapters["spark_zorder"].connections.get_thread_connection().handle.cancel()
            return found

        monkeypatch.setattr(build, "make_plan", plan)
        monkeypatch.setattr(build, "write_data", lambda *_: pytest.fail("written"))
        (result,) = run_dbt(["run"], expect_pass=False)
        assert "The run was cancelled" in result.message
        assert spark.table(f"{project.test_schema}.m").inputFiles() == before
        monkeypatch.undo()
        run_dbt(["run"])
        assert spark.table(f"{project.test_schema}.m").inputFiles() != before

    def test_what_was_written_by_then_is_not_served(
        self, project: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Rows that are written in dbt's own process have no job of Spark that could end."""
        run_dbt(["run"])
        before = spark.table(f"{project.test_schema}.m").inputFiles()
        write = build.write_data

        def write_and_cancel(*args: Any) -> None:
            write(*args)
            FACTORY.adapters["spark_zorder"].connections.get_thread_connection().handle.cancel()

        monkeypatch.setattr(build, "write_data", write_and_cancel)
        results, text = run_dbt_and_capture(["run"], expect_pass=False)
        assert "The run was cancelled" in str(results.results[0].message)
        assert "could not be undone" not in text
        assert spark.table(f"{project.test_schema}.m").inputFiles() == before


class TestNames:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        aliases = {"slash": ("table", "a/b"), "up": ("incremental", "../evil"), "encoded": ("table", "%2e%2e")}
        return {
            f"{name}.sql": f"{{{{ config(materialized='{kind}', alias='{alias}', zorder_by='id') }}}} select 1 as id"
            for name, (kind, alias) in aliases.items()
        }

    def test_a_name_that_is_a_path_is_an_error_before_anything_is_written(self, project: Any, session_dir: str) -> None:
        before = tree(Path(session_dir) / "warehouse")
        results = run_dbt(["run"], expect_pass=False)
        found = {result.node.name: str(result.message) for result in results}
        for name, alias in {"slash": "a/b", "up": "../evil", "encoded": "%2e%2e"}.items():
            assert f"A table cannot have the name '{alias}'" in found[name]
        assert tree(Path(session_dir) / "warehouse") == before
