from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_zorder.engine.local.shuffle import ShuffleBuffer
from dbt_zorder.engine.row_bytes import DataSize

LISTS = pa.list_(pa.struct([("a", pa.string())]))


def rows_of(first: int, counts: dict[int, int]) -> tuple[pa.Table, dict[int, slice]]:
    """Return numbered rows of some files, and where each file's lie."""
    total = sum(counts.values())
    ends = np.cumsum([0, *counts.values()]).tolist()
    numbers = range(first, first + total)
    texts = pa.array([f"text {number}" if number % 3 else None for number in numbers], pa.string())
    lists = pa.array([None if n % 4 == 0 else [{"a": str(n)}] * (n % 3) for n in numbers], LISTS)
    table = pa.table({"n": pa.array(numbers, pa.int64()), "text": texts, "lists": lists})
    return table, {file: slice(*ends[place : place + 2]) for place, file in enumerate(counts)}


@settings(deadline=None)
@given(
    chunks=st.lists(st.dictionaries(st.integers(0, 5), st.integers(1, 20), max_size=4), max_size=6),
    most=st.sampled_from([0, 500, 1 << 30]),
)
def test_each_files_rows_come_back_in_the_order_of_adding(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[dict[int, int]], most: int
) -> None:
    wanted: dict[int, list[int]] = {}
    folder = tmp_path_factory.mktemp("buffer")
    with ShuffleBuffer(most, str(folder)) as buffer:
        first = 0
        for counts in chunks:
            table, files = rows_of(first, dict(sorted(counts.items())))
            buffer.add(table, files)
            for file, here in files.items():
                wanted.setdefault(file, []).extend(range(first + here.start, first + here.stop))
            first += table.num_rows
        assert list(buffer.sizes()) == sorted(wanted)
        for file, size in buffer.sizes().items():
            assert size.nbytes == pytest.approx(buffer.take([file]).nbytes, abs=40)
            assert size.rows == len(wanted[file])
        for file, numbers in wanted.items():
            found = buffer.take([file])
            assert found["n"].to_pylist() == numbers
            assert found["text"].to_pylist() == [f"text {n}" if n % 3 else None for n in numbers]
            lists = [None if n % 4 == 0 else [{"a": str(n)}] * (n % 3) for n in numbers]
            assert found["lists"].to_pylist() == lists
            assert buffer.take([file], []).num_columns == 0
        if wanted:
            texts = buffer.take(list(wanted), ["text"])
            assert texts.column_names == ["text"]
            numbers = [number for file in wanted for number in wanted[file]]
            assert texts["text"].to_pylist() == [f"text {n}" if n % 3 else None for n in numbers]
    assert not list(folder.iterdir()), "nothing is left on disk"


def test_no_more_than_is_allowed_is_held(tmp_path: Path) -> None:
    table, files = rows_of(0, {0: 1000, 1: 1000})
    with ShuffleBuffer(table.nbytes, str(tmp_path)) as buffer:
        buffer.add(table, files)
        assert not list(tmp_path.iterdir()), "it fits"
        buffer.add(table, files)
        (spilled,) = tmp_path.iterdir()
        size = spilled.stat().st_size
        assert size > 0
        buffer.add(table, files)
        assert spilled.stat().st_size == size, "it fits again"
        assert [buffer.take([file]).num_rows for file in (0, 1)] == [3000, 3000]


def test_a_file_of_long_rows_weighs_what_they_do(tmp_path: Path) -> None:
    table = pa.table({"n": range(1000), "t": ["x" * 20_000 if n < 20 else "" for n in range(1000)]})
    with ShuffleBuffer(1 << 30, str(tmp_path)) as buffer:
        buffer.add(table, {0: slice(0, 20), 3: slice(20, 1000)})
        assert buffer.sizes() == {0: DataSize(20, 20 * (8 + 4 + 20_000)), 3: DataSize(980, 980 * 12)}
