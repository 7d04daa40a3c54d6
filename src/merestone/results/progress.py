"""How far a run is: a value that the line gives to whoever watches it.

Not here: who watches (`cli.progress`), the stages themselves (`line`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a run.

    Attributes:
        stage: what the run does: prepare, index, pass 1, pass 2, topology, pass 3, commit; or read, write, read back, prove, prove lineage.
        rows: rows that this stage has met.
        total: rows that it will meet; None where nobody knows.
        ended: whether the stage is over.
    """

    stage: str
    rows: int = 0
    total: int | None = None
    ended: bool = False


Watch = Callable[[Progress], None]
"""What is called as a run goes on, by the thread that runs it. It must be quick and must not raise."""


def nobody(_: Progress) -> None:
    """The watch of a run that nobody watches."""


@contextmanager
def staged(watch: Watch, stage: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A stage that is watched from its begin to its end, however it ends.

    Args:
        watch: who watches.
        stage: its name.
        total: how many rows it will meet, None where nobody knows.

    Yields:
        What to call with the number of rows that were met since the last call.
    """
    rows = 0

    def met(more: int) -> None:
        nonlocal rows
        rows += more
        watch(Progress(stage, rows, total))

    watch(Progress(stage, 0, total))
    try:
        yield met
    finally:
        watch(Progress(stage, rows, total, ended=True))
