"""The figures of ``bench.peers`` as a table, beside ORDER BY and the theoretical minimum, and as a plot."""

from __future__ import annotations

import csv
import importlib.metadata
import math
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from bench.contenders import ORDER
from bench.plots import keep_plot
from bench.roster import HUDI

Found = Mapping[tuple[str, str], float]
"""By measure and column, the value."""

Figures = Mapping[tuple[str, str], Found]
"""By session and contender."""

HEADINGS = (
    "contender",
    "files",
    "seconds",
    "CPU",
    "rewrite alone",
    "peak memory, MB",
    "bytes",
    "point query: files on each key",
    "the least of as many",
    "share of bytes, worst key",
    "1% range",
    "box of 10% x 10%",
    "query seconds on each key",
    "the same by plain SQL",
    "the same by delta-rs",
    "run again",
    "append 10%",
    "point query after it",
)

NOTE = (
    "Seconds, CPU, bytes and query seconds are ratios to ORDER BY in the same session (delta-rs, which has no Spark: "
    "to that of the first session); rewrite, run again and append are ratios to the seconds of ORDER BY's whole "
    "pipeline. Peak memory is that of the JVM's heap, garbage among it, and what Python takes besides (delta-rs: of "
    "its process). Files of a query "
    "are those whose min and max allow its values, means of 300; the least is F^(1/2) of F files for two keys. "
    "Delta Lake and Iceberg read these alone, and so does our helper, by which our Parquet table is asked; plain SQL "
    "opens every file of a Parquet table, ORDER BY's among them, and skips inside. Query seconds are those "
    "of count(*) by ten point queries on each key, each asked for the second time, beside ORDER BY's on the same key; "
    "Delta tables of Spark's are asked by delta-rs, too."
)


def load(path: Path) -> Figures:
    """Read the figures of one set.

    Raises:
        SystemExit: the sessions' queries found different numbers of rows.
    """
    found: dict[tuple[str, str], dict[tuple[str, str], float]] = defaultdict(dict)
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            found[line["session"], line["contender"]][line["measure"], line["column"]] = float(line["value"])
    rows = {
        tuple(sorted(item for item in values.items() if item[0][0] == "query_rows"))
        for (_, name), values in found.items()
        if not name
    }
    if len(rows) > 1:
        msg = f"{path}: the sessions' queries found different numbers of rows: {rows}"
        raise SystemExit(msg)
    return {place: values for place, values in found.items() if place[1]}


def report(path: Path, given: str, console: Console) -> None:
    """Print the table, and write it and the plot beside the figures.

    Args:
        path: of the figures.
        given: what was run.
        console: to print on.
    """
    figures = load(path)
    rows = [_row(name, found, base_of(figures, session)) for (session, name), found in _once(figures).items()]
    table = Table(title=given)
    for heading in HEADINGS:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("pyspark", "pyarrow", "deltalake"))
    if any(session == "hudi" for session, _ in _once(figures)):
        versions += f"; in Hudi's session PySpark 3.5 and {HUDI['spark.jars.packages']}"
    markdown = [f"# {given}", "", f"{versions}; {os.cpu_count()} cores. {NOTE}", ""]
    markdown += ["| " + " | ".join(line) + " |" for line in (HEADINGS, ["---"] * len(HEADINGS), *rows)]
    path.with_suffix(".md").write_text("\n".join(markdown) + "\n", encoding="utf-8")
    plot(figures, given, path)


def base_of(figures: Figures, session: str) -> Found:
    """Return ORDER BY's figures of a session, of the first session where it has none.

    Raises:
        SystemExit: no session had it.
    """
    bases = {place[0]: found for place, found in figures.items() if place[1] == ORDER}
    if not bases:
        msg = "ORDER BY was not run, which all others are compared with: name one more session."
        raise SystemExit(msg)
    return bases.get(session) or next(iter(bases.values()))


def minimum(files: float, keys: int) -> float:
    """Return the files that an equality query on each of some keys touches at least, if all are served alike."""
    return float(files ** (1 - 1 / keys))


def _once(figures: Figures) -> Figures:
    """Leave ORDER BY to the first session that had it."""
    first = next(place for place in figures if place[1] == ORDER)
    return {place: found for place, found in figures.items() if place[1] != ORDER or place == first}


def _all(found: Found, measure: str) -> list[float]:
    return [value for (name, _), value in found.items() if name == measure]


def _worst(found: Found, measure: str) -> float:
    return max(_all(found, measure), default=math.nan)


def _over(value: float, other: float) -> str:
    return f"{value / other:.2f}" if value == value and other else "-"


def _each(found: Found, measure: str, base: Found) -> str:
    """Return the seconds on each key as ratios to ORDER BY's by plain SQL."""
    pairs = zip(_all(found, measure), _all(base, "query_seconds"), strict=False)
    return " / ".join(f"{value / other:.2f}" for value, other in pairs) or "-"


def _row(name: str, found: Found, base: Found) -> list[str]:
    files, size = found["files", ""], found["bytes", ""]
    whole = base["pipeline_seconds", ""]

    def alone(measure: str) -> str:
        return _over(found.get((measure, ""), math.nan), whole)

    return [
        name,
        f"{files:.0f}",
        _over(found["pipeline_seconds", ""], whole),
        _over(found["pipeline_cpu_seconds", ""], base["pipeline_cpu_seconds", ""]),
        alone("rewrite_seconds"),
        f"{found['pipeline_peak_bytes', ''] / 1e6:.0f}",
        _over(size, base["bytes", ""]),
        " / ".join(f"{value:.1f}" for value in _all(found, "point_files")),
        f"{minimum(files, len(_all(found, 'point_files'))):.1f}",
        f"{_worst(found, 'point_bytes') / size:.0%}",
        " / ".join(f"{value:.1f}" for value in _all(found, "range_files")),
        f"{found['box_files', '']:.1f}",
        _each(found, "query_seconds", base),
        _each(found, "plain_query_seconds", base),
        _each(found, "delta_rs_query_seconds", base),
        alone("again_seconds"),
        alone("append_seconds"),
        " / ".join(f"{value:.1f}" for value in _all(found, "point_after_append_files")) or "-",
    ]


def plot(figures: Figures, given: str, path: Path) -> None:
    """Draw time against the share of the table that a point query reads: nearer to the corner is better."""
    figure = Figure(figsize=(10, 6), layout="constrained")
    axes = figure.add_subplot()
    for (session, name), found in _once(figures).items():
        x = found["pipeline_seconds", ""] / base_of(figures, session)["pipeline_seconds", ""]
        y = _worst(found, "point_bytes") / found["bytes", ""]
        axes.scatter(x, y, marker="*" if name.startswith("dbt-zorder") else "o", s=120)
        axes.annotate(
            f"{name} ({found['files', '']:.0f} files)", (x, y), (6, 6), textcoords="offset points", fontsize=8
        )
    axes.set_xlabel("seconds from query to clustered table / ORDER BY's")
    axes.set_ylabel("share of the bytes that a point query reads, on the worst key")
    axes.set_ylim(0, 1.1)
    axes.margins(x=0.25)
    axes.set_title(given)
    keep_plot(figure, path)
