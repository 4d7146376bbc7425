from __future__ import annotations

from hashlib import blake2b
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables import two_step_swap
from dbt_zorder.tables.parquet import swap
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.reserved import HELPER
from dbt_zorder.tables.two_step_swap import following_of, previous_of, restore_if_interrupted
from tests.support import unique

KINDS = {
    "managed": "CREATE TABLE {t} USING parquet AS SELECT id FROM range(10)",
    "view": "CREATE VIEW {t} AS SELECT id FROM range(10)",
    "ours": "",
}


@pytest.fixture
def table(spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch) -> TableName:
    """A name whose table is replaced by two calls."""
    monkeypatch.setattr(swap, "replace_entry", lambda *_: False)
    monkeypatch.setattr(two_step_swap, "_PATIENCE_SECONDS", 0.0)
    return TableName(database, unique("t"))


def make(spark: SparkSession, table: TableName, rows: int, **more: Any) -> None:
    build(spark, spark.range(rows), BuildRequest(table, LayoutSpec(by=["id"], files=1), **more))


def first(spark: SparkSession, table: TableName, kind: str) -> None:
    if kind == "ours":
        make(spark, table, 10, comment="another one")
    else:
        spark.sql(KINDS[kind].format(t=table.sql))


def leftovers(spark: SparkSession, table: TableName) -> list[object]:
    return [name for name in (following_of(table), previous_of(table)) if describe(spark, name) is not None]


def strike(
    monkeypatch: pytest.MonkeyPatch, at: int, error: type[BaseException], *, done: bool, ends: bool = False
) -> list[str]:
    """Let the renaming of that number fail, before it is carried out or after; with ``ends``, all later ones fail."""
    real = two_step_swap._rename
    seen: list[str] = []

    def rename(spark: SparkSession, table: TableName, to: TableName) -> None:
        seen.append(str(to))
        if ends and len(seen) > at:
            raise RuntimeError("the process has ended")
        if len(seen) != at:
            real(spark, table, to)
            return
        if done:
            real(spark, table, to)
        raise error

    monkeypatch.setattr(two_step_swap, "_rename", rename)
    return seen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("at", "error", "done"),
    [(1, RuntimeError, False), (1, RuntimeError, True), (2, RuntimeError, False), (2, KeyboardInterrupt, False)],
)
def test_a_renaming_that_fails_is_undone(
    spark: SparkSession,
    table: TableName,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    at: int,
    error: type[BaseException],
    done: bool,
) -> None:
    first(spark, table, kind)
    seen = strike(monkeypatch, at, error, done=done)
    with pytest.raises(BuildError if error is RuntimeError else error):
        make(spark, table, 20)
    assert len(seen) >= at
    assert spark.table(table.sql).count() == 10
    assert leftovers(spark, table) == []
    make(spark, table, 20)
    assert spark.table(table.sql).count() == 20
    assert leftovers(spark, table) == []


def test_a_reply_that_is_lost_after_the_swap_fails_no_build(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    first(spark, table, "managed")
    strike(monkeypatch, 2, RuntimeError, done=True)
    make(spark, table, 20)
    assert spark.table(table.sql).count() == 20
    assert leftovers(spark, table) == []


@pytest.mark.parametrize("kind", ["managed", "ours"])
@pytest.mark.parametrize(
    "then", [begin, restore_if_interrupted, vacuum, make, drop_table], ids=lambda then: str(then.__name__)
)
def test_whoever_comes_next_puts_the_table_back(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch, kind: str, then: Any
) -> None:
    first(spark, table, kind)
    with monkeypatch.context() as during:
        strike(during, 2, KeyboardInterrupt, done=False, ends=True)
        during.setattr(two_step_swap, "restore_if_interrupted", lambda *_, **__: False)
        with pytest.raises(KeyboardInterrupt):
            make(spark, table, 20)
    assert describe(spark, table) is None
    assert leftovers(spark, table) == [following_of(table), previous_of(table)]
    following = spark.table(following_of(table).sql)
    assert following.count() == 20, "what the catalog still leads to is not deleted"
    if then is vacuum:
        vacuum(spark, table, 0, 0, dry_run=False)
    elif then is make:
        make(spark, table, 30)
    else:
        then(spark, table)
    assert describe(spark, previous_of(table)) is None
    if then is drop_table:
        assert (describe(spark, table) is None) == (kind == "ours"), "another is left to dbt-spark"
    else:
        assert spark.table(table.sql).count() == (30 if then is make else 10)


def test_what_a_swap_that_was_done_has_left_goes(spark: SparkSession, table: TableName) -> None:
    make(spark, table, 20)
    mark = blake2b(str(table).lower().encode(), digest_size=8).hexdigest()
    marked = f"TBLPROPERTIES ('{HELPER}' = '{mark}')"
    spark.sql(f"CREATE TABLE {previous_of(table).sql} USING parquet {marked} AS SELECT 1 AS a")
    assert not restore_if_interrupted(spark, table)
    assert leftovers(spark, table) == []
    assert spark.table(table.sql).count() == 20
