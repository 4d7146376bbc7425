"""Rows that another writer adds in the midst of a new layout or of a change of columns."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.errors import BuildError, LostRowsError
from dbt_zorder.layout.spec import keys_for
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.delta import rewrite as delta_rewrite
from dbt_zorder.tables.iceberg import format as iceberg_format
from dbt_zorder.tables.iceberg.target import IcebergTarget
from dbt_zorder.tables.lakehouse import incremental
from dbt_zorder.tables.lakehouse import rewrite as optimize
from dbt_zorder.tables.lakehouse import spark_writer as writer
from dbt_zorder.tables.lakehouse import write_table as table_write
from tests.conftest import FORMATS_HERE
from tests.formats.tables import build, increment, request, rewrite, rows
from tests.support import same_rows, unique
from tests.unit.engine.parquet.test_writer import needs_page_limit


@pytest.mark.parametrize("where", ["here", "by Spark"])
@pytest.mark.parametrize("moment", ["while the sample is drawn", "just before the commit"])
def test_rows_that_come_in_during_a_new_layout_are_kept(
    spark: SparkSession, table: TableName, file_format: str, moment: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = replace(request(table, file_format, files=4), in_memory=1 << 28 if where == "here" else 0)
    build(spark, rows(spark, 0, 500), wanted)
    begun = threading.Event()

    def add() -> None:
        begun.set()
        rows(spark, 500, 510).writeTo(table.sql).append()

    of: Any = optimize
    name = "plan_layout" if moment.startswith("while") else "options" if file_format == "delta" else "writer"
    if name != "plan_layout":
        of = delta_rewrite if file_format == "delta" else iceberg_format
    if file_format == "iceberg" and where == "here" and moment.startswith("just"):
        of, name = IcebergTarget, "describe_files"
    original = getattr(of, name)

    def interrupted(*args: object, **kwargs: object) -> object:
        found = original(*args, **kwargs)
        if not begun.is_set():
            add()
        return found

    monkeypatch.setattr(of, name, interrupted)
    with pytest.raises(BuildError, match="its rows are kept"):
        rewrite(spark, wanted)
    assert begun.is_set()
    monkeypatch.undo()
    assert same_rows(spark.table(table.sql), rows(spark, 0, 510))
    rewrite(spark, wanted)
    assert same_rows(spark.table(table.sql), rows(spark, 0, 510))


@pytest.mark.parametrize("moment", ["before the commit begins", "while it is written"])
def test_rows_that_come_in_while_a_column_is_dropped_are_not_lost_without_a_word(
    spark: SparkSession, table: TableName, file_format: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = replace(request(table, file_format, files=2), in_memory=0)  # written by Spark
    build(spark, rows(spark, 0, 100), wanted)
    whole = writer.create

    def interrupted(form: Any, clustered: DataFrame, *args: Any, **more: Any) -> None:
        monkeypatch.setattr(table_write, "create", whole)
        if moment.startswith("before"):
            rows(spark, 500, 510).writeTo(table.sql).append()
        else:
            clustered = clustered.where(slowly("id"))
        whole(form, clustered, *args, **more)

    begun = threading.Event()

    @f.udf("boolean")
    def slowly(value: int) -> bool:
        if value == 0:
            time.sleep(15)
        return True

    def meanwhile() -> None:
        begun.wait()
        time.sleep(5)
        rows(spark, 500, 510).writeTo(table.sql).append()

    other = threading.Thread(target=meanwhile)
    if not moment.startswith("before"):
        other.start()
    monkeypatch.setattr(table_write, "create", interrupted)
    batch = Batch(on_schema_change="sync_all_columns")
    begun.set()
    # Delta refuses a commit beside which another one came in
    refused = file_format == "delta" and not moment.startswith("before")
    less = partial(rows(spark, 100, 120).drop, "st")
    with ThreadPoolExecutor(1) as dbts:
        ended = dbts.submit(increment, spark, less, wanted, batch, "never")
    with pytest.raises(Exception if refused else LostRowsError) as raised:
        ended.result()
    if not moment.startswith("before"):
        other.join()
    if refused:
        assert spark.table(table.sql).count() == 110
        return
    # what came in before the query began to read may have been read
    assert spark.table(table.sql).count() in ((120, 130) if moment.startswith("before") else (120,))
    assert spark.sql(f"{where_lost(spark, table, str(raised.value))} WHERE id >= 500").count() == 10


@needs_page_limit
@pytest.mark.skipif(FORMATS_HERE[:1] != ["iceberg"], reason="only Iceberg takes files of this process")
@pytest.mark.parametrize("step", ["describe_files", "commit"])
def test_so_it_is_where_this_process_writes(
    spark: SparkSession, table: TableName, file_format: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=2)
    build(spark, rows(spark, 0, 100), wanted)
    original = getattr(IcebergTarget, step)

    def interrupted(*args: Any) -> Any:
        added = rows(spark, 500, 510)
        added.select(spark.table(table.sql).columns).writeTo(table.sql).append()
        return original(*args)

    monkeypatch.setattr(IcebergTarget, step, interrupted)
    batch = Batch(on_schema_change="sync_all_columns")
    with pytest.raises(LostRowsError) as raised:
        increment(spark, partial(rows(spark, 100, 120).drop, "st"), wanted, batch, "never")
    assert spark.table(table.sql).count() == 120
    assert spark.sql(f"{where_lost(spark, table, str(raised.value))} WHERE id >= 500").count() == 10
    # a batch that is added stands beside what others have added
    increment(spark, partial(rows(spark, 120, 130).drop, "st"), wanted, Batch(may_rewrite=False), "never")
    assert spark.table(table.sql).count() == 140


def where_lost(spark: SparkSession, table: TableName, message: str) -> str:
    """Return a query of the rows that a message says are to be found."""
    if file := re.search(r"of (\S+\.metadata\.json)", message):
        saved = TableName(table.schema, unique("saved"))
        arguments = f"table => '{saved}', metadata_file => '{file[1]}'"
        spark.sql(f"CALL spark_catalog.system.register_table({arguments})").collect()
        return f"SELECT * FROM {saved.sql}"
    version = re.search(r"VERSION AS OF \d+", message)
    assert version is not None
    return f"SELECT * FROM {table.sql} {version[0]}"


def _while_the_query_runs(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Let something happen once a batch has looked at its table."""

    def then_keys(*args: Any) -> Any:
        act()
        return keys_for(*args)

    monkeypatch.setattr(incremental, "keys_for", then_keys)


