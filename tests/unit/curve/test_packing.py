from __future__ import annotations

import itertools

import numpy as np
import pytest

from dbt_zorder.curve.packing import MOST_COLUMNS, MOST_FILES, known, ways


def brute(columns: int, files: int) -> list[tuple[float, ...]]:
    """Every way there is, beaten or not."""
    if files == 1:
        return [(1.0,) * columns]
    found = []
    for column, left in itertools.product(range(columns), range(1, files)):
        for one, other in itertools.product(brute(columns, left), brute(columns, files - left)):
            both = [a + b for a, b in zip(one, other, strict=True)]
            both[column] = (left * one[column] + (files - left) * other[column]) / files
            found.append(tuple(both))
    return found


@pytest.mark.parametrize(("columns", "files"), [(1, 4), (2, 3), (2, 4), (2, 5), (3, 3), (3, 4)])
def test_no_way_there_is_beats_the_ones_that_are_kept(columns: int, files: int) -> None:
    kept = ways(columns, files)
    every = np.asarray(brute(columns, files))
    for shares in np.random.default_rng(0).random((50, columns)):
        assert (kept.touched @ shares).min() <= (every @ shares).min() * 1.02


@pytest.mark.parametrize("columns", [1, 2, 3])  # of the many ways for sixteen files of four columns not all are kept
def test_squares_and_cubes_reach_the_minimum(columns: int) -> None:
    files = 2**columns
    assert ways(columns, files).touched.mean(axis=1).min() == pytest.approx(files ** ((columns - 1) / columns))


def test_eight_files_of_two_columns_are_best_cut_into_slabs_of_three_and_two() -> None:
    found = ways(2, 8)
    best = int(np.argmin(found.touched.sum(axis=1)))
    assert found.touched[best].sum() == pytest.approx(5.75)  # halves have 2 + 4
    assert found.left_files[best] in (2, 3)


def test_only_few_files_of_few_columns_are_listed() -> None:
    assert known(MOST_COLUMNS, MOST_FILES)
    assert not known(MOST_COLUMNS + 1, 2)
    assert not known(2, MOST_FILES + 1)
