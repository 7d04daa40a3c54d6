"""Where every delivered row lies, at rest: what a finding that names rows later needs to say where they are.

Not here: findings on rows that are seen while their batch is at hand (`gate.findings`), the places of a check's page (`line.finding_places`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from merestone.geometry import kernel
from merestone.results.finding import Finding, Sample
from merestone.scratch.spool import Numbers


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """The middle of each row's box: 16 bytes a row on disk; nothing where rows come in another CRS than the contract's."""

    numbers: Numbers | None = None

    @classmethod
    def at_rest(cls, folder: str) -> RowPlaces:
        """Places that are kept in a scratch folder."""
        return cls(Numbers(folder, "row-places", 2))

    def add(self, scan: kernel.Scan) -> None:
        """Take in the rows of the next batch."""
        if self.numbers is not None:
            self.numbers.append(middles(scan.bounds))

    def placed(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings, their samples with a place where they name a row that has one."""
        found = list(findings)
        rows = {each.row for one in found for each in one.features if _lacks_place(each)}
        if self.numbers is None or not rows:
            return found
        wanted = np.array(sorted(row for row in rows if row is not None), np.int64)
        places = dict(zip(wanted.tolist(), self.numbers.some(wanted - 1).tolist(), strict=True))
        return [replace(one, features=tuple(_placed(each, places) for each in one.features)) for one in found]


def middles(bounds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The middles (n, 2) of boxes, NaN for those without bounds."""
    middle = (bounds[:, :2] + bounds[:, 2:]) / 2
    if not np.isfinite(middle).all():
        middle[~np.isfinite(bounds).all(axis=1)] = np.nan
    return middle


def at_place(sample: Sample, x: float, y: float) -> Sample:
    """A sample at a place, as it is where there is none."""
    return replace(sample, x=x, y=y) if np.isfinite(x) and np.isfinite(y) else sample


def _lacks_place(each: Sample) -> bool:
    return each.row is not None and each.x is None


def _placed(each: Sample, places: dict[int, list[float]]) -> Sample:
    return at_place(each, *places[each.row]) if _lacks_place(each) and each.row is not None else each
