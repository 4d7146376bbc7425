from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType, UserDefinedType

from dbt_zorder.spark import catalog
from dbt_zorder.spark import catalog_entry as entry
from dbt_zorder.spark.catalog import TableName, column_facts, describe, location_of
from dbt_zorder.spark.catalog_entry import entry_of, is_absent, location_by_entry, move_entry
from dbt_zorder.tables.parquet.swap import Definition, publish
from tests.support import settings


class PairType(UserDefinedType):
    """A type of a user's own."""

    @classmethod
    def sqlType(cls) -> ArrayType:  # noqa: N802
        return ArrayType(IntegerType())

    @classmethod
    def module(cls) -> str:
        return __name__

    def serialize(self, obj: Any) -> list[int]:
        return list(obj)

    def deserialize(self, datum: list[int]) -> Any:
        return Pair(*datum)


class Pair(tuple[int, int]):
    """A value of it."""

    __UDT__ = PairType()

    def __new__(cls, one: int, two: int) -> Pair:
        return super().__new__(cls, (one, two))


WIDE = ", ".join(f"f{number}: INT" for number in range(40))
TABLES = {
    "plain": "CREATE TABLE {} (a INT COMMENT 'one\n -> two', `b c` STRUCT<`x y`: STRING>) USING parquet",
    "commented": "CREATE TABLE {} (a INT) USING parquet COMMENT 'Type -> VIEW\nLocation -> /there' "
    "TBLPROPERTIES ('k -> x' = 'v')",
    "parted": "CREATE TABLE {} (a INT, p STRING, `q ü` DATE) USING parquet PARTITIONED BY (`q ü`, p)",
    "buckets": "CREATE TABLE {} (a INT, b INT) USING parquet CLUSTERED BY (a) INTO 4 BUCKETS",
    "outside": "CREATE TABLE {} (a DECIMAL(9, 2), t TIMESTAMP, n TIMESTAMP_NTZ, y INTERVAL YEAR TO MONTH) "
    "USING parquet LOCATION '{path}/a b'",
    "fixed": "CREATE TABLE {} (c CHAR(5), v VARCHAR(7) COMMENT 'seven', l ARRAY<MAP<STRING, BINARY>>) USING parquet",
    "text": "CREATE TABLE {} (a STRING) USING csv",
    "hive": "CREATE TABLE {} (a INT, b STRING) PARTITIONED BY (p INT) STORED AS PARQUET",
    "view": "CREATE VIEW {} (one COMMENT 'of a view') COMMENT 'looks' TBLPROPERTIES ('k' = 'v') AS SELECT 1",
}


@pytest.mark.parametrize("kind", TABLES)
def test_an_entry_says_what_describe_does(spark: SparkSession, database: str, tmp_path: Path, kind: str) -> None:
    table = TableName(database, f"entry_{kind}")
    (tmp_path / "a b").mkdir()
    spark.sql(TABLES[kind].replace("{}", table.sql).replace("{path}", str(tmp_path)))
    if kind == "plain":
        spark.sql(f"INSERT INTO {table.sql} SELECT 1, NULL")
        spark.sql(f"ANALYZE TABLE {table.sql} COMPUTE STATISTICS")
    found, from_sql = entry_of(spark, table.schema, table.identifier), catalog._entry_by_sql(spark, table)
    assert found is not None
    assert list(found.columns) == list(from_sql.columns)
    assert list(found.partition_columns) == list(from_sql.partition_columns)
    asked = ("Type", "Provider", "Location", "Comment", "Statistics", "Partition Provider", "Num Buckets")
    assert {name: found.details.get(name, "") for name in asked} == {
        name: from_sql.details.get(name, "") for name in asked
    }
    assert ("Table Properties" in found.details) == ("Table Properties" in from_sql.details)
    assert (location_by_entry(spark, table.schema, table.identifier) or "") == from_sql.details.get("Location", "")
    assert location_of(spark, table) == from_sql.details.get("Location", "")
    assert ("rows" in found.details.get("Statistics", "")) is (kind == "plain")


