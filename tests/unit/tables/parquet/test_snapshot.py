from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import BuildError, SchemaChangeError, ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.tables.parquet import snapshot
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.merge.source import numbered_rows
from dbt_zorder.tables.parquet.snapshot import SnapshotColumns, default_columns, take_snapshot
from dbt_zorder.tables.report import MergeReport
from tests.support import unique

NAMES = SnapshotColumns("scd", "until")

Row = tuple[object, ...]


def rows(spark: SparkSession, *values: Row) -> DataFrame:
    return spark.createDataFrame(list(values), "id int, v string, until date, scd string")


def changes(spark: SparkSession, *values: Row, more: str = "") -> DataFrame:
    columns = "dbt_change_type string, id int, v string, dbt_unique_key int, until date, scd string"
    return spark.createDataFrame(list(values), columns + more)


def query(spark: SparkSession, *values: Row, more: str = "") -> str:
    name = unique("changes")
    changes(spark, *values, more=more).createOrReplaceTempView(name)
    return f"SELECT * FROM {name}"


def state(df: DataFrame) -> set[Row]:
    return {tuple(row) for row in df.selectExpr("id", "v", "cast(until as string)", "scd").collect()}


def day(spark: SparkSession, text: str) -> object:
    return spark.sql(f"select date'{text}'").collect()[0][0]


NextState = Callable[[DataFrame, DataFrame, SnapshotColumns], DataFrame]


@pytest.fixture
def next_state(spark: SparkSession, database: str) -> NextState:
    """Return a function that builds a snapshot, takes the next one, and returns its rows."""

    def take(before: DataFrame, staged: DataFrame, names: SnapshotColumns) -> DataFrame:
        wanted = BuildRequest(TableName(database, unique("snap")), LayoutSpec(by=("id",)))
        build(spark, before, wanted)
        view = unique("changes")
        staged.createOrReplaceTempView(view)
        take_snapshot(spark, f"SELECT * FROM {view}", wanted, names)
        spark.catalog.refreshTable(wanted.table.sql)
        return spark.table(wanted.table.sql)

    return take


def test_a_changed_row_is_closed_and_its_successor_added(spark: SparkSession, next_state: NextState) -> None:
    end = day(spark, "2024-05-01")
    before = rows(spark, (1, "a", None, "1a"), (2, "b", None, "2b"), (3, "old", end, "3old"), (3, "c", None, "3c"))
    staged = changes(
        spark,
        ("update", 1, "A", 1, end, "1a"),
        ("insert", 1, "A", 1, None, "1A"),
        ("delete", None, None, None, end, "3c"),
        ("insert", 4, "d", 4, None, "4d"),
    )
    assert state(next_state(before, staged, NAMES)) == {
        (1, "a", "2024-05-01", "1a"),
        (1, "A", None, "1A"),
        (2, "b", None, "2b"),
        (3, "old", "2024-05-01", "3old"),
        (3, "c", "2024-05-01", "3c"),
        (4, "d", None, "4d"),
    }


def test_what_a_merge_would_leave_alone_stays(spark: SparkSession, next_state: NextState) -> None:
    """A row that is closed is not closed again, and one whose id is there is not added again."""
    first, second = day(spark, "2024-05-01"), day(spark, "2024-06-01")
    before = rows(spark, (1, "a", first, "1a"), (2, "b", None, "2b"))
    staged = changes(spark, ("update", 1, "a", 1, second, "1a"), ("insert", 2, "other", 2, None, "2b"))
    assert state(next_state(before, staged, NAMES)) == {(1, "a", "2024-05-01", "1a"), (2, "b", None, "2b")}


def test_the_current_row_may_be_marked_by_a_date_of_its_own(spark: SparkSession, next_state: NextState) -> None:
    far, end = day(spark, "2099-12-31"), day(spark, "2024-05-01")
    before = rows(spark, (1, "a", far, "1a"), (2, "b", None, "2b"), (3, "c", end, "3c"))
    staged = changes(spark, *[("update", n, "", n, day(spark, "2024-06-01"), f"{n}{'abc'[n - 1]}") for n in (1, 2, 3)])
    found = state(next_state(before, staged, SnapshotColumns("scd", "until", "date'2099-12-31'")))
    assert {row[2] for row in found if row[0] != 3} == {"2024-06-01"}
    assert (3, "c", "2024-05-01", "3c") in found


def test_a_new_column_is_null_in_old_rows_and_dbts_own_are_left_out(spark: SparkSession, next_state: NextState) -> None:
    staged = changes(spark, ("insert", 2, "b", 2, None, "2b", 7), more=", extra int")
    found = next_state(rows(spark, (1, "a", None, "1a")), staged, NAMES)
    assert found.columns == ["id", "v", "until", "scd", "extra"]
    assert {(row.id, row.extra) for row in found.collect()} == {(1, None), (2, 7)}


