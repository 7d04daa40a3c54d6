"""What a rule declares, and the findings and row faults that are made from it.

Not here: the rules (`catalogue`), the checks that apply them (`gate` and others; each rule names its own), layout on a screen (`render`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.results.finding import Finding, RowFaults, Sample, Severity, Surface

Scope = Literal["row", "delivery", "neighbourhood"]
"""What a check has to see before it can decide: one row, all rows of the delivery, or a feature with those near to it."""
Refuses = Literal["rows", "delivery", "nothing"]
"""What a breach refuses: its rows (up to `rejects.max_fraction`), the whole delivery, or nothing (a warning)."""


@dataclass(frozen=True, slots=True)
class FindingWords:
    """The texts of a finding. `{name}` stands for a value that the check gives, `{{` and `}}` for braces.

    `observed` is empty where the check gives it for each row: the value that stands there.
    """

    expected: str
    observed: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    code: its name within the surface; `surface.code` names it everywhere. title: the rule in a sentence.
    clauses: the clauses of the contract that it enforces, as paths such as "schema_fields.nullable". reads: other clauses that its verdict
    depends on. columns: what it reads of a row: "field" (the column that its clause is about), "key", "geometry".
    scope, refuses: see above. version: raised when the same clauses would judge or shape a row differently than before.
    check: the function that applies it, as "room.module.function". shows: whether a finding lists values ("mine (row 7)") or features
    ("7 NaN"). words: what a finding says; cases: other words of the same rule, by name.
    """

    surface: Surface
    code: str
    title: str
    check: str
    scope: Scope
    refuses: Refuses
    words: FindingWords
    clauses: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    cases: Mapping[str, FindingWords] = field(default_factory=dict)
    version: int = 1
    shows: Literal["value", "feature"] = "value"

    @property
    def name(self) -> str:
        """The name in reports and pages, such as "schema.null"."""
        return f"{self.surface}.{self.code}"

    @property
    def severity(self) -> Severity:
        """The severity of a finding unless the check says otherwise."""
        return "warning" if self.refuses == "nothing" else "error"

    def faults(
        self,
        column: str,
        rows: npt.NDArray[np.int64],
        observed: pa.Array | None = None,
        *,
        case: str = "",
        severity: Severity | None = None,
        **values: object,
    ) -> RowFaults:
        """The rows of a batch that break the rule.

        Args:
            column: the field at fault.
            rows: (k,) positions in the batch, ascending.
            observed: pyarrow string array (k), what stands in each; None where the words of the case say it.
            case: which of the rule's words apply.
            severity: where it is not the rule's usual one.
            values: what the words need.
        """
        words = self.cases[case] if case else self.words
        if observed is None:
            observed = pa.repeat(pa.scalar(words.observed.format(**values), pa.string()), len(rows))
        return RowFaults(
            self.surface,
            column,
            self.code,
            severity or self.severity,
            words.expected.format(**values),
            rows.astype(np.int64),
            observed,
            words.remedy.format(**values),
        )

    def finding(
        self,
        column: str,
        *,
        count: int = 1,
        features: tuple[Sample, ...] = (),
        case: str = "",
        severity: Severity | None = None,
        **values: object,
    ) -> Finding:
        """A finding.

        Args:
            column: the field at fault, "" where there is none.
            count: how many rows, features, places or columns are concerned.
            features: some of them.
            case: which of the rule's words apply.
            severity: where it is not the rule's usual one.
            values: what the words need, besides `count`.
        """
        words = self.cases[case] if case else self.words
        return self.gathered(
            column,
            severity or self.severity,
            words.expected.format(count=count, **values),
            words.observed.format(count=count, **values),
            count,
            features,
            words.remedy.format(count=count, **values),
        )

    def recorded(self, column: str, severity: Severity, expected: str, rows: npt.NDArray[np.int64], observed: pa.Array) -> RowFaults:
        """Row faults as a version keeps them, with what was expected in words and without the next step."""
        return RowFaults(self.surface, column, self.code, severity, expected, rows, observed)

    def gathered(
        self,
        column: str,
        severity: Severity,
        expected: str,
        observed: str,
        count: int,
        features: tuple[Sample, ...],
        remedy: str,
    ) -> Finding:
        """A finding in words that are made already, such as those of many row faults."""
        return Finding(
            self.surface, column, self.code, severity, expected, observed, count, features, remedy, per_row=self.refuses == "rows"
        )
