"""Plots of the benchmarks, stored beside their figures."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure


def keep_plot(figure: Figure, figures: Path) -> None:
    """Write a plot as PNG and SVG beside the CSV file of its figures."""
    for suffix in (".png", ".svg"):
        figure.savefig(figures.with_suffix(suffix))
