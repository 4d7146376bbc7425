from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from dbt_zorder.spark.memory import choose_arrow_pool


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = pa.default_memory_pool()
    choose_arrow_pool.cache_clear()
    pa.set_memory_pool(pa.system_memory_pool())
    yield
    pa.set_memory_pool(before)
    choose_arrow_pool.cache_clear()


def test_arrow_takes_memory_from_where_it_is_had_soonest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    choose_arrow_pool()
    wanted = "jemalloc" if "jemalloc" in pa.supported_memory_backends() else "system"
    assert pa.default_memory_pool().backend_name == wanted


def test_what_a_user_says_of_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
    choose_arrow_pool()
    assert pa.default_memory_pool().backend_name == "system"


def test_an_arrow_without_it_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    monkeypatch.setattr(pa, "supported_memory_backends", lambda: ["system"])
    choose_arrow_pool()
    assert pa.default_memory_pool().backend_name == "system"


def test_it_keeps_for_the_next_step_what_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    monkeypatch.setattr(pa, "jemalloc_set_decay_ms", calls.append)
    choose_arrow_pool()
    assert calls == ([10_000] if "jemalloc" in pa.supported_memory_backends() else [])
    choose_arrow_pool.cache_clear()
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    calls.clear()
    choose_arrow_pool()
    assert calls == []
