"""The depth of the order inside a file: cuts continue until a page, the least that readers skip, has a few cells."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_zorder.curve.tree import levels_within

_ORDER_LEVELS = 12
_FEWEST_LEVELS = 4
_FEWEST_CELLS = 1 << 10
"""Total number of cells up to which every file is cut ``_FEWEST_LEVELS`` times, even a file of one page.

These cells divide large later batches over files. Beyond this number, tasks would receive cuts that no reader needs.
"""
_PAGE_ROWS = 20_000
"""Default limit on the rows of a Parquet page, that of parquet-java."""
PAGE_ROWS_OPTION = "parquet.page.row.count.limit"
"""Name of the limit on a page's rows, as an option of the write or in the session."""
_CELLS_A_PAGE = 2.5
"""Least number of cells that a page should contain; finer cells serve no reader."""
_MOST_CELLS = 1 << 15
"""Limit on the total number of cells of the last level.

The cells are literals in the plan, and growing them costs time on the driver.
"""
_MOST_ROWS = (1 << 31) - 1


def order_levels(rows: int, files: int, page_rows: int = _PAGE_ROWS) -> int:
    """Return how often a file is cut to order its rows.

    Args:
        rows: number of rows of the table.
        files: number of files of the table.
        page_rows: limit on the rows of a Parquet page.
    """
    fewest = min(_FEWEST_LEVELS, levels_within(_FEWEST_CELLS, files))
    return min(_ORDER_LEVELS, max(fewest, page_levels(rows / files, page_rows)), levels_within(_MOST_CELLS, files))


def page_levels(rows: float, page_rows: int) -> int:
    """Return how often to cut a file's rows until a page has a few cells; 0 if the file has only a few rows."""
    return int(rows / page_rows * _CELLS_A_PAGE).bit_length()


def batch_levels(rows: int, page_rows: int, keys: int) -> int:
    """Return how many levels of a table's tree order the rows of a batch that is one file.

    A batch often contains only the newest rows, which lie behind all cuts of their time column. These cuts separate
    nothing, so the batch uses more levels, for more cuts of the other columns.

    Args:
        rows: number of rows of the batch.
        page_rows: limit on the rows of a Parquet page.
        keys: number of clustering columns.
    """
    return page_levels(rows, page_rows) * keys // max(1, keys - 1)


def parse_page_rows(text: str) -> int | None:
    """Return the limit in an option's text, None if it is not a positive whole number of 32 bits."""
    digits = text.strip()
    found = int(digits) if digits.isdecimal() and len(digits) < 20 else 0
    return found if 0 < found <= _MOST_ROWS else None


def page_rows_of(spark: SparkSession, option: int | None = None) -> int:
    """Return the limit on a page's rows: the option of the write, or else the session's setting."""
    if option:
        return option
    given = spark.conf.get(PAGE_ROWS_OPTION, None) or spark.conf.get(f"spark.hadoop.{PAGE_ROWS_OPTION}", None) or ""
    return parse_page_rows(given) or _PAGE_ROWS
