"""Refusal as a value: what is wrong with a delivery (`Finding`, `RowFaults`) and what a stage did to the rows of a batch (`Steps`).

Not here: exceptions (`errors`), the checks themselves (`gate`), lineage events (`lineage`), words on a screen (`render`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Surface = Literal["schema", "crs", "geometry", "service", "semantics", "guard"]
Severity = Literal["error", "warning"]
SAMPLES = 20  # a finding carries up to this many features


@dataclass(frozen=True, slots=True)
class Sample:
    """One feature that a finding is about: its key as text, its row in the delivery (from 1), its position in the contract's CRS."""

    id: str | None
    row: int | None
    x: float | None = None
    y: float | None = None
    observed: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The object in `findings[].features`."""
        out: dict[str, Any] = {"id": self.id, "row": self.row, "x": self.x, "y": self.y}
        if self.observed is not None:
            out["observed"] = self.observed
        return out


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a delivery; the names are the JSON names of spec/contract.md section 3.

    `per_row`: a row finding (a share may be tolerated, rows go to quarantine); otherwise a delivery finding (always refuses).
    """

    surface: Surface
    field: str
    rule: str
    severity: Severity
    expected: str
    observed: str
    count: int
    features: tuple[Sample, ...] = ()
    remedy: str = ""
    per_row: bool = False

    def to_json(self) -> dict[str, Any]:
        """The object in `findings`."""
        return {
            "surface": self.surface,
            "field": self.field,
            "rule": self.rule,
            "severity": self.severity,
            "expected": self.expected,
            "observed": self.observed,
            "count": self.count,
            "features": [sample.to_json() for sample in self.features],
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True)
class RowFaults:
    """Rows of one batch that break one rule.

    `rows` are positions in the batch (from 0, ascending); `observed` is a pyarrow string array of the same length.
    """

    surface: Surface
    field: str
    rule: str
    severity: Severity
    expected: str
    rows: npt.NDArray[np.int64]
    observed: Any
    remedy: str = ""


PASS, WARN, REJECT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Steps:
    """What one stage did to the rows of one batch: the material of lineage, in columns.

    `verdict` holds PASS, WARN or REJECT per row; `reason` is a pyarrow string array (null where PASS).
    """

    stage: str
    event_type: Literal["TRANSFORM", "VALIDATE", "REJECT", "CAST", "SNAP"]
    verdict: npt.NDArray[np.uint8]
    reason: Any
    source_crs: str
    target_crs: str
    strategy_index: int | None = None
    accuracy_m: float | None = None
    tool_version: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
