from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine import choose as module
from dbt_zorder.engine.choose import RowSource, as_spark_writes, open_rows
from dbt_zorder.engine.keep_result import staged
from dbt_zorder.engine.local import large_table as copied_rows
from dbt_zorder.engine.local.large_table import SpooledRows
from dbt_zorder.engine.local.small_table import InMemoryRows
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.known_keys import count_of
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.stats.store import read_stats
from dbt_zorder.tables.parquet import append as appending
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.plan_batch import plan_batch
from tests.support import same_rows, settings, unique
from tests.unit.engine.parquet.test_column_options import needs_bloom_filters
from tests.unit.engine.parquet.test_writer import needs_page_limit

pytestmark = needs_page_limit

QUERY = "SELECT id, pmod(hash(id), 100) AS a, concat('k', id % 10) AS s, id % 3 AS p FROM range({})"


def source_of(spark: SparkSession, query: str, path: Path, **more: Any) -> RowSource:
    df = spark.sql(query)
    spec = LayoutSpec(**{"by": ["a", "s"], **more.pop("spec", {})})
    request = BuildRequest(TableName("default", "any"), spec, **more)
    with (
        staged(df) as rows,
        open_rows(rows, request, keys_for(df, spec), as_spark_writes(df.sparkSession, request, str(path))) as found,
    ):
        return found


def test_a_small_scan_is_fetched_and_all_else_is_copied(spark: SparkSession, tmp_path: Path) -> None:
    found = source_of(spark, QUERY.format(500), tmp_path)
    assert isinstance(found.rows, InMemoryRows)
    assert count_of(found.known) == found.rows.fetched.count == 500
    grouped = f"SELECT a, s, count(*) AS n FROM ({QUERY.format(500)}) GROUP BY a, s"
    for query, count in ((grouped, spark.sql(grouped).count()), (QUERY.format(20_000_000), 20_000_000)):
        if count > 500:
            query += " WHERE id % 100000 = 7"  # Spark estimates it as large as what is filtered
            count //= 100_000
        found = source_of(spark, query, tmp_path)
        assert isinstance(found.rows, SpooledRows)
        assert count_of(found.known) == found.rows.spool.count == count
        assert not Path(found.rows.spool.folder).exists(), "it goes with the block"


def test_elsewhere_than_on_one_machine_small_scans_alone_are_fetched(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "can_spool", lambda *_: False)
    assert isinstance(source_of(spark, QUERY.format(500), tmp_path).rows, InMemoryRows)
    kept = f"SELECT a, s, count(*) AS n FROM ({QUERY.format(500)}) GROUP BY a, s"
    for query in (kept, f"{QUERY.format(20_000_000)} WHERE id < 7"):
        left = source_of(spark, query, tmp_path)
        assert (left.rows, left.known) == (None, None)
    monkeypatch.setattr(module, "fetch", lambda *_, **__: None)  # of rows that are longer than they were taken for
    longer = source_of(spark, QUERY.format(500), tmp_path)
    assert (longer.rows, count_of(longer.known)) == (None, None)


def test_what_is_too_long_to_be_fetched_is_copied(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "fetch", lambda *_, **__: None)
    assert isinstance(source_of(spark, QUERY.format(500), tmp_path).rows, SpooledRows)


def test_no_rows_are_neither(spark: SparkSession, tmp_path: Path) -> None:
    found = source_of(
        spark, f"SELECT a, s, count(*) AS n FROM ({QUERY.format(5)}) GROUP BY a, s HAVING n > 9", tmp_path
    )
    assert (found.rows, count_of(found.known)) == (None, 0)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"in_memory": 0}, "zorder_in_memory is never"),
        pytest.param(
            {"bloom": ["id"], "options": {"parquet.bloom.filter.fpp": "0.1"}},
            "alone is parquet.bloom.filter.fpp",
            marks=needs_bloom_filters,
        ),
        ({"options": {"parquet.block.size": "1000000"}}, "alone is parquet.block.size"),
    ],
)
def test_what_spark_does_better_is_left_to_it(
    spark: SparkSession, tmp_path: Path, more: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "dbt_zorder")
    assert source_of(spark, QUERY.format(500), tmp_path, **more).rows is None
    assert why in caplog.text


