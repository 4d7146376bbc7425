from __future__ import annotations

from dbt_zorder.spark.memory import memory_here


def test_there_is_memory() -> None:
    found = memory_here()
    assert found is None or found > 1 << 28
