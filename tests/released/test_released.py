"""Tables that an earlier release wrote go on under this one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder import pruning
from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, location_of
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.properties import own_properties
from dbt_zorder.tables.parquet.snapshot import SnapshotColumns, take_snapshot
from dbt_zorder.tables.version import version_of
from tests.released.contents import CONTENTS, PLACEHOLDER, SCHEMA, STATS_ENDING, WAREHOUSE
from tests.support import same_rows

UNFINISHED = ("ready", "halfway")
RECORDED: dict[str, dict[str, Any]] = {one["name"]: one for one in json.loads((WAREHOUSE / "tables.json").read_text())}
"""What the catalog knew of each table."""


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Return the folder of a schema of the old name."""
    folder = tmp_path / "warehouse"
    spark.sql(f"CREATE DATABASE {SCHEMA} LOCATION '{folder}'")
    yield folder
    spark.sql(f"DROP DATABASE {SCHEMA} CASCADE")


@pytest.fixture
def table(spark: SparkSession, warehouse: Path, request: pytest.FixtureRequest) -> TableName:
    """Return a table as it stood when its release wrote it for the last time."""
    name = str(getattr(request, "param", "plain"))
    for root in WAREHOUSE.glob(f"**/{name}__zorder"):
        bring(spark, root, warehouse / root.relative_to(WAREHOUSE), warehouse)
    register(spark, name, warehouse)
    return TableName(SCHEMA, name)


def bring(spark: SparkSession, root: Path, to: Path, warehouse: Path) -> None:
    """Copy the versions of a table, with paths as they are here."""
    shutil.copytree(root, to)
    for path in to.rglob("*"):
        if path.suffix in (".txt", ".json"):
            path.write_text(path.read_text().replace(PLACEHOLDER, str(warehouse)))
        elif path.suffix == STATS_ENDING:
            stats = pq.ParquetFile(path)
            paths = pc.replace_substring(stats.read()["file_path"], PLACEHOLDER, str(warehouse))
            pq.write_table(stats.read().set_column(0, "file_path", paths), path)


def register(spark: SparkSession, name: str, warehouse: Path) -> None:
    """Enter a table and its stats into the catalog as they were in the old one."""
    recorded = RECORDED[name]
    place = f"file:{warehouse}/{recorded['location']}"
    parts = f"PARTITIONED BY ({', '.join(recorded['partition_by'])})" if recorded["partition_by"] else ""
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in recorded["properties"].items())
    spark.sql(
        f"CREATE TABLE {SCHEMA}.{name}{'__zorder_prev' if name == 'aside' else ''} ({', '.join(recorded['columns'])}) "
        f"USING parquet {parts} LOCATION '{place}' COMMENT '{recorded['comment']}' "
        f"{f'TBLPROPERTIES ({pairs})' if pairs else ''}"
    )
    spark.sql(f"CREATE TABLE {SCHEMA}.{name}__zorder_stats USING parquet LOCATION '{place}/_zorder_stats'")


def wanted(table: TableName) -> BuildRequest:
    content, recorded = CONTENTS[table.identifier], RECORDED[table.identifier]
    own = {key: value for key, value in recorded["properties"].items() if not key.startswith("dbt_zorder.")}
    spec = LayoutSpec(by=content.by, files=2, partition_by=content.partition_by)
    return BuildRequest(table, spec, comment=recorded["comment"], properties=own)


def holds(spark: SparkSession, table: TableName, query: str) -> bool:
    """Return whether a table holds the rows of a query, read by plain SQL and pruned."""
    spark.sql(f"REFRESH TABLE {table.sql}")
    expected, there = spark.sql(query), spark.table(table.sql)
    predicate = CONTENTS[table.identifier].predicate
    pruned = pruning.scan(spark, table.sql, predicate).select(*expected.columns)
    return same_rows(there.select(*expected.columns), expected) and same_rows(pruned, expected.where(predicate))


def folders(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir()) if root.exists() else []


