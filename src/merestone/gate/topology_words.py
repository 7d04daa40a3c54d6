"""What is seen at the places of a topology breach, in words. They are values that can be pickled: a judgement may come from another process.

Not here: what a breach is (`topology`), the findings with their titles and remedies (`rules.catalogue`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlaceMeasures:
    """Areas or lengths on the ground, one a place. `about`: they are worked out from degrees."""

    values: Floats
    unit: str
    about: bool

    def text(self, n: int) -> str:
        """The n-th as a person says it."""
        return f"{'about ' if self.about else ''}{_plain(float(self.values[n]))} {self.unit}"


@dataclass(frozen=True, slots=True)
class PlaceWords:
    """Sentences with `{one}` and `{other}` for the names of the two features, `{measure}` and `{counts}`.

    Args:
        sentences: the kinds of sentences.
        kind: which of them each place has; None: all have the first.
        measures: what `{measure}` stands for.
        counts: int64 (n, k), what `{counts}` stands for, each count with one of `things` (singular, plural); zeros are left out.
        things: see `counts`.
    """

    sentences: tuple[str, ...]
    kind: Ints | None = None
    measures: PlaceMeasures | None = None
    counts: Ints | None = None
    things: tuple[tuple[str, str], ...] = ()

    def text(self, n: int, one: str, other: str) -> str:
        """What is seen at the n-th place."""
        sentence = self.sentences[0 if self.kind is None else int(self.kind[n])]
        measure = self.measures.text(n) if self.measures is not None else ""
        return sentence.format(one=one, other=other, measure=measure, counts=self._counted(n))

    def some(self, at: Ints) -> PlaceWords:
        """Those of some places."""
        return replace(
            self,
            kind=None if self.kind is None else self.kind[at],
            measures=None if self.measures is None else replace(self.measures, values=self.measures.values[at]),
            counts=None if self.counts is None else self.counts[at],
        )

    def _counted(self, n: int) -> str:
        if self.counts is None:
            return ""
        counted: Sequence[int] = self.counts[n].tolist()
        return " and ".join(f"{count} {things[count > 1]}" for count, things in zip(counted, self.things, strict=True) if count)


def areas(size: Floats, y: Floats, unit: float, *, geographic: bool) -> PlaceMeasures:
    """Areas in square metres, where a unit of length has `unit` metres; in degrees those of the place."""
    shrink = np.cos(np.radians(y)) if geographic else 1.0
    return PlaceMeasures(size * unit**2 * shrink, "m2", geographic)


def lengths(size: Floats, y: Floats, unit: float, *, geographic: bool) -> PlaceMeasures:
    """Lengths in metres; in degrees about those of the place, between the length of a degree north and of one east."""
    shrink = (1 + np.cos(np.radians(y))) / 2 if geographic else 1.0
    return PlaceMeasures(size * unit * shrink, "m", geographic)


def _plain(value: float) -> str:
    """A measure as a person says it: three digits that count."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.001 else f"{value:.1e}"
