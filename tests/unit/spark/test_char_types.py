from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.errors import ColumnError
from dbt_zorder.pruning import scan
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.char_types import is_char, reader_schema, text_type
from dbt_zorder.spark.conf import settings
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from dbt_zorder.tables.save import save_table
from tests.support import unique

PRESERVED = {"spark.sql.preserveCharVarcharTypeInfo": "true"}
V, S, L = t.VarcharType(5), t.StringType(), t.LongType()
NESTED = t.StructType([t.StructField("a", t.ArrayType(V, False)), t.StructField("m", t.MapType(t.CharType(2), V))])
PLAIN = t.StructType([t.StructField("a", t.ArrayType(S, False)), t.StructField("m", t.MapType(S, S))])


@pytest.mark.parametrize(("given", "found"), [(V, S), (t.CharType(3), S), (L, L), (S, S), (NESTED, PLAIN)])
def test_string_stands_for_char_and_varchar_wherever_they_are(given: t.DataType, found: t.DataType) -> None:
    assert text_type(given) == found
    field = t.StructField("c", given, False, {"comment": "x"})
    assert reader_schema(t.StructType([field])) == t.StructType([t.StructField("c", found)])


@pytest.mark.parametrize(
    ("field", "found"),
    [
        (t.StructField("c", t.CharType(3)), True),
        (t.StructField("c", NESTED), True),
        (t.StructField("c", t.ArrayType(V)), False),
        (t.StructField("c", S, True, {"__CHAR_VARCHAR_TYPE_STRING": "array<char(3)>"}), True),
        (t.StructField("c", S, True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}), False),
        (t.StructField("c", t.StructType([t.StructField("char(", S)])), False),
    ],
)
def test_char_is_known_by_its_type_and_by_spark_s_note(field: t.StructField, found: bool) -> None:
    assert is_char(field) is found


@pytest.fixture
def preserving(spark: SparkSession) -> Any:
    """Let queries give CHAR and VARCHAR as types of their own."""
    with settings(spark, PRESERVED):
        if not isinstance(spark.sql("SELECT CAST('a' AS VARCHAR(3)) AS v").schema["v"].dataType, t.VarcharType):
            pytest.skip("this PySpark has no such setting")
        yield


@pytest.mark.parametrize("in_memory", [None, "never"])
@pytest.mark.parametrize(
    ("value", "by", "predicate"),
    [
        ("CAST(concat('x', id) AS VARCHAR(5))", "v", "v = 'x3'"),
        ("named_struct('a', CAST(concat('x', id) AS VARCHAR(5)))", "v.a", "v.a = 'x3'"),
        ("array(CAST(concat('x', id) AS VARCHAR(5)))", "v", "v[0] = 'x3'"),
    ],
)
def test_varchar_is_kept_as_text(
    spark: SparkSession, database: str, preserving: None, in_memory: str | None, value: str, by: str, predicate: str
) -> None:
    table = f"{database}.{unique('v')}"
    save_table(spark.sql(f"SELECT id, {value} AS v FROM range(10)"), table, [by], files=2, in_memory=in_memory)
    assert "varchar" not in spark.table(table).schema.simpleString()
    assert scan(spark, table, predicate).count() == spark.table(table).where(predicate).count() == 1


def test_char_is_refused_and_each_advice_works(spark: SparkSession, database: str, preserving: None) -> None:
    table = f"{database}.{unique('c')}"
    query = "SELECT id, {} AS c FROM (SELECT id, CAST(concat('x', id) AS CHAR(5)) AS c FROM range(10))"
    with pytest.raises(ColumnError, match="CHAR columns cannot be kept: 'c'"):
        save_table(spark.sql(query.format("c")), table, ["id"])
    for advice, value in (("CAST(rtrim(`c`) AS STRING)", "x3"), ("CAST(`c` AS STRING)", "x3   ")):
        save_table(spark.sql(query.format(advice)), table, ["c"], mode="overwrite")
        assert spark.table(table).where(f"c = '{value}'").count() == 1


def test_stats_of_a_table_of_varchar_can_be_read(spark: SparkSession, database: str, preserving: None) -> None:
    table = TableName(database, unique("foreign"))
    spark.sql(f"CREATE TABLE {table.sql} (id BIGINT, v VARCHAR(9)) USING parquet")
    spark.sql(f"INSERT INTO {table.sql} SELECT id, concat('x', id) FROM range(9)")
    assert rebuild_stats(spark, table, ["id", "v"]) > 0
    assert scan(spark, table.sql, "v = 'x3' AND id = 3").count() == 1
