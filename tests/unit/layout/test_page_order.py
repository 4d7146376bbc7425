from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.layout.page_order import batch_levels, order_levels, page_levels, page_rows_of, parse_page_rows
from tests.support import settings


@pytest.mark.parametrize(
    ("rows", "files", "levels"),
    [
        (10, 1, 4),
        (625_000, 1, 7),
        (10_000_000, 16, 7),
        (3_000_000, 1, 9),
        (10**9, 10_000, 1),
        (3_000_000, 64, 4),
        (3_000_000, 500, 1),
        (3_000_000, 2_000, 0),
        (10**9, 1, 12),
        (0, 1, 4),
    ],
)
def test_the_levels_inside_a_file_go_with_its_rows(rows: int, files: int, levels: int) -> None:
    assert order_levels(rows, files) == levels


@pytest.mark.parametrize(("page_rows", "levels"), [(165, 11), (1_000, 9), (10**6, 4), (1, 11)])
def test_the_levels_inside_a_file_go_with_its_pages(page_rows: int, levels: int) -> None:
    assert order_levels(3_000_000, 16, page_rows) == levels


def test_what_is_less_than_a_page_is_not_cut() -> None:
    assert [page_levels(rows, 20_000) for rows in (0, 7_999, 8_000, 20_000, 10**6)] == [0, 0, 1, 2, 7]


@pytest.mark.parametrize(("keys", "levels"), [(1, 7), (2, 14), (3, 10), (8, 8)])
def test_a_batch_of_the_newest_rows_is_cut_as_often_by_the_other_columns(keys: int, levels: int) -> None:
    assert batch_levels(10**6, 20_000, keys) == levels
    assert batch_levels(7_999, 20_000, keys) == 0


@pytest.mark.parametrize(
    ("text", "rows"),
    [("20000", 20_000), (" 7 ", 7), ("0", None), ("-1", None), ("1e3", None), ("", None), ("2147483648", None)],
)
def test_a_limit_is_a_whole_number_of_32_bits(text: str, rows: int | None) -> None:
    assert parse_page_rows(text) == rows


def test_the_write_is_believed_before_the_session(spark: SparkSession) -> None:
    assert page_rows_of(spark) == 20_000
    with settings(spark, {"parquet.page.row.count.limit": "250"}):
        assert page_rows_of(spark) == 250
        assert page_rows_of(spark, 500) == 500
