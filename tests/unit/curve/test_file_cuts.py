from __future__ import annotations

import numpy as np
import pytest

from dbt_zorder.curve.file_cuts import FileCell, Splitter
from dbt_zorder.curve.ranks import Ranks, cumulative_mass

DEEP = 20


def splitter(ranks: Ranks, weights: list[float] | None = None) -> Splitter:
    columns = ranks.shape[1]
    mass = [cumulative_mass(ranks[:, column]) for column in range(columns)]
    return Splitter(ranks, mass, np.asarray(weights or [1.0] * columns))


def uniform(columns: int, rows: int = 4096) -> Ranks:
    return np.random.default_rng(7).integers(1, rows, size=(rows, columns)).astype(np.int32)


def whole(ranks: Ranks, files: int) -> list[FileCell]:
    return [FileCell(0, np.arange(len(ranks)), files)]


def test_a_cut_shares_rows_and_files_in_proportion() -> None:
    ranks = uniform(1)
    level, children = splitter(ranks).cut_level(whole(ranks, 5), 1, DEEP)
    assert level.shape == (1, 1)
    assert [child.files for child in children] == [2, 3]
    assert len(children[0].rows) / len(ranks) == pytest.approx(2 / 5, abs=0.01)


def test_every_row_goes_to_one_child() -> None:
    ranks = uniform(3)
    _, children = splitter(ranks).cut_level(whole(ranks, 16), 1, DEEP)
    assert sorted(np.concatenate([child.rows for child in children]).tolist()) == list(range(len(ranks)))


def test_the_column_that_was_cut_is_not_the_next_one() -> None:
    ranks = uniform(2)
    cutter = splitter(ranks)
    first, cells = cutter.cut_level(whole(ranks, 4), 1, DEEP)
    second, _ = cutter.cut_level(cells, 2, DEEP)
    cut_first, cut_second = first.any(axis=1), second.any(axis=1)
    assert cut_first.sum() == 1
    assert (cut_first != cut_second).all()


def test_weights_decide_which_column_is_cut_first() -> None:
    ranks = uniform(2)
    level, _ = splitter(ranks, [1.0, 5.0]).cut_level(whole(ranks, 4), 1, DEEP)
    assert level.any(axis=1).tolist() == [False, True]


@pytest.mark.parametrize("share", [0.02, 0.98])
def test_a_cut_that_would_leave_a_tiny_file_is_not_made(share: float) -> None:
    ranks = np.where(np.arange(1000) < share * 1000, 1, 2).astype(np.int32).reshape(-1, 1)
    level, children = splitter(ranks).cut_level(whole(ranks, 2), 1, DEEP)
    assert not level.any()
    assert children[0].exhausted
    assert len(children[0].rows) == 1000


def test_one_value_is_left_to_the_hash() -> None:
    ranks = np.ones((100, 2), dtype=np.int32)
    level, children = splitter(ranks).cut_level(whole(ranks, 4), 1, DEEP)
    assert not level.any()
    assert [(child.node, child.files) for child in children] == [(0, 4)]


@pytest.mark.parametrize(("files", "levels"), [(8, 3), (13, 4), (16, 4)])
def test_files_are_halved_where_no_level_is_to_spare(files: int, levels: int) -> None:
    ranks = uniform(3)
    cells = whole(ranks, files)
    for level in range(levels):
        _, cells = splitter(ranks).cut_level([cell for cell in cells if cell.cuttable], 1 << level, levels - level)
    assert not any(cell.cuttable for cell in cells)
