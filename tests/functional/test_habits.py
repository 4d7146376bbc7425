"""What people bring along from other adapters and tools: it works, or it is said before any row is in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

QUERY = "select id, pmod(hash(id), 100) as a from range({{ var('n', 50) }})"
INCREMENTAL = "materialized='incremental', zorder_by=['id']"


class Habits:
    @pytest.fixture(autouse=True)
    def begin(self, project: Any) -> None:
        self.project = project

    def model(self, name: str, config: str, query: str = QUERY, properties: str = "") -> None:
        models = Path(self.project.project_root) / "models"
        (models / f"{name}.sql").write_text(f"{{{{ config({config}) }}}}\n{query}")
        if properties:
            (models / f"{name}.yml").write_text(f"models: [{{name: {name}, {properties}}}]")

    def rows(self, name: str) -> int:
        return int(self.project.run_sql(f"select count(*) from {{schema}}.{name}", fetch="one")[0])

    def fails(self, *command: str) -> str:
        results = run_dbt(list(command), expect_pass=False)
        return " ".join(str(results.results[0].message).split())


class TestHooks(Habits):
    @pytest.mark.parametrize("kind", ["pre_hook", "post_hook"])
    @pytest.mark.parametrize("command", ["optimize {{ this }} zorder by (id)", "VACUUM table {{this}} retain 0 hours"])
    def test_commands_of_delta_are_refused_before_rows_are_in(self, command: str, kind: str) -> None:
        self.model("hooked", INCREMENTAL)
        run_dbt(["run", "-s", "hooked", "--full-refresh"])
        self.model("hooked", f"{INCREMENTAL}, {kind}='{command}'")
        assert "is a command of Delta Lake, and the table is in Parquet" in self.fails("run", "-s", "hooked")
        assert self.rows("hooked") == 50

    def test_a_hook_that_writes_into_its_own_table_is_no_other_run(self) -> None:
        hook = "{% if is_incremental() %}insert into {{ this }} values (-5, -5){% endif %}"
        query = f"{QUERY} {{% if is_incremental() %}} where id > (select max(id) from {{{{ this }}}}) {{% endif %}}"
        self.model("writes", f'{INCREMENTAL}, pre_hook="{hook}"', query)
        for turn in range(3):
            run_dbt(["run", "-s", "writes", "--vars", f"n: {50 + 10 * turn}"])
        assert self.rows("writes") == 72

    def test_a_hook_may_collect_the_stats_of_its_own_model(self) -> None:
        hook = "{% do zorder_rebuild_stats('own') %}"
        self.model("own", f'materialized="table", zorder_by=["id"], post_hook="{hook}"')
        run_dbt(["run", "-s", "own"])
        assert self.rows("own") == 50

    def test_a_query_as_a_hook_is_run(self) -> None:
        hook = "select assert_true(count(*) > 99, 'too few rows') from {{ this }}"
        self.model("guarded", f'materialized="table", zorder_by=["id"], post_hook="{hook}"')
        assert "too few rows" in self.fails("run", "-s", "guarded")
        run_dbt(["run", "-s", "guarded", "--vars", "n: 100"])


class TestSpelling(Habits):
    def test_a_format_may_be_in_capitals(self) -> None:
        self.model("capitals", f"{INCREMENTAL}, file_format='PARQUET'")
        run_dbt(["run", "-s", "capitals", "--full-refresh"])
        run_dbt(["run", "-s", "capitals"])
        assert self.rows("capitals") == 100


class TestKeys(Habits):
    def test_a_unique_key_without_effect_is_spoken_of(self) -> None:
        self.model("keyed", f"{INCREMENTAL}, unique_key='id'")
        _, log = run_dbt_and_capture(["run", "-s", "keyed"])
        assert "unique_key has no effect with the incremental strategy 'append', which is the default" in log
        self.model("keyed", f"{INCREMENTAL}, unique_key='id', incremental_strategy='insert_overwrite'")
        assert "no effect" not in run_dbt_and_capture(["run", "-s", "keyed"])[1]


class TestWarningsAsErrors(Habits):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Mapping[str, Any]:
        return {"flags": {"require_all_warnings_handled_by_warn_error": True}}

    def test_a_described_column_that_is_not_there_fails_a_run_before_its_rows_are_in(self) -> None:
        described = "columns: [{name: id, description: the id}, {name: gone, description: none}]"
        self.model(
            "documented", f"{INCREMENTAL}, persist_docs={{'relation': true, 'columns': true}}", properties=described
        )
        _, log = run_dbt_and_capture(["run", "-s", "documented"])
        assert log.count("not present in the database: gone") == 1
        assert "not present in the database: gone" in self.fails("--warn-error", "run", "-s", "documented")
        assert self.rows("documented") == 50
        described = self.project.run_sql("describe {schema}.documented", fetch="all")
        assert [tuple(row)[2] for row in described] == ["the id", None]

    def test_a_warning_about_rows_that_are_in_fails_no_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(*_: Any) -> None:
            msg = "no metastore"
            raise RuntimeError(msg)

        monkeypatch.setattr("dbt_zorder.adapter.impl.set_comments", fails)
        self.model("commented", f"{INCREMENTAL}, persist_docs={{'relation': true}}", properties="description: all")
        for _ in range(2):
            _, log = run_dbt_and_capture(["--warn-error", "run", "-s", "commented"])
            assert "not all of its comments could be set" in log
        assert self.rows("commented") == 100


class TestViews(Habits):
    def test_zorder_by_of_a_view_is_spoken_of(self) -> None:
        self.model("seen", "zorder_by=['id']")
        _, output = run_dbt_and_capture(["run", "-s", "seen"])
        assert "is a view, on which zorder_by has no effect: add materialized='table'" in output

    def test_tests_and_verify_pass_where_a_model_is_a_view(self) -> None:
        tested = "columns: [{name: id, data_tests: [{zorder_clustered: {arguments: {at_most: 0.01}}}]}]"
        self.model("tested", "materialized='table', zorder_by=['id']", properties=tested)
        self.project.run_sql("create view {schema}.tested as select 1 as id")
        _, log = run_dbt_and_capture(["test", "-s", "tested"])
        assert "is a view, which has no files to be clustered" in log
        _, log = run_dbt_and_capture(["run-operation", "zorder_verify"])
        assert "tested is a view here: nothing to verify" in log


class TestPrivateModels(Habits):
    def test_operations_find_private_models_by_their_names(self) -> None:
        groups = Path(self.project.project_root) / "models" / "groups.yml"
        groups.write_text("groups: [{name: fin, owner: {name: me}}]")
        private = "config: {group: fin, access: private}"
        self.model("hidden", "materialized='table', zorder_by=['id']", properties=private)
        run_dbt(["run", "-s", "hidden"])
        for operation, more in (("zorder_explain", ", where: id = 1"), ("zorder_rebuild_stats", "")):
            run_dbt(["run-operation", operation, "--args", f"{{model: hidden{more}}}"])
