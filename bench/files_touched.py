"""Compute the files that point, range and box queries touch: ``python -m bench.files_touched``.

NumPy lays out whole tables of ranks with the same code that plans a build. It draws a sample, grows the forest over it,
and sends every row down the tree. ``tests/unit/engine/spark/test_descent.py`` compares Spark's files with these, row by
row. The alternatives are ORDER BY, and plain Z-order and Hilbert curves over global ranks, cut at equal counts of rows.

With k columns and F files, no layout can have a mean over all columns below F^((k-1)/k), if values are uniform and
independent. For skewed values the bound is higher, see ``bound``. There are four kinds of queries. Two are equality
queries, with values drawn from the rows or from the distinct values. The others are ranges of 1% of the rows of each
column, and boxes of 10% in each of the first two columns. ``bench.peers`` draws its queries in the same way.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from bench.skipping import BOX_SHARE, RANGE_SHARE, boxes_of, hits_of, ranges_of
from dbt_zorder.curve.ranks import Ranks
from dbt_zorder.curve.tree import descend, grow
from dbt_zorder.layout.sample import LEAST_ROWS, ROWS_PER_FILE

RESULTS = Path(__file__).parent / "results"
RANK_BITS = 12  # of the curves over global ranks: 4,096 boundaries a column
QUERIES = 2_000
COLUMNS = ["table", "columns", "files", "layout", "queried", "worst", "mean", "fullest_file", "bound"]
COLUMNS += ["worst_files", "mean_files", "first_files"]
DRAWN = ("rows", "distinct")
"""From which values an equality query is drawn."""

Files = npt.NDArray[np.int64]
Codes = dict[str, npt.NDArray[np.int64]]
"""By column, in its order of values; -1 for NULL."""

Ranges = dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
"""By column, the least and the greatest code in each file."""

Queries = dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
"""By column, the least and the greatest code that each query asks for, one below the other."""


def uniform(rows: int, columns: int, rng: np.random.Generator) -> Ranks:
    """Independent uniform values."""
    return rng.integers(1, rows, size=(rows, columns)).astype(np.int32)


def zipf(rows: int, columns: int, rng: np.random.Generator) -> Ranks:
    """Independent Zipf values with exponent 1.1 over 100,000 values, the heavy ones anywhere in the order."""
    shares = 1.0 / np.arange(1, 100_001) ** 1.1
    drawn = [rng.choice(100_000, size=rows, p=shares / shares.sum()) for _ in range(columns)]
    return np.stack([rng.permutation(100_000)[values] + 1 for values in drawn], axis=1).astype(np.int32)


def nulls(rows: int, columns: int, rng: np.random.Generator) -> Ranks:
    """Uniform, with 30% NULL in each column."""
    values = uniform(rows, columns, rng)
    values[rng.random(values.shape) < 0.3] = 0
    return values


def unequal(rows: int, columns: int, rng: np.random.Generator) -> Ranks:
    """Uniform over ranges of unequal width: 10^2, 10^3, ... values."""
    return np.stack([rng.integers(1, 10 ** (2 + c) + 1, size=rows) for c in range(columns)], axis=1).astype(np.int32)


def texts(rows: int, columns: int, rng: np.random.Generator) -> Ranks:
    """Texts that share their first 20 characters, in the order of texts: behind them stand numbers without zeros."""
    found = []
    for _ in range(columns):
        written = np.char.add("x" * 20, rng.integers(1, rows, size=rows).astype("U8"))
        found.append(np.unique(written, return_inverse=True)[1] + 1)
    return np.stack(found, axis=1).astype(np.int32)


def correlated(rows: int, columns: int, rng: np.random.Generator) -> Ranks:
    """Every column is the first one plus a noise of 5% of its range."""
    base = rng.random(rows)
    noisy = [base] + [base + rng.normal(0, 0.05, rows) for _ in range(columns - 1)]
    return np.stack([np.argsort(np.argsort(values)) + 1 for values in noisy], axis=1).astype(np.int32)


TABLES: dict[str, Callable[[int, int, np.random.Generator], Ranks]] = {
    "uniform": uniform,
    "Zipf 1.1": zipf,
    "30% NULL": nulls,
    "unequal ranges": unequal,
    "20 characters alike": texts,
    "correlated": correlated,
}


INDEPENDENT = ("uniform", "Zipf 1.1", "unequal ranges", "20 characters alike")
"""Without NULL, too, so that the bound holds for them."""


def by_forest(table: Ranks, files: int, rng: np.random.Generator) -> Files:
    """Lay a table out as a build does."""
    rows = min(len(table), max(LEAST_ROWS, ROWS_PER_FILE * files))
    sample = table[np.sort(rng.choice(len(table), rows, replace=False))]
    forest = grow(sample, np.zeros(rows, np.int32), [files], 0)
    cells = descend(forest, table, np.zeros(len(table), np.int32))
    spread = forest.file_count[cells]
    return np.asarray(forest.first_file[cells] + rng.integers(0, 1 << 30, len(table)) % spread)


def by_order(table: Ranks, files: int, rng: np.random.Generator) -> Files:
    """ORDER BY all columns, cut at equal counts."""
    return _equal_counts(np.lexsort(table.T[::-1]), files)


def by_z(table: Ranks, files: int, rng: np.random.Generator) -> Files:
    """Interleave global ranks, and cut the curve at equal counts."""
    return _equal_counts(np.argsort(_interleaved(_global_ranks(table)), kind="stable"), files)


def by_hilbert(table: Ranks, files: int, rng: np.random.Generator) -> Files:
    """Map global ranks to a Hilbert curve, and cut it at equal counts."""
    return _equal_counts(np.argsort(_interleaved(_transposed(_global_ranks(table))), kind="stable"), files)


LAYOUTS = {"dbt-zorder": by_forest, "Hilbert": by_hilbert, "plain Z": by_z, "ORDER BY": by_order}


def _equal_counts(order: npt.NDArray[np.int64], files: int) -> Files:
    file = np.empty(len(order), np.int64)
    file[order] = np.arange(len(order)) * files // len(order)
    return file


def _global_ranks(table: Ranks) -> npt.NDArray[np.uint64]:
    """Return for every value the number of boundaries at or below it, of 4,096 at equal mass; NULL is 0."""
    found = []
    for column in table.T:
        boundaries = np.unique(np.quantile(column, np.linspace(0, 1, (1 << RANK_BITS) + 1)[1:-1], method="lower"))
        found.append(np.searchsorted(boundaries, column, side="right"))
    return np.stack(found, axis=1).astype(np.uint64)


def _interleaved(ranks: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    key = np.zeros(len(ranks), np.uint64)
    for bit in reversed(range(RANK_BITS)):
        for column in range(ranks.shape[1]):
            key = (key << np.uint64(1)) | ((ranks[:, column] >> np.uint64(bit)) & np.uint64(1))
    return key


def _transposed(ranks: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the transposed Hilbert index: J. Skilling, Programming the Hilbert curve, AIP 707 (2004)."""
    x = [column.copy() for column in ranks.T]
    for level in reversed(range(1, RANK_BITS)):
        q, p = np.uint64(1 << level), np.uint64((1 << level) - 1)
        for i in range(len(x)):
            high = (x[i] & q) != 0
            swap = np.where(high, np.uint64(0), (x[0] ^ x[i]) & p)
            x[0] ^= np.where(high, p, swap)
            x[i] ^= swap
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    flip = np.zeros(len(ranks), np.uint64)
    for level in reversed(range(1, RANK_BITS)):
        flip ^= np.where((x[-1] >> np.uint64(level)) & np.uint64(1), np.uint64((1 << level) - 1), np.uint64(0))
    return np.stack([column ^ flip for column in x], axis=1)


