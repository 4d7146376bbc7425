from __future__ import annotations

import itertools

import numpy as np
import pytest

from dbt_zorder.curve.cut_plans import has_plans, plans_for


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


@pytest.mark.parametrize(("columns", "files"), [(2, 3), (2, 4), (2, 5), (3, 3), (3, 4)])
def test_no_way_there_is_beats_the_ones_that_are_kept(columns: int, files: int) -> None:
    kept = plans_for(columns, files)
    every = np.asarray(brute(columns, files))
    for shares in np.random.default_rng(0).random((50, columns)):
        assert (kept.touched @ shares).min() <= (every @ shares).min() * 1.02


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_squares_and_cubes_reach_the_minimum(columns: int) -> None:
    files = 2**columns
    assert plans_for(columns, files).touched.max(axis=1).min() == pytest.approx(files ** ((columns - 1) / columns))


def cut_down(columns: int, files: int, way: int, box: list[float]) -> list[tuple[list[float], float]]:
    """Follow a way to its files: their extent by column, and their volume."""
    found = plans_for(columns, files)
    if files == 1:
        return [(box, float(np.prod(box)))]
    column, left = int(found.column[way]), int(found.left_files[way])
    boxes = []
    for count, further in ((left, found.left_plan[way]), (files - left, found.right_plan[way])):
        half = [extent * count / files if number == column else extent for number, extent in enumerate(box)]
        boxes += cut_down(columns, count, int(further), half)
    return boxes


@pytest.mark.parametrize(("columns", "files"), [(2, 7), (3, 11), (3, 40), (4, 16), (4, 33)])
def test_what_a_way_promises_its_halves_keep(columns: int, files: int) -> None:
    found = plans_for(columns, files)
    for way in range(0, len(found.touched), 37):
        boxes = cut_down(columns, files, way, [1.0] * columns)
        assert [volume for _, volume in boxes] == pytest.approx([1 / files] * files)
        assert np.sum([box for box, _ in boxes], axis=0) == pytest.approx(found.touched[way])


def test_eight_files_of_two_columns_are_best_cut_into_slabs_of_three_and_two() -> None:
    found = plans_for(2, 8)
    best = int(np.argmin(found.touched.sum(axis=1)))
    assert found.touched[best].sum() == pytest.approx(5.75)  # halves have 2 + 4
    assert found.left_files[best] in (2, 3)


def test_only_few_files_of_few_columns_are_listed() -> None:
    assert has_plans(2, 16)
    assert has_plans(4, 48)
    assert not has_plans(2, 17)
    assert not has_plans(5, 2)
    assert not has_plans(1, 2)


@pytest.mark.parametrize("times", [20, 100, 1e80])
@pytest.mark.parametrize(("columns", "files"), [(2, 16), (3, 24), (3, 48), (4, 48)])
def test_a_box_that_is_wide_in_one_column_can_be_cut_into_slabs(columns: int, files: int, times: float) -> None:
    shares = np.asarray([times] + [1.0] * (columns - 1))
    slabs = times + files * (columns - 1)
    assert (plans_for(columns, files).touched @ shares).min() <= 1.001 * slabs


def test_ways_are_not_to_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        plans_for(2, 4).touched[0] = 0
