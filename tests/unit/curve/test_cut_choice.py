from __future__ import annotations

import numpy as np
import pytest

from dbt_zorder.curve.cut_choice import best_pair, unevenness
from dbt_zorder.curve.cut_plans import plans_for


def halved(columns: int, files: int) -> float:
    """Return what a query on the worst column touches after the best first cut, both halves cut so that they fit."""
    whole = np.ones(columns)
    found = []
    for column, left in plans_for(columns, files).first_cuts(whole):
        counts = (left, files - left)
        shares = [np.where(np.arange(columns) == column, count / files, 1.0) for count in counts]
        halves = [plans_for(columns, count) for count in counts]
        chosen = best_pair((halves[0], halves[1]), (shares[0], shares[1]), np.zeros(columns))
        touched = [half.touched[way] * share for half, way, share in zip(halves, chosen, shares, strict=True)]
        found.append(float((touched[0] + touched[1]).max()))
    return min(found)


@pytest.mark.parametrize(("columns", "files"), [(3, 16), (3, 40), (4, 24), (4, 32), (4, 48)])
def test_halves_that_make_up_for_each_other_come_within_six_percent(columns: int, files: int) -> None:
    # one way alone cuts 16 files of 3 columns into 4 x 2 x 2 and its like, with 1.26 for the worst column
    assert halved(columns, files) < 1.06 * files ** ((columns - 1) / columns)


def test_a_pair_makes_up_for_what_is_touched_elsewhere() -> None:
    both = (plans_for(2, 2), plans_for(2, 2))  # each touches 1 and 2, or 2 and 1
    shares = (np.ones(2), np.ones(2))
    for touched, expected in (([0.0, 0.0], [3.0, 3.0]), ([2.0, 0.0], [2.0, 4.0]), ([0.0, 2.0], [4.0, 2.0])):
        pair = best_pair(both, shares, np.asarray(touched))
        assert (both[0].touched[pair[0]] + both[1].touched[pair[1]]).tolist() == expected


def test_unevenness_goes_by_the_worst_column_and_then_by_the_others() -> None:
    rows = unevenness(
        np.asarray([[3.5, 1.0, 1.0], [2.9, 2.9, 2.0], [2.9, 2.9, 1.0], [20.0, 1.0, 1.0], [20.0, 1.0, 0.5]])
    )
    assert rows.argsort().tolist() == [2, 1, 0, 4, 3]


@pytest.mark.parametrize(("columns", "files"), [(2, 16), (4, 4), (4, 12), (4, 48)])
def test_of_very_many_good_ways_some_that_differ_are_asked_and_the_best_among_them(columns: int, files: int) -> None:
    found = plans_for(columns, files)
    for shares in (np.ones(columns), np.arange(1.0, columns + 1)):
        good = found.good_plans(shares)
        assert len(good) == len({*good.tolist()}) <= 100
        steps = {tuple(step) for step in np.floor(10 * np.log(found.touched[good]) + 1e-9).tolist()}
        assert len(good) <= max(40, len(steps))
        sums = (found.touched * shares).sum(axis=1)
        assert sums[good[0]] == sums.min()
        assert sums[good].max() <= 1.031 * sums.min()


def test_of_turns_that_are_alike_none_is_left_out_for_its_place() -> None:
    found = plans_for(4, 4)
    good = found.touched[found.good_plans(np.ones(4))]
    assert all((good[:, column] == good.min()).any() for column in range(4))


def test_whichever_column_ways_that_are_alike_cut_first_is_tried() -> None:
    found = plans_for(3, 27)  # three slabs of each column, in any order
    assert {(column, 9) for column in range(3)} <= {*found.first_cuts(np.ones(3))}
