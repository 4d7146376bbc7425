"""Which layout is advised for tables and queries whose best layout is clear, and what is predicted for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from dbt_zorder.advice.advice import Advice, advise
from dbt_zorder.advice.condition import Every
from dbt_zorder.advice.simulation import Candidate, Ranges, Read, SampledTable, Test, lay_out, match, predict

ROWS = 20_000
RANDOM = np.random.default_rng(7)


def table(columns: Mapping[str, Sequence[int] | np.ndarray], files: int = 64, **more: object) -> SampledTable:
    """Return a table of whole numbers that is its own sample, with its rows in one file."""
    ranks = np.stack([np.unique(values, return_inverse=True)[1] + 1 for values in columns.values()], axis=1)
    given = {"row_bytes": 100.0, "target_bytes": ROWS * 100 // files, "present": np.zeros(ROWS, dtype=np.int32), **more}
    return SampledTable(tuple(columns), ranks.astype(np.int32), ROWS, **given)  # type: ignore[arg-type]


def few(values: int) -> np.ndarray:
    return RANDOM.integers(0, values, ROWS)


def unique() -> np.ndarray:
    return RANDOM.permutation(ROWS)


def equal(number: int, *ranks: int) -> Ranges:
    return Ranges.points(number, [2 * rank for rank in ranks])


def between(number: int, first: int, last: int) -> Ranges:
    return Ranges(number, np.asarray([2 * first]), np.asarray([2 * last]))


def read(test: Test | None, *columns: str, weight: float = 1.0, equality: bool = False) -> Read:
    names = frozenset(columns)
    return Read("q", test, weight, 1.0, names, names if equality else frozenset())


def advice(on: SampledTable, reads: Sequence[Read], **more: Sequence[str]) -> Advice:
    return advise("s.orders", on, reads, **more)


POINTS = range(250, ROWS, 500)


class TestDont:
    def test_without_queries(self) -> None:
        found = advice(table({"a": unique()}), [])
        assert found.config == ""
        assert "no query was found" in found.reason

    def test_a_workload_that_reads_all(self) -> None:
        found = advice(table({"a": unique()}), [read(None), read(None)])
        assert found.config == ""
        assert "no filter can leave out files, in 2 scans" in found.reason
        assert found.to_dict()["candidates"] == []

    def test_an_empty_table(self) -> None:
        on = SampledTable(("a",), np.zeros((0, 1), dtype=np.int32), 0, 8.0, 1_000)
        assert "the table is empty" in advice(on, [read(equal(0, 5), "a")]).reason

    @pytest.mark.parametrize("files", [1, 2, 3])
    def test_a_small_table(self, files: int) -> None:
        found = advice(table({"a": unique()}, files), [read(equal(0, 5), "a")])
        assert found.config == ""
        assert f"2.0 MB, which is {files} file" in found.reason

    def test_filters_that_match_rows_everywhere(self) -> None:
        found = advice(
            table({"a": few(3), "b": unique()}), [read(equal(0, 1, 3), "a"), read(between(1, 1, 19_000), "b")]
        )
        assert found.config == ""
        assert "no layout helps enough" in found.reason

    def test_many_scans_of_everything_beside_one_filter(self) -> None:
        reads = [read(None)] * 9 + [read(equal(0, 5), "a")]
        assert advice(table({"a": unique()}), reads).config == ""
        assert advice(table({"a": unique()}), [*reads[:-1], read(equal(0, 5), "a", weight=20)]).config != ""

    def test_filters_on_the_partition_columns_alone(self) -> None:
        day = few(16)
        on = table({"day": day}, partition_by=("day",), present=day.astype(np.int32))
        found = advice(on, [read(equal(0, 5), "day", equality=True)])
        assert found.config == ""
        assert "on the partition columns" in found.reason

    def test_a_clustering_that_is_good(self) -> None:
        a = unique()
        on = table({"a": a}, present=(a // (ROWS // 64)).astype(np.int32), present_stats=frozenset("a"))
        found = advice(on, [read(equal(0, point), "a") for point in POINTS], by=["a"])
        assert found.config == ""
        assert "The clustering by a is good" in found.reason


class TestDo:
    def test_one_column(self) -> None:
        found = advice(table({"a": unique(), "b": few(9)}), [read(equal(0, point), "a") for point in POINTS])
        assert found.config == "zorder_by=['a']"
        assert "One column is enough" in found.reason
        best = next(one for one in found.predictions if one.candidate.config == found.config)
        assert best.files == 64
        assert best.files_read == 1.0
        assert best.share == pytest.approx(1 / 64, rel=0.05)

    def test_two_columns(self) -> None:
        points = [equal(number, point) for number in (0, 1) for point in POINTS]
        found = advice(table({"a": unique(), "b": unique()}), [read(test, "ab"[test.column]) for test in points])
        assert found.config == "zorder_by=['a', 'b']"
        best = next(one for one in found.predictions if one.candidate.config == found.config)
        assert best.files_read == pytest.approx(8, rel=0.05), "the square root of 64"

    def test_a_column_that_more_queries_filter_weighs_more(self) -> None:
        reads = [read(equal(0, point), "a", weight=16) for point in POINTS]
        reads += [read(equal(1, point), "b") for point in POINTS]
        found = advice(table({"a": unique(), "b": unique()}, 256), reads)
        alone = predict(table({"a": unique(), "b": unique()}, 256), Candidate(("a",)), reads)
        best = found.predictions[0]
        assert best.candidate.weights is not None
        assert best.candidate.weights[0] > best.candidate.weights[1]
        assert best.share < alone.share

    def test_a_partition_for_equalities_on_few_values(self) -> None:
        reads = [read(equal(0, value), "day", equality=True) for value in (1, 5, 9)]
        found = advice(table({"day": few(16)}), reads)
        assert found.config == "partition_by=['day']"
        ranges = [read(between(0, 1, 3), "day")]
        assert advice(table({"day": few(16)}), ranges).config == "zorder_by=['day']"
        small = advice(table({"day": few(16)}, 8), reads)
        assert small.config == "zorder_by=['day']", "a partition would be smaller than a file"

    def test_statistics_alone_for_files_in_order(self) -> None:
        rows = np.arange(ROWS)
        on = table({"at": rows}, present=(rows // 313).astype(np.int32), present_files=64)
        found = advice(on, [read(between(0, 19_000, 20_000), "at")])
        assert found.config == "post_hook=\"{{ zorder_stats(this, ['at']) }}\""
        assert "The files are good as they are" in found.reason
        assert advice(on, [read(between(0, 19_000, 20_000), "at")], by=["b"]).config == "zorder_stats_columns=['at']"

    def test_statistics_of_a_column_that_follows_another(self) -> None:
        a = unique()
        on = table({"a": a, "follows": a + few(50)})
        reads = [read(equal(0, point), "a", weight=9) for point in POINTS]
        reads += [read(between(1, point, point + 9), "follows") for point in POINTS]
        assert advice(on, reads).config == "zorder_by=['a'], zorder_stats_columns=['follows']"

    def test_columns_inside_the_partitions(self) -> None:
        day = few(4)
        on = table({"day": day, "a": unique()}, partition_by=("day",), present=day.astype(np.int32))
        found = advice(on, [read(equal(1, point), "a") for point in POINTS])
        assert found.config == "zorder_by=['a']"
        assert found.predictions[0].files_read == pytest.approx(4, rel=0.05), "one file of each partition"


def test_a_null_is_found_in_the_files_that_have_one() -> None:
    on = table({"a": unique()})
    on.ranks[on.ranks[:, 0] <= 100] = 0
    nothing = np.zeros(0, dtype=np.int64)
    boxes = lay_out(on, Candidate(("a",)))
    hit = match(Ranges(0, nothing, nothing, nulls=True), boxes, frozenset({0}))
    assert hit.sum() == 1
    assert match(Ranges(0, nothing, nothing, nulls=True), boxes, frozenset()).all()


def test_no_file_with_a_match_is_left_out() -> None:
    """Every predicted box covers its rows: a prediction is never better than a reader can do."""
    on = table({"a": few(500), "b": unique()})
    for candidate in (Candidate(("a",)), Candidate(("a", "b")), Candidate(("a", "b"), (4, 1)), Candidate()):
        boxes = lay_out(on, candidate)
        assert boxes.rows.sum() == pytest.approx(1)
        for rank in (1, 77, 500):
            test = Every((equal(0, rank), between(1, 1, 10_000)))
            rows = (on.ranks[:, 0] == rank) & (on.ranks[:, 1] <= 10_000)
            assert boxes.rows[match(test, boxes, frozenset({0, 1}))].sum() >= rows.mean()


def test_the_advice_says_what_was_not_read() -> None:
    unread = [f"model_{number}: it is Python" for number in range(7)]
    found = advice(table({"a": unique()}), [read(equal(0, 5), "a")], unread=unread)
    assert "Not read: model_0: it is Python" in str(found)
    assert "Not read either: 2 other queries" in str(found)
    assert "s.orders: zorder_by=['a']" in str(found)
    assert found.to_dict()["unread"] == unread
