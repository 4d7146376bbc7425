from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.local.row_estimate import estimated_row_bytes
from dbt_zorder.engine.local.spool import arrow_files as module
from dbt_zorder.engine.local.spool.arrow_files import BatchFiles, write_batches
from dbt_zorder.engine.local.spool.parquet_files import RowFiles
from dbt_zorder.engine.local.spool.spool import Spool, spool_rows
from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.spark.columns import resolve
from tests.support import same_rows, settings
from tests.unit.engine.local.spool.test_spool import all_of
from tests.unit.engine.local.test_fetched_keys import plain
from tests.unit.layout.frames import cast_values
from tests.unit.layout.test_keys import TYPES

WIDE = "id, id % 7 AS b, 'x' AS c, CAST(id AS DOUBLE) AS d"


def in_batches(copy: Spool | None) -> Spool:
    assert copy is not None
    assert isinstance(copy.files, BatchFiles)
    return copy


def keys_of(frame: DataFrame, *names: str) -> list[Key]:
    return keys_for(frame, LayoutSpec(by=names))


@pytest.mark.parametrize(("name", "values"), TYPES, ids=[name for name, _ in TYPES])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_rows_and_keys_are_those_of_a_copy_in_parquet(
    spark: SparkSession, zone: str, name: str, values: list[str]
) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        # others beside it, because of decimals alone there are no batches
        frame = spark.sql(cast_values(name, [*values, "NULL"])).selectExpr("v", "1 AS a", "'t' AS b", "2D AS c")
        if estimated_row_bytes(frame.schema) is None:
            with spool_rows(frame, keys=[]) as copy:
                assert copy is not None
                assert isinstance(copy.files, RowFiles)
            return
        keys = [key_of(resolve("v", frame.schema))]
        with spool_rows(frame) as wanted, spool_rows(frame, keys=keys) as found:
            assert wanted is not None
            found = in_batches(found)
            assert found.count == wanted.count == len(values) + 1
            assert all_of(found).schema.types == all_of(wanted).schema.types
            assert [*map(plain, all_of(found).columns)] == [*map(plain, all_of(wanted).columns)]
            for _ in range(2):  # kept, then read
                assert repr(found.fetch_keys(keys, 2).keys.to_pylist()) == repr(
                    wanted.fetch_keys(keys, 2).keys.to_pylist()
                )
            assert same_rows(found.rows, frame)
            assert found.rows.schema.simpleString() == frame.schema.simpleString()


