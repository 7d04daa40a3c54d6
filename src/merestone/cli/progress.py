"""How far a run is, on standard error: a line at a terminal, a line a stage with -v, nothing in a pipe.

Not here: where the steps come from (`results.progress`, the line).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from merestone.cli import edge
from merestone.results.progress import Progress, Watch, nobody
from merestone.words import duration, plural

_WAIT = 0.5  # seconds until a line is shown: what ends sooner needs none
STAGES: Final = {
    "prepare": "prepare",
    "index": "load the index",
    "pass 1": "read the delivery",
    "pass 2": "process candidates",
    "topology": "check topology",
    "pass 3": "write files",
    "commit": "commit",
    "read": "read the copy",
    "write": "write the copy",
    "read back": "read it back",
    "prove": "prove objects",
    "prove lineage": "prove lineage",
}
"""What a stage of the line is called here."""


@contextmanager
def shown() -> Iterator[Watch]:
    """What watches a run. The line of a terminal is gone when the run ends, however it ends."""
    if edge.verbose():
        yield _Stages()
    elif sys.stderr.isatty() and not edge.quiet():
        line = _Line()
        try:
            yield line
        finally:
            line.close()
    else:
        yield nobody


class _Stages:
    """A line for each stage that ended."""

    def __init__(self) -> None:
        self._rows = 0
        self._begun: float | None = None

    def __call__(self, step: Progress) -> None:
        """Keep the rows of a stage, and print it when it ends."""
        if self._begun is None:
            self._begun = time.perf_counter()
        if not step.ended:
            self._rows = step.rows
            return
        rows = f", {plural(self._rows, 'row')}" if self._rows else ""
        click.echo(f"{STAGES.get(step.stage, step.stage)}: {duration(time.perf_counter() - self._begun)}{rows}", err=True)
        self._rows, self._begun = 0, None


class _Line:
    """One line: stage, rows, rate and time left."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._stage = ""

    def __call__(self, step: Progress) -> None:
        """Show a step."""
        if step.ended:
            self.close()
            return
        if self._bar is None or self._stage != step.stage:
            self.close()
            self._stage = step.stage
            self._open(step)
        elif self._bar.total is None:
            self._bar.total = step.total
        self._bar.update(step.rows - self._bar.n)

    def _open(self, step: Progress) -> None:
        from tqdm import tqdm  # noqa: PLC0415 - only a terminal needs it

        self._bar = tqdm(
            total=step.total,
            desc=STAGES.get(step.stage, step.stage),
            unit=" rows",
            unit_scale=True,
            leave=False,
            delay=_WAIT,
            dynamic_ncols=True,
            file=sys.stderr,
        )

    def close(self) -> None:
        """Take the line away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
