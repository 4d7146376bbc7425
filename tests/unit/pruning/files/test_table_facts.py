"""What Spark says of a table: from the relation that will be read, or from the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.files import table_facts
from dbt_zorder.pruning.files.table_facts import describe, quoted, read_facts


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Statistics play no part here."""


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    place = tmp_path_factory.mktemp("facts") / "a b%20c #ü"
    spark.sql("CREATE DATABASE IF NOT EXISTS facts")
    spark.sql("CREATE TABLE facts.managed USING parquet AS SELECT id, id % 3 AS p FROM range(9)")
    spark.sql(f"CREATE TABLE facts.placed USING parquet LOCATION '{place}' AS SELECT id FROM range(9)")
    spark.sql("CREATE TABLE facts.parted USING parquet PARTITIONED BY (p) AS SELECT id, id % 3 AS p FROM range(9)")
    spark.sql("CREATE TABLE facts.chars (c CHAR(3), v VARCHAR(5)) USING parquet")
    spark.sql("CREATE TABLE facts.orc USING orc AS SELECT id FROM range(9)")
    spark.sql("CREATE TABLE facts.csv USING csv AS SELECT id FROM range(9)")
    spark.sql("CREATE VIEW facts.seen AS SELECT * FROM facts.managed")
    spark.table("facts.managed").createOrReplaceTempView("facts_seen_here")
    spark.table("facts.managed").createOrReplaceGlobalTempView("facts_seen_everywhere")
    yield
    spark.catalog.dropTempView("facts_seen_here")
    spark.catalog.dropGlobalTempView("facts_seen_everywhere")
    spark.sql("DROP DATABASE facts CASCADE")


@pytest.mark.parametrize(
    ("table", "asks_the_catalog"),
    [
        ("facts.managed", False),
        ("`facts`.`managed`", False),
        ("spark_catalog.facts.managed", False),
        ("FACTS.Managed", False),
        ("facts.placed", False),
        ("facts.parted", False),
        ("facts.orc", False),
        ("facts.csv", False),
        ("facts.chars", True),
        ("facts.seen", True),
        ("facts_seen_here", True),
        ("global_temp.facts_seen_everywhere", True),
    ],
)
def test_the_relation_and_the_catalog_say_the_same(
    spark: SparkSession, tables: None, monkeypatch: pytest.MonkeyPatch, table: str, asks_the_catalog: bool
) -> None:
    wanted = describe(spark, table)
    asked = []

    def counted(spark: SparkSession, name: str) -> table_facts.TableFacts:
        asked.append(name)
        return describe(spark, name)

    monkeypatch.setattr(table_facts, "describe", counted)
    assert read_facts(spark, table, spark.table(quoted(table))) == wanted
    assert bool(asked) == asks_the_catalog


def test_the_facts_are_those_of_what_will_be_read(spark: SparkSession, tables: None, tmp_path: Path) -> None:
    """A frame that was made before the table was moved still reads the old files, so it needs their statistics."""
    spark.sql(f"CREATE TABLE facts.moves USING parquet LOCATION '{tmp_path}/old' AS SELECT id FROM range(9)")
    frame = spark.table("facts.moves")
    spark.sql(f"ALTER TABLE facts.moves SET LOCATION '{tmp_path}/new'")
    assert read_facts(spark, "facts.moves", frame).location.endswith("/old")
    assert read_facts(spark, "facts.moves", spark.table("facts.moves")).location.endswith("/new")


def test_what_an_entry_says_is_asked_once(spark: SparkSession, tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def facts() -> table_facts.TableFacts:
        return read_facts(spark, "facts.twice", spark.table("facts.twice"))

    asked = []
    real = table_facts._relation_facts

    def counted(sql: str, jvm: Any, jdf: Any) -> table_facts.TableFacts | None:
        asked.append(sql)
        return real(sql, jvm, jdf)

    monkeypatch.setattr(table_facts, "_relation_facts", counted)
    spark.sql("CREATE TABLE facts.twice USING parquet AS SELECT id FROM range(9)")
    first = facts()
    assert (facts(), len(asked)) == (first, 1)
    spark.sql("ALTER TABLE facts.twice RENAME TO facts.thrice")
    spark.sql("CREATE TABLE facts.twice USING orc AS SELECT id FROM range(9)")
    assert (facts().provider, len(asked)) == ("orc", 2)
    spark.sql("DROP TABLE facts.twice")
    spark.sql("CREATE VIEW facts.twice AS SELECT * FROM facts.thrice")
    assert facts().kind == "VIEW"
    spark.sql("DROP VIEW facts.twice")
    # the same name in another schema
    spark.sql("USE facts")
    managed = read_facts(spark, "managed", spark.table("managed"))
    spark.sql("USE default")
    spark.sql("CREATE TABLE default.managed USING parquet AS SELECT id FROM range(9)")
    assert read_facts(spark, "managed", spark.table("managed")).location != managed.location
    spark.sql("DROP TABLE default.managed")


def test_without_a_way_to_the_jvm_the_catalog_is_asked(spark: SparkSession, tables: None) -> None:
    class Remote:
        """A frame of Spark Connect, of which this process knows no plan."""

    wanted = describe(spark, "facts.managed")
    assert read_facts(spark, "facts.managed", Remote()) == wanted  # type: ignore[arg-type]