def test_many_batches_are_all_rows_as_they_came(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH_ROWS", 1000)
    monkeypatch.setattr(module, "_OPTIONS", {**module._OPTIONS, "parquet.block.size": "100000"})
    before = spark.conf.get(module._ROWS)
    frame = spark.range(0, 60_500, 1, 3).selectExpr("id", "sha2(string(id), 256) AS t")
    keys = keys_of(frame, "id", "t")
    with spool_rows(frame, keys=keys) as copy:
        copy = in_batches(copy)
        assert len(copy.chunks) > len({chunk.path for chunk in copy.chunks}) == 3
        assert [chunk.number for chunk in copy.chunks] == list(range(len(copy.chunks)))
        assert max(chunk.nbytes for chunk in copy.chunks) < 400_000
        assert copy.count == 60_500
        assert copy.nbytes == pytest.approx(all_of(copy).nbytes, rel=0.01)
        assert all_of(copy)["c0"].to_pylist() == list(range(60_500))
        assert copy.text_bytes(keys) == pytest.approx(68, abs=2)
        drawn = copy.draw_keys(keys, 700, 3, 2)
        assert drawn.keys.equals(copy.fetch_keys(keys, 2).sampled.take(drawn.keys["k0"]))
    assert spark.conf.get(module._ROWS) == before


def test_columns_that_are_wanted_first_are_kept_once_and_while_they_are_few(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(0, 9000, 1, 3).selectExpr("id", "string(id) AS t")
    keys = keys_of(frame, "id")
    read: list[str] = []
    batches = BatchFiles._batches

    def noted(files: BatchFiles, file: str, group: int) -> pa.Table:
        read.append(file)
        return batches(files, file, group)

    monkeypatch.setattr(BatchFiles, "_batches", noted)
    for most, reads in ((1 << 20, 3), (30_000, 6)):
        monkeypatch.setattr(module, "_MAX_CACHED_BYTES", most)
        with spool_rows(frame, keys=keys) as copy:
            copy = in_batches(copy)
            read.clear()
            assert copy.count == 9000
            assert copy.fetch_keys(keys, 2).keys["k0"].to_pylist() == list(range(9000))
            assert copy.fetch_keys(keys, 2).count == 9000
            assert len(read) == reads, "3 by the second look at the keys, which nobody keeps for so long"


def test_what_is_read_of_some_columns_keeps_no_others_in_memory(spark: SparkSession) -> None:
    frame = spark.range(0, 100_000, 1, 1).selectExpr("id", "repeat(string(id), 100) AS t")
    with spool_rows(frame, keys=[]) as copy:
        copy = in_batches(copy)
        before = pa.total_allocated_bytes()
        found = [copy.read(chunk, ["c0"]) for chunk in copy.chunks]
        assert sum(one.num_rows for one in found) == 100_000
        assert pa.total_allocated_bytes() - before < 2_000_000


@pytest.mark.parametrize("text", ["repeat('x', 9000)", "CAST(repeat('ü', 4200) AS BINARY)"])
def test_rows_with_long_text_are_copied_as_parquet(spark: SparkSession, text: str) -> None:
    frame = spark.range(0, 3000, 1, 2).selectExpr("id", f"IF(id = 2345, {text}, NULL) AS t", "'u' AS u")
    files = None
    with spool_rows(frame, keys=keys_of(frame, "id")) as copy:
        assert copy is not None
        files = copy.files
        assert isinstance(files, RowFiles)
        assert same_rows(copy.rows, frame)
        assert [path.name for path in Path(copy.folder).iterdir()] == ["rows"], "nothing of the first one is left"
    short = frame.selectExpr("id", "left(string(t), 1000) AS t", "u")
    with spool_rows(short, keys=keys_of(short, "id")) as copy:
        assert same_rows(in_batches(copy).rows, short)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (f"SELECT {WIDE}, array(id) AS e FROM range(9)", "nested"),
        ("SELECT id, CAST(id AS DECIMAL(19, 2)) AS d, 1 AS e FROM range(9)", "a third are long decimals"),
        (f"SELECT DISTINCT {WIDE} FROM range(9)", "there is a shuffle, which would go by other settings"),
        (f"SELECT {WIDE} FROM range(9) WHERE id > (SELECT min(id) FROM range(3))", "there is another query in it"),
        (f"SELECT {', '.join(f'id + {n} AS c{n}' for n in range(600))} FROM range(9)", "wide rows"),
    ],
)
def test_others_are_copied_as_parquet(spark: SparkSession, query: str, why: str) -> None:
    frame = spark.sql(query)
    first = frame.columns[0]
    with spool_rows(frame, keys=keys_of(frame, first)) as copy:
        assert copy is not None
        assert isinstance(copy.files, RowFiles), why
        assert same_rows(copy.rows, frame)


def test_decimals_of_up_to_18_digits_are_whole_numbers_on_their_way(spark: SparkSession) -> None:
    kinds = [(1, 0), (9, 2), (9, 9), (10, 0), (15, 2), (18, 0), (18, 18)]
    columns = []
    for place, (digits, scale) in enumerate(kinds):
        most = f"{'9' * (digits - scale)}.{'9' * scale}".rstrip(".")
        # of odd columns the type that a product has is another one first
        value = f"CAST('{most}' AS DECIMAL({digits}, {scale}))" + (" * CAST(1 AS DECIMAL(9, 0))" if place % 2 else "")
        columns.append(
            f"CAST(CASE id % 4 WHEN 0 THEN {value} WHEN 1 THEN -{value} WHEN 2 THEN 0 END "
            f"AS DECIMAL({digits}, {scale})) AS d{place}"
        )
    frame = spark.range(0, 9000, 1, 2).selectExpr(*columns)
    keys = keys_of(frame, "d1", "d4")
    with spool_rows(frame, keys=keys) as copy, spool_rows(frame) as wanted:
        copy = in_batches(copy)
        assert wanted is not None
        assert all_of(copy).equals(all_of(wanted))
        assert copy.nbytes == pytest.approx(wanted.nbytes, rel=0.1)
        assert copy.fetch_keys(keys, 2).keys.equals(wanted.fetch_keys(keys, 2).keys)
        assert same_rows(copy.rows, frame)
        short = copy.shortened(keys)
        assert set(short) == {"c0", "c2", "c3", "c5", "c6"}
        for ours, theirs in zip(copy.chunks, wanted.chunks, strict=True):
            found = copy.read_compact(ours, short)
            assert found.combine_chunks().equals(wanted.read_compact(theirs, short).combine_chunks())
            assert [*map(str, found.schema.types)][:4] == ["int32", "decimal128(9, 2)", "int32", "int64"]


