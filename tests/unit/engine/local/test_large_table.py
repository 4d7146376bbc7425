from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine import choose
from dbt_zorder.engine.local import large_table as module
from dbt_zorder.engine.local import row_groups as parts_module
from dbt_zorder.engine.local.fetched_keys import fetch
from dbt_zorder.engine.local.large_table import SpooledRows
from dbt_zorder.engine.local.place import CellFinder, rows_of_files
from dbt_zorder.engine.local.shuffle import ShuffleBuffer
from dbt_zorder.engine.local.spool.spool import spool_rows
from dbt_zorder.engine.parquet.writer import ArrowWriter, arrow_writer
from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.row_bytes import DataSize
from dbt_zorder.errors import BuildError
from dbt_zorder.layout import sample
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.progress import report_phases_to
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.columns import resolve_all
from dbt_zorder.tables.parquet.append import append
from dbt_zorder.tables.parquet.build import build
from tests.support import same_rows, unique
from tests.unit.engine.parquet.test_writer import ALL, needs_page_limit
from tests.unit.layout.frames import mixed

pytestmark = needs_page_limit

QUERY = "SELECT id, pmod(hash(id), 100) AS a, concat('k', id % 10) AS s, id % 3 AS p FROM range({})"


@contextlib.contextmanager
def rows_of(spark: SparkSession, query: str, spec: LayoutSpec, path: Path) -> Iterator[tuple[SpooledRows, Layout]]:
    """Give the rows of a query on disk, and a layout of them."""
    frame = spark.sql(query)
    parts = resolve_all(spec.partition_by, frame.schema, sensitive=False)
    data = [field for field in frame.schema.fields if field.name not in spec.partition_by]
    writer = arrow_writer(spark, type(frame.schema)(data), {}, str(path))
    assert isinstance(writer, ArrowWriter)
    with spool_rows(frame, parts, keys=keys_for(frame, spec)) as copy:
        assert copy is not None
        rows = SpooledRows(copy, writer, keys_for(frame, spec), 1 << 26)
        assert rows.key_bytes is not None
        yield rows, plan_layout(copy.rows, spec, rows.fetch_keys())


def ids_of(files: list[Path]) -> list[list[int]]:
    return [pq.ParquetFile(file).read(["id"])["id"].to_pylist() for file in files]


