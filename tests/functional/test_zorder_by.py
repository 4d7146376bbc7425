"""What a model with zorder_by is, and what dbt says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.parquet.saved_layout import read_tree
from tests.support import same_rows

QUERY = "select id, pmod(hash(id), 100) as a, concat('k', id % 20) as s, cast(id % 3 as int) as p from range(600)"

MODELS = {
    "as_list.sql": "{{ config(materialized='table', zorder_by=['a', 's'], zorder_files=4) }} " + QUERY,
    "as_string.sql": "{{ config(materialized='table', zorder_by='a', zorder_files=3) }} " + QUERY,
    "hilbert.sql": "{{ config(materialized='table', zorder_by=['a', 's'], zorder_files=4, zorder_curve='hilbert') }} "
    + QUERY,
    "bits.sql": "{{ config(materialized='table', zorder_by=['a', 's'], zorder_files=4, zorder_encoding='bits') }} "
    + QUERY,
    "short_pages.sql": "{{ config(materialized='table', zorder_by=['a', 'id'], zorder_files=4, "
    "options={'parquet.page.row.count.limit': 10}) }} " + QUERY,
    "from_project/inherited.sql": QUERY,
    "from_project/switched_off.sql": "{{ config(zorder_skip=true) }} " + QUERY,
    "plain.sql": "{{ config(materialized='table') }} " + QUERY,
    "parted.sql": "{{ config(materialized='table', zorder_by='a', zorder_files=2, partition_by='p') }} "
    + QUERY.replace("cast(id % 3 as int)", "nullif(cast(id % 3 as int), 0)"),
    "reads.sql": "select * from {{ zorder_scan(ref('as_list'), \"a = 7 and s <> 'k3'\") }}",
    "reads_alias.sql": "select x.a from {{ zorder_scan(ref('as_list'), 'a < 5', alias='x') }}",
    "reads_qualified.sql": "select x.a from {{ zorder_scan(ref('as_list'), 'x.a < 5', alias='x') }}",
    "reads_by_name.sql": "select a from {{ zorder_scan(ref('as_list'), 'as_list.a < 5') }}",
    "reads_new.sql": "with new as (select 7L as b) select a from "
    "{{ zorder_scan(ref('as_list'), 'a in (select b from new)') }}",
    "a_view.sql": "{{ config(materialized='view', zorder_by='a') }} " + QUERY,
    "grows.sql": "{{ config(materialized='incremental', zorder_by='a') }} " + QUERY,
    "cluster_me.sql": "{{ config(materialized='table', zorder_by='`a b`.`c.d`', pre_hook='select 1', "
    "post_hook='select count(*) from {{ this }}') }} select named_struct('c.d', id) as `a b` from range(10)",
    "agreed.sql": "{{ config(materialized='table', zorder_by='a') }} select 'x' as s, 1L as a",
    "schema.yml": """
version: 2
models:
  - name: agreed
    description: "Agreed 'on' ${spark.app.name}"
    config:
      contract: {enforced: true}
      persist_docs: {relation: true, columns: true}
    columns:
      - {name: a, data_type: bigint, description: "it's a"}
      - {name: s, data_type: string}
  - name: reads
    columns:
      - name: a
        data_tests:
          - accepted_values: {arguments: {values: [7], quote: false}}
  - name: as_list
    data_tests: [zorder_sound]
    columns:
      - name: a
        data_tests:
          - zorder_clustered: {arguments: {at_most: 0.75}}
  - name: grows
    columns:
      - name: a
        data_tests:
          - zorder_clustered: {arguments: {at_most: 0.3}}
unit_tests:
  - name: scan_filters_given_rows
    model: reads
    given:
      - input: ref('as_list')
        rows:
          - {id: 1, a: 7, s: k1, p: 0}
          - {id: 2, a: 7, s: k3, p: 0}
          - {id: 3, a: 8, s: k1, p: 0}
    expect:
      rows:
        - {id: 1, a: 7, s: k1, p: 0}
  - name: scan_by_name_filters_given_rows
    model: reads_by_name
    given:
      - input: ref('as_list')
        rows: [{a: 4}, {a: 5}]
    expect:
      rows: [{a: 4}]
