"""The plan: which partitions a change rewrites, and how many rows go where, exact before anything is written.

Not here: writing (`writer.files`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from merestone.dataset.manifest import DataFile


@dataclass(frozen=True, slots=True)
class Plan:
    """touched: partition names to rewrite. carried: files kept as they are. rows: partition name to rows after. dropped: touched and now empty."""

    touched: tuple[str, ...]
    carried: tuple[DataFile, ...]
    rows: dict[str, int]
    dropped: tuple[str, ...]

    @property
    def rewritten_rows(self) -> int:
        """How many rows pass 3 writes."""
        return sum(self.rows.values())


def plan(files: tuple[DataFile, ...], names: list[str], arriving: npt.NDArray[np.int32], leaving: npt.NDArray[np.int32]) -> Plan:
    """Plan a change.

    Args:
        files: the live files of the last version.
        names: the name of each partition code.
        arriving: the partition code of every row that is written (added, changed, moved in, reprocessed), int32.
        leaving: the old partition code of every row that is not carried in its place (changed, removed, moved out), int32.
    """
    size = len(names)
    coming, going = np.bincount(arriving, minlength=size), np.bincount(leaving, minlength=size)
    touched = np.flatnonzero(coming + going)
    named = {names[code] for code in touched}
    before = dict.fromkeys(named, 0)
    for file in files:
        if file.partition in named:
            before[file.partition] += file.rows
    rows = {names[code]: before[names[code]] + int(coming[code]) - int(going[code]) for code in touched}
    return Plan(
        touched=tuple(sorted(name for name, count in rows.items() if count)),
        carried=tuple(each for each in files if each.partition not in named),
        rows={name: count for name, count in rows.items() if count},
        dropped=tuple(sorted(name for name, count in rows.items() if not count)),
    )
