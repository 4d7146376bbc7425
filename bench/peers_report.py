"""Report the figures of ``bench.peers`` as tables and a plot, with ORDER BY and the theoretical minimum.

``python -m bench.peers_report zipf`` writes the tables again from stored figures, without a run.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
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

RESULTS = Path(__file__).parent / "results"
LATER = "peers_formats.csv"
"""Figures of sessions that were run later than the others of their data, without the formats' own commands."""

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
    "its process; of sessions that are older than this measure: of the heap alone). Files of a query are those whose "
    "min and max allow its values, means of 300; the least is F^(1/2) of F files for two keys. "
    "Delta Lake and Iceberg read these alone, and so does our helper, by which our Parquet table is asked; plain SQL "
    "opens every file of a Parquet table, ORDER BY's among them, and skips inside. Query seconds are those "
    "of count(*) by ten point queries on each key, each asked for the second time, beside ORDER BY's on the same key; "
    "Delta tables of Spark's are asked by delta-rs, too."
)

READ_HEADINGS = (
    "contender",
    "all: files / row groups / pages",
    "point query: row groups",
    "pages",
    "1% range: files",
    "row groups",
    "pages",
    "bytes",
    "box of 10% x 10%: files",
    "row groups",
    "pages",
    "bytes",
)

READ_NOTE = (
    "Files, row groups and pages whose min and max allow what is asked for, means of 300 queries; of points and ranges "
    "each figure is that of the key on which it is worst. Bytes are those of these files, as a share of the table's."
)

LATER_HEADINGS = (
    "contender",
    "files",
    "seconds / ORDER BY into Parquet",
    "seconds / ORDER BY into the same format",
    "point query: files on each key",
)


def load(path: Path, only: Mapping[str, str] | None = None) -> Figures:
    """Read the figures of one set.

    Args:
        path: of the figures.
        only: the columns, and what they say in lines that count.

    Raises:
        SystemExit: the sessions' queries found different numbers of rows.
    """
    found: dict[tuple[str, str], dict[tuple[str, str], float]] = defaultdict(dict)
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            if only and not only.items() <= line.items():
                continue
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
    """Print the tables, and write them and the plot beside the figures.

    Args:
        path: of the figures.
        given: what was run.
        console: to print on.
    """
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("pyspark", "pyarrow", "deltalake"))
    figures = load(path)
    if any(session == "hudi" for session, _ in _once(figures)):
        versions += f"; in Hudi's session PySpark 3.5 and {HUDI['spark.jars.packages']}"
    _write(path, figures, given, f"{versions}; {os.cpu_count()} cores.", console)
    plot(figures, given, path)


def again(path: Path, console: Console) -> None:
    """Print and write the tables of kept figures, on whichever machine; the lines that say what ran stay.

    Raises:
        SystemExit: there is no report yet.
    """
    tables = path.with_suffix(".md")
    lines = tables.read_text(encoding="utf-8").splitlines() if tables.exists() else []
    versions = [line[: line.index(" cores.") + len(" cores.")] for line in lines if " cores." in line]
    if not versions:
        msg = f"{tables} does not say what was run: see bench.peers."
        raise SystemExit(msg)
    _write(path, load(path), lines[0].removeprefix("# "), versions[0], console)


def later(path: Path) -> Figures:
    """Return what a later session found for the same rows and number of files, if its figures are kept apart."""
    kept = path.with_name(LATER)
    if not kept.exists():
        return {}
    with path.open(newline="") as file:
        first = next(csv.DictReader(file))
    return load(kept, {name: first[name] for name in ("data", "scale", "files")})


def _write(path: Path, figures: Figures, given: str, versions: str, console: Console) -> None:
    once, newer = _once(figures), later(path)
    markdown = [f"# {given}", ""]
    if newer:
        names = [name for session, name in newer if (session, name) in once and name != ORDER]
        markdown += [f"Figures of a later session stand in [{LATER}]({LATER}) and below: {', '.join(names)}.", ""]
    rows = [_row(name, found, base_of(figures, session)) for (session, name), found in once.items()]
    markdown += [f"{versions} {NOTE}", "", *_shown(given, HEADINGS, rows, console)]
    rows = [_reads(name, found) for (_, name), found in once.items()]
    markdown += ["", "## What queries read", "", READ_NOTE, ""]
    markdown += _shown(f"{given}: what queries read", READ_HEADINGS, rows, console)
    if newer:
        rows = [_later(place, newer) for place in newer if place[1] != ORDER]
        markdown += ["", "## A later session", "", "Seconds are ratios to ORDER BY in that session.", ""]
        markdown += _shown(f"{given}: a later session", LATER_HEADINGS, rows, console)
    path.with_suffix(".md").write_text("\n".join(markdown) + "\n", encoding="utf-8")


def _shown(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> list[str]:
    """Print a table, and return it as lines of Markdown."""
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    return ["| " + " | ".join(line) + " |" for line in (headings, ["---"] * len(headings), *rows)]


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


def _reads(name: str, found: Found) -> list[str]:
    def touched(kind: str, *levels: str) -> list[str]:
        return [f"{_worst(found, f'{kind}_{level}'):.1f}" for level in levels]

    def wide(kind: str) -> list[str]:
        share = _worst(found, f"{kind}_bytes") / found["bytes", ""]
        return [*touched(kind, "files", "row_groups", "pages"), f"{share:.0%}"]

    every = " / ".join(f"{found[level, '']:.0f}" for level in ("files", "row_groups", "pages"))
    return [name, every, *touched("point", "row_groups", "pages"), *wide("range"), *wide("box")]


def _later(place: tuple[str, str], figures: Figures) -> list[str]:
    session, name = place
    found = figures[place]
    alike = (one for (other, at), one in figures.items() if other == session and at.startswith(f"{ORDER} into "))
    bases = (base_of(figures, session), next(alike, {}))
    return [
        name,
        f"{found['files', '']:.0f}",
        *(_over(found["pipeline_seconds", ""], base.get(("pipeline_seconds", ""), 0.0)) for base in bases),
        " / ".join(f"{value:.1f}" for value in _all(found, "point_files")),
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


def main() -> None:
    """Write tables anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = sorted(path.stem.removeprefix("peers_") for path in RESULTS.glob("peers_*.md"))
    parser.add_argument("data", nargs="*", default=names, help=f"all by default: {', '.join(names)}")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the figures and tables")
    arguments = parser.parse_args()
    for data in arguments.data:
        again(arguments.out / f"peers_{data}.csv", Console(width=200))


if __name__ == "__main__":
    main()
