"""How far a run is: a value that the line gives to whoever watches it.

Not here: who watches (`cli.progress`), the stages themselves (`line`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a run.

    Attributes:
        stage: what the run does: prepare, index, pass 1, pass 2, topology, write.
        rows: rows that this stage has met.
        total: rows that it will meet; None where nobody knows.
        seconds: how long the stage took; None while it runs.
    """

    stage: str
    rows: int = 0
    total: int | None = None
    seconds: float | None = None


Watch = Callable[[Progress], None]
"""What is called as a run goes on, by the thread that runs it. It must be quick and must not raise."""


def nobody(_: Progress) -> None:
    """The watch of a run that nobody watches."""
