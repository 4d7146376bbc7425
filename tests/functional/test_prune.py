"""Plain SQL that reads fewer files: models, tests and ``dbt show`` under the profile's ``zorder_prune``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt_zorder.pruning.plain_sql import statement

MODELS = {
    "orders.sql": """
        {{ config(materialized='table', zorder_by=['customer', 'at'], zorder_files=16,
                  zorder_stats_columns=['day'], event_time='at') }}
        select id, pmod(hash(id), 1000) as customer, date_add(date'2024-01-01', cast(id % 60 as int)) as day,
          cast(date_add(date'2024-01-01', cast(id % 60 as int)) as timestamp) as at from range(6000)""",
    "plain.sql": """
        {{ config(materialized='table', file_format='parquet') }}
        with mine as (select * from {{ ref('orders') }}), days as (select explode(array(1, 2)) as n)
        select mine.* from mine join days on mine.id % 2 = n % 2 where customer = 7""",
    "zordered.sql": """
        {{ config(materialized='table', zorder_by=['id', 'day']) }}
        select * from {{ ref('orders') }} o where customer between 5 and 7""",
    "looked.sql": "{{ config(materialized='view') }} select * from {{ ref('orders') }} where customer = 7",
    "added.sql": """
        {{ config(materialized='incremental', file_format='parquet') }} select * from {{ ref('orders') }}
        {% if is_incremental() %} where day = date'2024-02-01' {% else %} where day = date'2024-01-31' {% endif %}""",
    "added_zordered.sql": """
        {{ config(materialized='incremental', zorder_by=['id', 'day']) }} select * from {{ ref('orders') }}
        {% if is_incremental() %} where day = date'2024-02-01' {% else %} where day = date'2024-01-31' {% endif %}""",
    "newer.sql": """
        {{ config(materialized='incremental', file_format='parquet', incremental_strategy='append') }}
        select *, current_timestamp() as loaded_at from {{ ref('orders') }}
        {% if is_incremental() %} where at > (select max(at) from {{ this }}) {% else %}
        where at < timestamp'2024-02-20' {% endif %}""",
    "newer_zordered.sql": """
        {{ config(materialized='incremental', zorder_by=['id', 'at'], incremental_strategy='append') }}
        with last as (select coalesce(max(at), timestamp'1900-01-01') as at from {{ ref('newer') }} where id >= 0)
        select * from {{ ref('orders') }}
        {% if is_incremental() %} where at > (select at from last) and at < now() {% else %}
        where at < timestamp'2024-02-20' {% endif %}""",
    "batches.sql": """
        {{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
                  begin='2024-01-05', partition_by='day', zorder_by=['id'], concurrent_batches=false) }}
        select * from {{ ref('orders') }}""",
}
RANGE = ["--event-time-start", "2024-01-05", "--event-time-end", "2024-01-07"]


def _read(log: str, schema: str) -> list[int]:
    """Return how many files of ``orders`` are read, by each statement that leaves some out."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", log)
    return [int(read) for read in re.findall(rf"`{schema}`\.`orders`: (\d+) of 16 files are read", text)]


class TestPlainSqlIsPruned:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "zorder_prune": True}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def built(self, project: Any) -> Any:
        run_dbt(["run", "-s", "path:models/orders.sql"])
        return project

    def _rows(self, project: Any, model: str) -> int:
        return int(project.run_sql(f"select count(*) from {{schema}}.{model}", fetch="one")[0])

    @pytest.mark.parametrize(
        ("model", "where"),
        [("plain", "customer = 7"), ("zordered", "customer between 5 and 7")],
    )
    def test_a_table(self, built: Any, model: str, where: str) -> None:
        _, log = run_dbt_and_capture(["run", "-s", model])
        assert _read(log, built.test_schema)[0] <= 4
        whole = built.run_sql(f"select count(*) from {{schema}}.orders where {where}", fetch="one")[0]
        assert self._rows(built, model) == whole > 0

    def test_a_view_keeps_no_choice_of_files(self, built: Any) -> None:
        run_dbt(["run", "-s", "looked"])
        made = built.run_sql("show create table {schema}.looked", fetch="one")[0]
        assert "_metadata" not in made
        run_dbt(["run", "-s", "path:models/orders.sql"])
        assert self._rows(built, "looked") == 8

    @pytest.mark.parametrize("model", ["added", "added_zordered"])
    def test_an_incremental_model_and_its_batch(self, built: Any, model: str) -> None:
        for rows in (100, 200):
            _, log = run_dbt_and_capture(["run", "-s", model])
            assert _read(log, built.test_schema)[0] <= 8
            assert self._rows(built, model) == rows

    def test_an_incremental_model_reads_the_files_of_what_is_new(self, built: Any) -> None:
        run_dbt(["run", "-s", "newer", "newer_zordered"])
        first = self._rows(built, "newer")
        assert first == self._rows(built, "newer_zordered") == 5000
        for model in ("newer_zordered", "newer"):
            _, log = run_dbt_and_capture(["run", "-s", model])
            assert _read(log, built.test_schema)[0] <= 8
            assert self._rows(built, model) == 6000

    def test_each_batch_of_a_microbatch_model_reads_the_files_of_its_day(self, built: Any) -> None:
        _, log = run_dbt_and_capture(["run", "-s", "batches", *RANGE])
        read = _read(log, built.test_schema)
        assert len(read) >= 2
        assert max(read) <= 8
        assert self._rows(built, "batches") == 200

    def test_show_and_data_tests(self, built: Any) -> None:
        inline = "select count(*) as n from {{ ref('orders') }} where customer = 7"
        _, log = run_dbt_and_capture(["show", "--inline", inline, "--output", "json"])
        assert _read(log, built.test_schema)
        assert json.loads(log[log.index('{\n  "show"') :])["show"] == [{"n": 8}]
        tests = Path(built.project_root) / "tests"
        tests.mkdir(exist_ok=True)
        (tests / "none_of_it.sql").write_text("select * from {{ ref('orders') }} where customer = 7 and id < 0")
        _, log = run_dbt_and_capture(["test", "-s", "none_of_it"])
        assert _read(log, built.test_schema)

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        # dbt names the project in a comment before each statement: model.orders.plain
        return {"name": "orders"}

    def test_an_error_is_that_of_the_text_as_it_was_written(self, built: Any) -> None:
        wrong = Path(built.project_root) / "models" / "wrong.sql"
        wrong.write_text("{{ config(materialized='table') }}\nselect idd from {{ ref('orders') }}\nwhere customer = 7")
        (result,) = run_dbt(["run", "-s", "wrong"], expect_pass=False)
        assert "`idd` cannot be resolved" in result.message
        assert "_metadata" not in result.message


class TestPruningIsAutomatic:
    """A profile without the key."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {name: MODELS[name] for name in ("orders.sql", "plain.sql")}

    def test_a_table_that_is_large_enough_is_pruned_and_the_line_of_the_run_says_so(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run", "-s", "orders"])
        rows = f"select count(*) from {project.test_schema}.plain"
        pruned = rf"OK \(`{project.test_schema}`.`orders`: [1-4] of 16 files are read\)"
        for seconds, message in ((0.2, "OK"), (0.016, pruned)):
            monkeypatch.setattr(statement, "PLANNING_SECONDS", seconds)
            results, log = run_dbt_and_capture(["run", "-s", "plain"])
            assert re.fullmatch(message, results[0].adapter_response["_message"])
            assert ("files are read" in log) == (message == pruned)
            assert project.run_sql(rows, fetch="one")[0] == 8
