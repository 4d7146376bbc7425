"""T4: a share of the mutants; ``python tests/soundness/mutate.py`` runs all."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.soundness import mutants, mutate
from tests.support import settings


def test_share_of_mutants_is_killed(spark: SparkSession) -> None:
    assert len(mutants.MUTANTS) >= 40
    with settings(spark, {"spark.sql.session.timeZone": "America/St_Johns"}):
        assert mutate.run(spark, mutants.CI_SHARE) == []


def test_every_mutant_still_has_its_place() -> None:
    for name, old, _ in mutants.MUTANTS:
        with open(mutate.load(name).__file__) as source:
            assert source.read().count(old) == 1, f"{name}: {old}"
