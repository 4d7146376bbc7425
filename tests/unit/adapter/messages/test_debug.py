from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from dbt_zorder.adapter.messages.debug import check_session
from dbt_zorder.errors import ZorderError
from tests.support import unique


def test_what_was_found_is_told_and_nothing_is_left(spark: SparkSession) -> None:
    schema = unique("checked")
    lines: list[str] = []
    check_session(spark, schema, lines.append)
    assert [line.partition(":")[0] for line in lines] == [
        "java",
        "spark",
        "warehouse",
        f"schema {schema}",
        "write and prune",
    ]
    assert lines[-1].startswith("write and prune: 4 files written, 2 read for one id, in ")
    assert not spark.catalog.databaseExists(schema)


def test_a_schema_that_is_there_stays_as_it_was(spark: SparkSession) -> None:
    schema = unique("checked")
    spark.sql(f"CREATE SCHEMA {schema}")
    spark.sql(f"CREATE VIEW {schema}.v AS SELECT 1 AS a")
    check_session(spark, schema, lambda _: None)
    assert [row[1] for row in spark.sql(f"SHOW TABLES IN {schema}").collect() if not row[2]] == ["v"]
    spark.sql(f"DROP SCHEMA {schema} CASCADE")


def test_a_read_that_is_not_pruned_is_an_error(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    full = pruning.explain
    monkeypatch.setattr(pruning, "explain", lambda spark, table, _: full(spark, table, "true"))
    schema = unique("checked")
    with pytest.raises(ZorderError, match="A table of 4 files was written, but a read of id = 2000 gave 1 rows from 4"):
        check_session(spark, schema, lambda _: None)
    assert not spark.catalog.databaseExists(schema)
