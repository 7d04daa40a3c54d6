"""Ctrl-C and SIGTERM while a version becomes current and is put on record: they wait until both are done.

A run that is cut off in between leaves an intent, and the next run has to write up what became of it.
Not here: what a signal does (`cli.main`), the steps of a commit (`writer.commit`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_FROM: Final = "pointer.before"


@contextmanager
def undisturbed(step: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """The step hook of an attempt, within which signals wait from the swap of the pointer to the end of the block.

    The first signal that came meanwhile does at the end what it would have done; a second one does it at once. Python gives signals to the
    main thread alone: a publish in another thread is as it was.

    Args:
        step: what is called at each step.
    """
    usual: dict[int, Any] = {}
    waiting: list[int] = []

    def wait(number: int, _: Any) -> None:
        if waiting:
            back()
            signal.raise_signal(number)
        waiting.append(number)

    def back() -> None:
        while usual:
            signal.signal(*usual.popitem())

    def hooked(name: str) -> None:
        if name == _FROM and not usual and threading.current_thread() is threading.main_thread():
            for each in _SIGNALS:
                if signal.getsignal(each) is not None:  # None: set by other code than Python's, and not ours to put back
                    usual[each] = signal.signal(each, wait)
        step(name)

    try:
        yield hooked
    finally:
        back()
        if waiting:
            signal.raise_signal(waiting[0])
