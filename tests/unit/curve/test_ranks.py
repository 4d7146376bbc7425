from __future__ import annotations

import numpy as np

from dbt_zorder.curve.ranks import cumulative_mass


def test_mass_counts_rows_up_to_a_rank_and_leaves_nulls_out() -> None:
    mass = cumulative_mass(np.asarray([0, 0, 1, 1, 2, 3], dtype=np.int32))
    assert mass.tolist() == [0.0, 0.5, 0.75, 1.0]


def test_mass_of_nothing_but_nulls_is_zero() -> None:
    assert cumulative_mass(np.zeros(4, dtype=np.int32)).tolist() == [0.0]


def test_mass_of_no_rows_is_zero() -> None:
    assert cumulative_mass(np.zeros(0, dtype=np.int32)).tolist() == [0.0]
