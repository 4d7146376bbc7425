from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet import append as module
from dbt_zorder.tables.parquet import journal
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.build import build, write_data
from dbt_zorder.tables.parquet.rewrite import recover
from tests.support import checksum
from tests.unit.conftest import lose_a_row
from tests.unit.tables.parquet.batches import assert_sound, files, folder, made, rows, same, stats_rows

pytestmark = pytest.mark.usefixtures("way")

STRANGE = "if(id % 4 = 0, null, concat('x/', id % 4, ' ü=%{a}#?'))"


def test_a_small_batch_is_one_file_beside_those_that_are_there(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 400))
    before = files(spark, table)
    report = append(spark, spark.sql(rows(400, 450)), wanted)
    assert (report.rows, report.files, report.removed) == (50, 1, 0)
    assert report.bytes > 0
    assert set(report.seconds) == {"query", "sample", "write", "stats", "swap"}
    assert same(spark.table(table.sql), spark.sql(rows(0, 450)))
    assert files(spark, table) > before
    assert not (folder(spark, table) / journal.JOURNAL_DIRECTORY).exists()
    assert tuple(stats_rows(spark, table)[0]) == (5, 5, 450)
    assert_sound(spark, table)


def test_the_first_rows_of_an_empty_table_are_few_files(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 0), files=4)
    report = append(spark, spark.sql(rows(0, 4000)), wanted)
    assert report.rows == 4000
    assert report.files <= 4
    assert_sound(spark, table)


def test_no_rows_write_nothing(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100))
    before = sorted(folder(spark, table).rglob("*"))
    for overwrite in (False, True):
        report = append(spark, spark.sql(rows(0, 0)), wanted, overwrite=overwrite)
        assert (report.rows, report.files, report.removed) == (0, 0, 0)
    assert sorted(folder(spark, table).rglob("*")) == before


@pytest.mark.parametrize(
    "parts", ["cast(id % 4 as int)", STRANGE, "nullif(date_add(date'2020-01-01', cast(id % 3 as int)), '2020-01-01')"]
)
def test_overwriting_replaces_the_partitions_of_the_batch_alone(
    spark: SparkSession, table: TableName, parts: str
) -> None:
    wanted = made(spark, table, rows(0, 300, parts), files=2, partition_by=("p",))
    kept = files(spark, table)
    batch = spark.sql(f"SELECT id, a, s, p FROM ({rows(300, 380, parts)}) WHERE id % 4 IN (0, 1) AND id % 3 IN (0, 1)")
    touched = batch.select("p").distinct()
    old = spark.sql(rows(0, 300, parts)).alias("o").join(
        touched.alias("t"), on=f.expr("o.p <=> t.p"), how="left_anti"
    )  # fmt: skip
    report = append(spark, batch, wanted, overwrite=True)
    expected = old.unionAll(batch.select("id", "a", "s", "p"))
    assert same(spark.table(table.sql), expected)
    assert report.removed == 2 * touched.count() == len(kept - files(spark, table))
    assert tuple(stats_rows(spark, table)[0])[:2] == (len(files(spark, table)),) * 2
    assert_sound(spark, table)


@pytest.mark.parametrize("parts", ["cast(id % 4 as int)", STRANGE])
def test_appending_goes_into_old_partitions_and_new_ones(spark: SparkSession, table: TableName, parts: str) -> None:
    wanted = made(spark, table, f"SELECT * FROM ({rows(0, 300, parts)}) WHERE id % 4 < 3", files=2, partition_by=("p",))
    append(spark, spark.sql(f"SELECT * FROM ({rows(300, 330, parts)}) WHERE id % 4 < 3"), wanted)
    append(spark, spark.sql(rows(330, 400, parts)), wanted)
    expected = spark.sql(f"SELECT * FROM ({rows(0, 330, parts)}) WHERE id % 4 < 3 UNION ALL {rows(330, 400, parts)}")
    assert same(spark.table(table.sql), expected)
    assert_sound(spark, table)


