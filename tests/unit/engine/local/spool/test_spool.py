from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.local.fetched_keys import fetch
from dbt_zorder.engine.local.row_estimate import estimated_row_bytes
from dbt_zorder.engine.local.spool import folder as module
from dbt_zorder.engine.local.spool import parquet_files as row_files
from dbt_zorder.engine.local.spool.folder import CHUNK_BYTES, OPTIONS
from dbt_zorder.engine.local.spool.spool import Spool, spool_rows
from dbt_zorder.engine.local.spool.spoolable import survives_parquet
from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.columns import resolve, resolve_all
from tests.support import same_rows, settings
from tests.unit.engine.local.test_fetched_keys import plain
from tests.unit.layout.frames import cast_values, mixed
from tests.unit.layout.test_keys import TYPES


def all_of(copy: Spool) -> pa.Table:
    return pa.concat_tables([copy.read(chunk) for chunk in copy.chunks])


@pytest.mark.parametrize(("name", "values"), TYPES, ids=[name for name, _ in TYPES])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_rows_and_keys_are_those_that_are_fetched(spark: SparkSession, zone: str, name: str, values: list[str]) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        frame = spark.sql(cast_values(name, [*values, "NULL"]))
        if estimated_row_bytes(frame.schema) is None:
            if "interval" in name:
                assert not survives_parquet(frame)
                return
            assert survives_parquet(frame)
            with spool_rows(frame) as copy:
                assert copy is not None
                assert sorted(map(repr, copy.rows.collect())) == sorted(map(repr, frame.collect()))
            return
        keys = [key_of(resolve("v", frame.schema))]
        wanted = fetch(frame, keys, 1 << 26)
        assert wanted is not None
        with spool_rows(frame) as copy:
            assert copy is not None
            found = copy.fetch_keys(keys, 2)
            assert found.keys.schema == wanted.keys.schema
            assert repr(found.keys.to_pylist()) == repr(wanted.keys.to_pylist())
            column = all_of(copy)["c0"]
            there = wanted.rows["v"].type
            assert pa.types.is_timestamp(there) or column.type == there
            assert plain(column) == plain(wanted.rows["v"])
            assert same_rows(copy.rows, frame)


def test_the_copy_is_the_query_under_its_own_names(spark: SparkSession) -> None:
    names = ["c1", "a.b", "c`d", "x y,;{}()=\n", "Ä", "ä"]
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        frame = spark.range(7).select(*(f.col("id").alias(name, metadata={"comment": name}) for name in names))
        with spool_rows(frame) as copy:
            assert copy is not None
            assert [(field.name, field.dataType, field.metadata) for field in copy.rows.schema.fields] == [
                (field.name, field.dataType, field.metadata) for field in frame.schema.fields
            ]
            assert same_rows(copy.rows, frame)
            assert copy.data_columns == {f"c{n}": name for n, name in enumerate(names)}
            quoted = [f"`{name.replace('`', '``')}`" for name in names]
            keys = [key_of(resolve(name, frame.schema, sensitive=True)) for name in quoted]
            assert copy.keys_in(all_of(copy), keys).num_columns == len(names)


def test_pieces_are_all_rows_as_they_came(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, "parquet.block.size", "100000")
    frame = spark.range(0, 60_000, 1, 3).selectExpr("id", "sha2(string(id), 256) AS t")
    with spool_rows(frame) as copy:
        assert copy is not None
        assert len(copy.chunks) > len({chunk.path for chunk in copy.chunks}) == 3
        assert copy.count == 60_000
        assert all_of(copy)["c0"].to_pylist() == list(range(60_000))
        assert [chunk.number for chunk in copy.chunks] == list(range(len(copy.chunks)))
        assert all_of(copy).nbytes < copy.nbytes < 1.5 * all_of(copy).nbytes, "with the heads of tiny pages"
        chunk = copy.chunks[1]
        assert copy.read(chunk, ["c1"]).column_names == ["c1"]


def test_what_rows_are_placed_by_is_weighed_before(spark: SparkSession) -> None:
    frame = spark.range(1000).selectExpr("id", "repeat('x', 1000) AS t")
    with spool_rows(frame) as copy:
        assert copy is not None
        for name, least in (("id", 8000), ("t", 1_004_000)):
            keys = keys_for(frame, LayoutSpec(by=[name]))
            assert least <= copy.key_bytes(keys) <= 1.1 * least + 16_000
            assert copy.fetch_keys(keys, 2).keys.nbytes <= copy.key_bytes(keys)


