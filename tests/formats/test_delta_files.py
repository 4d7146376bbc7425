"""Files that this process writes for a Delta table: what its log says of them, and when Delta writes its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.parquet.writer import ArrowWriter
from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import FORMAT_SUFFIX, TableName, describe, properties, schema_location
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.delta import transaction as delta_transaction
from dbt_zorder.tables.delta.target import DeltaTarget
from dbt_zorder.tables.lakehouse.state import current_version
from tests.conftest import FORMATS_HERE
from tests.formats.tables import BY_SPARK, HERE, build, failing, increment, last_whole_layout, request, rows, same
from tests.support import same_rows, settings
from tests.unit.engine.local.test_large_table import write_in_parts
from tests.unit.engine.parquet.test_writer import needs_page_limit

pytestmark = [
    needs_page_limit,
    pytest.mark.skipif(FORMATS_HERE[:1] != ["delta"], reason="of Delta alone"),
]

NAN = "CASE WHEN id % 10 = 0 THEN double('NaN') WHEN id % 7 = 0 THEN NULL ELSE id * 1.5 END"
ALL = [
    "id",
    "CAST(id % 100 AS TINYINT) AS tiny",
    "CAST(pmod(hash(id), 5000) AS SMALLINT) AS a",
    "CAST(id AS INT) AS i",
    "concat('k', pmod(hash(id, 7), 5000)) AS s",
    f"{NAN} AS x",
    "CAST(id / 4 AS FLOAT) AS y",
    "double('NaN') AS nan",
    "CAST(NULL AS DOUBLE) AS nothing",
    "timestamp'2024-02-03 04:05:06.789123' + make_dt_interval(0, 0, 0, id) AS t",
    "CAST(timestamp'1931-02-03 04:05:06.789123' + make_dt_interval(0, 0, 0, id) AS TIMESTAMP_NTZ) AS n",
    "array(id, NULL) AS ar",
    "map('a', id) AS m",
    f"named_struct('q', {NAN}, 'Upper', array(named_struct('z', CAST(id AS TINYINT)))) AS st",
    "CAST(id - 50 AS DECIMAL(7, 2)) / 100 AS d7",
    "CAST(id AS DECIMAL(12, 2)) AS d12",
    "CAST(id - 50 AS DECIMAL(30, 2)) AS d30",
    "date'1900-01-01' + CAST(id % 1000 AS INT) AS dt",
    "id % 2 = 0 AS b",
    "encode(CAST(id AS STRING), 'utf-8') AS bi",
    "concat(repeat('é', 31), IF(id % 2 = 0, 'ab', ''), s) AS long",
]


def all_types(spark: SparkSession, count: int = 4000) -> DataFrame:
    return spark.range(count).selectExpr(*(one for one in ALL))


def folder_of(spark: SparkSession, table: TableName) -> Path:
    info = describe(spark, table)
    assert info is not None
    return Path(urlsplit(info.location).path)


def commits(spark: SparkSession, table: TableName) -> list[list[Any]]:
    """Return the actions of each commit."""
    files = sorted((folder_of(spark, table) / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def data(spark: SparkSession, table: TableName) -> set[str]:
    return {path.name for path in folder_of(spark, table).glob("*.parquet")}


def history(spark: SparkSession, table: TableName) -> list[tuple[int, str]]:
    found = spark.sql(f"DESCRIBE HISTORY {table.sql}").select("version", "operation").collect()
    return [(row[0], row[1]) for row in found]


def test_a_table_is_what_spark_would_have_made_of_it(
    spark: SparkSession, table: TableName, file_format: str, way: Any
) -> None:
    df, written = all_types(spark), {}
    for name, in_memory, who in (("here", 1 << 28, HERE), ("spark", 0, BY_SPARK)):
        of = TableName(table.schema, f"{table.identifier}_{name}")
        wanted = request(of, file_format, files=1, properties={"mine": "1"})
        wanted = replace(wanted, in_memory=in_memory, comment="a comment")
        report = build(spark, df, wanted)
        assert way(of) == who
        assert same(spark.table(of.sql), df)
        last = commits(spark, of)[-1]
        (add,) = (one["add"] for one in last if "add" in one)
        stats = json.loads(add["stats"])
        for column in ("ar", "m"):  # their statistics are counts of NULL alone
            stats["nullCount"].pop(column, None)
        stats["nullCount"]["st"].pop("Upper", None)
        for side in ("minValues", "maxValues"):
            stats[side].pop("y")  # a FLOAT is spelled as one or as the DOUBLE that it is
            stats[side].pop("nan", None)
        # both end with what is greater than the rest that was cut off
        assert stats["maxValues"].pop("long")[:-1] == f"{'é' * 31}k"
        detail = spark.sql(f"DESCRIBE DETAIL {of.sql}").first()
        assert detail is not None
        info = describe(spark, of)
        assert info is not None
        written[who] = (
            spark.table(of.sql).schema,
            dict(properties(spark, of)),
            *(stats[side] for side in ("numRecords", "nullCount", "minValues")),
            *stats["maxValues"].items(),
            (info.kind, info.provider, info.comment, detail["description"], detail["minReaderVersion"]),
            sorted(detail["tableFeatures"] or []),
            last_whole_layout(spark, file_format, of).rows,
            replace(report.summary, bytes=0),
        )
    for here, by_spark in zip(written[HERE], written[BY_SPARK], strict=True):
        assert here == by_spark


def test_a_new_table_has_its_rows_from_the_first_that_anybody_sees_of_it(
    spark: SparkSession, table: TableName, file_format: str, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=4)
    commit = DeltaTarget.commit

    def looking(self: DeltaTarget, files: Any) -> None:
        assert describe(spark, table) is None
        commit(self, files)
        assert describe(spark, table) is None

    monkeypatch.setattr(DeltaTarget, "commit", looking)
    build(spark, rows(spark, 0, 500), wanted)
    assert way(table) == HERE
    assert same_rows(spark.table(table.sql), rows(spark, 0, 500))
    assert folder_of(spark, table).name == table.identifier
    assert [row[0] for row in history(spark, table)] == [1, 0]
    monkeypatch.undo()
    for end in (600, 50):
        build(spark, rows(spark, 0, end), wanted)
        assert way(table) == HERE
        assert same_rows(spark.table(table.sql), rows(spark, 0, end))
    assert history(spark, table)[:2] == [(3, "WRITE"), (2, "WRITE")]
    assert spark.sql(f"SELECT * FROM {table.sql} VERSION AS OF 1").count() == 500
    # other columns, another property: replaced, as by Spark
    build(spark, rows(spark, 0, 70).drop("p"), wanted)
    assert way(table) == BY_SPARK
    assert same_rows(spark.table(table.sql), rows(spark, 0, 70).drop("p"))
    build(spark, rows(spark, 0, 70).drop("p"), replace(wanted, properties={"mine": "1"}))
    assert way(table) == BY_SPARK
    assert properties(spark, table)["mine"] == "1"


def test_a_new_table_that_fails_is_not_there(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=4)

    def fails(*_: object) -> None:
        raise RuntimeError("no such luck")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTarget, "commit", fails)
        with pytest.raises(RuntimeError, match="no such luck"):
            build(spark, rows(spark, 0, 500), wanted)
    for name in (table.identifier, table.identifier + FORMAT_SUFFIX):
        assert describe(spark, TableName(table.schema, name)) is None
    build(spark, rows(spark, 0, 500), wanted)
    assert same_rows(spark.table(table.sql), rows(spark, 0, 500))


@pytest.mark.slow
def test_with_a_place_of_its_own(
    spark: SparkSession, table: TableName, file_format: str, way: Any, tmp_path: Path
) -> None:
    wanted = request(table, file_format, files=2, location_root=f"file:{tmp_path}")
    for end in (100, 200):
        build(spark, rows(spark, 0, end), wanted)
        assert way(table) == HERE
        assert same_rows(spark.table(table.sql), rows(spark, 0, end))
    assert [path.name for path in tmp_path.iterdir()] == [table.identifier]


@pytest.mark.slow
def test_what_lies_in_its_place_is_left_to_delta(
    spark: SparkSession, table: TableName, file_format: str, way: Any, tmp_path: Path
) -> None:
    (tmp_path / table.identifier).mkdir()
    (tmp_path / table.identifier / "README").write_text("mine")
    build(spark, rows(spark, 0, 100), request(table, file_format, files=2, location_root=f"file:{tmp_path}"))
    assert way(table) == BY_SPARK
    assert spark.table(table.sql).count() == 100


def test_what_a_killed_run_left_is_in_nobodys_way(
    spark: SparkSession, table: TableName, file_format: str, way: Any
) -> None:
    left = Path(urlsplit(schema_location(spark, table.schema)).path) / f"{table.identifier}{FORMAT_SUFFIX}"
    left.mkdir()
    (left / "part-0.parquet").write_bytes(b"half")
    with pytest.raises(BuildError, match="is in the way of a new Delta table"):
        build(spark, rows(spark, 0, 500), request(table, file_format, files=4))
    assert [one.name for one in left.iterdir()] == ["part-0.parquet"], "nobody knows whose that is"
    assert describe(spark, table) is None
    mark = blake2b(str(table).lower().encode(), digest_size=8).hexdigest()
    (left / "_zorder_helper").write_text(mark)  # as in a table that was half deleted
    build(spark, rows(spark, 0, 500), request(table, file_format, files=4))
    assert way(table) == HERE
    assert not left.exists()
    assert data(spark, table) == {Path(unquote(one)).name for one in spark.table(table.sql).inputFiles()}
    assert same_rows(spark.table(table.sql), rows(spark, 0, 500))


def test_batches(spark: SparkSession, table: TableName, file_format: str, way: Any) -> None:
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 1000), wanted)
    for first in range(1000, 2200, 100):  # over a checkpoint
        report = increment(spark, partial(rows, spark, first, first + 100), wanted, Batch(may_rewrite=False), "never")
        assert way(table) == HERE
        assert report.appended is not None
        assert (report.appended.rows, report.appended.files) == (100, 1)
    assert same_rows(spark.table(table.sql), rows(spark, 0, 2200))
    (last,) = (one["commitInfo"] for one in commits(spark, table)[-1] if "commitInfo" in one)
    assert last["operation"] == "WRITE"
    assert last["operationParameters"]["mode"] == "Append"
    assert last["isBlindAppend"]
    assert last["operationMetrics"]["numOutputRows"] == "100"
    spark.sql(f"DELETE FROM {table.sql} WHERE id = 5")
    increment(spark, partial(rows, spark, 2200, 2300), wanted, Batch(may_rewrite=False), "never")
    assert way(table) == HERE
    assert spark.table(table.sql).count() == 2299
    build(spark, rows(spark, 0, 30), wanted)  # over files with rows that were deleted from them
    assert same_rows(spark.table(table.sql), rows(spark, 0, 30))


def test_a_value_that_is_too_long_for_a_bound_does_not_hide_its_row_group(
    spark: SparkSession, table: TableName, file_format: str, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_parts(monkeypatch, 40_000)
    monkeypatch.setattr("dbt_zorder.engine.choose.SMALL_BYTES", -1)
    text = "concat(lpad(id, 6, '0'), IF(id >= 3000, repeat('x', 5000), ''))"
    df = spark.range(4000).selectExpr("id", f"{text} AS t", "id % 7 AS a")
    build(spark, df, request(table, file_format, by=("id",), files=1))
    assert way(table) == HERE
    for where in ("t >= '003000'", "t = concat('003500', repeat('x', 5000))"):
        assert spark.table(table.sql).where(where).count() == df.where(where).count() > 0


def test_filters_find_what_the_query_has(spark: SparkSession, table: TableName, file_format: str, way: Any) -> None:
    df = all_types(spark)
    build(spark, df, request(table, file_format, by=("x", "t"), files=16))
    assert way(table) == HERE
    moment = "timestamp'2024-02-03 04:05:06.789123' + make_dt_interval(0, 0, 0, 2001)"
    asked = [
        "isnan(x)",
        "x > 5000",
        "x < 3",
        "x IS NULL",
        "st.q = 4.5",
        "nothing IS NULL",
        "isnan(nan)",
        f"t = {moment}",
        f"t >= {moment}",
        "n <= CAST(timestamp'1931-02-03 04:05:06.789123' AS TIMESTAMP_NTZ)",
        "d30 = 7",
        "d7 < -0.4",
        "dt = date'1900-01-07'",
        "long >= concat(repeat('é', 31), 'k4')",
        "long < concat(repeat('é', 31), 'b')",
        "b",
        "bi = encode('77', 'utf-8')",
    ]
    for where in asked:
        found = spark.table(table.sql).where(where)
        assert found.count() == df.where(where).count() > 0, where


@pytest.mark.slow
@pytest.mark.parametrize(
    "clause",
    [
        "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
        "SET TBLPROPERTIES ('parquet.block.size' = '65536')",
        "ADD CONSTRAINT few CHECK (a < 5000)",
    ],
)
def test_delta_writes_what_only_it_knows(
    spark: SparkSession, table: TableName, file_format: str, way: Any, clause: str
) -> None:
    wanted = request(table, file_format, files=2)
    build(spark, rows(spark, 0, 100), wanted)
    assert way(table) == HERE
    spark.sql(f"ALTER TABLE {table.sql} {clause}")
    increment(spark, partial(rows, spark, 100, 200), wanted, Batch(may_rewrite=False), "never")
    assert way(table) == BY_SPARK
    assert same_rows(spark.table(table.sql), rows(spark, 0, 200))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("definition", "session"),
    [
        ("id BIGINT NOT NULL, a INT, s STRING, p INT, st STRUCT<x: BIGINT, y: STRING>", {}),
        ("id BIGINT, a INT, s VARCHAR(20), p INT, st STRUCT<x: BIGINT, y: STRING>", {}),
        (
            "id BIGINT, a INT, s STRING, p INT, st STRUCT<x: BIGINT, y: STRING>",
            {"spark.databricks.delta.autoCompact.enabled": "true"},
        ),
        (
            "id BIGINT, a INT, s STRING, p INT, st STRUCT<x: BIGINT, y: STRING>",
            {"spark.databricks.delta.stats.collect": "false"},
        ),
        (
            "id BIGINT, a INT, s STRING, p INT, st STRUCT<x: BIGINT, y: STRING>",
            {"spark.databricks.delta.write.txnAppId": "me", "spark.databricks.delta.write.txnVersion": "1"},
        ),
    ],
)
def test_delta_writes_into_what_asks_more_of_rows(
    spark: SparkSession, table: TableName, file_format: str, way: Any, definition: str, session: Mapping[str, str]
) -> None:
    wanted = request(table, file_format, files=2)
    spark.sql(f"CREATE TABLE {table.sql} ({definition}) USING delta")
    with settings(spark, session):
        increment(spark, partial(rows, spark, 100, 200), wanted, Batch(may_rewrite=False), "never")
    assert way(table) == BY_SPARK
    assert same_rows(spark.table(table.sql), rows(spark, 100, 200))


def test_what_the_session_wants_of_new_tables_is_deltas(
    spark: SparkSession, table: TableName, file_format: str, way: Any
) -> None:
    with settings(spark, {"spark.databricks.delta.properties.defaults.appendOnly": "true"}):
        build(spark, rows(spark, 0, 100), request(table, file_format, files=2))
    assert way(table) == BY_SPARK
    assert properties(spark, table)["delta.appendOnly"] == "true"
    assert spark.table(table.sql).count() == 100


def test_what_fails_leaves_the_table_as_it_was(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 500), wanted)
    before, commit, files = data(spark, table), DeltaTarget.commit, ArrowWriter.files

    def build_fails(error: type[BaseException], match: str) -> set[str]:
        now = spark.table(table.sql).count()
        with pytest.raises(error, match=match):
            build(spark, rows(spark, 500, 900), wanted)
        assert spark.table(table.sql).count() == now
        return data(spark, table) - before

    def altered(self: DeltaTarget, files: Any) -> None:
        spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('mine' = '{len(files)}')")
        commit(self, files)

    for where, error in (
        ("lakehouse.written_file.pq.read_metadata", RuntimeError("no such luck")),
        ("lakehouse.written_file.os.path.getsize", RuntimeError("no such luck")),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"dbt_zorder.tables.{where}", failing(error))
            assert build_fails(RuntimeError, "no such luck") == set()
    with monkeypatch.context() as patch:
        patch.setattr(ArrowWriter, "files", lambda self: files(self)[1:])
        hidden = build_fails(BuildError, "400 rows were laid out")
        assert len(hidden) == 1
        before |= hidden
    with monkeypatch.context() as patch:
        patch.setattr(DeltaTarget, "commit", failing(RuntimeError("nobody knows")))
        left = build_fails(RuntimeError, "nobody knows")
        assert len(left) == 4
        before |= left
    with monkeypatch.context() as patch:
        patch.setattr(DeltaTarget, "commit", altered)
        assert build_fails(BuildError, "Another run changed") == set()


def test_of_two_that_replace_a_table_delta_takes_one(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit between the begin of ours and its end is refused by Delta, and our files go."""
    wanted = request(table, file_format, files=4)
    build(spark, rows(spark, 0, 500), wanted)
    operation = delta_transaction._operation

    def overtaken(*args: Any) -> Any:
        rows(spark, 600, 610).writeTo(table.sql).append()
        return operation(*args)

    monkeypatch.setattr(delta_transaction, "_operation", overtaken)
    before = data(spark, table)
    with pytest.raises(Exception, match=r"(?i)concurrent"):
        build(spark, rows(spark, 0, 700), wanted)
    assert len(data(spark, table) - before) <= 2  # of the other
    assert spark.table(table.sql).count() == 510
    # a batch beside another one: both are in
    increment(spark, partial(rows, spark, 700, 800), wanted, Batch(may_rewrite=False), "never")
    assert spark.table(table.sql).count() == 620


