"""Runs work on a thread pool and yields the results in order, with a bounded number in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def ordered_map(
    work: Callable[[Item], Result], items: Iterable[tuple[Item, float]], most: float, threads: int
) -> Iterator[Result]:
    """Yield the results of ``work`` in the order of its items.

    The items in flight weigh at most ``most`` together, or there is only one.

    Args:
        work: function of an item, called in another thread.
        items: pairs of an item and its weight.
        most: limit for the weight in flight.
        threads: number of threads.
    """
    waiting: deque[tuple[Future[Result], float]] = deque()
    begun = 0.0
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item, weight in items:
                while waiting and begun + weight > most:
                    future, done = waiting.popleft()
                    begun -= done
                    yield future.result()
                waiting.append((pool.submit(work, item), weight))
                begun += weight
            while waiting:
                yield waiting.popleft()[0].result()
        finally:
            for future, _ in waiting:
                future.cancel()
