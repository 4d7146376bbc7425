from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dbt_zorder import arrow_pool
from dbt_zorder.arrow_pool import arrow_memory


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = pa.default_memory_pool()
    arrow_pool._choose.cache_clear()
    pa.set_memory_pool(pa.system_memory_pool())
    yield
    pa.set_memory_pool(before)
    arrow_pool._choose.cache_clear()


def test_arrow_takes_memory_from_where_it_is_had_soonest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    wanted = "jemalloc" if "jemalloc" in pa.supported_memory_backends() else "system"
    with arrow_memory():
        assert pa.default_memory_pool().backend_name == wanted


def test_what_a_user_says_of_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
    with arrow_memory():
        assert pa.default_memory_pool().backend_name == "system"


def test_an_arrow_without_it_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    monkeypatch.setattr(pa, "supported_memory_backends", lambda: ["system"])
    with arrow_memory():
        assert pa.default_memory_pool().backend_name == "system"


@pytest.mark.skipif(
    "jemalloc" not in pa.supported_memory_backends() or not Path("/proc/self/statm").exists(), reason="needs both"
)
def test_what_is_freed_is_given_back_at_the_end() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    size = 128 << 20
    before = resident()
    with arrow_memory():
        rows = [pa.allocate_buffer(size // 64) for _ in range(64)]
        for one in rows:
            np.frombuffer(one, dtype=np.uint8)[:] = 1
        assert resident() - before > size // 2
        del rows, one
        assert resident() - before > size // 8, "kept for what comes next"
    assert resident() - before < size // 16