@pytest.mark.parametrize("rows", [1, 700, 2999, 3000, 5000])
def test_keys_of_some_rows_are_drawn_from_all_over(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setitem(OPTIONS, "parquet.block.size", "20000")
    long = "repeat(string(id), 200)"
    frame = spark.range(0, 3000, 1, 3).selectExpr("id", f"{long} AS t", f"struct(id AS a, 'v' AS b, {long} AS c) AS s")
    keys = keys_for(frame, LayoutSpec(by=["id", "t", "s.a", "s.b"]))
    with spool_rows(frame) as copy:
        assert copy is not None
        assert len(copy.chunks) > 3
        found = copy.draw_keys(keys, rows, 7, 2)
        ids = found.keys["k0"].to_pylist()
        assert abs(found.count - min(rows, 3000)) <= (rows < 3000)
        assert ids == sorted(set(ids))
        assert found.keys.equals(copy.fetch_keys(keys, 2).sampled.take(pa.array(ids)))
        assert copy.draw_keys(keys, rows, 7, 1).keys.equals(found.keys)
        if rows == 700:
            assert copy.draw_keys(keys, rows, 8, 2).keys["k0"].to_pylist() != ids
            of_third = [sum(one // 1000 == third for one in ids) for third in range(3)]
            assert all(200 < drawn < 270 for drawn in of_third)
        assert 350 < copy.text_bytes(keys) < 450, "of two, one of three to four digits, 200 times"
        assert copy.text_bytes(keys[:1]) == 0
        assert copy.text_bytes(keys[3:]) < 20, "of a leaf, not of the struct"


def test_what_repeats_is_read_in_parts_as_well(spark: SparkSession) -> None:
    """It needs next to no room on disk."""
    columns = [
        f"{value} AS {name}{n}" for n in range(30) for name, value in (("n", "CAST(NULL AS bigint)"), ("z", "0L"))
    ]
    with spool_rows(spark.range(0, 200_000, 1, 1).selectExpr("id", *columns)) as copy:
        assert copy is not None
        assert sum(chunk.rows for chunk in copy.chunks) == copy.count == 200_000
        sizes = [copy.read(chunk).nbytes for chunk in copy.chunks]
        assert max(sizes) < 1.1 * CHUNK_BYTES
        assert sizes == pytest.approx([chunk.nbytes for chunk in copy.chunks], rel=0.1)


@pytest.mark.parametrize("name", ["a b", "ü%20+=@#", "x[1]{a,b}*?"])
def test_the_folder_may_have_any_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setattr(module, "_spark_folder", lambda: str(folder))
    with spool_rows(spark.range(30)) as copy:
        assert copy is not None
        assert Path(copy.folder).parent == folder
        assert copy.count == copy.rows.count() == 30
    assert not [*folder.iterdir()]
    assert [*tmp_path.iterdir()] == [folder], "nor beside it"


@pytest.mark.parametrize("parts", [["p"], ["p", "flag"]])
def test_the_partition_of_each_row_is_told(spark: SparkSession, parts: list[str]) -> None:
    frame = spark.sql(mixed(500))
    columns = resolve_all(parts, frame.schema, sensitive=False)
    keys = keys_for(frame, LayoutSpec(by=["a"], partition_by=parts))
    wanted = fetch(frame, keys, 1 << 26, partition_by=columns)
    assert wanted is not None
    with spool_rows(frame, columns) as copy:
        assert copy is not None
        found = copy.fetch_keys(keys, 2)
        assert found.keys.equals(wanted.keys)
        texts = collect_arrow(frame.selectExpr(*(f"CAST({name} AS STRING)" for name in parts)))
        assert [column.to_pylist() for column in copy.partitions_in(all_of(copy))] == [
            column.to_pylist() for column in texts.columns
        ]
        assert not set(parts) & set(copy.data_columns.values())


def test_nothing_is_left_of_it(spark: SparkSession) -> None:
    folders: list[Path] = []

    def use_and_fail(query: str) -> None:
        with spool_rows(spark.sql(query)) as copy:
            assert copy is not None
            folders.append(Path(copy.folder))
            assert folders[-1].exists()
            copy.discard()
            assert folders[-1].exists(), "there is room for other files"
            assert not any(Path(chunk.path).exists() for chunk in copy.chunks)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use_and_fail("SELECT 1 AS a")
    assert not folders[0].exists()
    before = set(Path(module._spark_folder() or "").iterdir())
    with pytest.raises(Exception, match="it fails"):
        use_and_fail("SELECT CAST(raise_error('it fails') AS INT) AS a FROM range(3)")
    assert set(Path(module._spark_folder() or "").iterdir()) == before


def test_what_cannot_be_seen_from_here_is_not_taken_for_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "uri_of", lambda _: f"file://{tmp_path}/elsewhere")
    with spool_rows(spark.range(3)) as copy:
        assert copy is None
