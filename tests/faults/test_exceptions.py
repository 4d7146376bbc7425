"""An exception at every point of a build: the table is the old or the new one, the next run succeeds, nothing is left.

CI strikes every point once, one kind of table after the other; `make soak-faults` strikes both kinds at each.
"""

from __future__ import annotations

import contextlib
import os

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from tests.faults.points import POINTS, Injected, Strike, armed, raise_injected
from tests.faults.victim import KINDS, Victim
from tests.support import unique

SOAK = bool(os.environ.get("SOAK_FAULTS"))
CASES = [(point, kind) for number, point in enumerate(POINTS) for kind in (KINDS if SOAK else [KINDS[number % 2]])]


@pytest.fixture(scope="module")
def victims(spark: SparkSession) -> dict[str, Victim]:
    found = {kind: Victim(spark, TableName("default", unique(kind)), kind) for kind in KINDS}
    for victim in found.values():
        victim.build(1000)
    return found


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_table_is_whole_after_an_exception(victims: dict[str, Victim], name: str, kind: str) -> None:
    victim, point = victims[kind], POINTS[name]
    old = victim.served()
    rows = 1001 + CASES.index((name, kind))
    strike = Strike(raise_injected)
    # the reply of the swap is asked for again; stats that cannot be registered and old versions that cannot be deleted
    # fail no build
    harmless = name == "mid publish" or "publish_stats" in name or "collect_old" in name
    outcome = contextlib.nullcontext() if harmless else pytest.raises(Injected)
    with armed(point, strike, victim.spark, victim.root), outcome:
        victim.build(rows)
    assert strike.fired
    assert victim.served() == (victim.expected(rows) if point.new else old)
    assert len(victim.others()) <= 1
    victim.build(rows)
    assert victim.served() == victim.expected(rows)
    assert victim.vacuum() == []
