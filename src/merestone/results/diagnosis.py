"""The walk of `diagnose`: the surfaces of a contract in a fixed order, up to the first fault and its remedy (docs/reference/cli.md).

Not here: the check behind it (`line.check`), its words (`render.diagnosis`).

A step is `ok` only where something was judged: a clause that the contract lacks, a delivery without rows and a measure that stayed
undecided leave it `not judged`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from merestone.results.finding import Finding
from merestone.results.json_form import PERSON
from merestone.results.notebook import Shown
from merestone.results.result import CheckResult
from merestone.words import plural

State = Literal["ok", "fault", "not judged", "not reached"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the walk.

    Attributes:
        name: the surface.
        state: ok, fault, not judged or not reached.
        words: what was judged, or why it was not; the remedy of a fault.
        findings: the findings that belong to the step: the errors of a fault, else its warnings.
    """

    name: str
    state: State
    words: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class DiagnoseResult(Shown):
    """What `diagnose` answers: the first fault of a delivery.

    Attributes:
        status: fail where there is a fault, else pass.
        fault: the step at fault.
        remedy: what to do about it.
        rows: rows that were checked.
        steps: every step, in order.
        delivery: what the delivery is called.
    """

    status: Literal["pass", "fail"]
    fault: str | None
    remedy: str | None
    rows: int
    steps: tuple[Step, ...]
    delivery: str = field(default="", metadata=PERSON)

    @property
    def refused(self) -> bool:
        """Whether there is a fault."""
        return self.status == "fail"


@dataclass(frozen=True, slots=True)
class Promised:
    """What the walk has to know of the contract: its stamp, its decimals, whether it is of a raster and says what values mean."""

    stamp: str
    precision: int
    raster: bool
    semantics: bool


@dataclass(frozen=True, slots=True)
class _Surface:
    """One step: which findings belong to it, its words, and why it would not be judged ("" where it is)."""

    name: str
    belongs: Callable[[Finding], bool]
    words: str
    unjudged: Callable[[CheckResult, Promised, tuple[Finding, ...]], str]


_FINENESS = ("precision", "vertex_loss")
_WITHOUT_KEY = "names, types and nulls as agreed; keys are not judged, the contract names none"
_NO_ROWS = "the delivery has no rows"


def _needs_rows(result: CheckResult, _: Promised, __: tuple[Finding, ...]) -> str:
    return "" if result.rows else _NO_ROWS


def _axes(result: CheckResult, contract: Promised, _: tuple[Finding, ...]) -> str:
    if not contract.raster and not result.rows:
        return _NO_ROWS
    open_ones = [name for name, found in result.axes.items() if found["decision"] == "undecidable"]
    return f"the reference system is the agreed one; the axis order of {', '.join(open_ones)} is undecidable" if open_ones else ""


def _precision(result: CheckResult, contract: Promised, mine: tuple[Finding, ...]) -> str:
    if contract.raster or not result.rows:
        return _needs_rows(result, contract, mine) or "a raster has no vertices"
    if contract.precision == 0:
        return "whole units are never judged"
    return next((each.observed for each in mine if each.rule == "precision"), "")


def _semantics(result: CheckResult, contract: Promised, mine: tuple[Finding, ...]) -> str:
    return _needs_rows(result, contract, mine) if contract.semantics else "the contract states no meaning of values"


def _service(result: CheckResult, _: Promised, mine: tuple[Finding, ...]) -> str:
    return next((each.observed for each in mine), "") if mine else ("" if result.rows else _NO_ROWS)


_SURFACES: tuple[_Surface, ...] = (
    _Surface("schema", lambda each: each.surface == "schema", "names, types, nulls and keys as agreed", lambda *_: ""),
    _Surface("crs", lambda each: each.surface == "crs", "the agreed reference system, axes in the agreed order", _axes),
    _Surface(
        "precision",
        lambda each: each.surface == "geometry" and each.rule in _FINENESS,
        "coordinates as fine as promised",
        _precision,
    ),
    _Surface(
        "geometry",
        lambda each: each.surface == "geometry" and each.rule not in _FINENESS,
        "the agreed type, valid, and in the agreed topology",
        _needs_rows,
    ),
    _Surface("semantics", lambda each: each.surface == "semantics", "values mean what was agreed", _semantics),
    _Surface(
        "idempotency",
        lambda _: False,
        "",
        lambda *_: "a release is compared with an earlier one of the same name where it is published",
    ),
    _Surface("service", lambda each: each.surface == "service", "as fresh as promised", _service),
)


def walk(result: CheckResult, contract: Promised) -> DiagnoseResult:
    """The steps in order. After the first fault none is judged: it may be the cause of what follows.

    Args:
        result: what the check of the delivery answered.
        contract: the contract that it was checked against.
    """
    steps = [Step("version pin", "not judged", f"no pin is named; checked against {contract.stamp}")]
    fault: Step | None = None
    for each in _SURFACES:
        mine = tuple(found for found in result.findings if each.belongs(found))
        errors = tuple(found for found in mine if found.severity == "error")
        if fault is not None:
            steps.append(Step(each.name, "not reached", ""))
        elif errors:
            fault = Step(each.name, "fault", errors[0].remedy, errors)
            steps.append(fault)
        elif why := each.unjudged(result, contract, mine):
            steps.append(Step(each.name, "not judged", why, mine))
        else:
            words = _WITHOUT_KEY if each.name == "schema" and result.not_judged else each.words
            steps.append(Step(each.name, "ok", words + (f"; {plural(len(mine), 'warning')}" if mine else ""), mine))
    return DiagnoseResult(
        "fail" if fault else "pass",
        fault.name if fault else None,
        fault.words if fault else None,
        result.rows,
        tuple(steps),
        result.delivery,
    )
