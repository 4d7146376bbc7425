from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.progress import report_phases_to
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, schema_location
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.registry import existing, open_table
from dbt_zorder.tables.save import check_still_absent, save_table
from tests.support import same_rows, versions

QUERY = "SELECT id, pmod(hash(id), 100) AS a FROM range({}, {})"


def guard_of(df: DataFrame, table: TableName) -> Callable[[], None] | None:
    return existing(open_table(df.sparkSession, table), table).guard(df)


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.sql(QUERY.format(0, 2000))


def killed(*_: object) -> None:
    msg = "killed"
    raise OSError(msg)


def append(spark: SparkSession, table: TableName, first: int) -> None:
    batch = spark.sql(QUERY.format(first, first + 100))
    request = BuildRequest(table, LayoutSpec(by=["id"], files=4))
    increment(spark, batch, request, Batch(may_rewrite=False), begin(spark, table))


def test_rows_that_came_since_the_table_was_read_are_not_lost(
    spark: SparkSession, table: TableName, rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_table(rows, str(table), "id", files=4)
    read = spark.table(table.sql).where("id > 5")
    append(spark, table, 2000)
    message = f"^{table}: The DataFrame reads the table as it was before 1 of its 5 files came"
    with pytest.raises(BuildError, match=message):
        save_table(read, str(table), "id", "overwrite")
    # a batch that a killed run has left in the journal belongs to the table, and comes in before it is replaced
    read = spark.table(table.sql)
    with monkeypatch.context() as patch:
        patch.setattr("dbt_zorder.tables.parquet.journal.carry_out", killed)
        with pytest.raises(BuildError, match="journal"):
            append(spark, table, 2100)
    assert spark.table(table.sql).count() == 2100
    with pytest.raises(BuildError, match="before 1 of its 6 files came"):
        save_table(read, str(table), "id", "overwrite")
    assert spark.table(table.sql).count() == 2200
    # one that does not read the table replaces it whatever came
    save_table(rows, str(table), "id", "overwrite")
    assert same_rows(spark.table(table.sql), rows)


def test_rows_that_come_while_the_table_is_replaced_are_not_lost(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    save_table(rows, str(table), "id", files=4)
    meddled: list[str] = []

    def meddle(phase: str) -> None:
        if phase == "stats" and not meddled:
            meddled.append(phase)
            append(spark, table, 2000)

    with report_phases_to(meddle), pytest.raises(BuildError, match="Another run added 1 and removed 0 files"):
        save_table(spark.table(table.sql), str(table), "id", "overwrite", files=4)
    assert spark.table(table.sql).count() == 2100
    assert len(versions(spark, table)) == 1, "what was given up is deleted"


def test_rows_of_an_older_version_do_not_replace_those_of_the_one_that_is_served(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    save_table(rows.where("id < 100"), str(table), "id")
    read = spark.table(table.sql)
    save_table(rows, str(table), "id", "overwrite", location_root=f"{schema_location(spark, table.schema)}/moved")
    with pytest.raises(BuildError, match=f"^{table}: The DataFrame reads the table as it was before 1 of its 1 files"):
        save_table(read, str(table), "id", "overwrite")
    assert spark.table(table.sql).count() == 2000


def test_a_table_that_others_leave_alone_passes_until_they_do_not(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    save_table(rows, str(table), "id", files=4)
    guard = guard_of(spark.table(table.sql), table)
    assert guard is not None
    guard()
    guard()
    append(spark, table, 2000)
    with pytest.raises(BuildError, match="Another run added 1 and removed 0 files"):
        guard()


def test_a_name_that_is_free_is_to_stay_so(spark: SparkSession, table: TableName, rows: DataFrame) -> None:
    check_still_absent(spark, table)
    spark.sql(f"CREATE VIEW {table.sql} AS SELECT 1 AS id")
    with pytest.raises(BuildError, match="Another run has made the table meanwhile"):
        check_still_absent(spark, table)


def test_nothing_tells_whether_a_table_of_sparks_own_or_one_whose_folder_is_gone_has_changed(
    spark: SparkSession, table: TableName, rows: DataFrame
) -> None:
    rows.write.saveAsTable(table.sql)
    assert guard_of(spark.table(table.sql), table) is None
    spark.sql(f"DROP TABLE {table.sql}")
    save_table(rows, str(table), "id")
    info = describe(spark, table)
    assert info is not None
    shutil.rmtree(info.location.removeprefix("file:"))
    assert guard_of(rows, table) is None
