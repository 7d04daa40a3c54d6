"""Rows that only the whole delivery gives away: one with its axes swapped among ten thousand, one value in another unit.

Their batch alone does not convict them. So a batch that may hold such a row waits at rest until all rows are counted.
Not here: what convicts a row (`gate.whereabouts`, `gate.quantities`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from merestone.gate import quantities, whereabouts
from merestone.geometry import kernel
from merestone.line.preparing.whole_rules import WholeRules
from merestone.line.receiving.receive_batch import Measures, bounds_of
from merestone.results.finding import RowFaults


@dataclass(frozen=True, slots=True)
class Strays:
    """What the whole delivery gives away.

    Args:
        places: geometry columns with rows that lie elsewhere, and the verdict on all rows.
        units: fields with numbers in another unit.
    """

    places: dict[str, whereabouts.Verdict] = field(default_factory=dict)
    units: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.places or self.units)

    def faults(self, rules: WholeRules, rows: Any, geometry: str, scan: kernel.Scan) -> list[RowFaults]:
        """The stray rows of one batch; `scan` is of its delivered geometry, which `geometry` names."""
        found = quantities.faults(rows, rules.quantities, set(self.units), geometry, rules.measuring) if self.units else []
        for name, each in self.places.items():
            found += whereabouts.faults(rules.grounds[name], bounds_of(name, rows, geometry, scan), each.bulk, each.near)
        return found


def may_stray(rules: WholeRules, measures: Measures) -> bool:
    """Whether a batch with these measures may hold a stray row."""
    return any(census.given < census.positions or census.alien for census in measures.places.values()) or quantities.may_stray(
        rules.quantities, measures.sizes
    )
