"""How finely rows are ordered inside a file: until a page, the least that readers skip, holds a few cells."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_zorder.curve.tree import levels_within

_ORDER_LEVELS = 12
_FEWEST_LEVELS = 4
_FEWEST_CELLS = 1 << 10
"""So often a file is cut though it is but one page, while there are so many cells in all: large batches that come later
are shared out by them. Beyond, cuts that no reader needs would be sent to every task."""
_PAGE_ROWS = 20_000
"""Rows of a Parquet page at most, where nobody has said otherwise: parquet-java's own default."""
PAGE_ROWS_OPTION = "parquet.page.row.count.limit"
"""Where the limit is set: as an option of the write, or in the session."""
_CELLS_A_PAGE = 2.5
"""Cells are cut until a page holds so many of them at least: what is finer serves no reader."""
_MOST_CELLS = 1 << 15
"""Cells of the last level in all: they are literals in the plan, and growing them takes time on the driver."""
_MOST_ROWS = (1 << 31) - 1


def order_levels(rows: int, files: int, page_rows: int = _PAGE_ROWS) -> int:
    """Return how often a file is cut to order the rows inside it.

    Args:
        rows: of the table.
        files: of the table.
        page_rows: rows of a Parquet page at most.
    """
    fewest = min(_FEWEST_LEVELS, levels_within(_FEWEST_CELLS, files))
    return min(_ORDER_LEVELS, max(fewest, page_levels(rows / files, page_rows)), levels_within(_MOST_CELLS, files))


def page_levels(rows: float, page_rows: int) -> int:
    """Return how often the rows of a file are cut until a page holds a few cells; none where all of it is but a few."""
    return int(rows / page_rows * _CELLS_A_PAGE).bit_length()


def batch_levels(rows: int, page_rows: int, keys: int) -> int:
    """Return how many levels of a table's tree order the rows of a batch that is one file.

    Batches are often of the newest rows alone, which lie behind all cuts of their time: what these levels would part,
    as many more of the other columns do.

    Args:
        rows: of the batch.
        page_rows: rows of a Parquet page at most.
        keys: number of clustering columns.
    """
    return page_levels(rows, page_rows) * keys // max(1, keys - 1)


def parse_page_rows(text: str) -> int | None:
    """Return the limit that a text of the option states, None if it is not a positive whole number of 32 bits."""
    digits = text.strip()
    found = int(digits) if digits.isdecimal() and len(digits) < 20 else 0
    return found if 0 < found <= _MOST_ROWS else None


def page_rows_of(spark: SparkSession, told: int | None = None) -> int:
    """Return the rows of a page that the Parquet writer is limited to: as it is told, or else by the session."""
    if told:
        return told
    given = spark.conf.get(PAGE_ROWS_OPTION, None) or spark.conf.get(f"spark.hadoop.{PAGE_ROWS_OPTION}", None) or ""
    return parse_page_rows(given) or _PAGE_ROWS
