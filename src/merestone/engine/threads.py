"""Work spread over the cores of this machine, in threads of this process.

Not here: what an engine is (`port`), what a unit is (the passes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeVar

from merestone.engine.window import in_order

Unit = TypeVar("Unit")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Threads:
    """See `merestone.engine.port.Engine`. The heavy steps (Arrow, PROJ, GEOS, the kernel, Parquet) release the interpreter lock."""

    workers: int

    def run_units(self, task: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """Apply `task` to each unit; with one worker, or a single unit, in this thread."""
        if self.workers <= 1:
            yield from map(task, units)
            return
        units = iter(units)
        first = list(islice(units, 2))
        units = chain(first, units)
        if len(first) < 2:
            yield from map(task, units)
            return
        with ThreadPoolExecutor(self.workers, thread_name_prefix="merestone") as pool:
            yield from in_order(pool, task, units, ahead=self.workers)

    def share(self, workers: int) -> Threads:
        """The same with other workers."""
        return Threads(workers)
