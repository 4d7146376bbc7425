from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.local import large_table as copied_rows
from dbt_zorder.engine.local.file_writer import FileWriter
from dbt_zorder.engine.local.output_files import files_of
from dbt_zorder.engine.local.shuffle import ShuffleBuffer
from dbt_zorder.engine.local.shuffled_rows import ShuffledRows
from dbt_zorder.layout.spec import LayoutSpec
from tests.unit.engine.local.test_large_table import rows_of, write_in_parts
from tests.unit.engine.parquet.test_writer import needs_page_limit
from tests.unit.layout.frames import mixed, nested

pytestmark = needs_page_limit


@pytest.mark.parametrize("query", [mixed(9000), nested(3000)], ids=["plain", "nested"])
@pytest.mark.parametrize("parts", [[], ["p"]])
@pytest.mark.parametrize("in_parts", [False, True])
def test_files_are_the_same_by_however_many_threads(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    parts: list[str],
    *,
    in_parts: bool,
) -> None:
    if in_parts:
        write_in_parts(monkeypatch, 30_000)
    written = []
    with rows_of(spark, query, LayoutSpec(by=["a", "id"], files=1, partition_by=parts), tmp_path) as (rows, layout):
        how = rows._parts(layout)
        numbers = copied_rows._Folders(spark, parts)
        with ShuffleBuffer(1 << 30, rows.spool.folder) as buffer:
            rows._shuffle(how, buffer, numbers)
            folders = numbers.names or [""]
            files = files_of(buffer.sizes(), how, 30_000 if in_parts else 1 << 30)
            assert (max(len(file.groups) for file in files) > 3) == in_parts
            for name, threads, most in (("one", 1, 1 << 30), ("more", 4, 1 << 30), ("no room", 4, 1)):
                (tmp_path / name).mkdir()
                place = rows.writer.place_of(spark, str(tmp_path / name))
                rows.writer.make_folders(place, folders)
                shuffled = ShuffledRows(rows.spool, rows.keys)
                writer = FileWriter(rows.writer, shuffled, how.finder, buffer, place, folders, most, threads)
                weights = [weight / file.nbytes for file, weight in writer.weighed(files)]
                assert max(weights) == (2 if in_parts and name == "more" else 1)
                for file in files:
                    writer.write(file)
                found = (tmp_path / name).rglob("*.parquet")
                written.append({str(one.relative_to(tmp_path / name)): one.read_bytes() for one in found})
    assert len(written[0]) == (4 if parts else 1)
    assert written[0] == written[1] == written[2]


def test_what_fails_in_a_thread_fails_the_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_parts(monkeypatch, 30_000)
    with rows_of(spark, mixed(9000), LayoutSpec(by=["a", "id"], files=1), tmp_path) as (rows, layout):
        how = rows._parts(layout)
        with ShuffleBuffer(1 << 30, rows.spool.folder) as buffer:
            rows._shuffle(how, buffer)
            (file,) = files_of(buffer.sizes(), how, 30_000)
            place = rows.writer.place_of(spark, str(tmp_path / "t"))
            rows.writer.make_folders(place, [""])
            shuffled = ShuffledRows(rows.spool, rows.keys)
            writer = FileWriter(rows.writer, shuffled, how.finder, buffer, place, [""], 1 << 30, 4)
            order, calls = ShuffledRows.order, []

            def failing(*args: object) -> object:
                calls.append(args)
                if len(calls) == 3:
                    raise OSError(28, "No space left on device")
                return order(*args)  # type: ignore[arg-type]

            monkeypatch.setattr(ShuffledRows, "order", failing)
            with pytest.raises(OSError, match="No space left"):
                writer.write(file)
