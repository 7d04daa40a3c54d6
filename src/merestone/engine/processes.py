"""Work spread over processes of this machine that share nothing with this one.

Slower than threads where units are small, since each unit and each result is pickled. It proves that a task needs nothing but its unit.
Not here: what an engine is (`port`), what a unit is (the passes).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from merestone.engine.window import in_order

Unit = TypeVar("Unit")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Processes:
    """See `merestone.engine.port.Engine`.

    Args:
        workers: how many processes.
        units_per_process: after how many units a process is replaced by a fresh one; None keeps it.
    """

    workers: int
    units_per_process: int | None = None

    def run_units(self, task: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """Apply `task` to each unit in a process that was spawned, not forked."""
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.workers, mp_context=context, max_tasks_per_child=self.units_per_process) as pool:
            yield from in_order(pool, task, units, ahead=self.workers)

    def share(self, workers: int) -> Processes:
        """The same with other workers, one at least."""
        return Processes(max(workers, 1), self.units_per_process)
