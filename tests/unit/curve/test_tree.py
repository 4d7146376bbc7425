from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dbt_zorder.curve.ranks import Ranks
from dbt_zorder.curve.tree import Forest, descend, grow

Ints = npt.NDArray[np.int64]

ranks_of_rows = arrays.arrays(
    np.int32,
    st.tuples(st.integers(0, 300), st.integers(1, 4)),
    elements=st.integers(0, 40),
)


def one_tree(rows: int) -> npt.NDArray[np.int32]:
    return np.zeros(rows, dtype=np.int32)


def files_of(forest: Forest, ranks: Ranks, trees: npt.NDArray[np.int32]) -> Ints:
    """The file of every row, with a random number in the place of its hash."""
    cell = descend(replace(forest, cuts=forest.cuts[: forest.file_levels]), ranks, trees)
    hashes = np.random.default_rng(9).integers(0, 1 << 30, len(ranks))
    return np.asarray(forest.first_file[cell] + hashes % forest.file_count[cell], dtype=np.int64)


def touched(file_of_row: Ints, values: npt.NDArray[np.int32], files: int) -> float:
    """The mean number of files whose bounds hold a value, over the non-null values of all rows."""
    ordered = np.sort(values[values > 0])
    total = 0
    for file in range(files):
        here = values[(file_of_row == file) & (values > 0)]
        if len(here):
            low, high = np.searchsorted(ordered, [here.min(), here.max() + 1])
            total += high - low
    return float(total / len(ordered))


def uniform(rows: int, columns: int, seed: int = 1) -> Ranks:
    return np.random.default_rng(seed).integers(1, rows, (rows, columns)).astype(np.int32)


@settings(max_examples=150, deadline=None)
@given(ranks_of_rows, st.integers(1, 40), st.integers(0, 5), st.data())
def test_every_row_is_in_one_file_of_its_own_tree(ranks: Ranks, files: int, levels: int, data: st.DataObject) -> None:
    trees = data.draw(st.integers(1, 4))
    tree_of_row = np.asarray(
        data.draw(st.lists(st.integers(0, trees - 1), min_size=len(ranks), max_size=len(ranks))), dtype=np.int32
    )
    files_of_tree = [files + tree for tree in range(trees)]
    forest = grow(ranks, tree_of_row, files_of_tree, levels)
    assert forest.files == sum(files_of_tree)
    found = files_of(forest, ranks, tree_of_row)
    first = np.concatenate([[0], np.cumsum(files_of_tree)])
    assert ((found >= first[tree_of_row]) & (found < first[tree_of_row + 1])).all()


@settings(max_examples=100, deadline=None)
@given(ranks_of_rows, st.integers(1, 20), st.integers(0, 4))
def test_files_are_shared_out_over_the_cells_without_gap_or_overlap(ranks: Ranks, files: int, levels: int) -> None:
    forest = grow(ranks, one_tree(len(ranks)), [files], levels)
    used = np.unique(descend(replace(forest, cuts=forest.cuts[: forest.file_levels]), ranks, one_tree(len(ranks))))
    spans = [(forest.first_file[cell], forest.file_count[cell]) for cell in used]
    taken = [number for first, count in spans for number in range(first, first + count)]
    assert sorted(set(taken)) == sorted(taken)
    assert len(ranks) == 0 or len(taken) == files
    assert all(len(level[0]) == 2**number for number, level in enumerate(forest.cuts))


@settings(max_examples=60, deadline=None)
@given(ranks_of_rows, st.integers(1, 20))
def test_the_same_sample_grows_the_same_forest(ranks: Ranks, files: int) -> None:
    one, other = (grow(ranks.copy(), one_tree(len(ranks)), [files], 3) for _ in range(2))
    assert len(one.cuts) == len(other.cuts)
    assert all((a == b).all() for a, b in zip(one.cuts, other.cuts, strict=True))
    assert one.first_file.tolist() == other.first_file.tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 1000))
def test_distinct_rows_fill_every_file(files: int, columns: int, seed: int) -> None:
    values = np.tile(np.arange(1, files + 1), (columns, 1))
    ranks = np.random.default_rng(seed).permuted(values, axis=1).T.astype(np.int32)
    forest = grow(ranks, one_tree(files), [files], 2)
    assert len(np.unique(files_of(forest, ranks, one_tree(files)))) == files


