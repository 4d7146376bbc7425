"""Incremental models by microbatch, with zorder_by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from tests.functional.incremental import Incremental, config
from tests.support import settings


class TestMicrobatch(Incremental):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        days = "timestamp_seconds(1577836800 + 3600 * id)"
        return {
            "events.sql": "{{ config(materialized='table', event_time='at') }} "
            f"select id, {days} as at, pmod(hash(id), 50) as a, 's' as s from range(0, 72)",
            "m.sql": config(
                "incremental_strategy='microbatch', partition_by='day', event_time='at', batch_size='day', "
                "begin='2020-01-01'"
            )
            + "select *, cast(at as date) as day from {{ ref('events') }}",
        }

    def test_each_batch_replaces_its_partition(self, project: Any, spark: SparkSession) -> None:
        window = ["--event-time-start", "2020-01-01", "--event-time-end", "2020-01-04"]
        expected = f"select *, cast(at as date) as day from {project.test_schema}.events"
        run_dbt(["run", *window])
        self.check(project, spark, expected)
        with settings(spark, {"spark.sql.session.timeZone": "UTC"}):
            _, log = run_dbt_and_capture(["run", *window])
            assert "batches of dbt are days or hours of UTC" not in log
        self.check(project, spark, expected)
        with settings(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
            _, log = run_dbt_and_capture(["run", "--select", "m", *window])
        assert "m: batches of dbt are days or hours of UTC, and this session's time zone is Europe/Berlin" in log

    def test_a_view_gives_way_to_all_batches_not_to_the_last(self, project: Any, spark: SparkSession) -> None:
        path = Path(project.project_root) / "models" / "m.sql"
        text = path.read_text()
        spark.sql(f"drop table if exists {project.test_schema}.m")
        path.write_text("{{ config(materialized='view') }} select 1 as id")
        run_dbt(["run", "--select", "m"])
        path.write_text(text)
        run_dbt(["run", "--event-time-start", "2020-01-01", "--event-time-end", "2020-01-04"])
        self.check(project, spark, f"select *, cast(at as date) as day from {project.test_schema}.events")

    def test_partitions_are_required(self, project: Any) -> None:
        path = Path(project.project_root) / "models" / "m.sql"
        path.write_text(path.read_text().replace("partition_by='day', ", ""))
        window = ["--event-time-start", "2020-01-01", "--event-time-end", "2020-01-02"]
        _, log = run_dbt_and_capture(["--debug", "run", "--select", "m", *window], expect_pass=False)
        assert "requires a `partition_by` config" in log
