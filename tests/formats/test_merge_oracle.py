"""A merge into a Parquet table gives the rows of Delta Lake's own MERGE, also of NULL, NaN and repeated keys.

``SOAK_MERGES=1000 ZORDER_FORMAT=delta pytest tests/formats/test_merge_oracle.py`` merges that often.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build as build_parquet
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch
from tests.unit.tables.parquet.merge.oracle import History, Step, Table, counted, merged

MERGES = int(os.environ.get("SOAK_MERGES", "48"))
IN_TURN = 4
DEST, SOURCE = "DBT_INTERNAL_DEST", "DBT_INTERNAL_SOURCE"
AMBIGUOUS = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


@pytest.fixture(autouse=True)
def _delta(file_format: str) -> None:
    if file_format != "delta":
        pytest.skip("Iceberg's MERGE is another one")


def statements(table: TableName, step: Step) -> list[str]:
    """Return the statements by which dbt merges the temporary view ``batch`` into a Delta table."""
    merge = step.merge
    on = [f"{SOURCE}.{key} = {DEST}.{key}" for key in merge.unique_key]
    on += [f"({predicate}\n)" for predicate in merge.predicates]
    head = f"MERGE INTO {table.sql} AS {DEST} USING batch AS {SOURCE} ON {' AND '.join(on)}"
    if merge.replaces_rows:
        return [f"{head} WHEN MATCHED THEN DELETE", f"INSERT INTO {table.sql} BY NAME SELECT * FROM batch"]
    names = merge.update_columns or [name for name in step.batch.columns if name not in merge.exclude_columns]
    updates = ", ".join(f"{quote_name(name)} = {SOURCE}.{quote_name(name)}" for name in names)
    return [f"{head} WHEN MATCHED THEN UPDATE SET {updates} WHEN NOT MATCHED THEN INSERT *"]


def merge_by_delta(spark: SparkSession, table: TableName, step: Step) -> bool:
    """Merge by Delta's own statements; return whether Delta says that rows match two of the batch."""
    step.batch.frame(spark).createOrReplaceTempView("batch")
    try:
        for statement in statements(table, step):
            spark.sql(statement)
    except (PySparkException, Py4JError) as exc:
        if AMBIGUOUS not in str(exc):
            raise
        return True
    return False


def merge_here(spark: SparkSession, wanted: BuildRequest, step: Step) -> bool:
    """Merge into the Parquet table; return whether rows match two of the batch."""
    try:
        merge_batch(spark, step.batch.frame(spark), wanted, Batch(), step.merge, begin(spark, wanted.table))
    except BuildError as exc:
        if "match two rows of this run each" not in str(exc):
            raise
        return True
    return False


def rows_of(spark: SparkSession, table: TableName, expected: Table) -> Any:
    spark.catalog.refreshTable(table.sql)
    return counted(spark.table(table.sql).select(*expected.columns).collect())


@pytest.mark.parametrize("seed", range(-(-MERGES // IN_TURN)))
def test_deltas_merge_gives_the_same_rows(spark: SparkSession, table: TableName, seed: int) -> None:
    history = History(seed, changes_columns=False)
    theirs = TableName(table.schema, f"{table.identifier}_delta")
    spec = LayoutSpec(by=history.by, files=4, partition_by=history.partition_by)
    wanted = BuildRequest(table, spec, key_columns=("k", "k2"), hash_index=history.hash_index)
    rows = history.table.frame(spark)
    build_parquet(spark, rows, wanted)
    rows.write.format("delta").partitionBy(*history.partition_by).saveAsTable(theirs.sql)
    for _ in range(IN_TURN):
        step = history.step()
        history.table = merged(history.table, step) or history.table
        assert merge_here(spark, wanted, step) == merge_by_delta(spark, theirs, step)
        found = rows_of(spark, table, history.table)
        assert found == rows_of(spark, theirs, history.table)
        assert found == history.table.counted()
    for name in (table, theirs):
        spark.sql(f"DROP TABLE {name.sql}")