@pytest.mark.parametrize("what", ["rows", "compaction", "expired"])
def test_what_others_commit_while_the_query_runs_is_not_taken_for_the_batch(
    spark: SparkSession, table: TableName, file_format: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format, files=8)
    build(spark, rows(spark, 0, 800), wanted)
    if what == "expired" and file_format == "delta":
        pytest.skip("Delta's files of old versions stay until VACUUM")
    compacts = f"OPTIMIZE {table.sql} ZORDER BY (a)"
    if file_format == "iceberg":
        compacts = (
            f"CALL spark_catalog.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
        )
    other = spark.newSession()

    def act() -> None:
        if what == "compaction":
            other.sql(compacts).collect()
            return
        rows(other, 800, 850).writeTo(table.sql).append()
        if what == "expired":
            until = "older_than => TIMESTAMP'2999-01-01 00:00:00', retain_last => 1"
            other.sql(f"CALL spark_catalog.system.expire_snapshots(table => '{table}', {until})").collect()

    _while_the_query_runs(monkeypatch, act)
    report = increment(spark, partial(rows, spark, 850, 900), wanted, Batch(), "never")
    assert report.appended is not None
    assert (report.appended.files, report.appended.removed) == (1, 0)
    assert spark.table(table.sql).count() == (850 if what == "compaction" else 900)


def test_a_table_that_is_gone_is_told_whatever_is_cached(
    spark: SparkSession, table: TableName, file_format: str
) -> None:
    kept = spark.range(3).cache()
    kept.count()
    try:
        with pytest.raises(BuildError, match="is not there any more"):
            increment(spark, partial(rows, spark, 0, 50), request(table, file_format), Batch(), "never")
    finally:
        kept.unpersist()