def test_rows_that_come_in_while_all_are_laid_out_are_kept(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=2)
    build(spark, rows(spark, 0, 100), wanted)
    before, describe = current_version(spark, file_format, table), DeltaTarget.describe_files

    def interrupted(*args: Any) -> Any:
        rows(spark, 500, 510).writeTo(table.sql).append()
        return describe(*args)

    monkeypatch.setattr(DeltaTarget, "describe_files", interrupted)
    files = data(spark, table)
    with pytest.raises(BuildError, match="Another run changed"):
        build(spark, rows(spark, 0, 120), wanted, before)
    assert spark.table(table.sql).count() == 110
    assert len(data(spark, table) - files) <= 2  # of the other


@pytest.mark.parametrize("step", ["describe_files", "commit"])
def test_of_two_that_make_a_table_at_once_none_is_without_rows_or_has_them_twice(
    spark: SparkSession, table: TableName, file_format: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=2)
    following = TableName(table.schema, table.identifier + FORMAT_SUFFIX)
    original = getattr(DeltaTarget, step)

    def overtaken(*args: Any) -> Any:
        found = original(*args)
        spark.sql(f"DROP TABLE IF EXISTS {following.sql}")  # as another run begins
        rows(spark, 0, 100).limit(0).writeTo(following.sql).using("delta").createOrReplace()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTarget, step, overtaken)
        with pytest.raises(BuildError, match="Another run"):
            build(spark, rows(spark, 0, 100), wanted)
    assert describe(spark, table) is None
    build(spark, rows(spark, 0, 100), wanted)
    assert spark.table(table.sql).count() == 100


