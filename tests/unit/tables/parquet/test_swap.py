from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructField, StructType

from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableName, describe, properties
from dbt_zorder.spark.catalog_entry import move_entry
from dbt_zorder.tables.comments import set_comments
from dbt_zorder.tables.parquet import swap
from dbt_zorder.tables.parquet.analyze import measure_again
from dbt_zorder.tables.parquet.swap import Definition, publish
from tests.support import settings, unique
from tests.unit.tables.parquet.versions import V1, V2, V3, Write, content


@pytest.fixture
def table(spark: SparkSession, database: str) -> TableName:
    return TableName(database, unique("T"))


def test_a_new_table_is_external_and_has_all_that_was_said(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write
) -> None:
    write(V1, "SELECT 1 AS `a b`, 'x' AS s")
    fields = [
        StructField("a b", spark.sql("SELECT 1").schema[0].dataType, True, {"comment": "it's $ {x} ${spark.app.name}"}),
        StructField("s", spark.sql("SELECT 'x'").schema[0].dataType),
    ]
    publish(spark, table, Definition(StructType(fields), (), "of 'table'\n2", {"k'": "v\\"}), str(tmp_path / V1))
    info = describe(spark, table)
    assert info is not None
    assert (info.kind, info.provider, info.comment) == ("EXTERNAL", "parquet", "of 'table'\n2")
    assert info.columns[0] == ("a b", "int", "it's $ {x} ${spark.app.name}")
    assert properties(spark, table)["k'"] == "v\\"
    assert content(spark, table) == [(1, "x")]


def test_the_same_table_is_moved_and_keeps_its_properties(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write
) -> None:
    publish(spark, table, write(V1, "SELECT 1 AS a"), str(tmp_path / V1))
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('mine' = 'kept')")
    assert content(spark, table) == [(1,)]
    publish(spark, table, write(V2, "SELECT 2 AS a"), str(tmp_path / V2))
    assert content(spark, table) == [(2,)]
    assert properties(spark, table)["mine"] == "kept"
    assert spark.read.parquet(str(tmp_path / V1)).count() == 1, "the former version is not touched"


@pytest.mark.parametrize("is_cached", [False, True])
def test_what_spark_keeps_of_a_table_follows_the_swap(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write, is_cached: bool
) -> None:
    """Its entry and list of files, and its rows if they are in Spark's cache."""
    spark.catalog.clearCache()
    publish(spark, table, write(V1, "SELECT 1 AS a"), str(tmp_path / V1))
    if is_cached:
        spark.catalog.cacheTable(table.sql)
    assert content(spark, table) == [(1,)]
    publish(spark, table, write(V2, "SELECT 2 AS a"), str(tmp_path / V2))
    assert content(spark, table) == [(2,)]
    assert spark.table(table.sql.lower()).collect() == spark.table(table.sql).collect()
    publish(spark, table, write(V3, "SELECT 3 AS a, 4 AS b"), str(tmp_path / V3))
    assert content(spark, table) == [(3, 4)]
    spark.catalog.clearCache()


def test_where_timestamps_have_no_zone_those_with_one_stay(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write
) -> None:
    """Spark reads Hive's own TIMESTAMP as the setting says, and Hive does not know what it writes back."""
    query = "SELECT 1 AS a, timestamp_micros(1) AS ltz, CAST(timestamp_micros(1) AS timestamp_ntz) AS ntz"
    with settings(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "UTC"}):
        for version, columns in ((V1, ""), (V2, ""), (V3, ", 'x' AS s")):
            publish(spark, table, write(version, query + columns), str(tmp_path / version))
            found = spark.table(table.sql)
            assert found.dtypes[1:3] == [("ltz", "timestamp"), ("ntz", "timestamp_ntz")]
            assert found.inputFiles()[0].split("/")[-2] == version
        set_comments(spark, table, "described", {"a": "one"})
        measure_again(spark, table, None, [], partitioned=False)
        info = describe(spark, table)
        assert info is not None
        assert (info.comment, info.columns[0][2], "bytes" in info.statistics) == ("described", "one", True)
        assert spark.conf.get("spark.sql.timestampType") == "TIMESTAMP_NTZ"


