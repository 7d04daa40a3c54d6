"""What the line asks of whatever carries out its work: one function over many units, results in the order of the units.

A task is a function of a module, a unit a value that can be pickled: it names its store by URL and holds its columns as Arrow or NumPy
arrays. So the same work runs in threads, in other processes, or on other machines, and gives the same bytes.
Not here: what a unit is (the passes), any one engine (`threads`, `processes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Unit = TypeVar("Unit")
Result = TypeVar("Result")


class Engine(Protocol):
    """Carries out tasks. An engine is a value: it holds no task and no result."""

    @property
    def workers(self) -> int:
        """How many units it works on at a time."""
        ...

    def run_units(self, task: Callable[[Unit], Result], units: Iterable[Unit]) -> Iterator[Result]:
        """Apply `task` to each unit and yield the results in order.

        Units are taken as they are needed, at most `workers` + 1 ahead: memory is bounded however many there are. The first exception
        ends the work and is raised here.
        """
        ...

    def share(self, workers: int) -> Engine:
        """The same engine with other workers, for work that goes on beside other work."""
        ...
