"""Where the process of the command `merestone` begins: what has to hold before anything else of it is loaded.

Not here: the commands (`main`), how they end (`edge`).
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn


def main() -> None:
    """The entry point of the installed command. Ctrl-C while its modules are loaded ends it as it does later: in one line."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as in a background job: Ctrl-C is for the command in front
            signal.signal(number, _ended)
    _occupied()
    from merestone.cli import edge, main as commands  # noqa: PLC0415, I001 - loaded once a signal is heard

    old: Any = sys.stdout
    encoding, to_terminal = old.encoding, old.isatty()
    sys.stdout = edge.Output(old.detach(), encoding, line_buffering=to_terminal)
    commands.main()


def _ended(number: int, _: Any) -> NoReturn:
    """End at once: nothing has begun."""
    word = "interrupted" if number == signal.SIGINT else "terminated"
    try:
        os.write(2, f"merestone: {word}\n".encode())
    finally:
        os._exit(128 + number)


def _occupied() -> None:
    """Give a standard stream that is closed a descriptor of its own: a data file that is opened next would get its number."""
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):  # what is written to a closed output is a fault
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, mode)  # noqa: TID251 - a descriptor is meant, not a file
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