@pytest.mark.parametrize("change", ["curve", "zorder_by", "more columns", "fewer columns"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_batches_go_by_the_table_whatever_the_model_says_by_now(
    spark: SparkSession, database: str, change: str, *, overwrite: bool
) -> None:
    table = TableName(database, unique("t"))
    parts = ["p"] if overwrite else []
    wanted = BuildRequest(table, LayoutSpec(by=["a", "s"], files=3, partition_by=parts))
    build(spark, spark.sql(QUERY.format(3000)), wanted)
    changes: dict[str, dict[str, Any]] = {
        "curve": {"curve": "hilbert"},
        "zorder_by": {"by": ["s", "a"]},
        "more columns": {"by": ["a", "s", "id"]},
        "fewer columns": {"by": ["s"]},
    }
    spec = replace(wanted.spec, **changes[change])
    batch = f"SELECT id + 5000 AS id, a, s, p + 2 AS p FROM ({QUERY.format(2000)})"
    append(spark, spark.sql(batch), replace(wanted, spec=spec), overwrite=overwrite)
    kept = f"SELECT * FROM ({QUERY.format(3000)})" + (" WHERE p < 2" if overwrite else "")
    assert same_rows(spark.table(table.sql), spark.sql(f"{kept} UNION ALL {batch}"))


def test_old_dates_are_left_to_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = f"SELECT *, DATE'1500-01-01' AS day FROM ({QUERY.format(500)})"
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": "EXCEPTION"}):
        with pytest.raises(Exception, match="datetimeRebaseModeInWrite"):
            source_of(spark, query, tmp_path)  # Spark asks, as it would when it writes the table
        monkeypatch.setattr(module, "can_spool", lambda *_: False)
        assert source_of(spark, query, tmp_path).rows is None


@pytest.mark.parametrize("parts", [(), ("p",)])
@pytest.mark.parametrize("by", [["a", "s"], ["a"], ["s", "id", "a"]])
@pytest.mark.parametrize("copy", [False, True])
def test_a_table_is_as_good_as_sparks(
    spark: SparkSession,
    database: str,
    by: list[str],
    parts: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    *,
    copy: bool,
) -> None:
    """The same rows in as many files; a point query reads no more of them, and batches go into either alike."""
    if copy:
        monkeypatch.setattr(module, "_is_small", lambda _: False)
    found = {}
    for in_memory in (1 << 28, 0):
        table = TableName(database, unique("t"))
        wanted = BuildRequest(
            table, LayoutSpec(by=by, files=4, partition_by=parts), stats_columns=["id"], in_memory=in_memory
        )
        report = build(spark, spark.sql(QUERY.format(3000)), wanted)
        added = append(spark, spark.sql(QUERY.format(2000)), wanted)
        info = describe(spark, table)
        assert info is not None
        names = [row[0].rsplit("/", 1)[1] for row in read_stats(spark, info.location).select("file_path").collect()]
        rows = spark.sql(QUERY.format(3000)).unionAll(spark.sql(QUERY.format(2000)))
        assert same_rows(spark.table(table.sql), rows)
        assert read_stats(spark, info.location).selectExpr("sum(row_count)").first() == (5000,)
        writers = {pq.read_metadata(file).created_by[:11] for file in folder_of(info.location).rglob("part-*c000*")}
        assert writers == {"parquet-cpp" if in_memory else "parquet-mr "}
        ending = f"{'.' if parts else '-'}c000.snappy.parquet"
        assert all(name.startswith("part-") and name.endswith(ending) for name in names)
        found[in_memory] = report, added
    (ours, batch), (sparks, its) = found[1 << 28], found[0]
    assert (
        (ours.summary.files, ours.summary.rows)
        == (sparks.summary.files, sparks.summary.rows)
        == (12 if parts else 4, 3000)
    )
    assert ours.summary.point_query_files == pytest.approx(sparks.summary.point_query_files)
    assert (batch.rows, batch.files) == (its.rows, its.files)
    assert 0.5 < ours.summary.bytes / sparks.summary.bytes < 1.5


@pytest.mark.parametrize("copy", [False, True])
def test_the_same_rows_make_the_same_files(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch, *, copy: bool
) -> None:
    if copy:
        monkeypatch.setattr(module, "_is_small", lambda _: False)
    contents = []
    for _ in range(2):
        table = TableName(database, unique("t"))
        wanted = BuildRequest(table, LayoutSpec(by=["a", "s"], files=3, seed=7))
        build(spark, spark.sql(QUERY.format(3000)), wanted)
        info = describe(spark, table)
        assert info is not None
        folder = folder_of(info.location)
        contents.append([file.read_bytes() for file in sorted(folder.glob("part-*.parquet"))])
    assert len(contents[0]) == 3
    assert contents[0] == contents[1]


def folder_of(location: str) -> Path:
    return Path(location.removeprefix("file:"))


def test_a_folder_that_is_elsewhere_by_now_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    rows = source_of(spark, QUERY.format(5), tmp_path).rows
    assert rows is not None
    with pytest.raises(BuildError, match="cannot be written to from here"):
        rows.write(spark, None, "s3a://bucket/t")  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="cannot be written to from here"):
        rows.write(spark, None, f"{tmp_path}/not/there")  # type: ignore[arg-type]


def test_batches_of_very_many_keys_are_counted_by_their_copy(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their query may give other rows by now."""
    monkeypatch.setattr(module, "_is_small", lambda _: False)
    request = BuildRequest(TableName(database, unique("t")), LayoutSpec(by=["a", "s"], file_size="20KB"))
    build(spark, spark.sql(QUERY.format(20_000)), request)
    monkeypatch.setattr(copied_rows, "_MAX_KEY_BYTES", 1)
    asked: list[DataFrame] = []

    def noted(df: DataFrame, *given: Any, **more: Any) -> Layout:
        asked.append(df)
        return plan_batch(df, *given, **more)

    monkeypatch.setattr(appending, "plan_batch", noted)
    batch = f"SELECT id + 50000 AS id, a, s, p FROM ({QUERY.format(20_000)})"
    report = append(spark, spark.sql(batch), request)
    assert report.files > 1
    assert "Relation" in asked[0]._jdf.queryExecution().optimizedPlan().toString(), "files, and no range of numbers"
    assert same_rows(spark.table(request.table.sql), spark.sql(f"{QUERY.format(20_000)} UNION ALL {batch}"))