def test_an_entry_has_all_fields_of_a_wide_struct(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.entry_wide (s STRUCT<{WIDE}>) USING parquet")
    found = entry_of(spark, database, "entry_wide")
    assert found is not None
    assert list(found.columns) == column_facts(spark.table(f"{database}.entry_wide").schema)


def test_names_are_found_as_sql_finds_them(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.Entry_Case (A INT) USING parquet")
    found = entry_of(spark, database.upper(), "ENTRY_CASE")
    assert found is not None
    assert list(found.columns) == [("A", "int", "")]
    assert entry_of(spark, database, "no_such_entry") is None
    assert entry_of(spark, "no_such_schema", "t") is None


def test_what_another_catalog_answers_for_is_asked_by_sql(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"CREATE TABLE {database}.entry_other (a INT) USING parquet")
    here = describe(spark, TableName(database, "entry_other"))
    assert here is not None
    with settings(spark, {"spark.sql.catalog.spark_catalog": "org.example.Another"}):
        assert entry_of(spark, database, "entry_other") is None
    # SQL reads the first part of a name as a catalog's where there is one of that name
    with settings(spark, {f"spark.sql.catalog.{database}": "org.example.Another"}):
        assert entry_of(spark, database, "entry_other") is None
        assert not move_entry(spark, database, "entry_other", "/there")
    with settings(spark, {"spark.sql.statistics.size.autoUpdate.enabled": "true"}):
        assert not move_entry(spark, database, "entry_other", "/there")
    monkeypatch.setattr(entry, "_CATALOG", "another_than_the_current")
    assert entry_of(spark, database, "entry_other") is None
    assert describe(spark, TableName(database, "entry_other")) == here


def test_that_there_is_no_table_is_known_without_sql(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"CREATE TABLE {database}.Entry_There (a INT) USING parquet")
    spark.sql(f"CREATE VIEW {database}.entry_seen AS SELECT 1 AS one")
    spark.range(1).createOrReplaceGlobalTempView("entry_shared")
    for schema, name in [(database, "entry_there"), (database, "entry_seen"), ("global_temp", "entry_shared")]:
        assert not is_absent(spark, schema, name)
        assert describe(spark, TableName(schema, name)) is not None
    with settings(spark, {f"spark.sql.catalog.{database}": "org.example.Another"}):
        assert not is_absent(spark, database, "entry_nowhere")

    def refuse(*_: object) -> None:
        msg = "SQL was asked"
        raise AssertionError(msg)

    monkeypatch.setattr(catalog, "described", refuse)
    for schema, name in [(database, "entry_nowhere"), ("no_such_schema", "t")]:
        assert is_absent(spark, schema, name)
        assert describe(spark, TableName(schema, name)) is None


def test_types_that_users_define_are_described_by_sql(spark: SparkSession, database: str) -> None:
    frame = spark.createDataFrame([(Pair(1, 2),)], StructType([StructField("p", PairType())]))
    frame.write.saveAsTable(f"{database}.entry_points", format="parquet")
    assert entry_of(spark, database, "entry_points") is None
    assert describe(spark, TableName(database, "entry_points")) is not None


def test_over_connect_sql_is_asked(database: str) -> None:
    remote: Any = object()
    assert entry_of(remote, database, "t") is None
    assert not is_absent(remote, database, "t")
    assert not move_entry(remote, database, "t", "/there")


@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (p)"])
def test_an_entry_is_moved_as_sql_moves_it(
    spark: SparkSession, database: str, tmp_path: Path, partitioned: str
) -> None:
    sizes = {}
    for name, rows in (("few a b", 10), ("many", 50000)):
        spark.range(rows).selectExpr("id", "1 AS p").write.parquet(str(tmp_path / name))
        sizes[name] = sum(file.stat().st_size for file in (tmp_path / name).glob("*.parquet"))
    table = TableName(database, f"Entry_Moves{len(partitioned)}")
    facts = []
    for by_sql in (True, False):
        spark.sql(f"DROP TABLE IF EXISTS {table.sql}")
        with settings(spark, {"spark.sql.hive.manageFilesourcePartitions": "false"}):
            spark.sql(
                f"CREATE TABLE {table.sql} (id BIGINT COMMENT 'c', p INT) USING parquet {partitioned} COMMENT 't' "
                f"LOCATION '{tmp_path}/empty' TBLPROPERTIES ('k' = 'v')"
            )
        spark.table(table.sql).collect()  # so that the session knows its files
        for name in ("many", "few a b"):
            if by_sql:
                spark.sql(f"ALTER TABLE {table.sql} SET LOCATION '{tmp_path}/{name}'")
            else:
                assert move_entry(spark, table.schema, table.identifier, f"{tmp_path}/{name}")
                spark.catalog.refreshTable(table.sql)
            if not partitioned:
                assert spark.table(table.sql).count() == (50000 if name == "many" else 10)
            info = describe(spark, table)
            assert info is not None
            assert info.location == f"file:{tmp_path}/{name}"
            if not partitioned:
                assert info.statistics.startswith(f"{sizes[name]} bytes")
            facts.append((by_sql, info, sorted(spark.sql(f"SHOW TBLPROPERTIES {table.sql}").collect())))
    assert [fact[1:] for fact in facts if fact[0]] == [fact[1:] for fact in facts if not fact[0]]


def test_what_was_analyzed_is_left_to_sql(spark: SparkSession, database: str, tmp_path: Path) -> None:
    for name, rows in (("few", 10), ("many", 50000)):
        spark.range(rows).write.parquet(str(tmp_path / name))
    table = TableName(database, "entry_analyzed")
    spark.sql(f"CREATE TABLE {table.sql} (id BIGINT) USING parquet LOCATION '{tmp_path}/few'")
    spark.sql(f"ANALYZE TABLE {table.sql} COMPUTE STATISTICS")
    assert not move_entry(spark, table.schema, table.identifier, f"{tmp_path}/many")
    info = describe(spark, table)
    assert info is not None
    assert info.location == f"file:{tmp_path}/few"
    publish(spark, table, Definition(spark.table(table.sql).schema), f"{tmp_path}/many", info)
    assert spark.table(table.sql).count() == 50000
    assert (describe(spark, table) or info).statistics.partition(" ")[0] == str(
        sum(file.stat().st_size for file in (tmp_path / "many").glob("*.parquet"))
    )