@pytest.mark.parametrize(("columns", "ties"), [(1, False), (2, False), (2, True), (4, False), (4, True)])
def test_few_rows_that_differ_fill_every_file(columns: int, *, ties: bool) -> None:
    for rows in range(1, 41):
        rng = np.random.default_rng([rows, columns])
        if ties:
            side = int(np.ceil(rows ** (1 / columns)))
            places = np.unravel_index(rng.choice(side**columns, rows, replace=False), (side,) * columns)
            ranks = np.stack(places, axis=1).astype(np.int32)
        else:
            ranks = rng.permuted(np.tile(np.arange(1, rows + 1), (columns, 1)), axis=1).T.astype(np.int32)
        for files in range(1, rows + 1):
            forest = grow(ranks, one_tree(rows), [files], 2)
            cells = descend(replace(forest, cuts=forest.cuts[: forest.file_levels]), ranks, one_tree(rows))
            assert sorted(set(forest.first_file[cells])) == list(range(files)), (rows, files)
            assert (forest.file_count[cells] == 1).all(), (rows, files)


# with one column the cuts can only lie at the hitter's edges
@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.9])
@pytest.mark.parametrize(("columns", "at_most"), [(1, 1.4), (2, 1.25)])
@pytest.mark.parametrize("files", [4, 16, 60])
def test_a_heavy_hitter_makes_neither_a_giant_nor_an_empty_file(
    share: float, columns: int, at_most: float, files: int
) -> None:
    ranks = uniform(60_000, columns)
    ranks[: int(share * len(ranks)), 0] = 30_000
    forest = grow(ranks, one_tree(len(ranks)), [files], 4)
    sizes = np.bincount(files_of(forest, ranks, one_tree(len(ranks))), minlength=files) / (len(ranks) / files)
    assert sizes.min() > 0
    assert sizes.max() <= at_most


