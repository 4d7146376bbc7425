"""Random merges give the rows that plain Python gives: of all kinds of keys, predicates, and repeated rows."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from tests.unit.tables.parquet.batches import stats_rows
from tests.unit.tables.parquet.merge.oracle import COLUMNS, Case, counted, make_case, result

MERGES = int(os.environ.get("SOAK_MERGES", "40"))


@pytest.mark.parametrize("seed", range(MERGES))
def test_a_merge_gives_the_rows_that_python_gives(spark: SparkSession, table: TableName, seed: int) -> None:
    case = make_case(seed)
    wanted = BuildRequest(
        table,
        LayoutSpec(by=("a", "s"), files=4, partition_by=("p",) if case.partitioned else ()),
        key_columns=("k", "k2"),
    )
    build(spark, spark.createDataFrame(case.table, case.ddl).coalesce(1), wanted)
    before = begin(spark, table)
    batch = spark.createDataFrame(case.batch, case.ddl)
    expected = result(case)
    if expected is None:
        with pytest.raises(BuildError, match="match two rows of this run each"):
            merge_batch(spark, batch, wanted, Batch(), case.merge, before)
        expected = case.table
    else:
        report = merge_batch(spark, batch, wanted, Batch(may_rewrite=seed % 2 == 0), case.merge, before)
        check_figures(case, report.merged)
    spark.catalog.refreshTable(table.sql)
    assert counted(spark.table(table.sql).select(*COLUMNS).collect()) == counted(expected)
    files, paths, rows = stats_rows(spark, table)[0]
    assert files == paths
    assert (rows or 0) == len(expected)
    spark.sql(f"DROP TABLE {table.sql}")


def check_figures(case: Case, found: object) -> None:
    """Inserted and deleted rows explain the change of the table's size."""
    expected = result(case)
    assert expected is not None
    assert found is not None
    inserted, deleted = found.inserted, found.deleted  # type: ignore[attr-defined]
    assert len(expected) == len(case.table) + inserted - deleted


def test_the_oracle_makes_cases_of_all_kinds() -> None:
    cases = [make_case(seed) for seed in range(300)]
    assert {case.kind for case in cases} == {*map(str, {case.kind: 0 for case in cases})}
    assert any(result(case) is None for case in cases)
    assert sum(result(case) is not None for case in cases) > 200
    assert {case.merge.replaces_rows for case in cases} == {True, False}
    assert any(replace(case.merge, predicates=[]) != case.merge for case in cases)