def test_a_wide_struct_is_compared_as_a_whole(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = ", ".join(f"{{0}} AS f{n}" for n in range(30))
    publish(spark, table, write(V1, f"SELECT struct({wide.format(1)}) AS a"), str(tmp_path / V1))
    replaced: list[TableName] = []
    real = swap._replace

    def noted(session: SparkSession, name: TableName, *more: Any) -> None:
        replaced.append(name)
        real(session, name, *more)

    monkeypatch.setattr(swap, "_replace", noted)
    publish(spark, table, write(V2, f"SELECT struct({wide.format(2)}) AS a"), str(tmp_path / V2))
    assert replaced == []
    other = Definition(spark.sql(f"SELECT struct({wide.format(2)}, 'x' AS more) AS a").schema)
    publish(spark, table, other, str(tmp_path / V1))
    assert replaced == [table]
    assert spark.table(table.sql).select("a.more").count() == 1


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("SELECT 'x' AS a", ("x",)),
        ("SELECT 1 AS a, 2 AS b", (1, 2)),
        ("SELECT 2 AS b", (2,)),
        ("SELECT 1L AS a", (1,)),
        ("SELECT named_struct('x', array(1)) AS a", (Row(x=[1]),)),
    ],
)
def test_columns_may_change(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write, query: str, row: object
) -> None:
    publish(spark, table, write(V1, "SELECT 1 AS a"), str(tmp_path / V1))
    changed = write(V2, query)
    publish(spark, table, changed, str(tmp_path / V2))
    assert spark.table(table.sql).schema.simpleString() == changed.schema.simpleString()
    assert content(spark, table) == [row]
    assert describe(spark, TableName(table.schema, table.identifier + "__zorder_next")) is None


@pytest.mark.parametrize(
    "before",
    [
        "CREATE VIEW {t} AS SELECT 5 AS other",
        "CREATE TABLE {t} USING parquet AS SELECT 5 AS other",
        "CREATE TABLE {t} USING parquet PARTITIONED BY (a) AS SELECT 5 AS other, 6 AS a",
        "CREATE TABLE {t} USING json AS SELECT 1 AS a",
        "CREATE TABLE {t} (a INT) STORED AS ORC",
    ],
    ids=["view", "managed", "managed partitioned", "json", "hive"],
)
def test_whatever_was_there_is_replaced(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write, before: str
) -> None:
    spark.sql(before.format(t=table.sql))
    publish(spark, table, write(V1, "SELECT 1 AS a"), str(tmp_path / V1))
    info = describe(spark, table)
    assert info is not None
    assert (info.kind, info.provider, list(info.partition_columns)) == ("EXTERNAL", "parquet", [])
    assert content(spark, table) == [(1,)]