def test_a_column_that_is_called_like_dbts_own_is_kept(spark: SparkSession, next_state: NextState) -> None:
    more = ", dbt_unique_key_1 int, dbt_unique_key_hash int, DBT_UNIQUE_KEY_2 int"
    staged = changes(spark, ("insert", 2, "b", 2, None, "2b", 7, 8, 9), more=more)
    found = next_state(rows(spark, (1, "a", None, "1a")), staged, NAMES)
    assert found.columns == ["id", "v", "until", "scd", "dbt_unique_key_hash"]


def test_two_changes_of_one_row_are_an_error(spark: SparkSession, next_state: NextState) -> None:
    end = day(spark, "2024-05-01")
    staged = changes(spark, ("update", 1, "x", 1, end, "1a"), ("update", 1, "y", 1, end, "1a"))
    with pytest.raises(Exception, match="has a unique_key twice"):
        next_state(rows(spark, (1, "a", None, "1a")), staged, NAMES).collect()


@pytest.fixture
def request_of(spark: SparkSession, database: str) -> BuildRequest:
    request = BuildRequest(TableName(database, unique("snap")), LayoutSpec(by=("id",), files=2))
    build(spark, rows(spark, (1, "a", None, "1a"), (2, "b", None, "2b")), request)
    return request


def location(spark: SparkSession, request: BuildRequest) -> str:
    info = describe(spark, request.table)
    assert info is not None
    return info.location


def test_changes_become_a_new_version_and_no_changes_none(spark: SparkSession, request_of: BuildRequest) -> None:
    first = location(spark, request_of)
    assert take_snapshot(spark, query(spark), request_of, NAMES) is None
    assert location(spark, request_of) == first
    report = take_snapshot(spark, query(spark, ("insert", 3, "c", 3, None, "3c")), request_of, NAMES)
    assert report is not None
    assert report.merged is not None
    assert report.merged.inserted == 1
    assert location(spark, request_of) != first
    assert spark.table(request_of.table.sql).count() == 3


def test_a_column_alone_is_a_change(spark: SparkSession, request_of: BuildRequest) -> None:
    assert take_snapshot(spark, query(spark, more=", extra int"), request_of, NAMES) is not None
    assert spark.table(request_of.table.sql).columns == ["id", "v", "until", "scd", "extra"]


def test_a_failure_leaves_the_snapshot_as_it_was(spark: SparkSession, request_of: BuildRequest) -> None:
    first = location(spark, request_of)
    end = day(spark, "2024-05-01")
    staged = [("update", 1, "x", 1, end, "1a"), ("update", 1, "y", 1, end, "1a")]
    with pytest.raises(Exception, match="unique_key twice"):
        take_snapshot(spark, query(spark, *staged), request_of, NAMES)
    assert location(spark, request_of) == first
    assert state(spark.table(request_of.table.sql)) == {(1, "a", None, "1a"), (2, "b", None, "2b")}


