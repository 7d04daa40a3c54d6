"""What libraries say as Python warnings, heard by one thread at a time.

Python keeps the filters of warnings per process: two threads that each set and restore them leave them wrong. Whoever calls a library that
warns does it in here. What another thread of Python warns of meanwhile goes where it would have gone; what comes from a thread of the library
itself is its answer to the call. Not here: what becomes of a warning.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def heard() -> Iterator[list[warnings.WarningMessage]]:
    """Whatever is warned of within, in order, instead of being printed or raised."""
    said: list[warnings.WarningMessage] = []
    mine = threading.get_ident()
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        elsewhere = warnings.showwarning

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
        ) -> None:
            speaker = threading.get_ident()
            if speaker != mine and any(each.ident == speaker for each in threading.enumerate()):
                elsewhere(message, category, filename, lineno, file, line)
            else:
                said.append(warnings.WarningMessage(message, category, filename, lineno, file, line))

        warnings.simplefilter("always")
        warnings.showwarning = show
        try:
            yield said
        finally:
            warnings.showwarning = elsewhere
