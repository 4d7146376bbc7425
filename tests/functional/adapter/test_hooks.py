"""Hooks before and after models, seeds, snapshots and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.hooks import test_run_hooks
from dbt.tests.adapter.hooks.test_model_hooks import (
    MODEL_POST_HOOK,
    MODEL_PRE_HOOK,
    BaseDuplicateHooksInConfigs,
    BaseHookRefs,
    BaseHooksRefsOnSeeds,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
    BasePrePostModelHooksOnSnapshots,
    BasePrePostSnapshotHooksInConfigKwargs,
)
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError

OUTSIDE = {"sql": "refresh table {{ this.schema }}.on_model_hook", "transaction": False}  # Postgres: vacuum
NEW_COLUMN = "alter table {{ this }} add column new_col int default 1"  # for rows that are there: Parquet has no update


@pytest.fixture(scope="module")
def test_data_dir() -> Path:
    """Return the folder of the suite's own files, which dbt looks for beside this one."""
    return Path(test_run_hooks.__file__).parent / "data"


class SparkContext:
    """What the hooks find in their context, of this profile instead of Postgres's."""

    def check_hooks(self, state: str, project: Any, host: str, count: int = 1) -> None:
        found = self.get_ctx_vars(state, count=count, project=project)  # type: ignore[attr-defined]
        for context in found:
            assert context["test_state"] == state
            assert context["target_name"] == "default"
            assert context["target_schema"] == project.test_schema
            assert context["target_type"] == "spark_zorder"
            assert context["target_threads"] == 2
            assert context["run_started_at"]
            assert context["invocation_id"]
            assert context["thread_id"].startswith("Thread-")


def around(separator: str) -> dict[str, Any]:
    hooks = {f"pre{separator}hook": [MODEL_PRE_HOOK, OUTSIDE], f"post{separator}hook": [OUTSIDE, MODEL_POST_HOOK]}
    return {"models": {"test": hooks}}


class TestPrePostModelHooks(SparkContext, BasePrePostModelHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return around("-")


class TestPrePostModelHooksUnderscores(SparkContext, BasePrePostModelHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return around("_")


class TestPrePostModelHooksInConfigWithCount(SparkContext, BasePrePostModelHooksInConfigWithCount):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return around("-")


class TestHookRefs(SparkContext, BaseHookRefs):
    pass


class TestPrePostModelHooksInConfig(SparkContext, BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigKwargs(SparkContext, BasePrePostModelHooksInConfigKwargs):
    pass


class TestDuplicateHooksInConfigs(BaseDuplicateHooksInConfigs):
    pass


class TestHooksRefsOnSeeds(BaseHooksRefsOnSeeds):
    pass


def on(kind: str, hook: str, **paths: list[str]) -> dict[str, Any]:
    config: dict[str, Any] = {"seed-paths": ["seeds"], **paths, "models": {}, "seeds": {"quote_columns": False}}
    config[kind] = {**config.get(kind, {}), hook: [NEW_COLUMN]}
    return config


class TestPrePostModelHooksOnSeeds(BasePrePostModelHooksOnSeeds):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return on("seeds", "post-hook")


class TestPrePostModelHooksOnSeedsPlusPrefixed(BasePrePostModelHooksOnSeedsPlusPrefixed):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return on("seeds", "+post-hook")


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return on("seeds", "+post-hook")


class TestPrePostModelHooksOnSnapshots(BasePrePostModelHooksOnSnapshots):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return on("snapshots", "post-hook", **{"snapshot-paths": ["test-snapshots"]})


class TestPrePostSnapshotHooksInConfigKwargs(BasePrePostSnapshotHooksInConfigKwargs):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return on("snapshots", "post-hook", **{"snapshot-paths": ["test-kwargs-snapshots"]})


class TestPrePostRunHooks(BasePrePostRunHooks):
    @pytest.fixture
    def setUp(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        project.run_sql_file(project.test_data_dir / Path("seed_run.sql"))
        for name in ("schemas", "db_schemas"):
            project.run_sql(f"drop table if exists {project.test_schema}.{name}")
        monkeypatch.setenv("TERM_TEST", "TESTING")

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        """The suite's own hooks with Spark's name of the type of texts."""
        rows = "{% for schema in schemas %}('{{ schema }}'){{ ', ' if not loop.last }}{% endfor %}"
        pairs = rows.replace("schema in schemas", "db, schema in database_schemas").replace("('{{", "('{{ db }}', '{{")
        tables = [
            "create table {{ target.schema }}.schemas (schema string)",
            "insert into {{ target.schema }}.schemas (schema) values " + rows,
            "create table {{ target.schema }}.db_schemas (db string, schema string)",
            "insert into {{ target.schema }}.db_schemas (db, schema) values " + pairs,
        ]

        def ordered(state: str) -> list[str]:
            return [
                f"{{{{ custom_run_hook('{state}', target, run_started_at, invocation_id) }}}}",
                f"create table {{{{ target.schema }}}}.{state}_hook_order_test ( id int )",
                f"drop table {{{{ target.schema }}}}.{state}_hook_order_test",
            ]

        start = [*ordered("start"), "{{ log(env_var('TERM_TEST'), info=True) }}"]
        return {
            "on-run-start": start,
            "on-run-end": [*ordered("end"), *tables],
            "seeds": {"quote_columns": False},
        }

    def check_hooks(self, state: str, project: Any, host: str) -> None:
        context = self.get_ctx_vars(state, project)
        assert context["test_state"] == state
        assert context["target_schema"] == project.test_schema
        assert context["target_type"] == "spark_zorder"
        assert context["run_started_at"]
        assert context["invocation_id"]

    def assert_used_schemas(self, project: Any) -> None:
        found = project.run_sql(f"select * from {project.test_schema}.schemas", fetch="all")
        assert [tuple(row) for row in found] == [(project.test_schema,)]
        found = project.run_sql(f"select * from {project.test_schema}.db_schemas", fetch="all")
        assert [tuple(row) for row in found] == [("None", project.test_schema)]


class TestAfterRunHooks(BaseAfterRunHooks):
    def test_missing_column_pre_hook(self, project: Any) -> None:
        """dbt-spark tells a missing table by the text of the error, whose class is therefore another one."""
        with pytest.raises(DbtRuntimeError, match="TABLE_OR_VIEW_NOT_FOUND"):
            run_dbt(["run"], expect_pass=False)