def test_a_table_that_changes_meanwhile_is_kept(
    spark: SparkSession, request_of: BuildRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = numbered_rows

    def insert_beside(rows: DataFrame) -> Any:
        spark.sql(f"INSERT INTO {request_of.table.sql} VALUES (9, 'z', NULL, '9z')")
        return real(rows)

    monkeypatch.setattr(snapshot, "numbered_rows", insert_beside)
    with pytest.raises(BuildError, match="added 1 and removed 0 files"):
        take_snapshot(spark, query(spark, ("insert", 3, "c", 3, None, "3c")), request_of, NAMES)
    spark.sql(f"REFRESH TABLE {request_of.table.sql}")
    assert spark.table(request_of.table.sql).count() == 3


def test_another_format_is_refused(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("orc"))
    spark.sql(f"CREATE TABLE {table.sql} (id int, v string, until date, scd string) USING orc")
    with pytest.raises(ZorderError, match="is a table in orc, and this snapshot is kept in Parquet"):
        take_snapshot(spark, query(spark), BuildRequest(table, LayoutSpec(by=("id",))), NAMES)


@pytest.mark.parametrize(
    ("key", "by"),
    [(["ID"], ["`id`"]), (["id", "`v`"], ["`id`", "`v`"]), (["id || v"], ["`since`"]), (["m"], ["`since`"])],
)
def test_without_zorder_by_a_snapshot_is_clustered_by_its_key(
    spark: SparkSession, key: list[str], by: list[str]
) -> None:
    df = spark.sql("select 1 as id, 'a' as v, map('a', 1) as m, current_timestamp() as since")
    assert default_columns(df, key, "since") == by


def test_old_rows_keep_their_types(spark: SparkSession, next_state: NextState) -> None:
    """What arrives as another type becomes the table's, as in a MERGE, or fails; it never widens what is there."""
    before = spark.sql("SELECT 9007199254740993 AS id, date'2024-01-01' AS until, 'x' AS scd")
    columns = "dbt_change_type string, id double, until timestamp, scd string"
    new = spark.createDataFrame([("insert", 2.0, None, "y")], columns)
    found = next_state(before, new, NAMES)
    assert [field.dataType.simpleString() for field in found.schema] == ["bigint", "date", "string"]
    assert {row.id for row in found.collect()} == {9007199254740993, 2}
    with pytest.raises(Exception, match="does not fit into bigint"):
        next_state(before, spark.createDataFrame([("insert", 1e300, None, "z")], columns), NAMES).collect()


def test_inserts_that_are_there_write_nothing(spark: SparkSession, database: str) -> None:
    table = TableName(database, unique("snap"))
    request = BuildRequest(table, LayoutSpec(by=("id",)))
    first = build(spark, rows(spark, (1, "a", None, "1a")), request)
    assert take_snapshot(spark, query(spark, ("insert", 1, "a", 1, None, "1a")), request, NAMES) is None
    assert first.version in spark.table(table.sql).inputFiles()[0]


def test_fields_that_come_later_are_null_in_older_rows_and_found_by_name(
    spark: SparkSession, next_state: NextState
) -> None:
    old = "named_struct('a', 1, 'b', named_struct('x', 2)) AS s, array(named_struct('k', 3, 'l', 4)) AS r"
    new = (
        "named_struct('b', named_struct('y', 'z', 'x', 5L), 'a', 6) AS s, "
        "array(named_struct('n', 'm', 'l', 7, 'k', 8)) AS r"
    )
    m, one, other = "map('m', named_struct({})) AS m", "'p', 1, 'q', 2", "'q', 9, 'p', 8"
    before = spark.sql(f"SELECT 1 AS id, {old}, {m.format(one)}, cast(NULL AS date) AS until, '1a' AS scd")
    staged = spark.sql(
        f"SELECT 'insert' AS dbt_change_type, 1 AS dbt_unique_key, 1 AS id, {new}, {m.format(other)}, "
        "cast(NULL AS date) AS until, '1b' AS scd"
    )
    found = next_state(before, staged, NAMES)
    assert found.schema["s"].dataType.simpleString() == "struct<a:int,b:struct<x:int,y:string>>"
    by_id = {row.scd: (row.s.a, row.s.b.x, row.s.b.y, *row.r[0], *row.m["m"]) for row in found.collect()}
    assert by_id == {"1a": (1, 2, None, 3, 4, None, 1, 2), "1b": (6, 5, "z", 8, 7, "m", 8, 9)}


def test_a_type_that_cannot_become_that_of_the_snapshot_goes_by_either_advice(
    spark: SparkSession, next_state: NextState
) -> None:
    before = spark.sql("SELECT 1 AS id, 'text' AS v, cast(NULL AS date) AS until, '1a' AS scd")
    text = (
        "SELECT 'insert' AS dbt_change_type, 1 AS dbt_unique_key, 1 AS id, {} AS {}, cast(NULL AS date) AS until, "
        "'1b' AS scd"
    )
    with pytest.raises(SchemaChangeError, match="Give it the snapshot's type in the query, or rename the column there"):
        next_state(before, spark.sql(text.format("array(1)", "v")), NAMES)
    for value, name in (("to_json(array(1))", "v"), ("array(1)", "w")):
        assert next_state(before, spark.sql(text.format(value, name)), NAMES).count() == 2


def test_a_snapshot_writes_the_files_in_which_a_row_is_closed(spark: SparkSession, database: str) -> None:
    wanted = BuildRequest(TableName(database, unique("snap")), LayoutSpec(by=("id",), files=8))
    before = (
        "SELECT CAST(id AS INT) AS id, 'a' AS v, CAST(NULL AS DATE) AS until, concat(id, 'a') AS scd FROM range(4000)"
    )
    build(spark, spark.sql(before), wanted)
    end = day(spark, "2024-05-01")
    staged = [("update", n, "b", n, end, f"{n}a") for n in range(5)] + [
        ("insert", n, "b", n, None, f"{n}b") for n in range(5)
    ]
    report = take_snapshot(spark, query(spark, *staged), wanted, NAMES)
    assert report is not None
    assert report.merged == MergeReport(5, 5, 0, 0, rewritten=1, shared=7)
    spark.catalog.refreshTable(wanted.table.sql)
    assert spark.table(wanted.table.sql).count() == 4005
    assert spark.table(wanted.table.sql).where("until IS NOT NULL").count() == 5
