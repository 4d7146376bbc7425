"""Raw figures as CSV: one dictionary a line, which need not all have the same names."""

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
