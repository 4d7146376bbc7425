from __future__ import annotations

import threading
import time

import pytest

from dbt_zorder.engine.local.memory_budget import MemoryBudget


def test_no_more_is_taken_than_there_is() -> None:
    budget, taken, seen = MemoryBudget(), [0], []
    lock = threading.Lock()

    def hold(size: int) -> None:
        with budget.reserve(size, 100):
            with lock:
                taken[0] += size
                seen.append(taken[0])
            time.sleep(0.01)
            with lock:
                taken[0] -= size

    threads = [threading.Thread(target=hold, args=(size,)) for size in (60, 50, 40, 30, 20, 10, 60, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(seen) == 8
    assert max(seen) <= 100


def test_one_that_needs_more_than_all_waits_for_the_others_alone() -> None:
    budget, found = MemoryBudget(), []
    with budget.reserve(10, 100):
        thread = threading.Thread(target=lambda: found.append(_reserves(budget, 500)))
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    thread.join(10)
    assert found == [True]


def test_what_fails_gives_its_room_back() -> None:
    budget = MemoryBudget()
    with pytest.raises(RuntimeError), budget.reserve(100, 100):
        raise RuntimeError
    assert _reserves(budget, 100)


def _reserves(budget: MemoryBudget, size: int) -> bool:
    with budget.reserve(size, 100):
        return True


def test_what_turns_out_to_be_more_keeps_others_waiting() -> None:
    budget, found = MemoryBudget(), []
    with budget.reserve(10, 100) as correct:
        correct(90)
        thread = threading.Thread(target=lambda: found.append(_reserves(budget, 50)))
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
        correct(20)
        thread.join(10)
        assert found == [True]
    with budget.reserve(100, 100):
        pass