@pytest.mark.slow
def test_who_comes_second_leaves_nothing(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, commit = request(table, file_format, files=2), DeltaTarget.commit

    def overtaken(self: DeltaTarget, files: Any) -> None:
        commit(self, files)
        rows(spark, 0, 50).writeTo(table.sql).using("delta").create()

    monkeypatch.setattr(DeltaTarget, "commit", overtaken)
    with pytest.raises(Exception, match=r"(?i)exists"):
        build(spark, rows(spark, 0, 100), wanted)
    assert spark.table(table.sql).count() == 50
    assert describe(spark, TableName(table.schema, table.identifier + FORMAT_SUFFIX)) is None


def test_what_is_least_is_told_as_it_is(spark: SparkSession, table: TableName, file_format: str, way: Any) -> None:
    digits = "12345678901234567890123456789012345678"
    df = spark.range(100).selectExpr(
        "id",
        f"CAST('{digits}' AS DECIMAL(38,0)) + id AS d",
        "id * 1.5D AS x",
        "concat(repeat('a', 32), '\U0010ffffb') AS t",
    )
    df = df.selectExpr("id", "CAST(d AS DECIMAL(38,0)) AS d", "x", "t")
    build(spark, df, request(table, file_format, by=("id",), files=2))
    assert way(table) == HERE
    kept = spark.table(table.sql)
    assert str(kept.agg(f.min("x")).collect()[0][0]) == "0.0"
    for where in (f"d = {digits}BD", f"d <= {digits[:-3]}700BD", "t > concat(repeat('a', 32), '\U0010ffff')"):
        assert kept.where(where).count() == df.where(where).count() > 0
