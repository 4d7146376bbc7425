"""What an equality filter cannot skip in a written table: files, row groups and pages whose range holds the value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Touched:
    """Of one column, the mean over sampled values that it holds.

    Attributes:
        files, row_groups, pages: how many have a range that holds the value.
        all_files, all_row_groups, all_pages: how many there are.
    """

    files: float
    row_groups: float
    pages: float
    all_files: int
    all_row_groups: int
    all_pages: int


def touched(folder: Path, column: str, page_rows: int, queries: int = 300) -> Touched:
    """Measure one column of a table.

    Ranges are taken from the data: footers cut long text, and pyarrow shows no column index.

    Args:
        folder: with the table's Parquet files.
        page_rows: where Spark ended a page at so many rows (``parquet.page.row.count.limit``).
        queries: number of values to look for, drawn by a seed from the table's own rows.
    """
    paths = sorted(folder.glob("*.parquet"))
    codes = _codes(pa.concat_tables([pq.read_table(path, columns=[column]) for path in paths]).column(0))
    file_starts: list[int] = []
    group_starts: list[int] = []
    page_starts: list[int] = []
    row = 0
    for path in paths:
        meta = pq.ParquetFile(path).metadata
        file_starts.append(row)
        for group in range(meta.num_row_groups):
            rows = meta.row_group(group).num_rows
            group_starts.append(row)
            page_starts += range(row, row + rows, page_rows)
            row += rows
    values = np.random.default_rng(0).choice(codes[codes >= 0], queries)
    return Touched(
        files=_count(codes, file_starts, values),
        row_groups=_count(codes, group_starts, values),
        pages=_count(codes, page_starts, values),
        all_files=len(file_starts),
        all_row_groups=len(group_starts),
        all_pages=len(page_starts),
    )


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return dense numbers in the order of the values, -1 for NULL."""
    coded = column.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    order = pc.sort_indices(coded.dictionary).to_numpy()
    number = np.empty(len(order) + 1, dtype=np.int64)
    number[order] = np.arange(len(order))
    number[-1] = -1
    codes: npt.NDArray[np.int64] = number[pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)]
    return codes


def _count(codes: npt.NDArray[np.int64], starts: list[int], values: npt.NDArray[np.int64]) -> float:
    low = np.minimum.reduceat(np.where(codes < 0, np.iinfo(np.int64).max, codes), starts)
    high = np.maximum.reduceat(codes, starts)
    return float(np.mean([np.count_nonzero((low <= value) & (value <= high)) for value in values]))
