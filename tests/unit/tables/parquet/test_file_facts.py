from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.api import save_table
from dbt_zorder.errors import ColumnError, ConfigError, ZorderError
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.health import FileFacts
from dbt_zorder.tables.parquet.file_facts import read_facts
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats

ROWS = "SELECT /*+ repartition_by_range(4, id) */ id, pmod(hash(id), 100) k, concat('n', id) s FROM range(400)"


def facts_of(spark: SparkSession, table: TableName, *names: str) -> FileFacts:
    info = describe(spark, table)
    assert info is not None
    return read_facts(spark, table, info, names)


def folder_of(spark: SparkSession, table: TableName) -> Path:
    info = describe(spark, table)
    assert info is not None
    return Path(unquote(urlsplit(info.location).path))


def spans(facts: FileFacts) -> list[tuple[int, int, int]]:
    rows = facts.files.to_pylist()
    return sorted((row["min_value0"], row["max_value0"], row["null_count0"]) for row in rows)


def test_a_table_of_another_writer_is_read_by_its_footers(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {ROWS}")
    facts = facts_of(spark, table, "id")
    assert (facts.files.num_rows, facts.files["row_count"].to_pylist()) == (4, [100] * 4)
    assert len(spans(facts)) == 4
    assert spans(facts)[0][0] == 0
    assert spans(facts)[-1][1] == 399
    assert not facts.is_own
    assert facts_of(spark, table).keys == []


def test_stats_and_footers_say_the_same(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {ROWS}")
    by_footers = facts_of(spark, table, "id", "s", "k")
    rebuild_stats(spark, table, ["id", "s", "k"])
    by_stats = facts_of(spark, table, "id", "s", "k")
    assert by_stats.files.sort_by("file_path").to_pylist() == by_footers.files.sort_by("file_path").to_pylist()


def test_a_file_without_stats_is_read_by_its_footer(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {ROWS}")
    rebuild_stats(spark, table, ["id"])
    spark.sql(f"INSERT INTO {table.sql} SELECT /*+ coalesce(1) */ id, 1, 'x' FROM range(1000, 1010)")
    facts = facts_of(spark, table, "id")
    assert facts.files.num_rows == 5
    assert spans(facts)[-1] == (1000, 1009, 0)
    assert facts_of(spark, table, "k").files.num_rows == 5


def test_a_file_that_is_gone_or_changed_does_not_count_by_its_stats(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {ROWS}")
    rebuild_stats(spark, table, ["id"])
    first, second, *_ = sorted(folder_of(spark, table).glob("*.parquet"))
    os.remove(first)
    pq.write_table(pa.table({"id": [7], "k": [1], "s": ["x"]}), second)
    facts = facts_of(spark, table, "id")
    assert facts.files.num_rows == 3
    assert (7, 7, 0) in spans(facts)


def test_a_table_of_versions_knows_its_columns_and_its_last_build(spark: SparkSession, table: TableName) -> None:
    save_table(spark.sql(ROWS), str(table), ["k", "id"], files=4)
    facts = facts_of(spark, table)
    assert facts.is_own
    assert [key.column.name for key in facts.keys] == ["k", "id"]
    assert facts.built.files == 4
    other = facts_of(spark, table, "ID")
    assert other.keys[0].column.name == "id"
    assert other.built.files == 0


def test_files_in_folders_below_count_for_partitioned_tables_alone(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet PARTITIONED BY (p) AS SELECT id, id % 3 p FROM range(30)")
    assert len({Path(path).parent.name for path in facts_of(spark, table, "id").files["file_path"].to_pylist()}) == 3
    with pytest.raises(ConfigError, match="partition column"):
        facts_of(spark, table, "p")
    plain = TableName(table.schema, f"{table.identifier}_plain")
    spark.sql(f"CREATE TABLE {plain.sql} USING parquet AS {ROWS}")
    pq.write_table(pa.table({"id": [1]}), _made(folder_of(spark, plain) / "below") / "x.parquet")
    assert facts_of(spark, plain, "id").files.num_rows == 4


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_what_has_no_parquet_files_is_an_error(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING csv AS SELECT 1 a")
    with pytest.raises(ZorderError, match="of the format csv; health is measured for"):
        facts_of(spark, table, "a")
    view = TableName(table.schema, f"{table.identifier}_v")
    spark.sql(f"CREATE VIEW {view.sql} AS SELECT 1 a")
    with pytest.raises(ZorderError, match="is a view, which has no files"):
        facts_of(spark, view, "a")


def test_a_column_that_is_missing_is_named(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {ROWS}")
    with pytest.raises(ColumnError, match="Did you mean 'id'"):
        facts_of(spark, table, "idd")