def test_another_query_inside_is_seen_without_adaptive_execution(spark: SparkSession) -> None:
    with settings(spark, {"spark.sql.adaptive.enabled": "false"}):
        frame = spark.sql(f"SELECT {WIDE} FROM range(9) WHERE id > (SELECT * FROM VALUES (3) AS t(a) WHERE rand() < 2)")
        with spool_rows(frame, keys=keys_of(frame, "id")) as copy:
            assert copy is not None
            assert isinstance(copy.files, RowFiles)
            assert copy.count == 5
        plain = spark.sql(f"SELECT {WIDE} FROM range(9) WHERE id > 3")
        with spool_rows(plain, keys=keys_of(plain, "id")) as copy:
            assert in_batches(copy).count == 5


def test_rows_of_a_few_bytes_are_weighed_by_what_it_takes_to_place_them(spark: SparkSession) -> None:
    frame = spark.range(0, 700_000, 1, 1).selectExpr("CAST(id AS INT) AS a", "CAST(id AS TINYINT) AS b")
    with spool_rows(frame, keys=keys_of(frame, "a")) as copy:
        copy = in_batches(copy)
        assert [chunk.rows for chunk in copy.chunks] == [128 * 4096, 700_000 - 128 * 4096]
        assert copy.nbytes == 32 * 700_000


def test_many_columns_of_text_are_left_to_parquet(spark: SparkSession) -> None:
    for texts, kind in ((32, BatchFiles), (33, RowFiles)):
        frame = spark.range(9).selectExpr("id", *(f"string(id) AS t{n}" for n in range(texts)))
        with spool_rows(frame, keys=keys_of(frame, "id")) as copy:
            assert copy is not None
            assert isinstance(copy.files, kind)
            assert same_rows(copy.rows, frame)


def test_other_offsets_another_spark_and_a_full_disk_are_left_to_parquet(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    frame = spark.sql(f"SELECT {WIDE} FROM range(9)")
    with settings(spark, {module._LARGE: "true"}):
        assert write_batches(frame, str(tmp_path / "large")) is None
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": "EXCEPTION"}):
        dated = frame.selectExpr("*", "date'1500-01-01' AS e")
        assert write_batches(dated, str(tmp_path / "old")) is None, "Spark is to ask which calendar that is of"
    with monkeypatch.context() as little_room:
        little_room.setattr(module, "_UNCOMPRESSED_RATIO", 1 << 60)
        assert write_batches(frame, str(tmp_path / "disk")) is None
    caplog.set_level("DEBUG", "dbt_zorder")
    monkeypatch.setattr(module, "class_named", lambda *_: None)
    assert write_batches(frame, str(tmp_path / "other")) is None
    assert "rows are copied as Parquet" in caplog.text
    assert not [*tmp_path.iterdir()]


def test_no_rows_and_old_dates_come_back_through_spark(spark: SparkSession) -> None:
    none = spark.sql(f"SELECT {WIDE} FROM range(9) WHERE id > 9")
    with spool_rows(none, keys=keys_of(none, "id")) as copy:
        assert in_batches(copy).count == 0
        assert in_batches(copy).rows.count() == 0
        assert in_batches(copy).rows.schema.simpleString() == none.schema.simpleString()
    old = spark.sql("SELECT id, date'0044-03-15' AS d, timestamp'1066-10-14 09:00:00' AS t, 'x' AS s FROM range(3)")
    with spool_rows(old, keys=keys_of(old, "d")) as copy:
        found = in_batches(copy).rows.collect()
        assert [row["d"] for row in found] == [dt.date(44, 3, 15)] * 3
        assert same_rows(in_batches(copy).rows, old)


def test_a_query_that_fails_says_so_and_leaves_nothing(spark: SparkSession) -> None:
    frame = spark.range(0, 10, 1, 2).selectExpr("id", "CAST(raise_error('it fails') AS INT) AS a", "'x' AS s")
    with pytest.raises(Exception, match="it fails"), spool_rows(frame, keys=keys_of(frame, "id")):
        pass


def test_spark_finds_nan_and_negative_zero_in_what_is_written_for_it(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, IF(id % 2 = 0, -0.0D, double('NaN')) AS d, 'x' AS s, 1 AS i FROM range(9)")
    with spool_rows(frame, keys=keys_of(frame, "id")) as copy:
        rows = in_batches(copy).rows
        assert (rows.where("d = 0").count(), rows.where("d > 7").count()) == (5, 4)
