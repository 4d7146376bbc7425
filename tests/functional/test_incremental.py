"""Incremental models with zorder_by: every strategy, and runs that fail half-way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt_zorder.adapter.impl import ZorderAdapter
from dbt_zorder.spark.files import move
from dbt_zorder.tables.parquet import journal
from tests.functional.incremental import QUERY, ROWS, VARS, Incremental, config
from tests.support import checksum


class TestAppend(Incremental):
    def test_batches_are_added_in_place(self, project: Any, spark: SparkSession) -> None:
        self.start(project, "zorder_optimize='never'")
        version = self.location(project, spark)
        found = self.run(300, 360).adapter_response
        self.check(project, spark, ROWS.format(0, 360))
        assert self.location(project, spark) == version
        assert (found["rows_affected"], found["files_written"], found["appended"]) == (60, 1, True)
        assert found["rewritten"] is False
        assert set(found["seconds"]) == {"query", "sample", "write", "stats", "swap"}
        assert found["_message"].startswith("zorder: 60 rows appended in 1 file, now 5 files, point query on a reads ")

    def test_files_of_few_rows_take_batches_of_many(self, project: Any, spark: SparkSession) -> None:
        """Their size is less than anybody can ask for."""
        self.set_model(project, config("") + f"select id as a, 0 as s from range({VARS})")
        run_dbt(["run", "--full-refresh", "--vars", "{end: 60}"])
        sizes = [file.stat().st_size for file in Path(self.location(project, spark)[5:]).glob("*.parquet")]
        assert max(sizes) < 1000
        self.run(60, 160)
        self.check(project, spark, "select id as a, 0 as s from range(160)")

    def test_no_new_rows_write_nothing(self, project: Any, spark: SparkSession) -> None:
        self.start(project, "")
        before = sorted(Path(self.location(project, spark).removeprefix("file:")).rglob("*"))
        found = self.run(300, 300).adapter_response
        assert found["_message"] == "zorder: no new rows, nothing written"
        assert found["files_written"] == 0
        assert sorted(Path(self.location(project, spark).removeprefix("file:")).rglob("*")) == before

    def test_a_query_may_ask_its_table_what_is_new(self, project: Any, spark: SparkSession) -> None:
        ask = "{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}"
        self.start(project, "", f"select * from ({QUERY}) {ask}")
        for end in (320, 320, 350):
            self.run(0, end)
        self.check(project, spark, ROWS.format(0, 350))

    def test_what_comes_in_before_a_hook_asks_again_is_not_added_twice(
        self, project: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hook = "pre_hook='{% if is_incremental() %} select 1 {% endif %}'"
        top = "run_query('select max(id) from ' ~ this).columns[0].values()[0]"
        ask = "{% if is_incremental() %} where id > {{ " + top + " }} {% endif %}"
        self.start(project, hook, f"select * from ({QUERY}) {ask}")
        asked: list[str] = []
        real = ZorderAdapter.zorder_files

        def beside(adapter: ZorderAdapter, relation: Any) -> Any:
            asked.append(str(relation))
            if len(asked) == 1:  # before the hooks: another run has added its batch since the query was compiled
                spark.sql(f"insert into {project.test_schema}.m {ROWS.format(300, 310)}")
            return real(adapter, relation)

        with monkeypatch.context() as patched:
            patched.setattr(ZorderAdapter, "zorder_files", beside)
            assert "Another run added" in self.run(0, 310, ok=False).message
        assert asked
        self.run(0, 320)
        self.check(project, spark, ROWS.format(0, 320))

    def test_full_refresh_starts_again(self, project: Any, spark: SparkSession) -> None:
        self.start(project, "")
        self.run(300, 310)
        run_dbt(["run", "--full-refresh"])
        self.check(project, spark, ROWS.format(0, 300))

    @pytest.mark.parametrize(
        "before", ["{{ config(materialized='incremental') }}", "{{ config(materialized='table') }}"]
    )
    def test_a_table_that_dbt_spark_made_is_adopted(self, project: Any, spark: SparkSession, before: str) -> None:
        self.set_model(project, before + QUERY)
        run_dbt(["run", "--full-refresh"])
        self.set_model(project, config("") + QUERY)
        found = self.run(300, 350).adapter_response
        assert (found["rows_affected"], found["appended"], found["files_written"]) == (350, False, 4)
        self.check(project, spark, ROWS.format(0, 350))
        self.run(350, 360)
        self.check(project, spark, ROWS.format(0, 360))

    def test_a_view_is_replaced(self, project: Any, spark: SparkSession) -> None:
        self.set_model(project, "{{ config(materialized='view') }}" + QUERY)
        run_dbt(["run", "--full-refresh"])
        self.set_model(project, config("") + QUERY)
        run_dbt(["run"])
        self.check(project, spark, ROWS.format(0, 300))

    def test_what_has_grown_too_far_apart_is_rewritten(self, project: Any, spark: SparkSession) -> None:
        self.start(project, "")
        version = self.location(project, spark)
        rewritten = [self.run(300 + 60 * n, 360 + 60 * n).adapter_response["rewritten"] for n in range(6)]
        assert rewritten.count(True) == 1, rewritten
        assert self.location(project, spark) != version
        self.check(project, spark, ROWS.format(0, 660))

    def test_another_zorder_by_waits_and_says_so(self, project: Any, spark: SparkSession) -> None:
        self.start(project, "zorder_optimize='never'")
        text = (config("zorder_optimize='never', zorder_stats_columns='a'") + QUERY).replace(
            "['a', 's']", "['id', 's']"
        )
        self.set_model(project, text)
        _, log = run_dbt_and_capture(["run", "--vars", "{first: 300, end: 340}"])
        assert "changed from a, s to id, s" in log
        assert "zorder_stats_columns" not in log, "a has stats"
        self.check(project, spark, ROWS.format(0, 340))
        args = "{model: m, dry_run: false}"
        _, log = run_dbt_and_capture(["run-operation", "zorder_optimize", "--args", args])
        assert "were rewritten into 4" in log
        self.check(project, spark, ROWS.format(0, 340))
        assert "id" in spark.table(f"{project.test_schema}.m__zorder_stats").selectExpr("columns.*").columns

    def test_a_dry_run_of_optimize_changes_nothing(self, project: Any, spark: SparkSession) -> None:
        self.start(project, "zorder_optimize='never'")
        self.run(300, 500)
        version = self.location(project, spark)
        for name in ("m", f"{project.test_schema}.m"):
            _, log = run_dbt_and_capture(["run-operation", "zorder_optimize", "--args", f"{{model: {name}}}"])
            assert "would be rewritten into about" in log
            assert "a point query on a reads" in log
        assert self.location(project, spark) == version

    @pytest.mark.parametrize("asks", [True, False])
    def test_what_a_failed_run_left_is_completed_also_without_zorder_by(
        self, project: Any, spark: SparkSession, asks: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        newest = "run_query('select max(id) from ' ~ this).columns[0][0]"
        ask = "{% if is_incremental() %} where id > {{ " + newest + " }} {% endif %}"
        query = f"select * from ({QUERY}) {ask if asks else ''}"
        self.start(project, "zorder_optimize='never'", query)

        def fail(*_: Any) -> None:
            msg = "injected"
            raise RuntimeError(msg)

        with monkeypatch.context() as patched:
            patched.setattr(journal, "carry_out", fail)
            assert "injected" in self.run(300, 340, ok=False).message
        self.set_model(project, "{{ config(materialized='incremental') }} " + query)
        self.run(300 if asks else 340, 360)
        assert checksum(spark.table(f"{project.test_schema}.m")) == checksum(spark.sql(ROWS.format(0, 360)))
        self.set_model(project, config("zorder_optimize='never'") + query)
        self.run(340 if asks else 360, 380)
        self.check(project, spark, ROWS.format(0, 380))

    @pytest.mark.parametrize("step", ["make_ready", "carry_out", "move", "close_entry"])
    def test_the_run_after_a_failed_one_ends_where_it_would_have(
        self, project: Any, spark: SparkSession, step: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        newest = "run_query('select max(id) from ' ~ this).columns[0][0]"
        ask = "{% if is_incremental() %} where id > {{ " + newest + " }} {% endif %}"
        self.start(project, "", f"select * from ({QUERY}) {ask}")
        before = checksum(spark.table(f"{project.test_schema}.m"))

        def fail(*_: Any) -> None:
            msg = "injected"
            raise RuntimeError(msg)

        with monkeypatch.context() as patched:
            patched.setattr(journal, step, fail)
            assert "injected" in self.run(0, 340, ok=False).message
        if step == "make_ready":
            assert checksum(spark.table(f"{project.test_schema}.m")) == before
        self.run(0, 340)
        self.check(project, spark, ROWS.format(0, 340))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "incremental_strategy='delete+insert', file_format='delta'",
                "'delete+insert', which is for file_format 'parquet'",
            ),
            ("incremental_strategy='upsert'", "is 'upsert'; with file_format 'parquet' it can be 'append'"),
            ("zorder_optimize='always'", "only 'auto', 'never', 'native' is allowed"),
        ],
    )
    def test_what_cannot_be_is_said_before_anything_runs(self, project: Any, text: str, message: str) -> None:
        self.set_model(project, config(text) + QUERY)
        assert message in self.run(0, 10, ok=False).message


STRANGE = "nullif(concat('x/', id % 3, ' ü=%[b]'), 'x/0 ü=%[b]')"


class TestInsertOverwrite(Incremental):
    @pytest.mark.parametrize("parts", ["cast(id % 3 as int)", STRANGE])
    def test_only_the_partitions_of_the_batch_are_replaced(self, project: Any, spark: SparkSession, parts: str) -> None:
        rows = ROWS.replace("cast(id % 3 as int)", parts)
        query = f"select * from ({rows.replace('{}, {}', VARS)}) where id < 300 or p is null or p like '%1%'"
        self.start(project, "incremental_strategy='insert_overwrite', partition_by='p'", query)
        found = self.run(300, 400).adapter_response
        replaced = "(p is null or p like '%1%')"
        kept = f"select * from ({rows.format(0, 300)}) where coalesce(not {replaced}, false)"
        if parts != STRANGE:
            kept = f"select * from ({rows.format(0, 300)}) where p <> 1"
        self.check(project, spark, f"{kept} union all select * from ({rows.format(300, 400)}) where {replaced}")
        assert found["files_replaced"] == (8 if parts == STRANGE else 4)

    def test_without_partitions_the_whole_table_is_replaced(self, project: Any, spark: SparkSession) -> None:
        self.start(project, "incremental_strategy='insert_overwrite'")
        self.run(500, 600)
        self.check(project, spark, ROWS.format(500, 600))

    def test_a_table_of_other_partitions_is_built_anew(self, project: Any, spark: SparkSession) -> None:
        self.set_model(project, "{{ config(materialized='table') }}" + QUERY)
        run_dbt(["run", "--full-refresh"])
        text = config("incremental_strategy='insert_overwrite', partition_by='p'")
        self.set_model(project, text + f"select * from ({QUERY}) where id < 300 or p = 1")
        self.run(300, 400)
        kept = f"select * from ({ROWS.format(0, 300)}) where p <> 1"
        self.check(project, spark, f"{kept} union all select * from ({ROWS.format(300, 400)}) where p = 1")

    def test_a_failure_in_the_middle_is_completed(
        self, project: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.start(project, "incremental_strategy='insert_overwrite', partition_by='p'")
        left = iter([True] * 6)

        def breaks(*args: Any) -> bool:
            if next(left, None) is None:
                msg = "disk gone"
                raise OSError(msg)
            return move(*args)

        with monkeypatch.context() as patched:
            patched.setattr(journal, "move", breaks)
            assert "safe in its journal" in self.run(300, 330, ok=False).message
        self.run(330, 330)
        self.check(project, spark, ROWS.format(300, 330))


class TestContract(Incremental):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        schema = """
models:
  - name: m
    config: {contract: {enforced: true}, on_schema_change: append_new_columns}
    columns:
      - {name: id, data_type: bigint}
      - {name: a, data_type: bigint}
      - {name: s, data_type: string}
"""
        return {"m.sql": config("") + "select id, id % 9 as a, 's' as s from range(" + VARS + ")", "schema.yml": schema}

    def test_a_contract_is_kept(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        self.run(300, 310)
        self.check(project, spark, "select id, id % 9 as a, 's' as s from range(310)")
