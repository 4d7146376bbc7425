from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dbt_zorder.curve import filing
from dbt_zorder.curve.file_cuts import FileCell
from dbt_zorder.curve.filing import Filing, file_rows
from dbt_zorder.curve.ranks import Ranks, cumulative_mass
from dbt_zorder.curve.tree import grow

ROWS = 60_000


def zipf(columns: int, seed: int) -> Ranks:
    """Of 5,000 values, the first has a seventh of the rows, anywhere in the order."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, 5_001) ** 1.1
    drawn = [rng.choice(5_000, size=ROWS, p=shares / shares.sum()) for _ in range(columns)]
    return np.stack([rng.permutation(5_000)[values] + 1 for values in drawn], axis=1).astype(np.int32)


def uniform(columns: int, seed: int) -> Ranks:
    return np.random.default_rng(seed).integers(1, ROWS, (ROWS, columns)).astype(np.int32)


def filed(ranks: Ranks, files: int, weights: Sequence[float] | None = None) -> tuple[Filing, float]:
    """Cut a table, and return the files of the worst column beside those of the best layout of a uniform one."""
    mass = [cumulative_mass(column) for column in ranks.T]
    scale = np.asarray(weights or [1.0] * len(mass)) / max(weights or [1.0])
    found = file_rows(ranks, mass, [FileCell(0, np.arange(len(ranks)), files)], 12, scale)
    worst = float((found.touched(ranks, mass) * scale).max())
    return found, worst / files ** (1 - 1 / len(mass))


@pytest.mark.parametrize("weights", [None, [2.0, 1.0]])
def test_a_skewed_table_is_cut_by_the_best_of_some_trees(
    monkeypatch: pytest.MonkeyPatch, weights: list[float] | None
) -> None:
    by_seed = [zipf(2, seed) for seed in (1, 4, 6, 7)]
    best = [filed(ranks, 60, weights)[1] for ranks in by_seed]
    monkeypatch.setattr(filing, "_FAVOURS", ())
    alone = [filed(ranks, 60, weights)[1] for ranks in by_seed]
    assert all(one <= other for one, other in zip(best, alone, strict=True))
    assert sum(best) < 0.99 * sum(alone)
    if weights is None:
        assert np.mean(best) <= 1.155


def test_all_rows_and_files_are_in_a_tree_that_was_taken() -> None:
    ranks = zipf(2, 0)
    found, _ = filed(ranks, 60)
    assert sum(cell.files for _, cell in found.cells) == 60
    assert np.array_equal(np.sort(np.concatenate([cell.rows for _, cell in found.cells])), np.arange(ROWS))
    assert found.files_left == 0


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> list[Filing]:
    """The trees that were grown since."""
    found: list[Filing] = []
    file = filing._file

    def noted(*args: object) -> Filing:
        found.append(file(*args))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(filing, "_file", noted)
    return found


@pytest.mark.parametrize(
    ("ranks", "files"), [(uniform(2, 1), 60), (zipf(2, 1), 16), (zipf(2, 1), 251), (zipf(4, 1), 60), (zipf(1, 1), 60)]
)
def test_no_other_tree_is_grown_where_it_is_no_gain(grown: list[Filing], ranks: Ranks, files: int) -> None:
    filed(ranks, files)
    assert len(grown) == 1
    grow(ranks, np.zeros(ROWS, dtype=np.int32), [60], 0, best=False)
    assert len(grown) == 2


def test_the_first_tree_that_is_good_enough_is_the_last(grown: list[Filing]) -> None:
    counts = []
    for seed in range(12):
        grown.clear()
        found, worst = filed(zipf(3, seed), 60)
        assert any(found is one for one in grown)
        assert len(grown) == 10 or (found is grown[-1] and worst <= 1.1)
        counts.append(len(grown))
    assert min(counts) == 1
    assert any(1 < count < 10 for count in counts)


def test_nulls_are_not_asked_for() -> None:
    ranks = np.zeros((100, 2), dtype=np.int32)
    found, worst = filed(ranks, 20)
    assert worst == 0
    assert [cell.files for _, cell in found.cells] == [20]
