from __future__ import annotations

import numpy as np

from dbt_zorder.curve.cell_cuts import order_cells
from dbt_zorder.curve.ranks import Ranks, cumulative_mass


def cells_of(ranks: Ranks, groups: list[list[int]], levels: int, weights: list[float] | None = None) -> list[Ranks]:
    mass = [cumulative_mass(ranks[:, column]) for column in range(ranks.shape[1])]
    scale = np.asarray(weights or [1.0] * ranks.shape[1])
    cell = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return order_cells(ranks[[row for group in groups for row in group]], cell, len(groups), levels, mass, scale)


def uniform(columns: int, rows: int = 1024) -> Ranks:
    return np.random.default_rng(3).integers(1, rows, size=(rows, columns)).astype(np.int32)


def test_each_level_doubles_the_cells() -> None:
    ranks = uniform(2)
    cuts = cells_of(ranks, [list(range(512)), list(range(512, 1024))], 3)
    assert [level.shape for level in cuts] == [(2, 2), (2, 4), (2, 8)]


def test_independent_columns_take_turns_and_share_no_level() -> None:
    cuts = cells_of(uniform(2, 1 << 16), [list(range(1 << 16))], 4)
    columns = [np.flatnonzero(level.any(axis=1)).tolist() for level in cuts]
    assert columns == [[0], [1], [0], [1]]


def test_a_cell_is_cut_at_its_median() -> None:
    ranks = np.arange(1, 101, dtype=np.int32).reshape(-1, 1)
    (level,) = cells_of(ranks, [list(range(100))], 1)
    assert level.tolist() == [[51]]


def test_where_most_rows_hold_the_least_value_it_is_parted_from_the_next() -> None:
    ranks = np.asarray([1] * 9 + [5], dtype=np.int32).reshape(-1, 1)
    (level,) = cells_of(ranks, [list(range(10))], 1)
    assert level.tolist() == [[5]]


def test_nulls_can_be_parted_from_values() -> None:
    ranks = np.asarray([0] * 8 + [1] * 8, dtype=np.int32).reshape(-1, 1)
    (level,) = cells_of(ranks, [list(range(16))], 1)
    assert level.tolist() == [[1]]


def test_nothing_is_cut_where_there_is_one_value_or_no_row() -> None:
    assert cells_of(np.ones((50, 2), dtype=np.int32), [list(range(50))], 5) == []
    assert cells_of(np.zeros((0, 2), dtype=np.int32), [[]], 5) == []


def test_an_empty_cell_beside_a_full_one_stays_uncut() -> None:
    ranks = uniform(1)
    (level,) = cells_of(ranks, [list(range(1024)), []], 1)
    assert level[0, 0] > 0
    assert level[0, 1] == 0