@pytest.mark.parametrize("here", [True, False])
def test_many_batches_keep_their_stats_in_few_files(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    monkeypatch.setattr(module, "_MOST_STATS_FILES", 2)
    if not here:
        monkeypatch.setattr(module, "read_local", lambda *_: None)
    wanted = made(spark, table, rows(0, 50), files=1)
    for number in range(3):
        append(spark, spark.sql(rows(50 + 10 * number, 60 + 10 * number)), wanted)
        assert tuple(stats_rows(spark, table)[0]) == (2 + number, 2 + number, 60 + 10 * number)
        assert len(list((folder(spark, table) / "_zorder_stats").glob("part-*"))) <= 2
    assert_sound(spark, table)


def fail(*_: object, **__: object) -> None:
    msg = "injected"
    raise RuntimeError(msg)


BEFORE_READY = ["plan_batch", "write_data", "collect_path", "verify", "_plan", "check_base", "check_same_files"]


@pytest.mark.parametrize("step", BEFORE_READY)
def test_a_failure_before_the_entry_is_ready_leaves_the_table_as_it_was(
    spark: SparkSession, table: TableName, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table, rows(0, 100), files=2, partition_by=("p",))
    before, listing = checksum(spark.table(table.sql)), sorted(folder(spark, table).rglob("*"))
    with monkeypatch.context() as patched:
        patched.setattr(module, step, fail)
        with pytest.raises(RuntimeError, match="injected"):
            append(spark, spark.sql(rows(100, 150)), wanted, overwrite=True)
    assert checksum(spark.table(table.sql)) == before
    assert sorted(folder(spark, table).rglob("*")) == listing


def nth_call(number: int, real: Callable[..., Any]) -> Callable[..., Any]:
    calls = iter(range(1000))

    def wrapped(*args: Any, **more: Any) -> Any:
        if next(calls) == number:
            fail()
        return real(*args, **more)

    return wrapped


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("step", "call"), [*(("move", n) for n in range(7)), ("close_entry", 0), ("delete_path", 0)])
def test_what_fails_after_that_is_completed_by_the_next_run(
    spark: SparkSession, table: TableName, overwrite: bool, step: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table, rows(0, 90), files=1, partition_by=("p",))
    batch = spark.sql(rows(90, 150))
    expected = batch if overwrite else spark.sql(rows(0, 150))
    moves = 3 * (1 + overwrite) + 1
    make_ready = journal.make_ready

    def then_fail(*args: Any) -> None:
        make_ready(*args)
        monkeypatch.setattr(journal, step, nth_call(call, getattr(journal, step)))

    with monkeypatch.context() as patched:
        patched.setattr(journal, "make_ready", then_fail)
        if step == "move" and call >= moves:
            append(spark, batch, wanted, overwrite=overwrite)
        else:
            with pytest.raises(
                BuildError, match=r"safe in its journal, but could not be moved into place: .*injected.*the next run"
            ):
                append(spark, batch, wanted, overwrite=overwrite)
    monkeypatch.undo()
    assert_sound(spark, table)  # half applied, what there is is read whole
    for _ in range(2):
        recover(spark, table)
        assert same(spark.table(table.sql), expected)
        assert_sound(spark, table)
    assert not (folder(spark, table) / journal.JOURNAL_DIRECTORY).exists()
    assert tuple(stats_rows(spark, table)[0])[2] == expected.count()


def test_rows_that_go_missing_abandon_the_batch(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table, rows(0, 100))
    lose_a_row(monkeypatch, by_spark="id > 100")
    with pytest.raises(BuildError, match=r"50 rows .* the files hold 49"):
        append(spark, spark.sql(rows(100, 150)), wanted)
    assert same(spark.table(table.sql), spark.sql(rows(0, 100)))


@pytest.mark.parametrize("other", ["append", "build"])
def test_the_loser_of_a_race_gives_up(
    spark: SparkSession, table: TableName, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = made(spark, table, rows(0, 100))

    def meanwhile(*args: Any) -> None:
        write_data(*args)
        monkeypatch.setattr(module, "write_data", write_data)
        if other == "append":
            append(spark, spark.sql(rows(100, 120)), wanted)
        else:
            build(spark, spark.sql(rows(0, 120)), wanted)

    monkeypatch.setattr(module, "write_data", meanwhile)
    with pytest.raises(BuildError, match=r"Another run (added 1 and removed 0 files|changed)"):
        append(spark, spark.sql(rows(200, 250)), wanted)
    assert same(spark.table(table.sql), spark.sql(rows(0, 120)))
    assert not (folder(spark, table) / journal.JOURNAL_DIRECTORY).exists()


@pytest.mark.parametrize("lost", ["_zorder_tree", "_zorder_stats"])
def test_without_tree_or_stats_a_batch_is_laid_out_by_itself(spark: SparkSession, table: TableName, lost: str) -> None:
    import shutil

    wanted = made(spark, table, rows(0, 100))
    shutil.rmtree(folder(spark, table) / lost)
    append(spark, spark.sql(rows(100, 150)), wanted)
    assert same(spark.table(table.sql), spark.sql(rows(0, 150)))
    assert_sound(spark, table)


def test_a_batch_may_read_the_table_that_it_goes_into(spark: SparkSession, table: TableName) -> None:
    wanted = made(spark, table, rows(0, 100))
    append(spark, spark.sql(f"SELECT id + 100 AS id, a, s, p FROM {table.sql}"), wanted)
    assert spark.table(table.sql).count() == 200


@pytest.mark.parametrize("call", ["refreshTable", "location_of", "refresh_stats"])
def test_a_catalog_that_does_not_answer_once_the_batch_is_in_fails_no_run(
    spark: SparkSession,
    table: TableName,
    call: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wanted = made(spark, table, rows(0, 100))
    carry_out = journal.carry_out

    def then_refuse(*args: Any) -> None:
        carry_out(*args)
        monkeypatch.setattr(type(spark.catalog) if call == "refreshTable" else module, call, fail)

    monkeypatch.setattr(journal, "carry_out", then_refuse)
    assert append(spark, spark.sql(rows(100, 150)), wanted).rows == 50
    monkeypatch.undo()
    assert "injected" in caplog.text
    spark.sql(f"REFRESH TABLE {table.sql}")
    assert same(spark.table(table.sql), spark.sql(rows(0, 150)))
