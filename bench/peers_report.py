"""The figures of ``bench.peers`` as a table, beside ORDER BY and the theoretical minimum, and as plots."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from bench.contenders import ORDER

Figures = Mapping[tuple[str, str], Mapping[tuple[str, str], float]]
"""By session and contender: by measure and column, the value."""

HEADINGS = (
    "contender",
    "files",
    "wall",
    "CPU",
    "rewrite alone",
    "bytes",
    "point, worst key / minimum",
    "1% range, worst",
    "box",
    "query, worst",
    "again",
    "append 10%",
)


def load(path: Path) -> Figures:
    """Read the figures of one set."""
    found: dict[tuple[str, str], dict[tuple[str, str], float]] = defaultdict(dict)
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            if line["contender"]:
                found[line["session"], line["contender"]][line["measure"], line["column"]] = float(line["value"])
    return found


def report(path: Path, console: Console) -> None:
    """Print the table and draw the plots beside the figures."""
    figures = load(path)
    rows = rows_of(figures)
    table = Table(title=f"{path.stem}: ratios to ORDER BY of the same session; files as ratios to the minimum")
    for heading in HEADINGS:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    markdown = ["| " + " | ".join(line) + " |" for line in (HEADINGS, ["---"] * len(HEADINGS), *rows)]
    path.with_suffix(".md").write_text("\n".join(markdown) + "\n", encoding="utf-8")
    plot(figures, path)


def rows_of(figures: Figures) -> list[list[str]]:
    """Return the lines of the table, one a contender; ORDER BY once."""
    rows = []
    base: Mapping[tuple[str, str], float] = {}
    for (_, name), found in figures.items():
        if name == ORDER:
            first, base = not base, found
            if not first:
                continue
        rows.append(_row(name, found, base))
    return rows


def minimum(files: float, keys: int) -> float:
    """Return the least number of files that an equality query on the worst of some uniform keys can touch."""
    return float(files ** (1 - 1 / keys))


def worst(found: Mapping[tuple[str, str], float], measure: str) -> float:
    """Return the largest value of a measure over the keys."""
    return max((value for (name, _), value in found.items() if name == measure), default=math.nan)


def _row(name: str, found: Mapping[tuple[str, str], float], base: Mapping[tuple[str, str], float]) -> list[str]:
    files = found["files", ""]
    keys = sum(1 for measure, _ in found if measure == "point_files")
    least = minimum(base["files", ""], keys)

    def ratio(measure: str) -> str:
        value, other = found.get((measure, ""), math.nan), base.get((measure, ""), math.nan)
        return f"{value / other:.2f}" if value == value and other else "-"

    def to_build(measure: str) -> str:
        value = found.get((measure, ""), math.nan)
        return f"{value / base['pipeline_seconds', '']:.2f}" if value == value else "-"

    return [
        name,
        f"{files:.0f}",
        ratio("pipeline_seconds"),
        ratio("pipeline_cpu_seconds"),
        to_build("rewrite_seconds"),
        ratio("bytes"),
        f"{worst(found, 'point_files') / least:.2f}",
        f"{worst(found, 'range_files'):.1f} of {files:.0f}",
        f"{found['box_files', '']:.1f} of {files:.0f}",
        f"{worst(found, 'query_seconds') / worst(base, 'query_seconds'):.2f}",
        to_build("again_seconds"),
        to_build("append_seconds"),
    ]


def plot(figures: Figures, path: Path) -> None:
    """Draw time against files touched, both as ratios: nearer to the corner is better."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot()
    base: Mapping[tuple[str, str], float] = {}
    for (_, name), found in figures.items():
        if name == ORDER:
            first, base = not base, found
            if not first:
                continue
        keys = sum(1 for measure, _ in found if measure == "point_files")
        x = found["pipeline_seconds", ""] / base["pipeline_seconds", ""]
        y = worst(found, "point_files") / minimum(base["files", ""], keys)
        axes.scatter(x, y, marker="*" if name.startswith("dbt-zorder") else "o", s=120)
        axes.annotate(name, (x, y), xytext=(6, 6), textcoords="offset points", fontsize=8)
    axes.axhline(1, color="grey", linewidth=0.8, linestyle="--")
    axes.set_xlabel("seconds from query to clustered table / ORDER BY's")
    axes.set_ylabel("files a point query touches on the worst key / minimum")
    axes.set_yscale("log")
    axes.set_title(path.stem)
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix))