""",
}


@pytest.fixture(scope="class")
def built(project: Any) -> dict[str, Any]:
    """The results of one dbt build, by node name."""
    results = run_dbt(["build"])
    return {result.node.name: result for result in results}


class TestZorderBy:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for path, text in MODELS.items():
            folder, _, name = path.rpartition("/")
            (tree.setdefault(folder, {}) if folder else tree)[name] = text
        return tree

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        inherited = {"+materialized": "table", "+zorder_by": ["a"], "+zorder_files": 2}
        return {"models": {"test": {"from_project": inherited}}}

    def info(self, spark: SparkSession, project: Any, name: str) -> Any:
        return describe(spark, TableName(project.test_schema, name))

    def test_nothing_needs_a_table_to_compile(self, project: Any) -> None:
        assert len(run_dbt(["compile"])) > 0

    def test_all_is_built(self, built: dict[str, Any]) -> None:
        assert {str(result.status) for result in built.values()} <= {"success", "pass"}

    @pytest.mark.parametrize(
        ("name", "files"),
        [("as_list", 4), ("as_string", 3), ("inherited", 2), ("parted", 6), ("hilbert", 4), ("bits", 4), ("grows", 1)],
    )
    def test_a_model_is_an_external_table_of_so_many_files(
        self, built: dict[str, Any], project: Any, spark: SparkSession, name: str, files: int
    ) -> None:
        table = spark.table(f"{project.test_schema}.{name}")
        stats = spark.table(f"{project.test_schema}.{name}__zorder_stats")
        assert self.info(spark, project, name).kind == "EXTERNAL"
        assert len(table.inputFiles()) == files == stats.count()
        assert table.count() == 600
        if name != "parted":
            assert same_rows(table, spark.sql(QUERY))

    def test_rows_are_ordered_as_finely_as_the_pages_of_the_models_options(
        self, built: dict[str, Any], project: Any, spark: SparkSession
    ) -> None:
        levels = {}
        for name in ("as_list", "short_pages"):
            tree = read_tree(
                spark, self.info(spark, project, name).location, spark.table(f"{project.test_schema}.{name}").schema
            )
            assert tree is not None
            assert tree.layout is not None
            levels[name] = len(tree.layout.levels) - tree.layout.file_levels
        assert levels == {"as_list": 4, "short_pages": 6}

    @pytest.mark.parametrize("name", ["plain", "switched_off"])
    def test_without_zorder_by_a_model_is_as_dbt_spark_makes_it(
        self, built: dict[str, Any], project: Any, spark: SparkSession, name: str
    ) -> None:
        assert self.info(spark, project, name).kind == "MANAGED"
        assert self.info(spark, project, f"{name}__zorder_stats") is None
        assert same_rows(spark.table(f"{project.test_schema}.{name}"), spark.sql(QUERY))
        assert "zorder_by" not in built[name].adapter_response

    @pytest.mark.parametrize("name", ["a_view"])
    def test_other_materializations_are_not_harmed_by_the_config(
        self, built: dict[str, Any], project: Any, spark: SparkSession, name: str
    ) -> None:
        assert spark.table(f"{project.test_schema}.{name}").count() == 600
        assert self.info(spark, project, f"{name}__zorder_stats") is None

    def test_run_results_hold_the_figures(self, built: dict[str, Any], project: Any) -> None:
        written = json.loads((Path(project.project_root) / "target" / "run_results.json").read_text())
        results = {result["unique_id"].split(".")[-1]: result["adapter_response"] for result in written["results"]}
        found = results["as_list"]
        assert (found["rows_affected"], found["files_written"], found["zorder_by"]) == (600, 4, ["a", "s"])
        assert found["bytes_written"] > 0
        assert found["version"].startswith("v2")
        assert set(found["seconds"]) == {"query", "sample", "write", "stats", "swap"}
        assert set(found["point_query_files"]) == {"a", "s"}
        assert 1 <= found["point_query_files"]["a"] < 4
        assert found["_message"].startswith("zorder: 4 files, point query on a reads ")

    def test_scan_gives_the_rows_of_a_full_read(self, built: dict[str, Any], project: Any, spark: SparkSession) -> None:
        schema = project.test_schema
        full = spark.sql(f"select * from {schema}.as_list where a = 7 and s <> 'k3'")
        assert same_rows(spark.table(f"{schema}.reads"), full)
        assert full.count() > 0
        assert (
            spark.table(f"{schema}.reads_alias").count()
            == spark.sql(f"select * from {schema}.as_list where a < 5").count()
        )

    @pytest.mark.parametrize("how", [[], ["--empty"]])
    def test_what_stands_before_a_column_is_known_also_where_dbt_narrows_the_relation(
        self, built: dict[str, Any], project: Any, spark: SparkSession, how: list[str]
    ) -> None:
        run_dbt(["run", "--select", "reads_qualified reads_by_name", *how])
        wanted = 0 if how else spark.table(f"{project.test_schema}.as_list").where("a < 5").count()
        for name in ("reads_qualified", "reads_by_name"):
            assert spark.table(f"{project.test_schema}.{name}").count() == wanted

    def test_a_subquery_may_be_over_what_the_model_itself_names(
        self, built: dict[str, Any], project: Any, spark: SparkSession
    ) -> None:
        wanted = spark.table(f"{project.test_schema}.as_list").where("a = 7").count()
        assert spark.table(f"{project.test_schema}.reads_new").count() == wanted > 0

    def test_show_prints_rows(self, built: dict[str, Any], project: Any) -> None:
        _, text = run_dbt_and_capture(["show", "--select", "reads", "--limit", "2"])
        assert "| id |" in text.replace("  ", " ")

    def test_docs_are_kept_in_the_catalog(self, built: dict[str, Any], project: Any, spark: SparkSession) -> None:
        found = self.info(spark, project, "agreed")
        assert found.comment == "Agreed 'on' ${spark.app.name}"
        assert found.columns == [("a", "bigint", "it's a"), ("s", "string", "")]

    def test_docs_generate_knows_the_tables(self, built: dict[str, Any], project: Any) -> None:
        catalog = run_dbt(["docs", "generate"])
        nodes = {key.split(".")[-1]: node for key, node in catalog.nodes.items()}
        assert set(nodes) >= {"as_list", "plain", "a_view", "parted"}
        assert set(nodes["as_list"].columns) == {"id", "a", "s", "p"}
        stats = {key: item.value for key, item in nodes["as_list"].stats.items()}
        assert (stats["zorder_by"], stats["zorder_files"], stats["rows"]) == ("a, s", 4, 600)
        assert stats["zorder_point_query"].startswith("a ")
        assert stats["zorder_version"].startswith("v2")
        assert nodes["agreed"].metadata.comment == "Agreed 'on' ${spark.app.name}"
        assert nodes["agreed"].columns["a"].comment == "it's a"
        assert set(nodes["plain"].stats) <= {"has_stats", "rows", "bytes"}

    def test_a_second_run_replaces_the_version_and_leaves_one_before(
        self, built: dict[str, Any], project: Any, spark: SparkSession
    ) -> None:
        before = self.info(spark, project, "as_list").location
        run_dbt(["run", "--select", "as_list", "parted", "--full-refresh"])
        after = self.info(spark, project, "as_list").location
        assert before != after
        assert spark.read.parquet(before).count() == spark.table(f"{project.test_schema}.as_list").count() == 600

    def test_empty_builds_no_rows(self, built: dict[str, Any], project: Any, spark: SparkSession) -> None:
        run_dbt(["run", "--select", "reads", "--empty"])
        assert spark.table(f"{project.test_schema}.reads").count() == 0

    def test_many_models_may_be_built_at_once(self, built: dict[str, Any], project: Any, spark: SparkSession) -> None:
        run_dbt(["run", "--select", "as_list", "as_string", "inherited", "parted", "plain", "--threads", "4"])
        assert {spark.table(f"{project.test_schema}.{n}").count() for n in ("as_list", "as_string", "parted")} == {600}
