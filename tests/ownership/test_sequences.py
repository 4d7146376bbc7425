"""Generated sequences of builds, batches, copies, renames, drops, restores and vacuums of tables whose folders meet.

``OWNERSHIP_STEPS`` says how many acts there are to be, about. ``make soak-ownership`` runs 20,000, in a new order each
time, and ``make test-all`` 2,000: an act takes most of a second.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from pyspark.sql import SparkSession

from tests.ownership.machine import Machine

STEPS = int(os.environ.get("OWNERSHIP_STEPS", "2000"))
SOAK = "OWNERSHIP_STEPS" in os.environ
A_SEQUENCE = 100
"""Acts that a sequence has at most; about half of them find what they can act upon."""


@pytest.mark.slow
def test_no_row_is_lost_and_no_file_of_others_is_touched(
    spark: SparkSession, record_property: Callable[[str, object], None]
) -> None:
    counts: Counter[str] = Counter()
    machine = type("Sequence", (Machine,), {"spark": spark, "counts": counts})
    began = time.monotonic()
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(1, STEPS // 20),
            stateful_step_count=A_SEQUENCE,
            derandomize=not SOAK,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink] if SOAK else [Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    seconds = time.monotonic() - began
    record_property(
        "summary", f"{counts['steps']:,} steps over shared folders, {counts['refused']:,} refused, in {seconds:.0f} s"
    )
    assert counts["steps"] >= STEPS // 2
