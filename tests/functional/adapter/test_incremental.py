"""Incremental models: strategies, changed columns, batches by time."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey

NO_MERGE = "a table that dbt-spark keeps in Parquet has neither merge nor delete+insert"


class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    @pytest.fixture(autouse=True)
    def which_run(self, suites_run: str) -> None:
        self.is_plain = suites_run == "plain"

    def test_run_incremental_append_new_columns(self, project: Any) -> None:
        if self.is_plain:  # its second half leaves a column out, which dbt-spark's append does not allow
            self.run_incremental_append_new_columns(project)
            pytest.skip("dbt-spark adds columns, and cannot append a batch that lacks one")
        super().test_run_incremental_append_new_columns(project)

    def test_run_incremental_sync_all_columns(self, project: Any) -> None:
        if self.is_plain:
            pytest.skip("dbt-spark cannot drop a column of a Parquet table")
        super().test_run_incremental_sync_all_columns(project)


MICROBATCH = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='event_time', batch_size='day',
          begin=modules.datetime.datetime(2020, 1, 1, 0, 0, 0), partition_by='date_day') }}
select *, cast(event_time as date) as date_day from {{ ref('input_model') }}
"""


class TestMicrobatch(BaseMicrobatch):
    @pytest.fixture(scope="class")
    def microbatch_model_sql(self) -> str:
        """A batch replaces partitions, so the model has some."""
        return MICROBATCH


class Merging:
    """Models of a suite that merge, which plain Parquet tables of dbt-spark cannot."""

    strategy = "merge"

    @pytest.fixture(scope="class")
    def project_config_update(self, suites_run: str) -> dict[str, Any]:
        return {} if suites_run == "plain" else {"models": {"+incremental_strategy": self.strategy}}


class TestIncrementalUniqueKey(Merging, BaseIncrementalUniqueKey):
    """On plain Parquet those cases of the suite that have no key."""


def _needs_merge(name: str) -> Any:
    def test(self: Any, project: Any, suites_run: str) -> None:
        if suites_run == "plain":
            pytest.skip(NO_MERGE)
        getattr(BaseIncrementalUniqueKey, name)(self, project)

    return test


for _name in vars(BaseIncrementalUniqueKey) | vars(BaseIncrementalUniqueKey.__mro__[1]):
    if _name.startswith("test_") and _name not in {
        "test__no_unique_keys",
        "test__empty_str_unique_key",
        "test__empty_unique_key_list",
    }:
        setattr(TestIncrementalUniqueKey, _name, _needs_merge(_name))


class TestDeleteInsertUniqueKey(TestIncrementalUniqueKey):
    strategy = "delete+insert"

    @pytest.fixture(autouse=True)
    def only_on_parquet(self, suites_run: str) -> None:
        if suites_run != "zordered":
            pytest.skip(NO_MERGE)


class TestMergeExcludeColumns(Merging, BaseMergeExcludeColumns):
    @pytest.fixture(autouse=True)
    def only_with_merge(self, suites_run: str) -> None:
        if suites_run == "plain":
            pytest.skip(NO_MERGE)


class TestMergePredicates(BaseIncrementalPredicates):
    @pytest.fixture(autouse=True)
    def only_with_merge(self, suites_run: str) -> None:
        if suites_run == "plain":
            pytest.skip(NO_MERGE)

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        """As dbt-spark's own."""
        return {"models": {"+incremental_predicates": ["dbt_internal_dest.id != 2"], "+incremental_strategy": "merge"}}


class TestDeleteInsertPredicates(BaseIncrementalPredicates):
    """The suite as it stands."""

    @pytest.fixture(autouse=True)
    def only_on_parquet(self, suites_run: str) -> None:
        if suites_run != "zordered":
            pytest.skip(NO_MERGE)
