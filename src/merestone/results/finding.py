"""Refusal as a value: what is wrong with a delivery (`Finding`, `RowFaults`) and what a stage did to the rows of a batch (`Steps`).

Not here: exceptions (`errors`), the checks themselves (`gate`), lineage events (`lineage`), words on a screen (`render`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.json_value import JsonObject
from merestone.results.json_form import PERSON, to_json, when_set
from merestone.results.notebook import Shown

Surface = Literal["schema", "crs", "geometry", "service", "semantics", "guard"]
Severity = Literal["error", "warning"]
SAMPLES = 20  # a finding carries up to this many features


@dataclass(frozen=True, slots=True)
class Sample:
    """One feature that a finding is about.

    Attributes:
        id: its key as text; null where the row has no key.
        row: its row in the delivery, from 1.
        x: its place in the CRS of the contract: easting or longitude.
        y: its place in the CRS of the contract: northing or latitude.
        observed: what was found in this row.
    """

    id: str | None
    row: int | None
    x: float | None = None
    y: float | None = None
    observed: str | None = field(default=None, metadata=when_set())

    def to_json(self) -> JsonObject:
        """The object in `findings[].features`."""
        return dict(to_json(self))


@dataclass(frozen=True, slots=True)
class Finding(Shown):
    """One thing that is wrong with a delivery or with a change.

    Attributes:
        surface: the surface of the contract that it is about, or `guard`.
        field: the column, or what else it is about.
        rule: the rule that was broken.
        severity: error or warning.
        expected: what the contract or the guard expects.
        observed: what was found.
        count: how many rows, pairs or places it concerns.
        features: up to 20 of them.
        remedy: what to do about it.
        per_row: whether it concerns rows, of which a share may be tolerated, or the delivery as a whole.
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
    per_row: bool = dataclasses.field(default=False, metadata=PERSON)

    def to_json(self) -> JsonObject:
        """The object in `findings`."""
        return dict(to_json(self))


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
    observed: pa.Array
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
    reason: pa.Array | pa.Scalar | str | None
    source_crs: str
    target_crs: str
    strategy_index: int | None = None
    accuracy_m: float | None = None
    tool_version: str | None = None
    extra: JsonObject = field(default_factory=dict)
