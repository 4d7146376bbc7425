from __future__ import annotations

import threading
import time

import pytest

from dbt_zorder.engine.local.pipeline import ordered_map


def test_results_come_in_the_order_of_their_items() -> None:
    def slow_first(number: int) -> int:
        time.sleep(0.02 if number == 0 else 0)
        return number * number

    found = ordered_map(slow_first, ((number, 1.0) for number in range(20)), 4, 3)
    assert list(found) == [number * number for number in range(20)]


def test_no_more_is_under_way_than_may_be() -> None:
    lock = threading.Lock()
    begun = given = 0
    ahead: list[int] = []

    def work(number: int) -> int:
        nonlocal begun
        with lock:
            begun += 1
            ahead.append(begun - given)
        return number

    for _ in ordered_map(work, ((number, 2.0) for number in range(30)), 6, 8):
        given += 1
        time.sleep(0.001)
    assert max(ahead) <= 4, "three, and one that is just being given back"


def test_one_that_weighs_more_than_all_may_is_done_alone() -> None:
    assert list(ordered_map(lambda item: item, [("large", 100.0), ("small", 1.0)], 10, 2)) == ["large", "small"]


def test_an_error_ends_it_and_what_waits_is_not_begun() -> None:
    begun: list[int] = []

    def fail(number: int) -> int:
        begun.append(number)
        if number == 1:
            raise ValueError("the second")
        return number

    with pytest.raises(ValueError, match="the second"):
        list(ordered_map(fail, ((number, 1.0) for number in range(50)), 3, 1))
    assert len(begun) < 10