# by 0.15 a level, the fullest file once reached 1.6 times the mean
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("columns", "values", "files"), [(2, 0, 40), (2, 0, 100), (2, 30, 250), (3, 5, 100)])
def test_unevenness_of_many_levels_does_not_add_up(columns: int, values: int, files: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (60_000, columns)
    ranks = (rng.integers(1, values + 1, shape) if values else rng.geometric(0.3, shape)).astype(np.int32)
    forest = grow(ranks, one_tree(len(ranks)), [files], 0)
    cells = descend(forest, ranks, one_tree(len(ranks)))
    fills = np.bincount(cells, minlength=len(forest.first_file)) / forest.file_count / (len(ranks) / files)
    assert fills.max() < 1.45


@pytest.mark.parametrize("distinct", [1, 2, 3, 5])
def test_few_distinct_values_fill_all_files(distinct: int) -> None:
    ranks = (np.arange(12_000) % distinct + 1).astype(np.int32).reshape(-1, 1)
    forest = grow(ranks, one_tree(len(ranks)), [12], 4)
    sizes = np.bincount(files_of(forest, ranks, one_tree(len(ranks))), minlength=12)
    assert sizes.min() >= 700
    assert sizes.max() <= 1_300


def test_values_are_kept_together_where_they_fill_whole_files() -> None:
    ranks = (np.arange(12_000) % 4 + 1).astype(np.int32).reshape(-1, 1)
    forest = grow(ranks, one_tree(len(ranks)), [4], 4)
    found = files_of(forest, ranks, one_tree(len(ranks)))
    assert all(len(np.unique(ranks[found == file])) == 1 for file in range(4))


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("files", [1, 5])
def test_an_empty_sample_and_a_single_row_make_a_forest(rows: int, files: int) -> None:
    ranks = np.ones((rows, 2), dtype=np.int32)
    forest = grow(ranks, one_tree(rows), [files], 7)
    assert forest.files == files
    assert (files_of(forest, ranks, one_tree(rows)) < files).all()


def test_null_goes_left_of_every_value() -> None:
    ranks = uniform(4_000, 1)
    ranks[:1000] = 0
    forest = grow(ranks, one_tree(4_000), [4], 3)
    found = files_of(forest, ranks, one_tree(4_000))
    assert set(found[:1000]) == {0}
    assert 0 not in found[1000:]


def test_cells_in_order_are_values_in_order_for_one_column() -> None:
    ranks = uniform(5_000, 1)
    cells = descend(grow(ranks, one_tree(5_000), [7], 6), ranks, one_tree(5_000))
    assert (np.diff(cells[np.argsort(ranks[:, 0], kind="stable")]) >= 0).all()


@pytest.mark.parametrize(("files", "levels"), [(16, 4), (60, 6), (500, 9)])
def test_the_tree_of_one_column_is_as_flat_as_can_be(files: int, levels: int) -> None:
    ranks = uniform(60_000, 1)
    assert grow(ranks, one_tree(len(ranks)), [files], 0).file_levels == levels


# the worst column of uniform data; 60 is no power of two (nor a cube, nor a fourth power), so no grid reaches the bound
MINIMUM = [(16, 2, 1.01), (16, 3, 1.06), (16, 4, 1.01), (60, 2, 1.02), (60, 3, 1.03), (60, 4, 1.05), (40, 4, 1.07)]


@pytest.mark.parametrize(("files", "columns", "at_most"), MINIMUM)
def test_point_queries_touch_hardly_more_files_than_the_minimum(files: int, columns: int, at_most: float) -> None:
    ranks = uniform(60_000, columns)
    forest = grow(ranks, one_tree(len(ranks)), [files], 0)
    found = files_of(forest, ranks, one_tree(len(ranks)))
    counts = [touched(found, ranks[:, column], files) for column in range(columns)]
    assert max(counts) / files ** ((columns - 1) / columns) <= at_most


def weighted(weights: Sequence[float] | None) -> list[float]:
    ranks = uniform(20_000, 2)
    forest = grow(ranks, one_tree(len(ranks)), [16], 0, weights)
    found = files_of(forest, ranks, one_tree(len(ranks)))
    return [touched(found, ranks[:, column], 16) for column in range(2)]


def test_weights_favour_a_column() -> None:
    equal, first, second = weighted(None), weighted([8, 1]), weighted([1, 8])
    assert first[0] < 0.6 * equal[0]
    assert first[1] > equal[1]
    assert second[1] < 0.6 * equal[1]


@pytest.mark.parametrize("columns", [3, 4])
def test_a_weight_that_is_very_large_makes_slabs(columns: int) -> None:
    ranks = uniform(20_000, columns)
    forest = grow(ranks, one_tree(len(ranks)), [48], 0, [100.0] + [1.0] * (columns - 1))
    assert touched(files_of(forest, ranks, one_tree(len(ranks))), ranks[:, 0], 48) < 1.1


@pytest.mark.parametrize("size", [1e80, 1e-100, 5e-324])
def test_only_the_ratio_of_weights_counts(size: float) -> None:
    ranks = uniform(20_000, 3)
    equal, other = (grow(ranks, one_tree(len(ranks)), [60], 3, [weight] * 3) for weight in (1.0, size))
    assert len(equal.cuts) == len(other.cuts)
    assert all((a == b).all() for a, b in zip(equal.cuts, other.cuts, strict=True))


def test_a_tree_is_cut_by_its_own_rows_alone() -> None:
    ranks = np.concatenate([uniform(3_000, 1), uniform(3_000, 1) + 10_000]).astype(np.int32)
    trees = np.repeat(np.asarray([0, 1], dtype=np.int32), 3_000)
    forest = grow(ranks, trees, [3, 5], 2)
    found = files_of(forest, ranks, trees)
    sizes = np.bincount(found, minlength=8)
    assert set(found[:3_000]) == {0, 1, 2}
    assert set(found[3_000:]) == {3, 4, 5, 6, 7}
    assert sizes[:3].max() <= 1.2 * 1_000
    assert sizes[3:].max() <= 1.2 * 600


def test_one_large_tree_among_many_small_ones_makes_no_millions_of_cells() -> None:
    files = [1] * 200
    files[7] = 200
    rng = np.random.default_rng(3)
    ranks = rng.integers(1, 50_000, size=(60_000, 2)).astype(np.int32)
    tree = np.where(rng.random(60_000) < 0.5, 7, rng.integers(0, 200, 60_000)).astype(np.int32)
    forest = grow(ranks, tree, files, 9)
    assert forest.cuts[-1].shape[1] << 1 <= 1 << 19
    assert len(forest.cuts) > forest.file_levels
    assert forest.files == 399
    alone = grow(ranks[tree == 7], np.zeros((tree == 7).sum(), dtype=np.int32), [200], 4)
    assert len(alone.cuts) - alone.file_levels == 4


@pytest.mark.parametrize(("large", "hashed"), [(128, False), (500, True)])
def test_files_are_left_to_a_hash_where_the_cuts_of_all_trees_would_be_too_many(
    large: int, *, hashed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    files = [1] * 3_650
    files[7] = large
    rng = np.random.default_rng(3)
    ranks = rng.integers(1, 50_000, size=(100_000, 2)).astype(np.int32)
    tree = np.where(rng.random(100_000) < 0.8, 7, rng.integers(0, 3_650, 100_000)).astype(np.int32)
    with caplog.at_level("WARNING", logger="dbt_zorder"):
        forest = grow(ranks, tree, files, 4)
    # of characters, 10 a column and cell and 10 more a cell
    assert len(forest.first_file) * 30 <= 16 << 20
    assert forest.files == sum(files)
    assert (forest.file_count > 1).any() == hashed
    assert ("filled by a hash" in caplog.text) == hashed
    found = files_of(forest, ranks, tree)
    assert len(np.unique(found[tree == 7])) == large
