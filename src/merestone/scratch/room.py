"""Room for numbers that may be too many for memory: the system keeps in memory what it can, the rest lies in the scratch folder.

Not here: rows at rest, which are read in order (`spool`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt

MEMORY = 256 << 20
"""Bytes that a table may take in memory; a larger one lies in the scratch folder."""


def mapped(folder: str, shape: tuple[int, ...], kind: Any) -> npt.NDArray[Any]:
    """Numbers that are all 0, in a file without a name. Raises OSError where the folder is full."""
    with TemporaryFile(dir=Path(folder)) as file:  # the mapping outlives it
        return np.memmap(file, kind, "w+", shape=shape)


def room_in(folder: str) -> Callable[[int], npt.NDArray[np.uint32]]:
    """Gives so many numbers that are all 0: in memory, or in a scratch folder where they are many."""

    def room(numbers: int) -> npt.NDArray[np.uint32]:
        return np.zeros(numbers, np.uint32) if 4 * numbers <= MEMORY else mapped(folder, (numbers,), np.uint32)

    return room
