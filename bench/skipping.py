"""The parts of written Parquet files that a filter cannot skip.

They are the files, row groups and pages whose ranges contain the filter's values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

IntArray = npt.NDArray[np.int64]
PAGE_ROWS = 20_000
"""Where Spark, Iceberg and delta-rs end a page by default; short values never reach its bytes before."""

RANGE_SHARE = 0.01
"""Of the rows, in a range query."""

BOX_SHARE = 0.1
"""Of the rows, in each column of a box."""


@dataclass(frozen=True)
class Touched:
    """Mean over some queries.

    Attributes:
        files, row_groups, pages: how many have ranges that hold what is asked for.
        bytes: of these files.
        all_files, all_row_groups, all_pages, all_bytes: how many there are.
    """

    files: float
    row_groups: float
    pages: float
    bytes: float
    all_files: int
    all_row_groups: int
    all_pages: int
    all_bytes: int


class Blocks:
    """The files of a table as runs of rows: where each file, row group and page begins, and their ranges by column.

    Ranges are taken from the data: footers cut long text, and pyarrow shows no column index.
    """

    def __init__(self, paths: Sequence[Path], columns: Sequence[str], page_rows: int = PAGE_ROWS) -> None:
        """Read some columns of some files.

        Args:
            paths: of Parquet files.
            columns: that queries will name.
            page_rows: where the writer ended a page at so many rows (``parquet.page.row.count.limit``).
        """
        paths = [path for path in paths if pq.ParquetFile(path).metadata.num_rows]
        self.sizes = np.array([path.stat().st_size for path in paths], dtype=np.int64)
        table = pa.concat_tables([pq.ParquetFile(path).read(columns=list(columns)) for path in paths])
        self.codes = {column: codes_of(table.column(column)) for column in columns}
        starts: dict[str, list[int]] = {"files": [], "row_groups": [], "pages": []}
        row = 0
        for path in paths:
            meta = pq.ParquetFile(path).metadata
            starts["files"].append(row)
            for group in range(meta.num_row_groups):
                rows = meta.row_group(group).num_rows
                starts["row_groups"].append(row)
                starts["pages"] += range(row, row + rows, page_rows)
                row += rows
        self.starts = starts
        self.ranges = {
            level: {column: ranges_of(codes, at) for column, codes in self.codes.items()}
            for level, at in starts.items()
        }

    def touched(self, queries: Sequence[Mapping[str, tuple[int, int]]]) -> Touched:
        """Return what some queries touch.

        Args:
            queries: of each, by column, the least and the greatest of the codes that it asks for.
        """
        means: dict[str, float] = {}
        counts: dict[str, int] = {}
        for level, ranges in self.ranges.items():
            hits = np.array([hits_of(ranges, query) for query in queries])
            means[level] = float(hits.sum(axis=1).mean())
            counts[level] = hits.shape[1]
            if level == "files":
                means["bytes"] = float((hits @ self.sizes).mean())
        return Touched(
            means["files"],
            means["row_groups"],
            means["pages"],
            means["bytes"],
            counts["files"],
            counts["row_groups"],
            counts["pages"],
            int(self.sizes.sum()),
        )

    def points(self, column: str, count: int, seed: int = 0) -> list[dict[str, tuple[int, int]]]:
        """Return equality queries for values of rows that are drawn by a seed."""
        codes = np.sort(self.codes[column])  # so that the order of a table's rows does not choose other values
        drawn = np.random.default_rng(seed).choice(codes[codes >= 0], count)
        return [{column: (int(value), int(value))} for value in drawn]

    def boxes(
        self, columns: Sequence[str], share: float, count: int, seed: int = 0
    ) -> list[dict[str, tuple[int, int]]]:
        """Return range queries that hold a share of the rows in each of some columns."""
        return boxes_of({name: codes for name, codes in self.codes.items() if name in columns}, share, count, seed)

    def kinds(self, columns: Sequence[str], count: int) -> dict[tuple[str, str], list[dict[str, tuple[int, int]]]]:
        """Return queries by kind and column: points and ranges on each column, and boxes of the first two."""
        found = {("point", column): self.points(column, count) for column in columns}
        found |= {("range", column): self.boxes([column], RANGE_SHARE, count) for column in columns}
        found["box", ""] = self.boxes(columns[:2], BOX_SHARE, count)
        return found


def codes_of(column: pa.ChunkedArray) -> IntArray:
    """Return dense numbers in the order of the values, -1 for NULL."""
    coded = column.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    order = pc.sort_indices(coded.dictionary).to_numpy()
    number = np.empty(len(order) + 1, dtype=np.int64)
    number[order] = np.arange(len(order))
    number[-1] = -1
    codes: IntArray = number[pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)]
    return codes


def boxes_of(
    codes: Mapping[str, IntArray], share: float, count: int, seed: int = 0
) -> list[dict[str, tuple[int, int]]]:
    """Return range queries that hold a share of the rows in each column, without its NULLs (-1), drawn by a seed."""
    random = np.random.default_rng(seed)
    ordered = {column: np.sort(found[found >= 0]) for column, found in codes.items()}
    queries = []
    for _ in range(count):
        query = {}
        for column, found in ordered.items():
            width = max(1, int(len(found) * share))
            first = int(random.integers(0, len(found) - width + 1))
            query[column] = (int(found[first]), int(found[first + width - 1]))
        queries.append(query)
    return queries


def ranges_of(codes: IntArray, starts: Sequence[int] | IntArray) -> tuple[IntArray, IntArray]:
    """Return the least and the greatest code of each run of rows, which no query hits if all of them are NULL."""
    low = np.minimum.reduceat(np.where(codes < 0, np.iinfo(np.int64).max, codes), starts)
    return low, np.maximum.reduceat(codes, starts)


def hits_of(
    ranges: Mapping[str, tuple[IntArray, IntArray]], query: Mapping[str, tuple[int | IntArray, int | IntArray]]
) -> npt.NDArray[np.bool_]:
    """Return which runs of rows a query touches; of many queries, whose codes stand one below the other, a row each."""
    matching = [(ranges[column][0] <= high) & (ranges[column][1] >= low) for column, (low, high) in query.items()]
    found: npt.NDArray[np.bool_] = np.logical_and.reduce(matching)
    return found
