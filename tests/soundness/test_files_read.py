"""T7: files that are kept, against the fewest that the same statistics allow; not above a committed baseline."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

from tests.soundness.grammar import Grammar
from tests.soundness.judge import FAST, ask, judge, understand
from tests.soundness.test_all_small_tables import Model
from tests.soundness.world import World
from tests.support import settings

BASELINE = json.loads((Path(__file__).parent / "effect_baseline.json").read_text())


def best_possible(model: Model, most: int) -> tuple[int, int]:
    """Return files kept, and files that any sound method must keep: some file of the same statistics has a match."""
    import numpy as np

    from tests.soundness.test_all_small_tables import ALPHABET, MULTISETS

    # Bounds, null count and rows decide; -0.0 equals 0.0, so the file of the least symbols stands for its bounds.
    keys = []
    for multiset in MULTISETS:
        present = [v for v in multiset if v]
        keys.append((len(multiset), len(multiset) - len(present), min(present, default=0), max(present, default=0)))
    assert len(ALPHABET) == 6
    groups = {key: [n for n, other in enumerate(keys) if other == key] for key in set(keys)}
    known = model.conditions("exact")
    kept = best = 0
    for form, numbers in model.predicates(most):
        tree, truth = model.build(form, numbers)
        keep = model.keep(model.translator.translate(tree), known)
        matches = (model.member & (truth == 2)).any(axis=1)
        possible = np.zeros(len(MULTISETS), dtype=bool)
        for members in groups.values():
            possible[members] = matches[members].any()
        kept, best = kept + int(keep.sum()), best + int(possible.sum())
    return kept, best


def test_small_model_is_near_the_best_possible(spark: SparkSession) -> None:
    with settings(spark, FAST):
        kept, best = best_possible(Model(spark), 4000)
    print(f"T7 small model: {kept} kept, {best} possible, ratio {kept / best:.3f}")  # noqa: T201
    assert kept / best <= BASELINE["small_model"]


def test_random_predicates_prune_no_less_than_before(spark: SparkSession, world: World) -> None:
    grammar = Grammar(7)
    asked = ask(spark, world, [grammar.atom() for _ in range(400)])
    understand(spark, world, asked)
    verdict = judge(spark, world, asked)
    excluded = (verdict.decisions - verdict.kept) / (verdict.decisions - verdict.needed)
    print(f"T7 random atoms: {excluded:.3f} of the files without a match are excluded")  # noqa: T201
    assert excluded >= BASELINE["random_atoms"]
