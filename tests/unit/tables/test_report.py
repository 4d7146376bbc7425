from __future__ import annotations

import pytest

from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.report import (
    AppendReport,
    BuildReport,
    IncrementReport,
    MergeReport,
    Outcome,
    append_line,
    buckets_text,
    table_line,
)


@pytest.mark.parametrize(
    ("files", "touched", "line"),
    [
        (16, {"id": 4.0, "ts": 4.04}, "16 files, point query on id reads 4 of 16, ts 4 of 16"),
        (16, {"a b": 4.26, "c d": 10.0}, "16 files, point query on a b reads 4.3 of 16, c d 10 of 16"),
        (2, {"a": 1.0}, "2 files, point query on a reads 1 of 2"),
        (1, {"a": 1.0}, "1 file"),
        (0, {"a": 0.0}, "no rows"),
    ],
)  # fmt: skip
def test_the_line_says_what_a_point_query_reads(files: int, touched: dict[str, float], line: str) -> None:
    assert table_line(files, touched) == line


@pytest.mark.parametrize(
    ("figures", "rewritten", "line"),
    [
        ((0, 0, 0), False, "no new rows, nothing written"),
        ((1500, 1, 0), False, "1,500 rows appended in 1 file, now 2 files, point query on a reads 1.5 of 2"),
        ((9, 3, 4), False, "9 rows in place of 4 files in 3 files, now 1 file"),
        ((9, 3, 0), True, "9 rows appended in 3 files, table rewritten, now 1 file"),
        ((1, 1, 0), False, "1 row appended in 1 file, now 1 file"),
    ],
)  # fmt: skip
def test_an_append_says_what_came_in_and_what_the_table_is_now(
    figures: tuple[int, int, int], rewritten: bool, line: str
) -> None:
    files = 2 if "2 files" in line else 1
    assert append_line(*figures, Summary(files, 7, 99, {"a": 1.5}), "table rewritten" if rewritten else "") == line


@pytest.mark.parametrize(
    ("before", "now", "chosen", "text"),
    [
        (4, 8, False, "8 buckets in place of 4"),
        (4, 8, True, "8 buckets in place of 4"),
        (0, 4, True, "4 buckets"),
        (4, 4, True, "4 buckets"),
        (4, 4, False, ""),
        (0, 4, False, ""),
        (4, 0, False, ""),
    ],
)
def test_a_number_of_buckets_is_said_where_it_is_news(before: int, now: int, chosen: bool, text: str) -> None:
    assert buckets_text(before, now, chosen=chosen) == text


def test_a_split_is_said_after_the_batch() -> None:
    after = Summary(files=2, rows=7, bytes=99, point_query_files={"a": 1.5})
    built = BuildReport("v2", after, {}, [], splits=True, buckets="8 buckets in place of 4")
    batch = AppendReport(3, 1, 40, 0, {})
    found = Outcome.of_increment(IncrementReport(batch, built, after, "v2"))
    now = "now 2 files, point query on a reads 1.5 of 2"
    assert str(found) == f"3 rows appended in 1 file, files split, 8 buckets in place of 4, {now}"
    merged = MergeReport(inserted=3, updated=0, unchanged=0, deleted=0, rewritten=1, shared=3)
    found = Outcome.of_increment(IncrementReport(batch, built, after, "v2", merged))
    assert str(found) == f"3 inserted, 1 of 4 files replaced by 1, files split, 8 buckets in place of 4, {now}"


def test_an_increment_adds_up_what_its_append_and_its_rewrite_wrote() -> None:
    after = Summary(files=2, rows=7, bytes=99, point_query_files={"a": 1.5})
    batch = AppendReport(3, 1, 40, 0, {"sample": 0.1, "write": 1.0})
    built = BuildReport("v2", after, {"sample": 0.5}, [])
    found = Outcome.of_increment(IncrementReport(batch, built, after, "v2"))
    assert (found.rows, found.files, found.bytes, found.version) == (3, 3, 139, "v2")
    assert found.seconds == {"sample": 0.6, "write": 1.0}
    assert (found.appended, found.rewritten, found.replaced) == (True, True, 0)
    alone = Outcome.of_increment(IncrementReport(batch, None, None, "v1"))
    assert (alone.files, alone.rewritten, alone.point_query_files) == (1, False, {})
    whole = Outcome.of_increment(IncrementReport(None, built, after, "v2"))
    assert (whole.rows, whole.appended, whole.rewritten) == (7, False, False)
    assert str(whole) == "built anew with the new rows, 2 files, point query on a reads 1.5 of 2"
