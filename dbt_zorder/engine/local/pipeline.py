"""Work that is done by some threads at a time, and comes back in turn, a little ahead of who asks for it."""

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
    """Give the results of some work in the order of its items.

    No more is begun, and not yet given back, than ``most`` by weight, or one item.

    Args:
        work: what is done with an item, in another thread.
        items: and the weight of each.
        most: weight.
        threads: that work at a time.
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
