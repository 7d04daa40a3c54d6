"""How the work of a pass is spread over this machine: one function over units, results in the order of the units.

Not here: what a unit is (the passes), other engines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Unit = TypeVar("Unit")
Result = TypeVar("Result")


def run_units(task: Callable[[Unit], Result], units: Iterable[Unit], *, workers: int) -> Iterator[Result]:
    """Apply `task` to each unit and yield the results in order.

    Threads serve, since the heavy steps (Arrow, PROJ, GEOS, the kernel, Parquet) release the interpreter lock. At most `workers` + 1 units
    are under way, so memory is bounded however many there are. The first exception ends the work and is raised here.
    """
    if workers <= 1:
        yield from map(task, units)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="merestone") as pool:
        try:
            for unit in units:
                waiting.append(pool.submit(task, unit))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()
