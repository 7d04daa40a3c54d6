"""The stamp of a contract version: `v<major>.<minor>.<patch>-crs:EPSG:<code>-res:<resolution>`, and its SemVer order.

Not here: which bump a difference needs (`breaking`), where versions are kept (`contract.files`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

from merestone.reference.ground import METRES_PER_DEGREE

_NUMBER = "(0|[1-9][0-9]{0,8})"
STAMP_PATTERN = rf"v{_NUMBER}\.{_NUMBER}\.{_NUMBER}-crs:EPSG:([1-9][0-9]{{0,8}})-res:([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)(mm|cm|m|km|deg)"
_STAMP = re.compile(STAMP_PATTERN)
_METRES = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, "deg": METRES_PER_DEGREE}


@total_ordering
@dataclass(frozen=True, slots=True)
class Stamp:
    """A parsed `contract_version`; ordered by major, minor, patch as numbers (SemVer 2.0.0 clause 11)."""

    major: int
    minor: int
    patch: int
    epsg: int
    resolution: str

    @classmethod
    def parse(cls, text: str) -> Stamp:
        """Read a stamp.

        Raises:
            ValueError: the text is not of the form above.
        """
        found = _STAMP.fullmatch(text)
        if found is None:
            raise ValueError(
                f"{text!r} is not v<major>.<minor>.<patch>-crs:EPSG:<code>-res:<resolution>, e.g. v1.2.0-crs:EPSG:4326-res:10m"
            )
        return cls(int(found[1]), int(found[2]), int(found[3]), int(found[4]), found[5] + found[6])

    @property
    def resolution_m(self) -> float:
        """The nominal ground resolution in metres."""
        unit = self.resolution.lstrip("0123456789.")
        return float(self.resolution[: -len(unit)]) * _METRES[unit]

    @property
    def version(self) -> tuple[int, int, int]:
        """Major, minor, patch."""
        return self.major, self.minor, self.patch

    def __lt__(self, other: Stamp) -> bool:
        return self.version < other.version

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}.{self.patch}-crs:EPSG:{self.epsg}-res:{self.resolution}"
