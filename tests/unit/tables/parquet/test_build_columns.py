"""Names and types of the columns that a table may be clustered by."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, LongType, StructType

from dbt_zorder.errors import ColumnError, ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.pruning import scan
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.conf import settings
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import increment
from dbt_zorder.tables.parquet.stats_view import stats_table
from dbt_zorder.tables.report import BuildReport
from tests.support import unique

pytestmark = pytest.mark.usefixtures("way")


def request(table: TableName, by: tuple[str, ...], **more: Any) -> BuildRequest:
    return BuildRequest(table, LayoutSpec(by=by, files=4), **more)


def run(spark: SparkSession, table: TableName, query: str, **more: Any) -> BuildReport:
    return build(spark, spark.sql(query), request(table, **more))


@pytest.mark.parametrize("column", ["a.b", "it's", "sp ace", "ünï 漢", "tick`s", "UPPER", "__zorder_key0"])
def test_columns_may_be_called_anything(spark: SparkSession, table: TableName, column: str) -> None:
    quoted = "`" + column.replace("`", "``") + "`"
    for _ in range(2):
        report = run(spark, table, f"SELECT id AS {quoted}, 1 AS x FROM range(50)", by=(quoted,))
    assert spark.table(table.sql).columns == [column, "x"]
    assert report.summary.point_query_files == {column: 1.0}


def test_every_type_that_can_be_ordered_is_built(spark: SparkSession, table: TableName) -> None:
    query = """SELECT cast(id AS tinyint) t, cast(id AS decimal(38, 5)) d, cast(id AS float) f, id % 2 = 0 b,
      cast(timestamp_seconds(id) AS timestamp_ntz) n, timestamp_seconds(id) ts, INTERVAL '1' SECOND * id i,
      INTERVAL '1' MONTH * id m, cast(id AS binary) x, array(id) arr, named_struct('q r', named_struct('z', id)) st,
      cast(id AS string) COLLATE UTF8_LCASE c, map(id, 1) other FROM range(100)"""
    for by in (("t", "d", "f", "b", "n", "ts", "i", "m"), ("x", "arr", "st.`q r`.z", "c")):
        report = run(spark, table, query, by=by, stats_columns=("st",))
        assert (report.summary.files, report.summary.rows) == (4, 100)


@pytest.mark.parametrize("by", ["st", "arr"])
def test_a_column_that_only_begins_with_an_order_is_built_by(spark: SparkSession, table: TableName, by: str) -> None:
    struct = "named_struct('x', id % 100, 'm', map(1, id))"
    for _ in range(2):
        report = run(spark, table, f"SELECT id, {struct} AS st, array({struct}) AS arr FROM range(500)", by=(by, "id"))
    assert spark.table(table.sql).count() == report.summary.rows == 500
    found = spark.table(stats_table(table).sql).select(f"columns.{by}.*")
    assert {tuple(row) for row in found.collect()} == {(None, None, 0)}
    assert list(report.summary.point_query_files) == ["id"]
    batch = spark.sql(f"SELECT id, {struct} AS st, array({struct}) AS arr FROM range(500, 550)")
    assert increment(spark, batch, request(table, (by,)), Batch()).appended is not None
    assert spark.table(table.sql).count() == 550


def test_char_is_refused_before_anything_is_read_and_varchar_is_text(spark: SparkSession, table: TableName) -> None:
    """A value of CHAR comes with blanks, and is found without them only where Spark knows the column as CHAR."""
    source = TableName(table.schema, unique("source"))
    spark.sql(f"CREATE TABLE {source.sql} (c CHAR(5), v VARCHAR(9), a ARRAY<CHAR(3)>, n BIGINT) USING parquet")
    spark.sql(f"INSERT INTO {source.sql} SELECT concat('a', id), concat('v', id), array('x'), id FROM range(9)")
    for columns, named in (("c, v, n", "'c'"), ("v, a, n", "'a'"), ("c AS d, a, n", "'d', 'a'")):
        with pytest.raises(ColumnError, match=f"CHAR columns cannot be kept: {named}.*rtrim"):
            run(spark, table, f"SELECT {columns} FROM {source.sql}", by=("n",))
        assert not spark.catalog.tableExists(table.sql)
    advice = "rtrim(c) AS c, v, CAST(a AS ARRAY<STRING>) AS a"
    run(spark, table, f"SELECT {advice}, n FROM {source.sql}", by=("c", "v"))
    assert spark.table(table.sql).where("c = 'a3' AND v = 'v3'").count() == 1
    assert scan(spark, table.sql, "c = 'a3'").count() == 1
    kept = f"SELECT CAST(c AS STRING) AS c, v, CAST(a AS ARRAY<STRING>) AS a, n FROM {source.sql}"
    increment(spark, spark.sql(kept), request(table, ("c", "v")), Batch())
    assert spark.table(table.sql).where("c IN ('a3', 'a3   ')").count() == 2


def test_the_files_own_metadata_may_be_a_column(spark: SparkSession, table: TableName) -> None:
    source = TableName(table.schema, unique("source"))
    spark.sql(f"CREATE TABLE {source.sql} USING parquet AS SELECT id FROM range(20)")
    query = f"SELECT id, CAST(id AS decimal(38, 2)) AS d, _metadata AS m FROM {source.sql}"
    assert run(spark, table, query, by=("id", "d")).summary.rows == 20
    assert spark.table(table.sql).where("m.file_size > 0").count() == 20


def test_a_type_that_a_user_defines_is_told_before_anything_is_written(spark: SparkSession, table: TableName) -> None:
    schema = StructType().add("id", LongType()).add("points", ArrayType(VectorUDT()))
    frame = spark.createDataFrame([(1, [Vectors.dense(1.0, 2.0)])], schema)
    with pytest.raises(ColumnError, match="'points' is of a user-defined type"):
        build(spark, frame, request(table, ("id",)))
    assert not spark.catalog.tableExists(table.sql)


def test_case_tells_columns_apart_where_it_does_in_the_session(spark: SparkSession, table: TableName) -> None:
    query = "SELECT id, id % 7 AS iD, -id AS p FROM range(100)"
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        wanted = request(table, ("id", "iD"), column_comments={"id": "one", "iD": "other"})
        assert build(spark, spark.sql(query), wanted).summary.rows == 100
        assert scan(spark, table.sql, "id = 50 AND iD = 1").count() == 1
        info = describe(spark, table)
        assert info is not None
        assert [comment for _, _, comment in info.columns] == ["one", "other", ""]
        increment(spark, spark.sql(query.replace("(100)", "(100, 120)")), wanted, Batch())
        assert scan(spark, table.sql, "id > 90 AND iD = 1").count() == 4
        parted = BuildRequest(table, LayoutSpec(by=("id",), partition_by=("iD",)))
        assert build(spark, spark.sql(query), parted).summary.rows == 100


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (LayoutSpec(by=("id", "ID")), "zorder_by: The column 'id' is named twice"),
        (LayoutSpec(by=("id",), partition_by=("ID",)), "The column 'id' is a partition column"),
    ],
)
def test_case_makes_no_difference_where_it_makes_none_in_the_session(
    spark: SparkSession, table: TableName, spec: LayoutSpec, said: str
) -> None:
    with pytest.raises(ZorderError, match=said):
        build(spark, spark.sql("SELECT id, 1 AS x FROM range(9)"), BuildRequest(table, spec))
    with pytest.raises(ZorderError, match="zorder_stats_columns: The column 'x' is named twice"):
        build(spark, spark.sql("SELECT id, 1 AS x FROM range(9)"), request(table, ("id",), stats_columns=("x", "X")))
