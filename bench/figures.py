"""Raw figures as CSV, one dictionary a line; the dictionaries may have different keys."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def columns_of(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of all figures, in the order that they came in."""
    return list(dict.fromkeys(name for line in lines for name in line))


def keep_figures(lines: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write all figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns_of(lines))
        writer.writeheader()
        writer.writerows(lines)


def figures_beside(path: Path, names: Sequence[str], given: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Return the lines of a file but those whose figures of some names are among the given ones: they are run again."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [line for line in csv.DictReader(file) if [line.get(name) for name in names] not in [*map(list, given)]]
