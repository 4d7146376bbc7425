"""Small files of random keys.

Their first rows must be the same without the files that a ranking excludes, and their aggregates those of their bounds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from dbt_zorder.pruning.files.column_bounds import FileBounds

Keys = list[int | None]


def faults(module: Any, cases: int, seed: int = 1) -> list[str]:
    """Return what a module of rankings gets wrong in random cases."""
    rng = random.Random(seed)
    return [fault for _ in range(cases) for fault in _faults(module, rng)]


def aggregate_faults(module: Any, cases: int, seed: int = 1) -> list[str]:
    """Return what a module of answers to aggregates gets wrong in random cases."""
    rng = random.Random(seed)
    found: list[str] = []
    for _ in range(cases):
        content = [_keys(rng) for _ in range(rng.randrange(6))]
        files = [_file(number, keys, rng, exact=True) for number, keys in enumerate(content)]
        keys = [key for one in content for key in one if key is not None]
        truth = {"count": len(keys), "min": min(keys, default=None), "max": max(keys, default=None)}
        answers = {name: module.result(name, files) for name in truth}
        if answers != truth:
            found.append(f"{answers} in place of {truth}: {content}")
        listed = {one.path: one.size for one in files}
        others = [
            listed | {"x": 1},
            {path: size for path, size in listed.items() if path != "0"},
            dict.fromkeys(listed, 2),
        ]
        for other in others:
            if module.are_all(files, other) != (other == listed):
                found.append(f"{other} are the files of {listed}, or not")
        if not module.are_all(files, listed):
            found.append(f"the files are not all: {listed}")
    return found


def _faults(module: Any, rng: random.Random) -> Iterator[str]:
    content = [_keys(rng) for _ in range(rng.randrange(1, 6))]
    files = [_file(number, keys, rng) for number, keys in enumerate(content)]
    ranking = module.Ranking(falls=rng.random() < 0.5, nulls_first=rng.random() < 0.5)
    rows = rng.choice([1, 1, 2, 3, 5, 8, 13])
    case = f"{ranking}, {rows} rows of {content}, bounds {[(one.low, one.high) for one in files]}"

    def rank(key: int | None) -> tuple[int, int]:
        if key is None:
            return (-1 if ranking.nulls_first else 1, 0)
        return (0, -key if ranking.falls else key)

    chosen = module.enough(files, rows)
    if chosen is not None and sum(one.rows for one in chosen) < rows:
        yield f"too few files for any rows: {case}"
    if (chosen is None) != (sum(map(len, content)) < rows):
        yield f"enough files, or not: {case}"
    best = [min(map(rank, content[int(one.path)])) for one in ranking.best_first(files)]
    if len(best) != len(files):
        yield f"a file is not ranked: {case}"
    for worst in _worsts(module, ranking, files, rows, sorted((key for keys in content for key in keys), key=rank)):
        out = ranking.without(files, worst)
        ranks = sorted(rank(key) for keys in content for key in keys)
        behind = [rank(key) for path in out for key in content[int(path)]]
        if behind and (len(ranks) < rows or min(behind) <= ranks[rows - 1]):
            yield f"a first row is lost by {worst} without {list(out)}: {case}"


def _worsts(module: Any, ranking: Any, files: list[FileBounds], rows: int, ranked: Keys) -> Iterator[Any]:
    """Yield the key that the bounds give, and that of the last row itself, as a run of a filtered scan gives it."""
    worst = ranking.worst(files, rows)
    if worst is not None:
        yield worst
    if len(ranked) >= rows and (ranked[rows - 1] is not None or ranking.nulls_first):
        yield module.Worst(ranked[rows - 1])


def _keys(rng: random.Random) -> Keys:
    start, nulls = rng.randrange(8), rng.choice([0, 0, 0.5, 1])
    return [None if rng.random() < nulls else start + rng.randrange(3) for _ in range(rng.randrange(1, 5))]


def _file(number: int, keys: Keys, rng: random.Random, *, exact: bool = False) -> FileBounds:
    """Return a file with bounds that may be wider than its keys, as those of cut texts are, unless they are exact."""
    found = [key for key in keys if key is not None]
    slack = [0 if exact else rng.choice([0, 0, 1, 2]) for _ in range(2)]
    low, high = (min(found) - slack[0], max(found) + slack[1]) if found else (None, None)
    return FileBounds(str(number), 1, len(keys), len(keys) - len(found), low, high)