def bound(table: Ranks, files: int) -> float:
    """Return the least that a mean over all columns can be, for values drawn from the rows, beside F^((k-1)/k).

    Of any layout into files of equally many rows of independent columns without NULL. The chance that a query for
    column c touches a file is the share w_c of rows whose value lies within its range. A file holds 1/F of all rows,
    and they lie within all of its ranges, so the product of its w is 1/F at least. No w_c is below the share of rows of
    a value that the file holds. So each row asks of its file a sum of w at least, which is found as water finds its
    level: what need not be wider than the others is as wide as these.
    """
    columns = table.shape[1]
    shares = np.stack([np.bincount(column)[column] / len(table) for column in table.T], axis=1)
    widths = np.full(shares.shape, files ** (-1 / columns))
    wide = np.zeros(shares.shape, dtype=bool)
    for _ in range(columns):
        wide |= shares > widths
        rest = 1 / files / np.where(wide, shares, 1.0).prod(axis=1)
        level = np.minimum(1.0, rest) ** (1 / np.maximum(1, (~wide).sum(axis=1)))
        widths = np.where(wide, shares, level[:, None])
    return float(files * widths.sum(axis=1).mean() / columns / files ** (1 - 1 / columns))


def by_file(codes: Codes, file: Files) -> Ranges:
    """Return the ranges of all files that have rows."""
    order = np.argsort(file, kind="stable")
    starts = np.flatnonzero(np.diff(file[order], prepend=-1))
    return {column: ranges_of(found[order], starts) for column, found in codes.items()}


