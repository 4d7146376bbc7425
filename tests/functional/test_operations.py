"""Operations, the post-hook and the data tests, as a user's project calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

QUERY = "select id, pmod(hash(id), 100) as a from range(2000)"

SCHEMA = """
models:
  - name: clustered
    data_tests:
      - zorder_sound:
          arguments:
            predicates: ["a = 3 or id < 10", "a is null"]
    columns:
      - name: a
        quote: true
        data_tests:
          - zorder_clustered: {arguments: {at_most: 0.6}}
  - name: hooked
    data_tests: [zorder_sound]
"""


class TestOperations:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hook = "{{ zorder_stats(this, ['id']) }}"
        return {
            "clustered.sql": "{{ config(materialized='table', zorder_by=['a', 'id'], zorder_files=4) }} " + QUERY,
            "hooked.sql": '{{ config(materialized="table", file_format="parquet", post_hook="'
            + hook
            + '") }} '
            + QUERY,
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["run"])

    def test_the_data_tests_pass(self, project: Any) -> None:
        results = run_dbt(["test"])
        assert len(results) == 3
        assert all(result.status == "pass" for result in results)

    def test_the_post_hook_registers_stats(self, project: Any, spark: SparkSession) -> None:
        stats = spark.table(f"{project.test_schema}.hooked__zorder_stats")
        assert stats.selectExpr("sum(row_count)").collect()[0][0] == 2000
        assert stats.schema["columns"].dataType.names == ["id"]  # type: ignore[attr-defined]

    def test_explain_prints_what_is_read_and_why(self, project: Any) -> None:
        arguments = '{model: clustered, where: "a = 3 and id = 5"}'
        _, output = run_dbt_and_capture(["run-operation", "zorder_explain", "--args", arguments])
        assert "files" in output
        assert "`a` = 3" in output
        assert "fresh" in output

    def test_explain_takes_any_table_by_its_name(self, project: Any) -> None:
        arguments = f'{{model: {project.test_schema}.hooked, where: "id = 5"}}'
        _, output = run_dbt_and_capture(["run-operation", "zorder_explain", "--args", arguments])
        assert "`id` = 5" in output

    def test_a_wrong_predicate_is_one_clear_error(self, project: Any) -> None:
        arguments = '{model: clustered, where: "aa = 3"}'
        _, output = run_dbt_and_capture(["run-operation", "zorder_explain", "--args", arguments], expect_pass=False)
        assert "There is no column 'aa'" in output
        assert "Traceback" not in output

    def test_stats_can_be_rebuilt(self, project: Any) -> None:
        arguments = ["run-operation", "zorder_rebuild_stats", "--args", "{model: clustered}"]
        _, output = run_dbt_and_capture(arguments)
        assert "4 files" in output


def operate(name: str, arguments: str, *, expect_pass: bool = True) -> str:
    _, output = run_dbt_and_capture(["run-operation", name, "--args", arguments], expect_pass=expect_pass)
    return " ".join(output.split())


class TestVersions:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        keys = "zorder_by='a', zorder_files=2, zorder_keep_versions=9, alias='aliased'"
        config = "{{ config(materialized='table', " + keys + ") }} "
        return {"m.sql": config + QUERY, "other.sql": config.replace("aliased", "second") + QUERY, "plain.sql": QUERY}

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        for _ in range(3):
            run_dbt(["run"])

    def versions(self, project: Any, name: str) -> list[Path]:
        warehouse = Path(str(project.adapter.config.credentials.session_dir)) / "warehouse"
        return sorted((warehouse / f"{project.test_schema}.db" / f"{name}__zorder").iterdir())

    def test_vacuum_is_a_dry_run_with_the_bounds_of_the_model(self, project: Any) -> None:
        output = operate("zorder_vacuum", "{model: m}")
        assert "0 of 3 versions to delete" in output
        assert "is one of the 9 old versions that are kept" in output
        assert "Nothing was deleted" in output
        assert "second" not in output
        named = operate("zorder_vacuum", f"{{model: {project.test_schema}.ALIASED}}")
        assert "is one of the 9 old versions that are kept" in named, "by the bounds of the model also by this name"
        output = operate("zorder_vacuum", "{model: m, grace_hours: 0, keep_versions: 1}")
        assert "1 of 3 versions to delete" in output
        assert len(self.versions(project, "aliased")) == 3

    def test_vacuum_of_all_models(self, project: Any, spark: SparkSession) -> None:
        output = operate("zorder_vacuum", "{dry_run: false, grace_hours: 0, keep_versions: 1}")
        assert output.count("1 of 3 versions deleted") == 2
        assert "plain" not in output
        assert [len(self.versions(project, name)) for name in ("aliased", "second")] == [2, 2]
        assert spark.table(f"{project.test_schema}.aliased").count() == 2000

    def test_capital_letters_in_a_schema_hide_nothing(self, project: Any) -> None:
        with project.adapter.connection_named("capitals"):
            assert project.adapter.check_schema_exists("", project.test_schema.upper())
            assert not project.adapter.check_schema_exists("", "never")

    def test_a_mistaken_argument_deletes_nothing(self, project: Any) -> None:
        before = self.versions(project, "second")
        for arguments in ("{dry_run: 'no', grace_hours: 0}", "{dry_run: false, grace_hours: -1}"):
            assert "must be" in operate("zorder_vacuum", arguments, expect_pass=False)
        for dry_run in ("'false'", "0", "null"):
            output = operate("zorder_optimize", f"{{model: other, dry_run: {dry_run}}}", expect_pass=False)
            assert "zorder_optimize: dry_run is" in output
        assert self.versions(project, "second") == before

    def test_a_table_of_another_catalog_is_not_taken_for_one_here(self, project: Any) -> None:
        name = f"{project.test_schema}.aliased"
        for operation in ("zorder_vacuum", "zorder_explain", "zorder_optimize"):
            more = ", where: a = 1" if operation == "zorder_explain" else ""
            output = operate(operation, f"{{model: spark_catalog.{name}{more}}}", expect_pass=False)
            assert "is neither the name of a model nor a table as schema.identifier" in output
            assert f"Did you mean '{name}'?" in output

    def test_a_name_that_no_model_has_is_spoken_of(self, project: Any) -> None:
        for operation in ("zorder_vacuum", "zorder_explain", "zorder_rebuild_stats", "zorder_rollback"):
            more = ", where: a = 1" if operation == "zorder_explain" else ""
            output = operate(operation, f"{{model: othr{more}}}", expect_pass=False)
            assert "There is no model, seed or snapshot 'othr' in this project. Did you mean 'other'?" in output
            assert "named as schema.identifier" in output

    def test_a_table_that_is_not_built_yet_is_said_to_be_absent(self, project: Any) -> None:
        name = f"{project.test_schema}.not_built"
        output = operate("zorder_explain", f"{{model: {name}, where: a = 1}}", expect_pass=False)
        assert f"{name} does not exist. Build it first: dbt run --select not_built." in output
        assert "UnresolvedRelation" not in output

    def test_rollback_serves_the_version_before(self, project: Any, spark: SparkSession) -> None:
        before = self.versions(project, "aliased")
        output = operate("zorder_rollback", "{model: m}")
        assert f"is served from {before[0].name} again" in output
        assert before[0].name in spark.table(f"{project.test_schema}.aliased").inputFiles()[0]
        assert "no version nine" in operate("zorder_rollback", "{model: m, version: nine}", expect_pass=False)

    def test_verify_finds_a_lost_file(self, project: Any, spark: SparkSession) -> None:
        assert operate("zorder_verify", "{}").count("listing, stats and footers agree") == 2
        lost = Path(unquote(urlsplit(spark.table(f"{project.test_schema}.second").inputFiles()[0]).path))
        lost.unlink()
        output = operate("zorder_verify", "{model: other}", expect_pass=False)
        assert f"{lost.name} is lost" in output
        assert "Traceback" not in output


VERSIONED = """
models:
  - name: v
    latest_version: 2
    versions: [{v: 1}, {v: 2}]