def write_in_parts(monkeypatch: pytest.MonkeyPatch, group_bytes: int) -> None:
    monkeypatch.setattr(module, "GROUP_BYTES", group_bytes)
    monkeypatch.setattr(parts_module, "PART_BYTES", group_bytes // 4)


@pytest.mark.parametrize(("most", "in_parts"), [(1 << 30, False), (2000, False), (1 << 30, True), (2000, True)])
@pytest.mark.parametrize(
    "spec",
    [
        LayoutSpec(by=["a", "s", "d"], files=7),
        LayoutSpec(by=["id"], files=5),
        LayoutSpec(by=["s"], files=3),
        LayoutSpec(by=["a", "t"], files=2, partition_by=["p"]),
        LayoutSpec(by=["a", "t"], files=1, partition_by=["p", "flag"]),
        LayoutSpec(by=["a", "s"], files=1),
        LayoutSpec(by=["a", "s", "d"], files=4, curve="hilbert"),
        LayoutSpec(by=["a", "n", "d"], files=3, curve="linear", partition_by=["p"]),
        LayoutSpec(by=["s", "t"], files=3, encoding="bits"),
    ],
    ids=lambda spec: f"{spec.by} {spec.files} {spec.partition_by} {spec.curve} {spec.encoding}",
)
def test_files_are_those_that_rows_in_memory_make(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spec: LayoutSpec,
    most: int,
    in_parts: bool,
) -> None:
    """Beyond what may be fetched on the way, too, and where a file is not in memory as a whole."""
    monkeypatch.setattr(module, "ShuffleBuffer", lambda _, folder: ShuffleBuffer(most, folder))
    if in_parts:
        write_in_parts(monkeypatch, 20_000)
    frame = spark.sql(mixed(4000))
    parts = resolve_all(spec.partition_by, frame.schema, sensitive=False)
    fetched = fetch(frame, keys_for(frame, spec), 1 << 26, partition_by=parts)
    assert fetched is not None
    with rows_of(spark, mixed(4000), spec, tmp_path) as (rows, layout):
        assert rows.write(spark, layout, str(tmp_path / "t"))
        assert not rows.spool.chunks or not Path(rows.spool.chunks[0].path).exists(), "all is in the table's folder"
    finder = CellFinder.by(layout)
    cells = finder.cells(fetched.keys)
    wanted = rows_of_files(fetched.keys, layout)
    numbers = fetched.rows["id"].to_numpy()
    # a file of two partitions that have one hash would be two
    files = {int(file.name[5:10]): file for file in sorted((tmp_path / "t").rglob("*.parquet"))}
    assert sorted(files) == sorted(wanted)
    row_of = {number: row for row, number in enumerate(numbers.tolist())}
    for file, there in wanted.items():
        (found,) = ids_of([files[file]])
        assert sorted(found) == sorted(numbers[there].tolist())
        here = np.asarray([row_of[number] for number in found])
        assert (np.diff(cells[here]) >= 0).all(), "in order of their cells"
        groups = pq.read_metadata(files[file]).num_row_groups
        assert 1 < groups < 40 if in_parts and len(there) > 300 else groups == 1
    read = spark.read.schema(frame.schema).parquet(str(tmp_path / "t"))
    assert same_rows(read.select(*frame.columns), frame)


@pytest.mark.parametrize(
    "spec",
    [
        LayoutSpec(by=["a", "s", "d"], files=7),
        LayoutSpec(by=["s"], files=3),
        LayoutSpec(by=["a", "s"], files=4, curve="hilbert"),
        LayoutSpec(by=["s", "t"], files=3, encoding="bits", curve="hilbert"),
        LayoutSpec(by=["a", "s"], files=2, partition_by=["p"]),
    ],
    ids=lambda spec: f"{spec.by} {spec.files} {spec.partition_by} {spec.curve} {spec.encoding}",
)
def test_rows_that_are_drawn_from_the_disk_make_the_layout_that_all_make(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: LayoutSpec
) -> None:
    with rows_of(spark, mixed(4000), spec, tmp_path) as (rows, layout):
        monkeypatch.setattr(module, "_MAX_KEY_BYTES", 0)
        assert rows.key_bytes is None
        found = plan_layout(rows.spool.rows, spec, rows.drawn_keys)
        monkeypatch.setattr(sample, "LEAST_ROWS", 500)
        of_some = plan_layout(rows.spool.rows, spec, rows.drawn_keys)
    assert of_some.files == found.files == layout.files
    if not spec.partition_by:  # parted by the keys of all rows, which only Spark has
        assert repr(found.levels) == repr(layout.levels), "NaN is not equal to itself"
        assert found.first_file.tolist() == layout.first_file.tolist()


def test_every_type_comes_through(spark: SparkSession, tmp_path: Path) -> None:
    by = ["n9", "ts", "s"]
    for keys, most in ((by, 1 << 30), (by[1:], 10_000)):
        place = tmp_path / str(most)
        with rows_of(spark, ALL, LayoutSpec(by=keys, files=3), tmp_path) as (rows, layout):
            assert len(rows.spool.shortened(rows.keys)) == (1 if "n9" in keys else 2)
            assert rows.write(spark, layout, str(place))
        written = spark.read.parquet(str(place))
        assert written.schema.simpleString() == spark.sql(ALL).schema.simpleString()
        assert same_rows(written, spark.sql(ALL))
        first = pq.ParquetFile(next(place.glob("*.parquet"))).schema
        kinds = {first.column(n).path: first.column(n).physical_type for n in range(len(first))}
        assert (kinds["n9"], kinds["n18"], kinds["n38"]) == ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")


def test_what_one_row_group_has_counts_for_the_whole_of_a_large_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow gets the options of a file's columns before the first row: NaN has no bounds, -0.0 no dictionary."""
    query = """
        SELECT id, id AS plain, id % 5 / 2D AS steady, if(id = 19000, double('NaN'), id / 3D) AS nan,
          if(id = 11000, -0.0D, id % 3 + 1D) AS minus, if(id BETWEEN 14000 AND 19999, 0D, 1D) AS zeros,
          float(if(id = 15000, 'NaN', id)) AS short
        FROM range(0, 20000, 1, 4)
    """
    write_in_parts(monkeypatch, 300_000)
    with rows_of(spark, query, LayoutSpec(by=["id"], files=1), tmp_path) as (rows, layout):
        assert rows.write(spark, layout, str(tmp_path / "t"))
    (file,) = (tmp_path / "t").glob("*.parquet")
    metadata = pq.read_metadata(file)
    assert metadata.num_row_groups in (3, 4)
    for group in range(metadata.num_row_groups):
        columns = [metadata.row_group(group).column(number) for number in range(metadata.num_columns)]
        assert [one.path_in_schema for one in columns if one.is_stats_set] == ["id", "plain", "steady", "minus"]
        coded = [one.path_in_schema for one in columns if one.has_dictionary_page]
        assert coded == ["steady", "zeros"]
    read = spark.read.parquet(str(tmp_path / "t"))
    assert same_rows(read, spark.sql(query))
    assert read.where("nan = double('NaN')").count() == read.where("minus = 0").count() == 1
    assert ds.dataset(file).to_table(filter=pc.field("zeros").isin([0.0])).num_rows == 6000


def test_a_value_that_fills_files_is_shared_out_over_them(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT id, if(id % 10 < 6, 7, id) AS a FROM range(0, 20000, 1, 4)"
    with rows_of(spark, query, LayoutSpec(by=["a"], files=10), tmp_path) as (rows, layout):
        assert (layout.file_count > 1).any()
        assert rows.write(spark, layout, str(tmp_path / "t"))
    counts = [len(ids) for ids in ids_of(sorted((tmp_path / "t").glob("*.parquet")))]
    assert len(counts) == 10
    assert sum(counts) == 20_000
    assert max(counts) < 1.2 * 2000


def test_equal_values_of_a_cell_lie_together_whatever_piece_they_came_in(spark: SparkSession, tmp_path: Path) -> None:
    query = """
        SELECT pmod(hash(id), 40) AS whole, concat('k', pmod(hash(id, 1), 40)) AS text, id FROM range(0, 20000, 1, 5)
    """
    with rows_of(spark, query, LayoutSpec(by=["whole", "text"], files=2), tmp_path) as (rows, layout):
        assert layout.runs
        assert rows.write(spark, layout, str(tmp_path / "t"))
        finder = CellFinder.by(layout)
        for file in (tmp_path / "t").glob("*.parquet"):
            found = pq.ParquetFile(file).read()
            keys = pa.table({"k0": found["whole"].cast("int64"), "k1": found["text"].cast("binary")})
            pairs = list(
                zip(finder.cells(keys).tolist(), found["whole"].to_pylist(), found["text"].to_pylist(), strict=True)
            )
            changes = sum(one != other for one, other in zip(pairs[1:], pairs, strict=False))
            assert changes < 1.05 * len(set(pairs))


def test_a_row_is_measured_as_it_is_written(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT id, pmod(hash(id), 5000) AS a, sha2(string(id), 256) AS t FROM range(0, 30000, 1, 4)"
    with rows_of(spark, query, LayoutSpec(by=["a"], files=6), tmp_path) as (rows, layout):
        measured = rows.size_of(layout, [0, 3])
        estimated = rows.with_row_bytes(LayoutSpec(by=["a"], file_size=100_000)).row_bytes
        assert rows.size_of(layout, [layout.files + 1]) == rows.size_of(layout, []) == DataSize()
        assert rows.with_row_bytes(LayoutSpec(by=["a"], files=3)).row_bytes is None
        assert rows.write(spark, layout, str(tmp_path / "t"))
    size = sum(file.stat().st_size for file in (tmp_path / "t").glob("*.parquet")) / 30_000
    assert measured.rows == pytest.approx(2 * 30_000 / 6, rel=0.1)
    assert measured.nbytes / measured.rows == pytest.approx(size, rel=0.05)
    assert estimated == pytest.approx(size, rel=0.1)


@pytest.mark.parametrize("after", ["estimate", "share"])
def test_a_file_of_too_many_rows_is_left_to_spark(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, after: str
) -> None:
    monkeypatch.setattr(choose, "_is_small", lambda _: False)
    if after == "estimate":
        monkeypatch.setattr(module, "memory_here", lambda: None)
    else:
        monkeypatch.setattr(module, "_MAX_FILE_BYTES", 1000)
    caplog.set_level("DEBUG", "dbt_zorder")
    table = TableName(database, unique("t"))
    request = BuildRequest(table, LayoutSpec(by=["a"], files=2), in_memory=1000)
    build(spark, spark.sql(QUERY.format(3000)), request)
    assert "too much memory" in caplog.text
    assert same_rows(spark.table(table.sql), spark.sql(QUERY.format(3000)))
    assert writers_of(spark, table) == {"parquet-mr "}


def test_partitions_that_are_no_text_are_left_to_spark(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "_is_small", lambda _: False)
    table = TableName(database, unique("t"))
    query = "SELECT id, if(id < 7, CAST(X'FF' AS string), 'A') AS p FROM range(20)"
    build(spark, spark.sql(query), BuildRequest(table, LayoutSpec(by=["id"], files=1, partition_by=["p"])))
    assert spark.table(table.sql).count() == 20
    assert writers_of(spark, table) == {"parquet-mr "}


def test_a_partition_that_no_folder_can_be_named_for_is_told(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "_is_small", lambda _: False)
    query = "SELECT id, concat('x', chr(0)) AS p FROM range(9)"
    request = BuildRequest(TableName(database, unique("t")), LayoutSpec(by=["id"], files=1, partition_by=["p"]))
    with pytest.raises(BuildError, match=r"could not be written: .*null"):
        build(spark, spark.sql(query), request)


def test_a_batch_goes_the_same_way(spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_is_small", lambda _: False)
    table = TableName(database, unique("t"))
    request = BuildRequest(table, LayoutSpec(by=["a", "s"], files=4))
    build(spark, spark.sql(QUERY.format(3000)), request)
    batch = f"SELECT id + 5000 AS id, a, s, p FROM ({QUERY.format(5000)})"
    report = append(spark, spark.sql(batch), request)
    assert report.files > 1
    assert same_rows(spark.table(table.sql), spark.sql(f"{QUERY.format(3000)} UNION ALL {batch}"))
    assert writers_of(spark, table) == {"parquet-cpp"}


@pytest.mark.parametrize("parts", [[], ["p"]])
def test_so_do_rows_of_which_keys_take_too_much(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch, parts: list[str]
) -> None:
    monkeypatch.setattr(choose, "_is_small", lambda _: False)
    monkeypatch.setattr(module, "_MAX_KEY_BYTES", 0)
    table = TableName(database, unique("t"))
    request = BuildRequest(table, LayoutSpec(by=["a", "s"], files=4, partition_by=parts))
    build(spark, spark.sql(QUERY.format(3000)), request)
    batch = f"SELECT id + 5000 AS id, a, s, p FROM ({QUERY.format(5000)})"
    append(spark, spark.sql(batch), request)
    assert same_rows(spark.table(table.sql), spark.sql(f"{QUERY.format(3000)} UNION ALL {batch}"))
    assert writers_of(spark, table) == {"parquet-cpp"}


@pytest.mark.parametrize("fault", ["a full disk", "cancelled"])
def test_what_ends_it_leaves_the_table_and_nothing_else(
    spark: SparkSession, database: str, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(choose, "_is_small", lambda _: False)
    folders: list[str] = []
    write = SpooledRows.write

    def noted(rows: SpooledRows, *args: Any) -> bool:
        folders.append(rows.spool.folder)
        return write(rows, *args)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    def cancel(phase: str) -> None:
        phases.append(phase)
        if phases.count("write") == 2:
            raise BuildError("cancelled")

    phases: list[str] = []
    table = TableName(database, unique("t"))
    request = BuildRequest(table, LayoutSpec(by=["a", "s"], files=3))
    build(spark, spark.sql(QUERY.format(100)), request)
    monkeypatch.setattr(SpooledRows, "write", noted)
    if fault == "a full disk":
        monkeypatch.setattr(ArrowWriter, "_writer_to", full)
    listener = cancel if fault == "cancelled" else phases.append
    with report_phases_to(listener), pytest.raises(BuildError, match=r"No space left|cancelled"):
        build(spark, spark.sql(QUERY.format(3000)), request)
    assert len(folders) == 1
    assert not Path(folders[0]).exists()
    assert same_rows(spark.table(table.sql), spark.sql(QUERY.format(100)))


def writers_of(spark: SparkSession, table: TableName) -> set[str]:
    info = describe(spark, table)
    assert info is not None
    files = Path(info.location.removeprefix("file:")).rglob("part-*c000*")
    return {pq.read_metadata(file).created_by[:11] for file in files}
