"""What dbt shows an incremental model as advice is done here, and helps."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from tests.functional.incremental import QUERY, Incremental
from tests.support import settings

ORDER = "zorder_by=['a', 's'], zorder_files=2"


class TestAdvice(Incremental):
    def write(self, project: Any, text: str, query: str = QUERY) -> None:
        self.set_model(project, "{{ config(materialized='incremental', " + text + ") }} " + query)

    @pytest.mark.parametrize(
        ("text", "said", "ways"),
        [
            (
                f"{ORDER}, incremental_strategy='upsert'",
                "with file_format 'parquet' it can be 'append', 'insert_overwrite', 'microbatch', 'merge'",
                [f"{ORDER}, incremental_strategy='append'", f"{ORDER}, incremental_strategy='insert_overwrite'"],
            ),
            (
                f"{ORDER}, zorder_optimize='native'",
                "leave it out, or set it to 'auto' or 'never'",
                [ORDER, f"{ORDER}, zorder_optimize='auto'", f"{ORDER}, zorder_optimize='never'"],
            ),
            (f"{ORDER}, partition_by='a'", "so leave it out of zorder_by", ["zorder_by=['s'], partition_by='a'"]),
            (
                f"{ORDER}, clustered_by='s'",
                "a hash index needs both",
                [ORDER, f"{ORDER}, clustered_by='s', buckets=2", "file_format='parquet', clustered_by='s', buckets=2"],
            ),
            (
                f"{ORDER}, file_format='orc'",
                "Else leave out one of the two, or set zorder_skip: true",
                [ORDER, "file_format='orc'", f"{ORDER}, file_format='orc', zorder_skip=true"],
            ),
            (
                f"{ORDER}, zorder_curve='linear', zorder_weights=[1, 2]",
                "zorder_weights has no effect with zorder_curve 'linear': leave out one of the two",
                [f"{ORDER}, zorder_curve='linear'", f"{ORDER}, zorder_weights=[1, 2]"],
            ),
            (
                "zorder_by=[]",
                "name 1 to 8 columns, or leave it out; where it is inherited, set it to null, or zorder_skip to true",
                ["zorder_by=['a']", "file_format='parquet'", "zorder_by=none, file_format='parquet'"],
            ),
            (
                "zorder_by=['a'], zorder_bloom=['d']",
                "Leave it out, or make it a decimal",
                ["zorder_by=['a']", "zorder_by=['a'], zorder_bloom=['e']"],
            ),
        ],
    )  # fmt: skip
    def test_configs(self, project: Any, text: str, said: str, ways: list[str]) -> None:
        query = QUERY.replace("select id,", "select id, cast(id as double) as d, cast(id as decimal(9, 1)) as e,")
        self.write(project, text, query)
        _, log = run_dbt_and_capture(["--debug", "run", "--full-refresh"], expect_pass=False)
        assert said in " ".join(log.split())
        for way in ways:
            self.write(project, way, query)
            run_dbt(["run", "--full-refresh"])
            self.run(300, 310)

    def test_a_unique_key_replaces_partitions(self, project: Any) -> None:
        self.write(project, f"{ORDER}, unique_key='id'")
        _, log = run_dbt_and_capture(["run", "--full-refresh"])
        assert "To replace whole partitions, set 'insert_overwrite'" in log
        self.write(project, f"{ORDER}, unique_key='id', incremental_strategy='insert_overwrite', partition_by='p'")
        _, log = run_dbt_and_capture(["run", "--full-refresh"])
        assert "unique_key has no effect" not in log
        assert self.run(0, 30).adapter_response["files_replaced"] > 0

    @pytest.mark.parametrize(
        ("query", "mode", "said", "way"),
        [
            (QUERY.replace("as p", "as p, 1 as n"), "fail", "Set it to 'append_new_columns' or", "append_new_columns"),
            (QUERY.replace("as p", "as p, 1 as n"), "fail", "or 'sync_all_columns', or run", "sync_all_columns"),
            (QUERY.replace("as p", "as q"), "ignore", "Set it to 'append_new_columns', which", "append_new_columns"),
            (QUERY.replace("as p", "as q"), "ignore", "or to 'sync_all_columns', which", "sync_all_columns"),
            (QUERY.replace("as p", "as q"), "ignore", "or run the model with --full-refresh", "--full-refresh"),
            (QUERY.replace("cast(id % 3 as int)", "array(id)"), "fail", "Run the model with --full-", "--full-refresh"),
        ],
    )  # fmt: skip
    def test_changes_of_columns(
        self, project: Any, spark: SparkSession, query: str, mode: str, said: str, way: str
    ) -> None:
        self.write(project, f"{ORDER}, on_schema_change='{mode}'")
        run_dbt(["run", "--full-refresh"])
        self.write(project, f"{ORDER}, on_schema_change='{mode}'", query)
        assert said in self.run(300, 310, ok=False).message
        if way != "--full-refresh":
            self.write(project, f"{ORDER}, on_schema_change='{way}'", query)
            self.run(300, 310)
        else:
            run_dbt(["run", "--full-refresh", "--vars", "{end: 310}"])
        assert spark.table(f"{project.test_schema}.m").count() == 310

    def test_microbatches(self, project: Any, spark: SparkSession) -> None:
        batches = f"{ORDER}, incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2020-01-01'"
        query = "select timestamp'2020-01-01 12:00:00' as at, id as a, 's' as s, date'2020-01-01' as p from range(9)"
        window = ["--event-time-start", "2020-01-01", "--event-time-end", "2020-01-02"]
        self.write(project, batches, query)
        _, log = run_dbt_and_capture(["--debug", "run", *window], expect_pass=False)
        assert "requires a `partition_by` config, of a column of the grain day" in " ".join(log.split())
        self.write(project, f"{batches}, partition_by='p'", query)
        spark.sql(f"drop table if exists {project.test_schema}.m")  # another test's, of other columns
        for zone, warned in (("Europe/Berlin", True), ("UTC", False)):
            with settings(spark, {"spark.sql.session.timeZone": zone}):
                _, log = run_dbt_and_capture(["run", *window])
            assert ("spark.sql.session.timeZone" in log) == warned

    def test_a_view_is_made_a_table(self, project: Any) -> None:
        self.set_model(project, "{{ config(materialized='view', zorder_by='a') }} " + QUERY)
        _, log = run_dbt_and_capture(["run", "--full-refresh"])
        assert "add materialized='table' to its config" in log
        self.set_model(project, "{{ config(materialized='table', zorder_by='a') }} " + QUERY)
        _, log = run_dbt_and_capture(["run"])
        assert "has no effect" not in log
