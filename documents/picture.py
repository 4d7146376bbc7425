"""Draw the picture of README.md from the figures of bench.peers: ``python -m documents.picture``.

It shows which of 16 files an equality query reads, by ORDER BY and by Z-order, on each of two columns.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "bench" / "results" / "peers_lineitem.csv"
PICTURE = ROOT / "docs" / "images" / "files-read.svg"

CONTENDERS = {"ORDER BY": "ORDER BY", "dbt-zorder": "Z-order"}
"""Labels of the layouts that are drawn, by their names in the figures."""

SIDE, GAP = 30, 6
LEFT, TOP, BETWEEN, HEIGHT = 120, 92, 40, 104
READ, SKIPPED = "#d9480f", "#d3f0dc"


def read_figures(figures: Path = FIGURES) -> tuple[list[str], dict[tuple[str, str], int], int]:
    """Return the columns, the files that an equality query reads by layout and column, and the files of a table."""
    with figures.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["session"] == "parquet"]
    points = [line for line in lines if line["measure"] == "point_files" and line["contender"] in CONTENDERS]
    read = {(line["contender"], line["column"]): round(float(line["value"])) for line in points}
    return list(dict.fromkeys(line["column"] for line in points)), read, int(lines[0]["files"])


def draw(columns: list[str], read: dict[tuple[str, str], int], files: int) -> str:
    """Return the picture as SVG: a row a layout, a panel a column, a square a file."""
    half = files // 2
    panel = half * (SIDE + GAP) - GAP
    width = LEFT + len(columns) * panel + (len(columns) - 1) * BETWEEN + 20
    height = TOP + len(CONTENDERS) * HEIGHT
    text = "".join(_shapes(columns, read, files, half, panel))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="15">\n'
        f"<title>Files that an equality query reads of {files}</title>\n"
        f'<rect width="{width}" height="{height}" fill="white"/>\n{text}</svg>\n'
    )


def _shapes(columns: list[str], read: dict[tuple[str, str], int], files: int, half: int, panel: int) -> Iterator[str]:
    yield _text(20, 28, f"Files that an equality query reads, of {files}", "bold")
    yield f'<rect x="{LEFT + panel + BETWEEN}" y="16" width="14" height="14" fill="{READ}"/>\n'
    yield _text(LEFT + panel + BETWEEN + 20, 28, "read")
    yield f'<rect x="{LEFT + panel + BETWEEN + 70}" y="16" width="14" height="14" fill="{SKIPPED}"/>\n'
    yield _text(LEFT + panel + BETWEEN + 90, 28, "skipped")
    for place, column in enumerate(columns):
        yield _text(LEFT + place * (panel + BETWEEN), TOP - 20, f"{column} = ...")
    for row, (contender, label) in enumerate(CONTENDERS.items()):
        y = TOP + row * HEIGHT
        yield _text(20, y + SIDE + 8, label, "bold")
        for place, column in enumerate(columns):
            x = LEFT + place * (panel + BETWEEN)
            count = read[contender, column]
            for file in range(files):
                fill = READ if file < count else SKIPPED
                left, top = x + file % half * (SIDE + GAP), y + file // half * (SIDE + GAP)
                yield f'<rect x="{left}" y="{top}" width="{SIDE}" height="{SIDE}" rx="3" fill="{fill}"/>\n'
            yield _text(x, y + 2 * SIDE + GAP + 18, f"{count} of {files}")


def _text(x: int, y: int, text: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}" fill="#222">{text}</text>\n'


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(*read_figures()), encoding="utf-8")