"""


class TestVersionedModels:
    """The versions of a dbt model share its name, and are tables of their own."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        model = "{{ config(materialized='table', zorder_by='a', zorder_files=2) }} " + QUERY
        return {"v_v1.sql": model, "v_v2.sql": model, "schema.yml": VERSIONED}

    def test_what_changes_one_table_asks_which(self, project: Any, spark: SparkSession) -> None:
        for _ in range(2):
            run_dbt(["run"])
        names = [f"{project.test_schema}.v_v{number}" for number in (1, 2)]
        before = [spark.table(name).inputFiles() for name in names]
        for operation in ("zorder_optimize", "zorder_rollback"):
            output = operate(operation, "{model: v}", expect_pass=False)
            assert f"'v' is the name of 2 models: say which by one of {', '.join(names)}" in output
        operate("zorder_rollback", f"{{model: {names[0]}}}")
        after = [spark.table(name).inputFiles() for name in names]
        assert before[0] != after[0]
        assert before[1] == after[1]
        assert operate("zorder_vacuum", "{model: v}").count("of 2 versions") == 2


SNAPSHOT = """
snapshots:
  - name: history
    relation: ref('m')
    config: {strategy: check, unique_key: id, check_cols: [a], zorder_keep_versions: 7, partition_by: dbt_valid_from}
  - name: never_taken
    relation: ref('m')
    config: {strategy: check, unique_key: id, check_cols: [a], schema: that_is_not_there}
  - name: not_taken_yet
    relation: ref('m')
    config: {strategy: check, unique_key: id, check_cols: [a]}
"""