@pytest.mark.parametrize("table", CONTENTS, indirect=True)
def test_a_table_is_read_and_pruned_and_what_was_under_way_is_completed(spark: SparkSession, table: TableName) -> None:
    begin(spark, table)
    content = CONTENTS[table.identifier]
    assert holds(spark, table, content.rows)
    plan = pruning.explain(spark, table.sql, content.predicate)
    assert plan.files_read is not None
    assert plan.files_total is not None
    assert plan.files_read < plan.files_total, str(plan)
    assert verify_table(spark, table).findings == []
    assert not list(Path(location_of(spark, table).removeprefix("file:")).glob("_zorder_journal/*"))


@pytest.mark.parametrize("table", CONTENTS, indirect=True)
def test_a_batch_goes_in_and_a_build_replaces_all(spark: SparkSession, table: TableName) -> None:
    content = CONTENTS[table.identifier]
    before = begin(spark, table)
    report = increment(spark, spark.sql(content.batch), wanted(table), Batch(may_rewrite=False), before)
    assert report.appended is not None, "the old version's own tree and stats are gone by"
    assert holds(spark, table, f"{content.rows} UNION ALL {content.batch}")
    assert verify_table(spark, table).findings == []
    build(spark, spark.sql(content.batch), wanted(table))
    assert holds(spark, table, content.batch)


@pytest.mark.parametrize("table", [name for name, content in CONTENTS.items() if content.before], indirect=True)
def test_a_vacuum_collects_what_failed_and_a_rollback_serves_the_version_before(
    spark: SparkSession, table: TableName
) -> None:
    content = CONTENTS[table.identifier]
    remains = vacuum(spark, table, keep=1, grace_hours=0, dry_run=False).deleted
    assert len(remains) == (2 if table.identifier == "plain" else 0), "what a build and a deletion left that were cut"
    assert holds(spark, table, content.rows)
    served, _ = rollback(spark, table)
    assert holds(spark, table, content.before)
    assert own_properties(spark, table) == dict(wanted(table).properties)
    assert vacuum(spark, table, keep=0, grace_hours=0, dry_run=False).deleted == [served]
    assert holds(spark, table, content.before)
    with pytest.raises(ZorderError, match="no other one is kept"):
        rollback(spark, table)


@pytest.mark.parametrize("table", ["snapshot"], indirect=True)
def test_a_snapshot_goes_on(spark: SparkSession, table: TableName) -> None:
    changes = (
        "SELECT 'update' AS dbt_change_type, 2 AS dbt_unique_key, 2L AS id, 'B' AS v, '2b' AS scd, "
        "DATE'2024-06-01' AS until UNION ALL SELECT 'insert', 2, 2L, 'B', '2B', NULL"
    )
    assert take_snapshot(spark, changes, wanted(table), SnapshotColumns("scd", "until")) is not None
    rows = {tuple(row) for row in spark.table(table.sql).select("v", "scd", f.col("until").cast("string")).collect()}
    assert rows == {
        ("a", "1a", "2024-05-01"), ("A", "1A", None), ("b", "2b", "2024-06-01"), ("B", "2B", None), ("c", "3c", None),
    }  # fmt: skip


@pytest.mark.parametrize("table", ["plain"], indirect=True)
def test_a_table_is_replaced_with_its_comment_and_properties_by_moving_its_entry(
    spark: SparkSession, table: TableName
) -> None:
    """Its columns, comment and properties are read as they were meant, so that one call of the catalog is enough."""
    version = version_of(location_of(spark, table))
    build(spark, spark.sql(CONTENTS["plain"].rows), wanted(table))
    info = describe(spark, table)
    assert info is not None
    assert version_of(info.location) != version
    assert info.comment == RECORDED["plain"]["comment"]
    assert own_properties(spark, table) == dict(wanted(table).properties)


@pytest.mark.parametrize("table", UNFINISHED, indirect=True)
def test_what_is_under_way_is_no_finding_but_the_next_runs(spark: SparkSession, table: TableName) -> None:
    assert any("the next run of the model completes it" in one for one in verify_table(spark, table).findings)
