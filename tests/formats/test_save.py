from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError
from dbt_zorder.progress import report_phases_to
from dbt_zorder.spark.catalog import FORMAT_SUFFIX, TableName, describe
from dbt_zorder.tables.lakehouse.write_table import TableWrite
from dbt_zorder.tables.save import save_table
from tests.support import same_rows

QUERY = "SELECT id, pmod(hash(id), 100) AS a FROM range({})"


def test_a_table_that_is_replaced_keeps_its_format(spark: SparkSession, table: TableName, file_format: str) -> None:
    rows = spark.sql(QUERY.format(1000))
    done = save_table(rows, str(table), ["id", "a"], files=4, file_format=file_format)
    assert (done.rows, done.files, done.appended) == (1000, 4, None)
    done = save_table(spark.table(table.sql).where("id < 600"), str(table), ["a", "id"], "overwrite", files=2)
    assert (done.rows, done.files) == (600, 2)
    assert same_rows(spark.table(table.sql), rows.where("id < 600"))
    info = describe(spark, table)
    assert info is not None
    assert info.provider == file_format


@pytest.fixture(params=["here", "by Spark"])
def in_memory(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "here" else "never"


def meddling(monkeypatch: pytest.MonkeyPatch, meddle: Callable[[], object]) -> None:
    """Let somebody else do something once, when all that is left to do is the commit, or Spark's write."""
    found: list[object] = []
    whole = TableWrite.check_free

    def check(write: TableWrite) -> None:
        if not found:
            found.append(meddle())
        whole(write)

    monkeypatch.setattr(TableWrite, "check_free", check)


def test_rows_that_others_commit_meanwhile_stay(
    spark: SparkSession, table: TableName, file_format: str, in_memory: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark.sql(QUERY.format(1000))
    save_table(rows, str(table), ["id", "a"], files=4, file_format=file_format)
    meddling(monkeypatch, lambda: spark.sql(f"INSERT INTO {table.sql} SELECT id, 1 FROM range(5)"))
    with pytest.raises(BuildError, match=f"^{table}: Another run has changed the table meanwhile"):
        save_table(spark.table(table.sql), str(table), ["a", "id"], "overwrite", files=2, in_memory=in_memory)
    assert spark.table(table.sql).count() == 1005


def test_a_table_that_others_make_meanwhile_is_not_replaced(
    spark: SparkSession, table: TableName, file_format: str, in_memory: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = f"CREATE TABLE {table.sql} USING {file_format} AS SELECT 1 AS id"
    meddling(monkeypatch, lambda: spark.sql(made))
    rows = spark.sql(QUERY.format(1000))
    with pytest.raises(BuildError, match=f"^{table}: Another run has made the table meanwhile"):
        save_table(rows, str(table), ["id", "a"], files=4, file_format=file_format, in_memory=in_memory)
    assert spark.table(table.sql).count() == 1
    assert describe(spark, TableName(table.schema, table.identifier + FORMAT_SUFFIX)) is None


def test_rows_that_come_into_a_table_of_another_format_meanwhile_stay(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    rows = spark.sql(QUERY.format(1000))
    for there, wanted in (("parquet", file_format), (file_format, "parquet")):
        name = TableName(table.schema, f"{table.identifier}_{there}")
        save_table(rows, str(name), "id", files=4, file_format=there)
        read, found = spark.table(name.sql), list[str]()

        def meddle(phase: str, name: TableName = name, found: list[str] = found) -> None:
            if phase == "write" and not found:
                found.append(phase)
                spark.sql(f"INSERT INTO {name.sql} SELECT id, 1 FROM range(5)")

        with report_phases_to(meddle), pytest.raises(BuildError, match=r"Another run (has changed|added)"):
            save_table(read, str(name), "a", "overwrite", file_format=wanted)
        spark.sql(f"REFRESH TABLE {name.sql}")
        assert spark.table(name.sql).count() == 1005
        info = describe(spark, name)
        assert info is not None
        assert info.provider == there
