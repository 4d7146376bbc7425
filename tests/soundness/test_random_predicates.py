"""T2: random predicates over every type, in live Spark; a row that matches in a file that is excluded is a failure.

``SOAK=100000 pytest tests/soundness/test_random_predicates.py`` runs that many, ``SEED=7`` repeats a run.
"""

# ruff: noqa: T201
from __future__ import annotations

import os
import random
import time

import pytest
from pyspark.sql import SparkSession

from tests.soundness.grammar import Grammar
from tests.soundness.judge import AS_WRITTEN, Verdict, ask, judge, shrink, understand
from tests.soundness.world import World, make_world
from tests.support import settings

SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
COUNT = int(os.environ.get("SOAK") or 500)
PER_WORLD = 5_000
SESSIONS = [
    ("America/St_Johns", "false"),
    ("UTC", "true"),
    ("America/New_York", "false"),
    ("America/St_Johns", "as written"),
    ("Pacific/Apia", "false"),
]


def hunt(spark: SparkSession, world: World, seed: int, count: int, *, safe: bool = False) -> Verdict:
    grammar = Grammar(seed, safe=safe)
    asked = ask(spark, world, [grammar.predicate() for _ in range(count)])
    understand(spark, world, asked)
    verdict = judge(spark, world, asked)
    for found in verdict.unsound[:3]:
        predicate = found.split("predicate: ")[1].split("\n")[0]
        print(f"{found}\n  smallest part that fails: {shrink(spark, world, predicate)}")
    return verdict


@pytest.mark.parametrize(("zone", "ansi"), SESSIONS)
def test_no_matching_row_is_lost(spark: SparkSession, zone: str, ansi: str) -> None:
    share = COUNT // 2 if (zone, ansi) == SESSIONS[0] else COUNT // 6
    done = 0
    more = AS_WRITTEN if ansi == "as written" else {}
    enabled = "true" if ansi == "true" else "false"
    with settings(spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": enabled, **more}):
        while done < share:
            seed, count = SEED + done, min(PER_WORLD, share - done)
            with settings(spark, {"spark.sql.ansi.enabled": "false"}):
                world = make_world(spark, seed, 150)
            start = time.monotonic()
            verdict = hunt(spark, world, seed, count, safe=ansi == "true")
            world.rows.unpersist()
            world.stats.unpersist()
            done += count
            print(
                f"T2 seed {seed}, {zone}, ansi {ansi}: {verdict.predicates} predicates, {verdict.decisions} decisions, "
                f"{verdict.kept} files kept, {verdict.needed} needed, {len(verdict.unsound)} unsound, "
                f"{time.monotonic() - start:.0f} s"
            )
            assert not verdict.unsound, "\n".join(verdict.unsound[:5])
            assert verdict.predicates > count * 0.8, "too many predicates were not valid SQL"
            assert verdict.kept < verdict.decisions * 0.75, "next to nothing was pruned, so nothing was tested"
