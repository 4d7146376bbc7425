from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.engine.local.output_files import files_of
from dbt_zorder.engine.row_bytes import DataSize

TENS: Any = SimpleNamespace(file=lambda part: part // 10)


@given(sizes=st.dictionaries(st.integers(0, 39), st.integers(1, 1000), min_size=1), most=st.integers(1, 3000))
def test_each_part_is_in_one_group_of_its_file(sizes: dict[int, int], most: int) -> None:
    shares = {part: DataSize(1, sizes[part]) for part in sorted(sizes)}
    files = files_of(shares, TENS, most)
    assert [part for file in files for group in file.groups for part in group] == sorted(sizes)
    for file in files:
        parts = [part for group in file.groups for part in group]
        assert {part // 10 for part in parts} == {file.number}
        assert [size.nbytes for size in file.sizes] == [sum(sizes[part] for part in group) for group in file.groups]
        assert [size.rows for size in file.sizes] == [len(group) for group in file.groups]
        assert file.nbytes <= most + max(sizes[part] for part in parts)
        if sum(sizes[part] for part in parts) <= most:
            assert len(file.groups) == 1


def test_groups_are_even() -> None:
    (file,) = files_of({part: DataSize(10, 100) for part in range(10)}, TENS, 400)
    assert file.groups == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9]]
    assert (file.nbytes, file.number) == (400, 0)