def points(codes: Codes, rng: np.random.Generator, *, distinct: bool) -> list[Queries]:
    """Return equality queries on each column, for values of its rows or for its distinct ones."""
    queries = []
    for column, found in codes.items():
        values = np.unique(found[found >= 0]) if distinct else found[found >= 0]
        drawn = rng.choice(values, QUERIES)[:, None]
        queries.append({column: (drawn, drawn)})
    return queries


def ranges_and_boxes(codes: Codes) -> dict[str, list[Queries]]:
    """Return ranges on each column, and boxes of the first two, the same for all layouts and numbers of files."""
    first_two = {column: codes[column] for column in list(codes)[:2]}
    return {
        "range": [_stacked(boxes_of({column: found}, RANGE_SHARE, QUERIES)) for column, found in codes.items()],
        "box": [_stacked(boxes_of(first_two, BOX_SHARE, QUERIES))],
    }


def touched(ranges: Ranges, asked: list[Queries]) -> list[float]:
    """Return of each kind of queries the mean number of files whose least and greatest values let them in."""
    return [float(hits_of(ranges, queries).sum(axis=1).mean()) for queries in asked]


def summarized(queried: str, means: list[float], least: float) -> tuple[list[str], str]:
    """Return the figures of some queries for the CSV file, and for a table.

    Files are those of the worst column, of the mean of all, and of the first, by which ORDER BY is best; points also
    as ratios to what is the least for them, and for them alone.
    """
    counts = [max(means), float(np.mean(means))]
    in_files = [f"{count:.2f}" for count in counts]
    if queried == "box":
        return ["", "", *in_files, ""], f"{means[0]:.1f}"
    in_files.append(f"{means[0]:.2f}")
    if queried == "range":
        return ["", "", *in_files], f"{counts[0]:.1f} ({means[0]:.1f})"
    worst, mean = (count / least for count in counts)
    return [f"{worst:.3f}", f"{mean:.3f}", *in_files], f"{worst:.2f} ({mean:.2f})"


def _stacked(queries: list[dict[str, tuple[int, int]]]) -> Queries:
    found = {column: np.array([query[column] for query in queries], np.int64) for column in queries[0]}
    return {column: (bounds[:, :1], bounds[:, 1:]) for column, bounds in found.items()}


def main() -> None:
    """Print the tables and keep them as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, nargs="*", default=[16, 60, 500])
    parser.add_argument("--columns", type=int, nargs="*", default=[2, 3, 4])
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    table = Table(title="files touched / F^((k-1)/k): worst column (mean), values drawn from the rows | distinct ones")
    wider = Table(title="files touched: ranges of 1% on the worst column (the first) | boxes of 10% in each of two")
    for heading in ("table", "k", "files", "bound", *LAYOUTS):
        table.add_column(heading)
        if heading != "bound":
            wider.add_column(heading)
    with (arguments.out / "files_touched.csv").open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in arguments.tables:
            for k in arguments.columns:
                rows = TABLES[name](arguments.rows, k, np.random.default_rng(k))
                codes = {str(place): column.astype(np.int64) - 1 for place, column in enumerate(rows.T)}
                wide = ranges_and_boxes(codes)
                for files in arguments.files:
                    cells, wide_cells = [], []
                    least = f"{bound(rows, files):.3f}" if name in INDEPENDENT else ""
                    for layout, place in LAYOUTS.items():
                        rng = np.random.default_rng(files)
                        file = place(rows, files, rng)
                        fullest = f"{np.bincount(file, minlength=files).max() * files / len(rows):.3f}"
                        ranges = by_file(codes, file)
                        asked = {drawn: points(codes, rng, distinct=drawn == "distinct") for drawn in DRAWN} | wide
                        text = {}
                        for queried, queries in asked.items():
                            figures, text[queried] = summarized(
                                queried, touched(ranges, queries), files ** ((k - 1) / k)
                            )
                            of_rows = least if queried == "rows" else ""
                            writer.writerow(
                                [name, k, files, layout, queried, *figures[:2], fullest, of_rows, *figures[2:]]
                            )
                        cells.append(" | ".join(text[queried] for queried in DRAWN))
                        wide_cells.append(" | ".join(text[queried] for queried in wide))
                    table.add_row(name, str(k), str(files), least, *cells)
                    wider.add_row(name, str(k), str(files), *wide_cells)
                    Console().print(name, k, files, least, *cells, *wide_cells, sep="   ")
                    out.flush()
    for shown in (table, wider):
        Console(width=160).print(shown)


if __name__ == "__main__":
    main()
