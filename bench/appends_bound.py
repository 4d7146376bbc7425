"""Compute how well appends can stay clustered in theory: ``python -m bench.appends_bound``.

Batches of one size arrive one by one, and each covers both keys evenly. A table is a list of runs, each written as a
whole. In a run of s batches, a point query on one of two keys reads sqrt(s) files. After an append, the last runs may
be merged into one, which writes their rows again.

For each bound of write amplification, the output is a ratio: the files of a point query over those of a single run. It
is the least ratio that can be kept at every moment from the fifth append on. The search keeps only the most promising
states, so it may miss a better way. No Spark runs.
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

Runs = tuple[int, ...]
"""Sizes in batches, the oldest first."""

FIRST = 5
STATES = 1_500
STEP = 0.05


def choices(runs: Runs) -> Iterator[tuple[Runs, int]]:
    """Yield what a table can become by one more batch, and how many batches that writes."""
    grown = (*runs, 1)
    for last in range(1, len(grown) + 1):
        merged = sum(grown[-last:])
        yield (*grown[:-last], merged), 1 + (merged if last > 1 else 0)


def touched(runs: Runs) -> float:
    """Return the files of a point query over those of the same rows in one run."""
    return sum(map(math.sqrt, runs)) / math.sqrt(sum(runs))


def can_hold(ratio: float, amplification: float, appends: int) -> bool:
    """Return whether merges were found that stay within both bounds."""
    states: dict[Runs, int] = {(1,): 1}
    for number in range(2, appends + 1):
        found: dict[Runs, int] = {}
        for runs, written in states.items():
            for grown, more in choices(runs):
                within = number < FIRST or (written + more <= amplification * number and touched(grown) <= ratio)
                if within and found.get(grown, written + more + 1) > written + more:
                    found[grown] = written + more
        if not found:
            return False
        best = heapq.nsmallest(STATES, found.items(), key=lambda one: one[1] / number + touched(one[0]) / 4)
        states = dict(best)
    return True


def least_ratio(amplification: float, appends: int) -> float:
    """Return the least ratio that can be held, by bisection."""
    low, high = 1.0, math.sqrt(appends)
    while high - low > STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if can_hold(middle, amplification, appends) else (middle, high)
    return high


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appends", type=int, default=100)
    parser.add_argument("--amplification", type=float, nargs="*", default=[3, 4, 5, 6, 8, 10])
    arguments = parser.parse_args()
    table = Table("write amplification, at most", "files of a point query / those of one run, at least")
    for bound in arguments.amplification:
        table.add_row(f"{bound:g}", f"{least_ratio(bound, arguments.appends):.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