def test_partitioned_tables_follow_the_swap(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    for version, value in ((V1, 1), (V2, 2)):
        frame = spark.sql(f"SELECT {value} AS a, if(id = 0, null, 'p' || (id + {value})) AS p FROM range(3)")
        frame.write.partitionBy("p").parquet(str(tmp_path / version))
        publish(spark, table, Definition(frame.schema, ["p"]), str(tmp_path / version))
        wanted = [(value, None), (value, f"p{value + 1}"), (value, f"p{value + 2}")]
        assert sorted(content_of(spark, table), key=str) == sorted(wanted, key=str)
    info = describe(spark, table)
    assert info is not None
    assert list(info.partition_columns) == ["p"]


def content_of(spark: SparkSession, table: TableName) -> list[tuple[object, ...]]:
    return [tuple(row) for row in spark.table(table.sql).collect()]


@pytest.mark.parametrize(
    "change",
    [{"comment": "new"}, {"properties": {"k": "new"}}],
    ids=["comment", "properties"],
)
def test_what_is_said_of_a_table_may_change(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write, change: dict[str, object]
) -> None:
    first = Definition(write(V1, "SELECT 1 AS a").schema, (), "old", {"k": "old"})
    publish(spark, table, first, str(tmp_path / V1))
    second = Definition(**{**vars(first), **change})
    write(V2, "SELECT 2 AS a")
    publish(spark, table, second, str(tmp_path / V2))
    info = describe(spark, table)
    assert info is not None
    assert (info.comment, properties(spark, table)["k"]) == (second.comment, second.properties["k"])
    assert content(spark, table) == [(2,)]


def test_a_catalog_that_refuses_leaves_the_table(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(spark, table, write(V1, "SELECT 1 AS a"), str(tmp_path / V1))
    monkeypatch.setattr(swap, "_is_same", refuse)
    with pytest.raises(
        BuildError, match=f"did not accept the new version of {table}, which still stands at .*{V1}: no"
    ):
        publish(spark, table, write(V2, "SELECT 2 AS a"), str(tmp_path / V2))
    assert content(spark, table) == [(1,)]


@pytest.mark.parametrize("carried_out", [True, False])
def test_what_is_not_moved_in_one_call_is_moved_by_sql(
    spark: SparkSession, table: TableName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carried_out: bool
) -> None:
    """The call may have been carried out and only its reply lost: to do it twice is to do it once."""
    places = [f"{tmp_path}/v20240101T00000000{number}-0000000{number}" for number in range(3)]
    for number, place in enumerate(places):
        spark.range(number + 1).write.parquet(place)
    definition = Definition(spark.range(1).schema)
    publish(spark, table, definition, places[0])
    said = []

    def lost(*args: Any) -> bool:
        said.append(move_entry(*args) if carried_out else None)
        return False

    monkeypatch.setattr(swap, "move_entry", lost)
    for number in (1, 2):
        publish(spark, table, definition, places[number])
        assert spark.table(table.sql).count() == number + 1
    assert said == [True if carried_out else None] * 2


def test_a_refused_stats_relation_is_not_taken_for_a_moved_one(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = write(f"{V1}/_zorder_stats", "SELECT 1 AS a")
    publish(spark, table, definition, str(tmp_path / V1 / "_zorder_stats"))
    monkeypatch.setattr(swap, "_is_same", refuse)
    with pytest.raises(BuildError):
        publish(spark, table, definition, str(tmp_path / V2 / "_zorder_stats"))


def test_without_a_call_for_it_a_table_is_replaced_by_two(
    spark: SparkSession, table: TableName, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "replace_entry", lambda *_: False)
    spark.sql(f"CREATE VIEW {table.sql} AS SELECT 5 AS other")
    publish(spark, table, write(V1, "SELECT 1 AS a"), str(tmp_path / V1))
    publish(spark, table, write(V2, "SELECT 'x' AS b"), str(tmp_path / V2))
    assert content(spark, table) == [("x",)]


def refuse(*_: object) -> bool:
    msg = "no"
    raise RuntimeError(msg)


MANAGED_BY_CATALOG = {"spark.sql.hive.manageFilesourcePartitions": "true"}


def test_in_a_session_that_asks_the_catalog_for_partitions_a_table_has_its_rows(
    spark: SparkSession, table: TableName, tmp_path: Path
) -> None:
    frame = spark.sql("SELECT id AS a, id % 2 AS p FROM range(10)")
    frame.write.partitionBy("p").parquet(str(tmp_path / V1))
    with settings(spark, MANAGED_BY_CATALOG):
        publish(spark, table, Definition(frame.schema, ["p"]), str(tmp_path / V1))
        assert spark.table(table.sql).count() == 10
    assert elsewhere(spark, table).count() == 10


def elsewhere(spark: SparkSession, table: TableName) -> DataFrame:
    """The table as a session with Spark's defaults reads it."""
    other = spark.newSession()
    other.conf.set(*next(iter(MANAGED_BY_CATALOG.items())))
    return other.table(table.sql)


@pytest.mark.parametrize("folder", ["orders", V1], ids=["dbt-spark's", "a version"])
@pytest.mark.parametrize("clause", ["PARTITIONED BY (p)", "CLUSTERED BY (a) INTO 2 BUCKETS"])
def test_an_entry_that_says_more_than_ours_is_replaced(
    spark: SparkSession, table: TableName, tmp_path: Path, clause: str, folder: str
) -> None:
    other = spark.newSession()
    other.conf.set(*next(iter(MANAGED_BY_CATALOG.items())))
    query = "SELECT id AS a, id % 2 AS p FROM range(10)"
    other.sql(f"CREATE TABLE {table.sql} USING parquet {clause} LOCATION '{tmp_path / folder}' AS {query}")
    assert other.table(table.sql).count() == 10
    frame = spark.sql("SELECT id AS a, id % 2 AS p FROM range(7)")
    parts = ["p"] if "PARTITIONED" in clause else []
    frame.write.partitionBy(*parts).parquet(str(tmp_path / V2))
    publish(spark, table, Definition(frame.schema, parts), str(tmp_path / V2))
    assert spark.table(table.sql).count() == 7
    assert elsewhere(spark, table).count() == 7
    info = describe(spark, table)
    assert info is not None
    assert (info.partition_provider, info.bucket_count) == ("", 0)
    assert elsewhere(spark, table).where("a = 3").count() == 1
