from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dbt_zorder.curve import grid as module
from dbt_zorder.curve.grid import BOUNDARIES, Grid, fit_grid
from dbt_zorder.curve.ranks import Ranks
from dbt_zorder.curve.tree import Forest, grow
from tests.unit.curve.reference import interleave

ROWS = 1 << 15


def uniform(columns: int, rows: int = ROWS) -> Ranks:
    return np.random.default_rng(5).integers(1, ROWS, size=(rows, columns)).astype(np.int32)


def together(columns: int) -> Ranks:
    """Columns that go together, as an order's number and its time do."""
    first = np.arange(1, ROWS + 1).reshape(-1, 1)
    return np.asarray(first + np.arange(columns), dtype=np.int32)


def forest_of(ranks: Ranks, files: int = 16, levels: int = 7, weights: Sequence[float] | None = None) -> Forest:
    return grow(ranks, np.zeros(len(ranks), dtype=np.int32), [files], levels, weights)


def fitted(ranks: Ranks, files: int = 16, pages: float = 31) -> Grid:
    grid = fit_grid(forest_of(ranks, files), ranks, pages)
    assert grid is not None
    return grid


def test_a_key_is_the_interleaved_rank_among_the_boundaries() -> None:
    codes = ((0, 2, 8, 10), (0, 1, 4, 5))  # 0, 1, 2, 3 at every other bit
    grid = Grid(((5, 9, 20), (3, 4, 6)), codes)
    ranks = np.asarray([[0, 0], [4, 3], [5, 4], [19, 5], [20, 6], [99, 99]], dtype=np.int32)
    assert grid.keys(ranks).tolist() == [interleave(at, 2) for at in ([0, 0], [0, 1], [1, 2], [2, 2], [3, 3], [3, 3])]


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_columns_without_a_bond_share_the_boundaries_evenly(columns: int) -> None:
    grid = fitted(uniform(columns))
    sizes = [len(cuts) for cuts in grid.cuts]
    assert max(sizes) - min(sizes) <= 1 + max(sizes) // 8
    assert sum(sizes) <= 62
    for cuts, codes in zip(grid.cuts, grid.codes, strict=True):
        assert list(cuts) == sorted(set(cuts))
        assert list(codes) == sorted(set(codes))
        assert len(codes) == len(cuts) + 1


def test_what_a_column_of_few_values_cannot_use_goes_to_the_others() -> None:
    ranks = uniform(2)
    ranks[:, 1] = ranks[:, 1] % 5 + 1
    many, few = (len(cuts) for cuts in fitted(ranks).cuts)
    assert few <= 4
    assert many > 40


def test_more_files_need_more_boundaries() -> None:
    few, many = (sum(map(len, fitted(uniform(2, 4 * ROWS), files).cuts)) for files in (16, 60))
    assert few < many


def test_columns_that_go_together_are_left_to_the_tree() -> None:
    assert fit_grid(forest_of(together(2)), together(2), 31) is None
    assert fit_grid(forest_of(together(4)), together(4), 31) is None


def test_a_column_is_not_given_up_for_another() -> None:
    ranks = uniform(2)
    ranks[:, 1] = ranks[:, 1] % 2 + 1  # read whole by half of all files, whatever their order
    assert fit_grid(forest_of(ranks, 120), ranks, 31, most=BOUNDARIES[0]) is None


def test_no_more_boundaries_than_allowed() -> None:
    forest = forest_of(uniform(2), 60)
    assert fit_grid(forest, uniform(2), 31, most=BOUNDARIES[0]) is None
    assert fit_grid(forest, uniform(2), 31, most=-1) is None


def test_of_one_page_a_file_few_boundaries_will_do() -> None:
    assert sum(map(len, fitted(uniform(2), pages=0.5).cuts)) <= BOUNDARIES[0] == 14


@pytest.mark.parametrize(
    "ranks",
    [np.zeros((0, 2), dtype=np.int32), np.ones((500, 2), dtype=np.int32), np.zeros((500, 3), dtype=np.int32)],
    ids=["no row", "one value", "nothing but NULL"],
)
def test_where_nothing_can_be_cut_a_grid_has_no_boundaries(ranks: Ranks) -> None:
    grid = fitted(ranks, files=4)
    assert [len(cuts) for cuts in grid.cuts] == [0] * ranks.shape[1]
    assert grid.keys(ranks).tolist() == [0] * len(ranks)


def test_a_page_of_nothing_but_null_counts_as_read_by_no_value() -> None:
    ranks = uniform(2)
    ranks[: ROWS // 2, 0] = 0
    grid = fitted(ranks)
    assert all(cuts[0] > 0 for cuts in grid.cuts)


def test_a_key_of_eight_columns_fits_a_bigint(monkeypatch: pytest.MonkeyPatch) -> None:
    """One column of many values among coarse ones gets nearly all boundaries, and only so many bits of the key."""
    monkeypatch.setattr(module, "BOUNDARIES", (254,))
    ranks = np.ones((ROWS, 8), dtype=np.int32)
    ranks[:, 0] = uniform(1)[:, 0]
    grid = fit_grid(forest_of(ranks, 2), ranks, 31, most=254)
    assert grid is not None
    assert len(grid.cuts[0]) == 127
    assert sum(codes[-1] for codes in grid.codes) < 1 << 63
    assert len(np.unique(grid.keys(ranks))) == 128


def test_files_of_a_page_are_not_held_against_the_tree() -> None:
    grid = fitted(together(2), pages=1.5)  # which with more pages is left to the tree
    assert sum(map(len, grid.cuts)) <= BOUNDARIES[0]
