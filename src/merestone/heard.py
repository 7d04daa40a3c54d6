"""What libraries say as Python warnings, heard by one thread at a time.

Python keeps the filters of warnings per process: two threads that each set and restore them leave them wrong. Whoever calls a library that
warns does it in here. Not here: what becomes of a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

_ONE_AT_A_TIME = RLock()


@contextmanager
def heard() -> Iterator[list[warnings.WarningMessage]]:
    """Whatever is warned of within, in order, instead of being printed or raised."""
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield said
