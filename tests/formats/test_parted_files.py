"""Files that this process writes for tables with partitions: they are those that the format would have written."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.choose import open_rows
from dbt_zorder.spark.catalog import TableName, describe, properties
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.delta.target import DeltaTarget
from dbt_zorder.tables.iceberg.target import IcebergTarget
from dbt_zorder.tables.lakehouse.targets import batch_target
from dbt_zorder.tables.registry import LAKEHOUSE
from tests.formats.tables import BY_SPARK, HERE, build, failing, increment, request, rewrite, rows
from tests.support import same_rows, settings
from tests.unit.engine.parquet.test_writer import needs_page_limit

pytestmark = needs_page_limit

TEXTS = [
    "'x/y'",
    "'日本'",
    "'a+b~'",
    "'%41'",
    "'a=b'",
    "'ü ?'",
    "''",
    "NULL",
    "' '",
    "'null'",
    "'12'",
    "repeat('k', 30)",
]
PARTED = {
    "text": f"array({', '.join(TEXTS)})[CAST(id % {len(TEXTS)} AS INT)]",
    "Tag_Ä": "IF(id % 4 = 0, NULL, date'0044-03-15' + CAST(id % 4 * 700000 AS INT))",
    "a.b": "IF(id % 3 = 0, NULL, id % 3 - 2)",
    "b": "IF(id % 5 = 0, NULL, id % 5 = 1)",
    "tiny": "CAST(id % 3 - 1 AS TINYINT)",
    "small": "CAST(id % 2 AS SMALLINT)",
}
"""By the name of a column to part a table by, what is in it."""


def parted_rows(spark: SparkSession, count: int = 3000) -> DataFrame:
    columns = [f"{sql} AS {quote_name(name)}" for name, sql in PARTED.items()]
    return rows(spark, 0, count).selectExpr("a", *columns, "s", "id", "CAST(id AS DOUBLE) AS x", "st")


def file_facts(spark: SparkSession, table: TableName, file_format: str) -> list[Any]:
    """Return the facts that a table's log or manifests state of its files, without names, sizes and times."""
    if file_format == "iceberg":
        found = spark.table(f"{table.sql}.files").selectExpr(
            "partition", "record_count", "spec_id", "sort_order_id", "readable_metrics"
        )
        actions = [row.asDict(recursive=True) for row in found.collect()]
        for one in actions:
            for metrics in one["readable_metrics"].values():
                del metrics["column_size"]
        return sorted(actions, key=str)
    info = describe(spark, table)
    assert info is not None
    log = sorted((Path(urlsplit(info.location).path) / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in log[-1].read_text().splitlines()]
    actions = [
        {
            "partition": one["add"]["partitionValues"],
            "folder": one["add"]["path"].rpartition("/")[0],
            **json.loads(one["add"]["stats"]),
        }
        for one in actions
        if "add" in one
    ]
    return sorted(actions, key=str)


@pytest.mark.parametrize(
    "parts",
    [
        ["text"],
        pytest.param(["Tag_Ä", "a.b"], marks=pytest.mark.slow),
        pytest.param(["b", "tiny", "small"], marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize("copied", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_table_is_what_spark_would_have_made_of_it(
    spark: SparkSession,
    table: TableName,
    file_format: str,
    way: Any,
    parts: list[str],
    copied: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if copied:
        monkeypatch.setattr("dbt_zorder.engine.choose.SMALL_BYTES", -1)
    df, written = parted_rows(spark), {}
    for name, in_memory, who in (("here", 1 << 28, HERE), ("spark", 0, BY_SPARK)):
        of = TableName(table.schema, f"{table.identifier}_{name}")
        wanted = request(of, file_format, files=1, partition_by=[quote_name(part) for part in parts])
        report = build(spark, df, replace(wanted, in_memory=in_memory))
        assert way(of) == who
        info = describe(spark, of)
        assert info is not None
        assert [*info.partition_columns] == parts
        written[who] = (
            Counter(map(tuple, spark.table(of.sql).collect())),
            spark.table(of.sql).schema,
            {key: value for key, value in properties(spark, of).items() if key != "current-snapshot-id"},
            file_facts(spark, of, file_format),
            replace(report.summary, bytes=0),
        )
        for part in parts:
            for value in {row[0] for row in df.select(quote_name(part)).distinct().collect()}:
                asked = f"{quote_name(part)} <=> {literal(value)}"
                # to Delta, an empty text that parts a table is NULL
                if file_format == "iceberg" or (part, value) not in {("text", ""), ("text", None)}:
                    assert same_rows(spark.table(of.sql).where(asked), df.where(asked)), asked
    for here, by_spark in zip(written[HERE], written[BY_SPARK], strict=True):
        assert here == by_spark
    if file_format == "delta":  # which knows its files by how their names are spelled
        of = TableName(table.schema, f"{table.identifier}_here")
        with settings(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
            spark.sql(f"VACUUM {of.sql} RETAIN 0 HOURS").collect()
        assert Counter(map(tuple, spark.table(of.sql).collect())) == written[HERE][0]


def literal(value: Any) -> str:
    if value is None or isinstance(value, (bool, int)):
        return "NULL" if value is None else str(value)
    return f"'{value}'" if isinstance(value, str) else f"date'{value.isoformat()}'"


@pytest.mark.parametrize(
    "sql",
    [
        "CAST(id % 2 AS TIMESTAMP)",
        pytest.param("CAST(id % 2 AS DECIMAL(5, 2))", marks=pytest.mark.slow),
        pytest.param("CAST(id % 2 AS DOUBLE)", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_what_formats_have_texts_of_their_own_for_is_theirs(
    spark: SparkSession, table: TableName, file_format: str, way: Any, sql: str
) -> None:
    df = rows(spark, 0, 300).selectExpr("id", "a", "s", f"{sql} AS part")
    build(spark, df, request(table, file_format, files=1, partition_by=["part"]))
    assert way(table) == BY_SPARK
    assert same_rows(spark.table(table.sql), df)


@pytest.mark.parametrize("copied", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_text_that_stands_for_null_is_no_null_where_the_format_has_it_so(
    spark: SparkSession, table: TableName, file_format: str, way: Any, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if copied:
        monkeypatch.setattr("dbt_zorder.engine.choose.SMALL_BYTES", -1)
    text = "array('__HIVE_DEFAULT_PARTITION__', 'x', '', NULL)[CAST(id % 4 AS INT)]"
    df = rows(spark, 0, 300).selectExpr("id", "a", "s", f"{text} AS part")
    answers = []
    for in_memory in (1 << 28, 0):
        wanted = request(table, file_format, files=1, partition_by=["part"])
        build(spark, df, replace(wanted, in_memory=in_memory))
        answers.append(Counter(map(tuple, spark.table(table.sql).collect())))
    assert answers[0] == answers[1]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["repeat('*', 100)", "'a\\u0000b'", "repeat(' ', 100)", "'\\u0001 \\t'"])
def test_what_names_no_folder_here_is_icebergs(
    spark: SparkSession, table: TableName, file_format: str, text: str
) -> None:
    if file_format == "delta":
        pytest.skip("Delta has folders by Spark's own names")
    df = rows(spark, 0, 300).selectExpr("id", "a", "s", f"IF(id % 2 = 0, {text}, 'x') AS part")
    build(spark, df, request(table, file_format, files=1, partition_by=["part"]))
    assert same_rows(spark.table(table.sql), df)
    assert spark.table(table.sql).where(f"part = {text}").count() == 150


def test_batches(spark: SparkSession, table: TableName, file_format: str, way: Any) -> None:
    twin = TableName(table.schema, f"{table.identifier}_spark")
    batches = [
        (0, 900, Batch()),
        (900, 1000, Batch()),
        (1000, 1040, Batch(overwrite=True)),
        (1040, 1100, Batch()),
    ]
    for number, (first, end, batch) in enumerate(batches):
        df = rows(spark, first, end).where("p <> 2 OR id < 1000")
        for of, in_memory in ((table, 1 << 28), (twin, 0)):
            wanted = replace(request(of, file_format, files=2, partition_by=["p"]), in_memory=in_memory)
            if number:
                report = increment(spark, lambda rows=df: rows, wanted, batch, "never")  # type: ignore[misc]
                assert report.appended is not None
                assert report.appended.rows == df.count()
            else:
                build(spark, df, wanted)
            assert way(of) == (HERE if in_memory else BY_SPARK)
        assert same_rows(spark.table(table.sql), spark.table(twin.sql))
    left = rows(spark, 0, 1000).where("p = 2").unionByName(rows(spark, 1000, 1100).where("p <> 2"))
    assert same_rows(spark.table(table.sql), left)
    rewritten = rewrite(spark, request(table, file_format, files=2, partition_by=["p"]))
    assert same_rows(spark.table(table.sql), left)
    assert rewritten.summary.rows == left.count()


def test_rows_that_come_in_while_partitions_are_replaced_are_not_lost_unheard(
    spark: SparkSession, table: TableName, file_format: str, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if file_format == "iceberg":
        pytest.skip("Iceberg replaces what there is at the commit, also of Spark's own writer")
    wanted = request(table, file_format, files=2, partition_by=["p"])
    build(spark, rows(spark, 0, 600), wanted)
    others = rows(spark, 900, 930)

    @contextlib.contextmanager
    def meanwhile(*args: Any) -> Iterator[Any]:
        with open_rows(*args) as source:
            others.writeTo(table.sql).append()
            yield source

    monkeypatch.setattr("dbt_zorder.tables.build.open_rows", meanwhile)
    batch = rows(spark, 600, 700).where("p = 1")

    def replace_partition() -> None:
        increment(spark, lambda: batch, wanted, Batch(overwrite=True, may_rewrite=False), "never")

    with pytest.raises(Exception, match=r"(?i)concurrent"):
        replace_partition()
    assert same_rows(spark.table(table.sql), rows(spark, 0, 600).unionByName(others))
    others = others.where("p <> 1")
    way(table)
    replace_partition()
    assert way(table) == HERE
    left = rows(spark, 0, 600).unionByName(rows(spark, 900, 930)).where("p <> 1").unionByName(batch)
    assert same_rows(spark.table(table.sql), left.unionByName(others))


@pytest.mark.slow
def test_a_table_is_parted_in_another_way(spark: SparkSession, table: TableName, file_format: str, way: Any) -> None:
    df = rows(spark, 0, 600)
    for parts in ([], ["p"], ["p"], ["p", "part"], []):
        query = df.selectExpr("*", "CAST(id % 2 AS INT) AS part")
        before = describe(spark, table)
        build(spark, query, request(table, file_format, files=2, partition_by=parts))
        # Delta replaces a table that changes
        changes = before is not None and [*before.partition_columns] != parts
        assert way(table) == (BY_SPARK if file_format == "delta" and changes else HERE)
        info = describe(spark, table)
        assert info is not None
        assert [*info.partition_columns] == parts
        assert same_rows(spark.table(table.sql), query)


@pytest.mark.slow
def test_a_table_that_others_part_otherwise_by_now_is_made_anew(
    spark: SparkSession, table: TableName, file_format: str, way: Any
) -> None:
    if file_format == "delta":
        pytest.skip("Delta parts a table by columns alone")
    wanted = request(table, file_format, files=2, partition_by=["p"])
    build(spark, rows(spark, 0, 600), wanted)
    assert way(table) == HERE
    spark.sql(f"ALTER TABLE {table.sql} ADD PARTITION FIELD bucket(4, id)")
    batch = rows(spark, 600, 700)
    found = batch_target(LAKEHOUSE[file_format].form, batch, wanted, replaces=False)
    assert isinstance(found, IcebergTarget)
    assert found.writer(batch.schema, ()) == "it is parted in another way"
    increment(spark, lambda: batch, wanted, Batch(), "never")
    assert same_rows(spark.table(table.sql), rows(spark, 0, 700))
    info = describe(spark, table)
    assert info is not None
    assert [*info.partition_columns] == ["p"]


def test_what_fails_leaves_no_folder(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=2, partition_by=["p"])
    schema = spark.catalog.getDatabase(table.schema).locationUri
    with monkeypatch.context() as patch:
        for one in (DeltaTarget, IcebergTarget):
            patch.setattr(one, "describe_files", failing(RuntimeError("no")))
        with pytest.raises(RuntimeError, match="no"):
            build(spark, rows(spark, 0, 600), wanted)
    assert describe(spark, table) is None
    assert not [path for path in Path(urlsplit(schema).path).glob(f"{table.identifier}*") if [*path.rglob("p=*")]]
    build(spark, rows(spark, 0, 600), wanted)
    before = set(Path(urlsplit(schema).path).glob(f"{table.identifier}/**/*.parquet"))
    with monkeypatch.context() as patch:
        for one in (DeltaTarget, IcebergTarget):
            patch.setattr(one, "describe_files", failing(RuntimeError("no")))
        with pytest.raises(RuntimeError, match="no"):
            increment(spark, lambda: rows(spark, 600, 700), wanted, Batch(), "never")
    assert before == set(Path(urlsplit(schema).path).glob(f"{table.identifier}/**/*.parquet"))
    assert same_rows(spark.table(table.sql), rows(spark, 0, 600))
