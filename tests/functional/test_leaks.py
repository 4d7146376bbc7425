"""What a model changes in the session ends with it, also where eight of them run at once or one fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from tests.support import same_rows, settings

MODE = "spark.sql.sources.partitionOverwriteMode"
ROWS = (
    "select id, {} as origin, cast(id % 3 as int) as p from range({{{{ var('first', 0) }}}}, {{{{ var('end', 30) }}}})"
)
OVERWRITE = "incremental_strategy='insert_overwrite', partition_by='p', file_format='parquet'"


def config(text: str) -> str:
    return "{{ config(" + text + ") }} "


def temporary(spark: SparkSession) -> list[str]:
    listed = spark.catalog.listTables("global_temp") + spark.catalog.listTables()
    return [table.name for table in listed if table.isTemporary]


class TestThreads:
    """Four models in each of two schemas, by the same aliases: dbt-spark gives both the same temporary view."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        found = {}
        for side in ("here", "there"):
            schema = "schema='there', " if side == "there" else ""
            for number in range(4):
                text = f"materialized='incremental', alias='m{number}', {schema}" + (OVERWRITE if number % 2 else "")
                found[f"{side}{number}.sql"] = config(text) + ROWS.format(f"'{side}{number}'")
        return found

    def test_equal_aliases_in_two_schemas_do_not_meet(self, project: Any, spark: SparkSession) -> None:
        before, views = spark.conf.get(MODE), temporary(spark)
        for first, end in ((0, 30), (30, 40)):
            run_dbt(["run", "--threads", "8", "--vars", f"{{first: {first}, end: {end}}}"])
        for side, schema in (("here", project.test_schema), ("there", f"{project.test_schema}_there")):
            for number in range(4):
                table = spark.table(f"{schema}.m{number}")
                assert [row[0] for row in table.select("origin").distinct().collect()] == [f"{side}{number}"]
                assert table.count() == (10 if number % 2 else 40)
            listed = spark.sql(f"SHOW TABLES IN {schema}").where("isTemporary").collect()
            assert not {row.tableName for row in listed} - {*views}
        assert temporary(spark) == views
        assert spark.conf.get(MODE) == before


class TestOverwrite:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "m.sql": config("materialized='incremental', on_schema_change='append_new_columns', " + OVERWRITE)
            + ROWS.format("'m'")
            + " where p = 1 or not {{ is_incremental() }}",
            "orc.sql": config("materialized='incremental', " + OVERWRITE.replace("parquet", "orc"))
            + "select * from ("
            + ROWS.format("(select count(*) from {{ ref('m') }})")
            + ") where p = 1 or not {{ is_incremental() }}",
        }

    def test_only_the_partitions_of_the_batch_are_replaced(self, project: Any, spark: SparkSession) -> None:
        models = Path(project.project_root) / "models"
        (models / "m.sql").write_text(
            (models / "m.sql").read_text().replace("select id", "select * from (select id").replace(" where", ") where")
        )
        run_dbt(["run"])
        (models / "m.sql").write_text((models / "m.sql").read_text().replace("select id", "select id, id * 2 as twice"))
        run_dbt(["run", "--vars", "{first: 30, end: 36}"])
        old = "select id, 'm' as origin, cast(null as bigint) as twice, cast(id % 3 as int) as p from range(30)"
        new = "select id, 'm', id * 2, cast(id % 3 as int) as p from range(30, 36)"
        table = spark.table(f"{project.test_schema}.m").select("id", "origin", "twice", "p")
        assert same_rows(
            table, spark.sql(f"select * from ({old}) where p <> 1 union all select * from ({new}) where p = 1")
        )
        assert spark.table(f"{project.test_schema}.orc").count() == 22


class TestBatches:
    """dbt runs hooks before the first batch of a microbatch model alone."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        batches = "materialized='incremental', incremental_strategy='microbatch', event_time='day', batch_size='day', "
        batches += "begin='2024-01-01', partition_by=['day'], pre_hook='set spark.sql.shuffle.partitions = 7'"
        seen = "select '${spark.sql.shuffle.partitions}' as partitions, id, day from {{ ref('days') }}"
        return {
            "days.sql": config("materialized='table', event_time='day'")
            + "select id, date_add(DATE'2024-01-01', cast(id as int)) as day from range(3)",
            "plain.sql": config(batches) + seen,
            "zordered.sql": config(batches + ", zorder_by='id'") + seen,
        }

    def test_a_setting_of_a_hook_holds_for_every_batch(self, project: Any, spark: SparkSession) -> None:
        before = spark.conf.get("spark.sql.shuffle.partitions")
        with settings(spark, {"spark.sql.session.timeZone": "UTC"}):
            run_dbt(["run", "--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04"])
        for name in ("plain", "zordered"):
            found = spark.table(f"{project.test_schema}.{name}").orderBy("id").select("id", "partitions").collect()
            assert found == [(0, "7"), (1, "7"), (2, "7")]
        assert spark.conf.get("spark.sql.shuffle.partitions") == before


class TestSettings:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hooked = "pre_hook='set spark.sql.shuffle.partitions = 7', post_hook='set time zone \"Asia/Tokyo\"'"
        seen = "select '${spark.sql.shuffle.partitions}' as partitions, 1 as id"
        return {
            "hooked.sql": config("materialized='table', " + hooked) + seen,
            "zordered.sql": config("materialized='table', zorder_by='id', " + hooked) + seen,
            "fails.sql": config("materialized='incremental', " + hooked)
            + "select cast({{ 'raise_error(1)' if is_incremental() else 1 }} as int) as x",
        }

    def test_a_setting_of_a_hook_ends_with_its_model(self, project: Any, spark: SparkSession) -> None:
        keys = ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone")
        before, views = [spark.conf.get(key) for key in keys], temporary(spark)
        assert before[0] != "7"
        run_dbt(["run"])
        run_dbt(["run", "--select", "fails"], expect_pass=False)
        for name in ("hooked", "zordered"):
            assert spark.table(f"{project.test_schema}.{name}").collect()[0].partitions == "7"
        assert [spark.conf.get(key) for key in keys] == before
        assert temporary(spark) == views