class TestAllThatHasVersions:
    """A folder's zorder_by is that of its tables; seeds and snapshots have versions too."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        rows = "select id, id % 7 + {{ var('more', 0) }} as a from range(50)"
        kinds = {"m": "table", "looked_at": "view", "inlined": "ephemeral"}
        return {f"{name}.sql": f"{{{{ config(materialized='{kind}') }}}} {rows}" for name, kind in kinds.items()}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"codes.csv": "a,b\n1,x\n2,y\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.yml": SNAPSHOT}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+zorder_by": "a"}, "seeds": {"+zorder_by": "a", "+zorder_keep_versions": 5}}

    def test_each_is_vacuumed_and_verified_by_its_own_bounds(self, project: Any, spark: SparkSession) -> None:
        for more in range(3):
            run_dbt(["build", "--vars", f"{{more: {more}}}", "--exclude", "never_taken not_taken_yet"])
        output = operate("zorder_vacuum", "{grace_hours: 0}")
        assert output.count("0 of 3 versions to delete") == 3
        for kept in (2, 5, 7):
            assert output.count(f"is one of the {kept} old versions that are kept") == 2
        assert "looked_at" not in output
        assert "inlined" not in output
        assert "is one of the 7 old versions that are kept" in operate("zorder_vacuum", "{model: history}")
        output = operate("zorder_verify", "{}")
        assert output.count("listing, stats and footers agree") == 3
        assert "not_taken_yet is not built here" in output
        assert "never_taken" not in output


def temporary_views(spark: SparkSession) -> set[str]:
    return {row.tableName for row in spark.sql("SHOW TABLES").where("isTemporary").collect()}


@pytest.mark.slow
class TestThreads:
    """Ten models in eight threads of one session, each built twice."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='table', zorder_by=['a', 'id'], zorder_files=2, zorder_keep_versions=0, "
        return {
            f"m{number}.sql": config
            + f"zorder_grace_hours=0{', partition_by=' + repr('p') if number % 2 else ''}) }}}} "
            + f"select id, pmod(hash(id), 100) as a, cast(id % 2 as int) as p from range({100 + number})"
            for number in range(10)
        }

    def test_models_that_are_built_at_once_do_not_touch_each_other(self, project: Any, spark: SparkSession) -> None:
        views = temporary_views(spark)
        for _ in range(2):
            results = run_dbt(["run", "--threads", "8"])
            assert [result.status for result in results] == ["success"] * 10
        for number in range(10):
            assert spark.table(f"{project.test_schema}.m{number}").distinct().count() == 100 + number
        shown = spark.sql(f"SHOW TABLES IN {project.test_schema}").where("NOT isTemporary").collect()
        assert len(shown) == 20, f"a stats relation each, and nothing that a swap left: {shown}"
        assert temporary_views(spark) == views
        assert operate("zorder_verify", "{}").count("listing, stats and footers agree") == 10
