"""A window of units under way in a pool, and their results in order.

Not here: the pools (`threads`, `processes`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

Unit = TypeVar("Unit")
Result = TypeVar("Result")


def in_order(pool: Executor, task: Callable[[Unit], Result], units: Iterable[Unit], *, ahead: int) -> Iterator[Result]:
    """Apply `task` to each unit in a pool and yield the results in order, at most `ahead` + 1 of them under way."""
    waiting: deque[Future[Result]] = deque()
    try:
        for unit in units:
            waiting.append(pool.submit(task, unit))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for each in waiting:
            each.cancel()
