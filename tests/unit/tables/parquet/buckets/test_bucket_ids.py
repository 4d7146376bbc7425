"""Files have the buckets that Spark's own writer gives their rows: of a million values of each type."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.layout import hash_index
from dbt_zorder.layout.hash_index import BUCKET_ID, HashIndex
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.collect import file_metadata
from dbt_zorder.tables.parquet.build import build

ROWS, BUCKETS = 1_000_000, 32

TEXT = "".join(random.Random(1).choices("aZ09 _\x00\t\n'\"\\éßıẞ世界한글𝄞🎉\u200d\uffff", k=400))
LONG = "xxhash64(id, 1)"

RANDOM = {
    "BOOLEAN": f"{LONG} % 2 = 0",
    "TINYINT": f"CAST({LONG} % 128 AS TINYINT)",
    "SMALLINT": f"CAST({LONG} % 32768 AS SMALLINT)",
    "INT": "hash(id)",
    "BIGINT": LONG,
    "DECIMAL(9,2)": f"CAST(CAST({LONG} % 1000000000 AS DECIMAL(9,0)) / 100 AS DECIMAL(9,2))",
    "DECIMAL(18,5)": f"CAST(CAST({LONG} % 1000000000000000000 AS DECIMAL(18,0)) / 100000 AS DECIMAL(18,5))",
    "DECIMAL(38,3)": f"CAST(concat({LONG} % 100000000000000000, abs(xxhash64(id, 2)) % 100000000000000000) AS "
    "DECIMAL(38,3))",
    "STRING": "concat(substr(text, 1 + pmod(hash(id, 2), 380), pmod(hash(id, 3), 20)), if(id % 3 = 0, '', id))",
    "BINARY": "substr(unhex(sha2(CAST(id AS STRING), 256)), 1, pmod(hash(id), 33))",
    "DATE": "date_add(DATE'1970-01-01', CAST(pmod(xxhash64(id, 1), 3652059) - 719162 AS INT))",
    "TIMESTAMP": "timestamp_micros(pmod(xxhash64(id, 1), 315537897600000000) - 62135596800000000)",
    "TIMESTAMP_NTZ": "CAST(timestamp_micros(pmod(xxhash64(id, 1), 315537897600000000) - 62135596800000000) AS "
    "TIMESTAMP_NTZ)",
    "INTERVAL YEAR TO MONTH": "make_ym_interval(0, hash(id))",
    "INTERVAL DAY TO SECOND": "make_dt_interval(hash(id) % 100000, 0, 0, CAST(hash(id, 1) / 1000D AS DECIMAL(18,6)))",
}


def values(spark: SparkSession, kind: str) -> DataFrame:
    """Return numbered values of a type, of its whole range; every 17th is NULL."""
    source = spark.range(ROWS).withColumn("text", f.lit(TEXT))
    return source.selectExpr("id", f"if(id % 17 = 0, NULL, CAST({RANDOM[kind]} AS {kind})) AS k")


def buckets(spark: SparkSession, table: TableName) -> dict[int, tuple[int, int]]:
    """Return number and checksum of the rows in each bucket, by the names of files as Spark's own scan reads them."""
    rows = spark.table(table.sql)
    named = rows.select("id", "k", file_metadata(rows).getField("file_name").alias("name"))
    found = named.groupBy(f.expr(f"CAST(regexp_extract(name, r'{BUCKET_ID}', 1) AS INT)")).agg(
        f.count("*"), f.expr("sum(CAST(xxhash64(id, k) AS DECIMAL(38, 0)))")
    )
    return {row[0]: (row[1], int(row[2])) for row in found.collect()}


@pytest.mark.parametrize("kind", RANDOM)
def test_a_million_values_have_sparks_buckets(spark: SparkSession, table: TableName, kind: str) -> None:
    theirs = TableName(table.schema, f"{table.identifier}_spark")
    spec = LayoutSpec(by=("id",), files=BUCKETS)
    build(spark, values(spark, kind), BuildRequest(table, spec, hash_index=HashIndex(["k"], BUCKETS)))
    values(spark, kind).write.format("parquet").bucketBy(BUCKETS, "k").saveAsTable(theirs.sql)
    found = buckets(spark, table)
    assert found == buckets(spark, theirs)
    assert sum(rows for rows, _ in found.values()) == ROWS
    assert len(found) > 1, "values of more than one bucket were compared"
    for name in (table, theirs):
        spark.sql(f"DROP TABLE {name.sql}")


def test_all_types_of_a_hash_index_are_compared(spark: SparkSession) -> None:
    compared = {type(values(spark, kind).schema["k"].dataType) for kind in RANDOM}
    assert compared == {*hash_index._HASHED}
