"""Evaluate a condition over the stats table and decide which files it excludes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import expr

from dbt_zorder.pruning.condition.condition import All, Any, Atom, Unknown, leaves
from dbt_zorder.pruning.condition.operand import StatsNames
from dbt_zorder.pruning.condition.translate import keep_sql
from dbt_zorder.pruning.files.stats_source import Stats
from dbt_zorder.pruning.predicate.tree import Column

KEPT_AT_MOST = 1_000
"""Maximum number of kept files whose paths a decision lists."""

_OUT = "(copies = 1 AND NOT f.keep AND file_path IS NOT NULL AND coalesce(f.file_size, -1) >= 0)"
"""SQL that is TRUE for the excluded rows, grouped by path. It is never NULL."""

_NAMED_AT_MOST = 32
"""Maximum number of column sets, for each cached stats frame, whose renamed frames are cached."""

_named_frames: WeakKeyDictionary[DataFrame, dict[tuple[Column, ...], DataFrame]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Decision:
    """Result of a condition on the statistics.

    Attributes:
        files, rows, bytes: totals over all files in the statistics.
        kept_files, kept_rows, kept_bytes: totals over the files that may match.
        excluded: path and size in bytes of every file that cannot match.
        excluded_by: number of files that each atom alone would exclude, in the order of the condition's leaves.
        kept_paths: paths of the files that may match; empty if there are more than ``KEPT_AT_MOST``.
        known: path, bytes and rows of every file in the statistics, if ``each`` was requested.
        ambiguous: number of paths with more than one row of statistics; they are never excluded.
    """

    files: int
    rows: int
    bytes: int
    kept_files: int
    kept_rows: int
    kept_bytes: int
    excluded: Sequence[tuple[str, int]] = field(repr=False)
    excluded_by: Sequence[int] = ()
    ambiguous: int = 0
    known: Sequence[tuple[str, int | None, int | None]] = field(default=(), repr=False)
    kept_paths: Sequence[str] = field(default=(), repr=False)


def stats_names(columns: Sequence[Column]) -> StatsNames:
    """Return short names for the statistics of ``columns``."""
    return StatsNames({column: f"s{number}" for number, column in enumerate(columns)})


def with_names(frame: DataFrame, names: StatsNames) -> DataFrame:
    """Return the stats table with the columns that conditions refer to."""
    columns = list(names.aliases)
    of_columns = [*map(names.projection, columns), *map(names.soundness, columns)]
    return frame.selectExpr("file_path", "file_size", "row_count", *of_columns)


def _named_frame(stats: Stats, names: StatsNames) -> DataFrame:
    """Return the stats table with these columns; for stats in memory, cache it for the next predicate."""
    assert stats.frame is not None
    if not stats.is_local:
        return with_names(stats.frame, names)
    kept = _named_frames.setdefault(stats.frame, {})
    columns = tuple(names.aliases)
    found = kept.get(columns)
    if found is None:
        if len(kept) >= _NAMED_AT_MOST:
            kept.clear()
        found = kept[columns] = with_names(stats.frame, names)
    return found


def evaluated_sql(stats: Stats, condition: Atom | Unknown | All | Any, names: StatsNames) -> list[str]:
    """Return the SQL expressions that :func:`decide` evaluates."""
    of_files = [keep_sql(condition, names), *map(names.soundness, names.aliases)]
    return of_files if stats.is_local else [*of_files, *_by_path_sql(0), *_totals_sql(0, True)]


def decide(stats: Stats, condition: Atom | Unknown | All | Any, names: StatsNames, *, each: bool = False) -> Decision:
    """Evaluate ``condition`` for every file.

    Args:
        stats: stats table.
        condition: condition that a file must satisfy to be read.
        names: names that the condition uses.
        each: whether to count for each atom how many files it excludes by itself.
    """
    atoms = list(leaves(condition)) if each else []
    counts = [f"NOT {keep_sql(atom, names)} AS atom{number}" for number, atom in enumerate(atoms)]
    keep = f"{keep_sql(condition, names)} AS keep"
    judged = _named_frame(stats, names).selectExpr("file_path", "file_size", "row_count", keep, *counts)
    if stats.is_local:
        return _summarize(judged.collect(), len(atoms), each)
    # One partition: a stats table is small, and grouping it then needs no exchange.
    by_path = judged.coalesce(1).groupBy("file_path").agg(*map(expr, _by_path_sql(len(atoms))))
    totals = by_path.selectExpr(*_totals_sql(len(atoms), each))
    row = totals.collect()[0]
    # A NULL in a FILTER or a missing size would shorten one of the two lists. `_OUT` is never NULL and tests both.
    excluded = list(zip(row[7], row[8], strict=True))
    known = [(path, size, rows) for path, size, rows in row[9]]
    return Decision(row[0], row[1], row[2], row[3], row[4], row[5], excluded, list(row[11:]), row[6], known, row[10])


def _by_path_sql(atoms: int) -> list[str]:
    """Return the aggregates over the evaluated rows of one path."""
    fields = ", ".join(["file_size", "row_count", "keep", *(f"atom{number}" for number in range(atoms))])
    return ["count(*) AS copies", f"first(struct({fields})) AS f"]


def _totals_sql(atoms: int, each: bool) -> list[str]:
    """Return the aggregates over all paths."""
    return [
        "count(*)",
        "coalesce(sum(f.row_count), 0)",
        "coalesce(sum(f.file_size), 0)",
        f"count_if(NOT {_OUT})",
        f"coalesce(sum(f.row_count) FILTER (WHERE NOT {_OUT}), 0)",
        f"coalesce(sum(f.file_size) FILTER (WHERE NOT {_OUT}), 0)",
        "count_if(copies > 1)",
        # Two arrays in one row: a hundred thousand rows would need seconds to reach Python.
        f"collect_list(file_path) FILTER (WHERE {_OUT})",
        f"collect_list(f.file_size) FILTER (WHERE {_OUT})",
        "collect_list(struct(file_path, f.file_size, f.row_count)) FILTER (WHERE file_path IS NOT NULL)"
        if each
        else "array()",
        f"if(count_if(NOT {_OUT}) <= {KEPT_AT_MOST}, collect_list(file_path) FILTER (WHERE NOT {_OUT}), array())",
        *(f"count_if(copies = 1 AND f.atom{number})" for number in range(atoms)),
    ]


def _summarize(judged: Sequence[Row], atoms: int, each: bool) -> Decision:
    """Compute in Python what ``decide`` lets Spark compute for many rows.

    Args:
        judged: rows of path, size, row count, ``keep``, then one exclusion flag for each atom.
        atoms: number of atoms.
        each: whether to list every file.
    """
    by_path: dict[str | None, list[Row]] = {}
    for row in judged:
        by_path.setdefault(row[0], []).append(row)
    first = [rows[0] for rows in by_path.values()]
    once = [rows[0] for rows in by_path.values() if len(rows) == 1]
    sized = [row for row in once if row[0] is not None and row[1] is not None and row[1] >= 0]
    excluded = [(row[0], row[1]) for row in sized if row[3] is False]
    out = {path for path, _ in excluded}
    kept = [row for row in first if row[0] not in out]
    paths = [row[0] for row in kept if row[0] is not None]
    return Decision(
        files=len(first),
        rows=sum(row[2] or 0 for row in first),
        bytes=sum(row[1] or 0 for row in first),
        kept_files=len(kept),
        kept_rows=sum(row[2] or 0 for row in kept),
        kept_bytes=sum(row[1] or 0 for row in kept),
        excluded=excluded,
        excluded_by=[sum(row[place] is True for row in once) for place in range(4, 4 + atoms)],
        ambiguous=len(first) - len(once),
        known=[(row[0], row[1], row[2]) for row in first if row[0] is not None] if each else [],
        kept_paths=paths if len(paths) <= KEPT_AT_MOST else [],
    )
