from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dbt_zorder.curve.ranks import Ranks
from dbt_zorder.curve.repeats import run_columns

ROWS = 1 << 16
RANDOM = np.random.default_rng(3)


def cells(rows: int, count: int = 64) -> npt.NDArray[np.int64]:
    return RANDOM.integers(0, count, rows)


def columns(*distinct: int, rows: int = ROWS) -> Ranks:
    """Values of no bond, each column of so many."""
    return np.stack([RANDOM.integers(1, count + 1, rows) for count in distinct], axis=1).astype(np.int32)


def repeated(rows: int, times: int, fields: int = 2) -> Ranks:
    """Rows that are there so many times, all of their columns alike."""
    base = columns(*[rows // times] * fields, rows=rows // times)
    return np.repeat(base, times, axis=0)


def test_the_column_with_the_longest_runs_comes_first() -> None:
    ranks = columns(40, 4)
    assert run_columns(cells(ROWS), ranks, ROWS) == (1, 0)
    assert run_columns(cells(ROWS), ranks[:, ::-1], ROWS) == (0, 1)


def test_one_column_alone_is_left_as_it_came() -> None:
    assert run_columns(cells(ROWS), columns(4, ROWS), ROWS) == ()
    assert run_columns(cells(ROWS), columns(4), ROWS) == ()


def test_no_more_columns_than_are_worth_it() -> None:
    assert run_columns(cells(ROWS, 4), columns(2, 2, 2, 2), ROWS) == (0, 1, 2)
    assert run_columns(cells(ROWS, 4), columns(3, 2, ROWS), ROWS) == (1, 0)


@pytest.mark.parametrize(("times", "found"), [(1, 0), (2, 0), (8, 2), (60, 2)])
@pytest.mark.parametrize("share", [1.0, 0.2, 0.02])
def test_a_sample_tells_what_all_rows_tell(times: int, found: int, share: float) -> None:
    rows = 1_000_000
    ranks = repeated(rows, times)
    cell = (ranks[:, 0] * 64 // ranks[:, 0].max()).astype(np.int64)  # as a tree does: equal rows share a cell
    drawn = np.sort(RANDOM.choice(len(ranks), int(len(ranks) * share), replace=False))
    assert len(run_columns(cell[drawn], ranks[drawn], len(ranks))) == found


def test_a_few_heavy_values_are_no_runs() -> None:
    rows = 1_000_000
    ranks = np.stack([np.where(RANDOM.random(rows) < 0.1, 1, np.arange(2, rows + 2))] * 2, axis=1).astype(np.int32)
    drawn = np.sort(RANDOM.choice(rows, ROWS, replace=False))
    assert run_columns(np.zeros(ROWS, dtype=np.int64), ranks[drawn], rows) == ()


def test_no_rows_and_one() -> None:
    for rows in (0, 1):
        assert run_columns(np.zeros(rows, dtype=np.int64), np.zeros((rows, 2), dtype=np.int32), rows) == ()
