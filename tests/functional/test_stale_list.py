"""What dbt lists of a schema while other runs swap tables there, and runs whose list is not true any more."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.adapters.spark import SparkAdapter
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from dbt_zorder.adapter import relations as documented
from dbt_zorder.adapter.impl import ZorderAdapter
from dbt_zorder.spark.catalog import PREVIOUS_SUFFIX

QUERY = "select id, id % 5 as k, timestamp'2024-01-02' as at from range({{ var('first', 0) }}, {{ var('end', 10) }})"
APPEND = "{{ config(materialized='incremental', zorder_by='k') }} " + QUERY
PLAIN = "{{ config(materialized='incremental') }} " + QUERY
DAYS = (
    """{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
    begin='2024-01-02', partition_by='day', zorder_by='k') }} select *, cast(at as date) as day from ("""
    + QUERY
    + ")"
)
SNAPSHOTS = """
snapshots:
  - {name: history, relation: ref('source'), config: {strategy: check, unique_key: id, check_cols: [k]}}
"""


class TestStaleList:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "source.sql": "{{ config(materialized='table') }} " + QUERY,
            "m.sql": APPEND,
            "plain.sql": PLAIN,
            "days.sql": DAYS,
            "s.yml": SNAPSHOTS,
        }

    @pytest.fixture(autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["build", "--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03"])

    @pytest.fixture
    def listing(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """What dbt-spark answers instead of the truth, one answer a call: a function of the true list."""
        answers: list[Any] = []
        real = SparkAdapter.list_relations_without_caching

        def listed(self: Any, relation: Any) -> Any:
            found = real(self, relation)
            return answers.pop(0)(found) if answers else found

        monkeypatch.setattr(SparkAdapter, "list_relations_without_caching", listed)
        monkeypatch.setattr(documented, "_PAUSE_SECONDS", 0.0)
        return answers

    def names(self, project: Any) -> set[str]:
        with project.adapter.connection_named("test"):
            relation = project.adapter.Relation.create(schema=project.test_schema)
            return {one.identifier for one in project.adapter.list_relations_without_caching(relation)}

    def test_a_table_that_vanishes_while_it_is_listed_hides_no_other(self, project: Any, listing: list[Any]) -> None:
        listing += [lambda found: []] * 3
        assert self.names(project) == {"source", "m", "plain", "days", "history"}
        assert not listing
        listing += [lambda found: []] * 100
        with pytest.raises(Exception, match="holds tables, but Spark could not list them"):
            self.names(project)

    def test_an_empty_schema_is_empty(self, project: Any, spark: SparkSession, listing: list[Any]) -> None:
        spark.sql(f"create schema {project.test_schema}_other")
        with project.adapter.connection_named("test"):
            for name in ("other", "never"):
                relation = project.adapter.Relation.create(schema=f"{project.test_schema}_{name}")
                assert project.adapter.list_relations_without_caching(relation) == []
        spark.sql(f"drop schema {project.test_schema}_other")

    def test_a_table_that_was_aside_just_then_is_listed(self, project: Any, listing: list[Any]) -> None:
        def aside(found: list[Any]) -> list[Any]:
            moved = [one for one in found if one.identifier == "m"]
            kept = [one for one in found if one.identifier != "m"]
            return kept + [one.incorporate(path={"identifier": f"m{PREVIOUS_SUFFIX}"}) for one in moved]

        listing.append(aside)
        assert "m" in self.names(project)

    @pytest.mark.parametrize("name", ["m", "plain", "days", "history"])
    def test_a_first_run_replaces_no_table(
        self, project: Any, spark: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = f"{project.test_schema}.{name}"
        before = sorted(map(str, spark.table(table).collect()))
        assert before
        monkeypatch.setattr(ZorderAdapter, "list_relations_without_caching", lambda *_: [])
        days = ["--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03"]
        result = run_dbt(["build", "--select", name, "--vars", "{first: 10, end: 12}", *days], expect_pass=False)
        if name != "days":  # the message of a batch is in the log alone
            assert "exists, though dbt's list of the schema lacks it" in result.results[0].message
        spark.sql(f"refresh table {table}")
        assert sorted(map(str, spark.table(table).collect())) == before
        if name in ("m", "days"):
            run_dbt(["build", "--full-refresh", "--select", name, "--vars", "{first: 10, end: 12}", *days])
            assert spark.table(table).count() == 2
