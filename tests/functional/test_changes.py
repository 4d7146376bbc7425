"""A model that becomes something else, and mistakes that must leave its table as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName, describe
from tests.support import checksum

TABLE = "select id, pmod(hash(id), 100) as a, cast(id % 3 as int) as p from range(300)"


def config(text: str) -> str:
    return "{{ config(" + text + ") }} "


class Changing:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": config("materialized='table', zorder_by='a'") + TABLE}

    def set_model(self, project: Any, config_text: str, query: str = TABLE) -> None:
        (Path(project.project_root) / "models" / "m.sql").write_text(config(config_text) + query)

    def info(self, spark: SparkSession, project: Any, name: str = "m") -> Any:
        return describe(spark, TableName(project.test_schema, name))


KINDS = {
    "zorder": ("materialized='table', zorder_by='a', zorder_files=2", "EXTERNAL"),
    "table": ("materialized='table'", "MANAGED"),
    "view": ("materialized='view'", "VIEW"),
    "parted": ("materialized='table', zorder_by='a', zorder_files=2, partition_by='p'", "EXTERNAL"),
    "incremental": ("materialized='incremental'", "MANAGED"),
}


# every kind after every other that stands on its own way of being dropped or replaced
WALK = [
    "table",
    "zorder",
    "table",
    "view",
    "zorder",
    "view",
    "table",
    "zorder",
    "parted",
    "zorder",
    "zorder",
    "incremental",
]


class TestChanges(Changing):
    @pytest.mark.parametrize(("step", "kind"), enumerate(WALK))
    def test_a_model_may_become_anything(self, project: Any, spark: SparkSession, step: int, kind: str) -> None:
        text, catalog_kind = KINDS[kind]
        self.set_model(project, text)
        run_dbt(["run", "--full-refresh"])
        assert self.info(spark, project).kind == catalog_kind
        assert spark.table(f"{project.test_schema}.m").select("id", "a", "p").distinct().count() == 300
        stats = self.info(spark, project, "m__zorder_stats")
        assert (stats is not None) == (kind in ("zorder", "parted"))
        root = (
            Path(str(project.adapter.config.credentials.session_dir))
            / "warehouse"
            / f"{project.test_schema}.db"
            / "m__zorder"
        )
        assert root.exists() == (kind in ("zorder", "parted")), "versions go with the table"

    def test_columns_may_change(self, project: Any, spark: SparkSession) -> None:
        self.set_model(project, "materialized='table', zorder_by='a'")
        run_dbt(["run"])
        self.set_model(project, "materialized='table', zorder_by='b'", "select 'x' as b, 1 as other")
        run_dbt(["run"])
        assert spark.table(f"{project.test_schema}.m").collect() == [("x", 1)]

    def test_a_table_that_a_killed_swap_left_aside_is_no_first_run(self, project: Any, spark: SparkSession) -> None:
        self.set_model(project, "materialized='incremental', zorder_by='a'", "select 1 as a")
        run_dbt(["run", "--full-refresh"])
        name = f"{project.test_schema}.m"
        spark.sql(f"alter table {name} rename to {name}__zorder_prev")
        run_dbt(["run"])
        assert spark.table(name).count() == 2
        assert self.info(spark, project, "m__zorder_prev") is None


GOOD = "materialized='table', zorder_by=['a', 'p']"
HOOK = ", pre_hook='insert into {{ this.schema }}.hooked select 1'"

CONFIG_ERRORS = [
    ("materialized='table', zorder_by='a', zorder_fils=2", "Did you mean 'zorder_files'"),
    ("materialized='table', zoder_by='a'", "Did you mean 'zorder_by'"),
    ("materialized='table', zorder_by=[]", "an empty list orders nothing"),
    ("materialized='table', zorder_by=7", "it must be a column name or a list of column names"),
    ("materialized='table', zorder_by=['a','b','c','d','e','f','g','h','i']", "at most 8 columns"),
    ("materialized='table', zorder_by=['a', 'p'], partition_by='p'", "which is a partition column"),
    ("materialized='table', zorder_by='a', zorder_files=0", "a whole number, 1 or more"),
    ("materialized='table', zorder_by='a', zorder_file_size='big'", "'auto', a number of bytes"),
    ("materialized='table', zorder_by='a', clustered_by='p'", "clustered_by is set without buckets"),
    ("materialized='table', zorder_by='a', buckets=4", "buckets is set without clustered_by"),
    ("materialized='table', zorder_by='a', clustered_by='p', buckets=1", "a whole number from 2 to 100,000"),
    ("materialized='table', zorder_by='a', file_format='csv'", "needs file_format 'parquet'"),
]  # fmt: skip
BUILD_ERRORS = [
    ("materialized='table', zorder_by='aa'", TABLE, "Did you mean 'a'"),
    ("materialized='table', zorder_by=['a', 'A']", TABLE, "The column 'a' is named twice"),
    ("materialized='table', zorder_by='a', zorder_stats_columns=['pp']", TABLE, "There is no column 'pp'"),
    ("materialized='table', zorder_by='a', clustered_by='pp', buckets=4", TABLE, "There is no column 'pp'"),
    ("materialized='table', zorder_by='a', file_format='delta'", TABLE, "'zorder_formats: [delta]'"),
    ("materialized='table', zorder_by='m'", "select map(1, 2) as m", "which Spark cannot order"),
    ("materialized='table', zorder_by='a'", "select 1 as a, 2 as a", "produces the column 'a' twice"),
    ("materialized='table', zorder_by='a'", "select cast(raise_error('broken') as int) as a", "broken"),
    ("materialized='table', zorder_by='a'", "select nonsense from nowhere", "nowhere"),
]  # fmt: skip


class TestMistakes(Changing):
    @pytest.fixture(scope="class")
    def good(self, project: Any, spark: SparkSession) -> tuple[str, tuple[int, int]]:
        spark.sql(f"create table {project.test_schema}.hooked (x int) using parquet")
        self.set_model(project, GOOD)
        run_dbt(["run"])
        return self.info(spark, project).location, checksum(spark.table(f"{project.test_schema}.m"))

    def fails(self, project: Any, spark: SparkSession, good: Any, message: str) -> str:
        _, text = run_dbt_and_capture(["run"], expect_pass=False)
        flat = " ".join(text.split())
        assert message in flat
        spark.catalog.refreshTable(f"{project.test_schema}.m")
        assert (self.info(spark, project).location, checksum(spark.table(f"{project.test_schema}.m"))) == good
        return flat

    @pytest.mark.parametrize(("text", "message"), CONFIG_ERRORS)
    def test_a_wrong_config_stops_before_the_hooks(
        self, project: Any, spark: SparkSession, good: Any, text: str, message: str
    ) -> None:
        self.set_model(project, text + HOOK)
        said = self.fails(project, spark, good, message)
        assert "'m' (models/m.sql)" in said
        assert spark.table(f"{project.test_schema}.hooked").count() == 0

    @pytest.mark.parametrize(("text", "query", "message"), BUILD_ERRORS)
    def test_a_query_that_does_not_fit_leaves_the_table(
        self, project: Any, spark: SparkSession, good: Any, text: str, query: str, message: str
    ) -> None:
        self.set_model(project, text, query)
        self.fails(project, spark, good, message)
