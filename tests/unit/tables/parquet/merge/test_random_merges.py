"""Random merges give the rows that plain Python gives: of all kinds of keys, predicates, and repeated rows.

Each table has several merges in turn, so that a version shares files that the one before shared already. Between two
merges, rows are appended, old versions are deleted or served again, and the table is built anew. ``make soak-merges``
merges 10,000 times.
"""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.rewrite import optimize
from dbt_zorder.tables.report import MergeReport
from dbt_zorder.tables.version import version_of
from tests.support import settings, versions
from tests.unit.tables.parquet.batches import stats_rows
from tests.unit.tables.parquet.merge.oracle import KEYS, History, Table, counted, merged

MERGES = int(os.environ.get("SOAK_MERGES", "40"))
IN_TURN = 8
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings of three tables in four: to compile a query that comes once lasts longer than the query itself."""


@pytest.mark.parametrize("seed", range(-(-MERGES // IN_TURN)))
def test_merges_in_turn_give_the_rows_that_python_gives(spark: SparkSession, table: TableName, seed: int) -> None:
    history = History(seed)
    wanted = request(table, history)
    with settings(spark, INTERPRETED if seed % 4 else {}):
        build(spark, history.table.frame(spark), wanted)
        served = {_version(spark, table): history.table}
        for _ in range(IN_TURN):
            act_between(spark, wanted, history, served)
            merge_once(spark, wanted, history)
            check(spark, table, history.table)
            served[_version(spark, table)] = history.table
        assert verify_table(spark, table, None).findings == []
    spark.sql(f"DROP TABLE {table.sql}")


def request(table: TableName, history: History) -> BuildRequest:
    spec = LayoutSpec(by=history.by, files=6, partition_by=history.partition_by)
    return BuildRequest(table, spec, key_columns=("k", "k2"), hash_index=history.hash_index)


def merge_once(spark: SparkSession, wanted: BuildRequest, history: History) -> None:
    """Merge a batch, and check what is reported of it."""
    step, before = history.step(), history.table
    batch = Batch(may_rewrite=history.chance.random() < 0.5, on_schema_change=step.on_schema_change)
    files = begin(spark, wanted.table)
    expected = merged(before, step)
    if expected is None:
        with pytest.raises(BuildError, match="match two rows of this run each"):
            merge_batch(spark, step.batch.frame(spark), wanted, batch, step.merge, files)
        return
    report = merge_batch(spark, step.batch.frame(spark), wanted, batch, step.merge, files)
    found = report.merged
    assert isinstance(found, MergeReport)
    assert len(expected.rows) == len(before.rows) + found.inserted - found.deleted
    history.table = expected


def act_between(spark: SparkSession, wanted: BuildRequest, history: History, served: dict[str, Table]) -> None:
    """Do now and then what else happens to a table between two merges."""
    chance, table = history.chance.random(), wanted.table
    if chance < 0.1:
        rows = history.appended()
        increment(spark, rows.frame(spark), wanted, Batch(may_rewrite=False), begin(spark, table))
        history.table = Table(history.table.columns, [*history.table.rows, *rows.rows])
        served[_version(spark, table)] = history.table
    elif chance < 0.2:
        vacuum(spark, table, keep=1, grace_hours=0, dry_run=False)
    elif chance < 0.25:
        optimize(spark, wanted, dry_run=False)
    elif chance < 0.35:
        current = _version(spark, table)
        earlier = [name for name in versions(spark, table) if name in served and name != current]
        if earlier:
            name = history.chance.choice(earlier)
            rollback(spark, table, name)
            history.table = served[name]
    else:
        return
    check(spark, table, history.table)


def check(spark: SparkSession, table: TableName, expected: Table) -> None:
    """The table has the rows, and its stats are of its files."""
    spark.catalog.refreshTable(table.sql)
    found = spark.table(table.sql)
    assert sorted(found.columns) == sorted(expected.columns)
    assert counted(found.select(*expected.columns).collect()) == expected.counted()
    files, paths, rows = stats_rows(spark, table)[0]
    assert files == paths
    assert (rows or 0) == len(expected.rows)


def _version(spark: SparkSession, table: TableName) -> str:
    info = describe(spark, table)
    assert info is not None
    return version_of(info.location)


def test_the_oracle_makes_cases_of_all_kinds() -> None:
    kinds, contested, cases, modes, changed, keys, indexed = set(), 0, 0, set(), 0, set(), 0
    for seed in range(100):
        history = History(seed)
        kinds.add(history.table.columns["k"])
        indexed += history.hash_index is not None
        for _ in range(IN_TURN):
            step = history.step()
            after = merged(history.table, step)
            cases, contested = cases + 1, contested + (after is None)
            modes.add((step.on_schema_change, step.merge.replaces_rows))
            keys.add(len({name.lower() for name in step.merge.unique_key}))
            if after is not None:
                changed += dict(after.columns) != dict(history.table.columns)
                history.table = after
    assert kinds == set(KEYS)
    assert 0 < contested < cases / 4
    assert len(modes) == 8
    assert keys == {1, 2}
    assert changed > 20
    assert 10 < indexed < 50
