from __future__ import annotations

import pytest

from dbt_zorder.pruning.files.column_bounds import FileBounds, FileRows
from dbt_zorder.pruning.top_rows import ranking
from dbt_zorder.pruning.top_rows.ranking import Ranking, Worst, enough
from tests.soundness.ranking_model import faults


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """No statistics are read here."""


def file(path: str, rows: int, nulls: int, low: int | None, high: int | None) -> FileBounds:
    return FileBounds(path, 1, rows, nulls, low, high)


FILES = [
    file("a", 10, 0, 0, 9),
    file("b", 10, 0, 10, 19),
    file("c", 10, 4, 20, 29),
    file("n", 5, 5, None, None),
]


@pytest.mark.parametrize(
    ("falls", "nulls_first", "rows", "worst", "kept"),
    [
        (True, False, 6, Worst(20), "c"),
        (True, False, 7, Worst(10), "bc"),
        (True, False, 26, Worst(0), "abc"),
        (True, False, 27, None, None),
        (False, False, 10, Worst(9), "a"),
        (False, False, 11, Worst(19), "ab"),
        (False, True, 9, Worst(None), "cn"),
        (False, True, 10, Worst(9), "acn"),
        (True, True, 10, Worst(20), "cn"),
        (True, True, 16, Worst(10), "bcn"),
        (True, True, 36, None, None),
    ],
)
def test_files_behind_enough_rows_are_excluded(
    falls: bool, nulls_first: bool, rows: int, worst: Worst | None, kept: str | None
) -> None:
    order = Ranking(falls, nulls_first)
    assert order.worst(FILES, rows) == worst
    if worst is not None:
        assert "".join(one.path for one in FILES if one.path not in order.without(FILES, worst)) == kept


def test_a_tie_is_kept() -> None:
    files = [file("a", 3, 0, 5, 5), file("b", 3, 0, 1, 5), file("c", 3, 0, 5, 9)]
    assert Ranking(falls=True, nulls_first=False).without(files, Worst(5)) == {}
    assert Ranking(falls=False, nulls_first=False).without(files, Worst(5)) == {}


def test_the_best_files_come_first() -> None:
    for falls, nulls_first, expected in (
        (True, False, "cban"),
        (False, False, "abcn"),
        (True, True, "cnba"),
        (False, True, "cnab"),
    ):
        assert "".join(one.path for one in Ranking(falls, nulls_first).best_first(FILES)) == expected


def test_the_fewest_files_have_enough_rows() -> None:
    files = [FileRows("a", 1, 3), FileRows("b", 1, 9), FileRows("c", 1, 5)]
    assert [one.path for one in enough(files, 9) or ()] == ["b"]
    assert [one.path for one in enough(files, 10) or ()] == ["b", "c"]
    assert enough(files, 18) is None


def test_no_first_row_is_lost() -> None:
    assert faults(ranking, 20_000) == []
