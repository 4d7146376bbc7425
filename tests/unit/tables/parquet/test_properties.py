from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import TableName, properties
from dbt_zorder.spark.sql import quote_string
from dbt_zorder.tables.parquet import properties as module
from dbt_zorder.tables.parquet.properties import are_set, own_properties, with_record
from dbt_zorder.tables.parquet.swap import Definition, publish
from tests.support import unique
from tests.unit.tables.parquet.versions import V1, V2, Write, content

OWNED = {"source_url": "x", "docs": "my_url", "team": "me"}


def make(spark: SparkSession, database: str, has: Mapping[str, str]) -> TableName:
    table = TableName(database, unique("t"))
    pairs = ", ".join(f"{quote_string(name)} = {quote_string(value)}" for name, value in has.items())
    spark.sql(f"CREATE TABLE {table.sql} (a INT) USING parquet TBLPROPERTIES ({pairs})")
    return table


def test_what_spark_hides_is_told_in_its_own_words(spark: SparkSession, database: str) -> None:
    table = make(spark, database, {**with_record(OWNED), "other": "1"})
    assert properties(spark, table)["docs"] == "*********(redacted)"
    assert own_properties(spark, table) == OWNED
    assert are_set(spark, table, OWNED)
    assert not are_set(spark, table, {**OWNED, "docs": "another_url"})
    assert not are_set(spark, table, {"team": "me"}), "two that it sets no longer"


def test_without_a_way_to_the_catalog_digests_tell_and_nothing_is_made_up(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(spark, database, with_record(OWNED))
    monkeypatch.setattr(module, "_revealed", properties)
    assert are_set(spark, table, OWNED)
    assert not are_set(spark, table, {**OWNED, "docs": "another_url"})
    with pytest.raises(ZorderError, match=f"{table} has the property 'docs', whose value Spark hides"):
        own_properties(spark, table)


def test_the_earlier_form_of_the_record_is_read(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(
        spark, database, {"source_url": "x", "team": "me", "dbt_zorder.tblproperties": '["source_url", "team"]'}
    )
    assert own_properties(spark, table) == {"source_url": "x", "team": "me"}
    assert are_set(spark, table, {"source_url": "x", "team": "me"})
    assert not are_set(spark, table, {"team": "me"})
    monkeypatch.setattr(module, "_revealed", properties)
    assert not are_set(spark, table, {"source_url": "x", "team": "me"}), "which properties are its own is not known"
    with pytest.raises(ZorderError, match=r"dbt_zorder\.tblproperties"):
        own_properties(spark, table)


def test_a_table_without_a_record_has_none_of_its_own(spark: SparkSession, database: str) -> None:
    table = make(spark, database, {"other": "1"})
    assert own_properties(spark, table) == with_record({}) == {}
    assert are_set(spark, table, {})


def test_a_property_that_the_model_sets_no_longer_goes_and_others_stay(
    spark: SparkSession, database: str, tmp_path: Path, write: Write
) -> None:
    table = TableName(database, unique("T"))
    schema = write(V1, "SELECT 1 AS a").schema
    publish(spark, table, Definition(schema, (), "", {"one": "1", "two": "2"}), str(tmp_path / V1))
    assert own_properties(spark, table) == {"one": "1", "two": "2"}
    write(V2, "SELECT 2 AS a")
    publish(spark, table, Definition(schema, (), "", {"two": "2"}), str(tmp_path / V2))
    assert own_properties(spark, table) == {"two": "2"}
    assert "one" not in properties(spark, table)
    assert content(spark, table) == [(2,)]
    publish(spark, table, Definition(schema), str(tmp_path / V1))
    assert "two" not in properties(spark, table)
    assert content(spark, table) == [(1,)]


def test_a_property_that_spark_hides_is_known_to_be_the_same(
    spark: SparkSession, database: str, tmp_path: Path, write: Write
) -> None:
    table = TableName(database, unique("T"))
    owned = {"source_url": "https://there", "docs": "file://my_url", "api.token": "it's"}
    schema = write(V1, "SELECT 1 AS a").schema
    publish(spark, table, Definition(schema, (), "", owned), str(tmp_path / V1))
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('mine' = 'kept')")
    write(V2, "SELECT 2 AS a")
    publish(spark, table, Definition(schema, (), "", owned), str(tmp_path / V2))
    assert content(spark, table) == [(2,)]
    assert properties(spark, table)["mine"] == "kept", "only the location was changed"
    assert own_properties(spark, table) == owned
    publish(spark, table, Definition(schema, (), "", {**owned, "docs": "other_url"}), str(tmp_path / V1))
    assert own_properties(spark, table) == {**owned, "docs": "other_url"}
