"""The walk of `diagnose`: the surfaces of a contract in a fixed order, up to the first fault and its remedy (spec/contract.md section 7).

Not here: the check behind it (`run.check`), the words of one finding (`text`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from merestone.render.text import finding as finding_lines
from merestone.results.finding import Finding
from merestone.results.result import CheckResult
from merestone.words import plural

State = Literal["ok", "fault", "not judged", "not reached"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the walk: its name, what came of it, a line about it, and the findings that belong to it (errors where it is at fault)."""

    name: str
    state: State
    words: str
    findings: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object in `steps`."""
        return {"name": self.name, "state": self.state, "words": self.words, "findings": [each.to_json() for each in self.findings]}


_STEPS: tuple[tuple[str, Callable[[Finding], bool], str], ...] = (
    ("schema", lambda each: each.surface == "schema", "names, types, nulls and keys as agreed"),
    ("crs", lambda each: each.surface == "crs", "the agreed reference system, axes in the agreed order"),
    ("precision", lambda each: each.surface == "geometry" and each.rule == "precision", "coordinates as fine as promised"),
    (
        "geometry",
        lambda each: each.surface == "geometry" and each.rule != "precision",
        "the agreed type, valid, and in the agreed topology",
    ),
    ("semantics", lambda each: each.surface == "semantics", "values mean what was agreed"),
    ("idempotency", lambda _: False, "a release is compared with an earlier one of the same name where it is published, not here"),
    ("service", lambda each: each.surface == "service", "as fresh as promised"),
)


def walk(result: CheckResult, stamp: str) -> tuple[Step, ...]:
    """The steps in order; after the first fault none is judged, since it may be the cause of what follows.

    Args:
        result: of the check of the delivery.
        stamp: the version of the contract that it was checked against.
    """
    steps, stopped = [Step("version pin", "ok", f"checked against {stamp}")], False
    for name, belongs, words in _STEPS:
        mine = tuple(each for each in result.findings if belongs(each))
        errors = tuple(each for each in mine if each.severity == "error")
        if stopped:
            steps.append(Step(name, "not reached", ""))
        elif errors:
            stopped = True
            steps.append(Step(name, "fault", errors[0].remedy, errors))
        elif name == "idempotency":
            steps.append(Step(name, "not judged", words))
        else:
            steps.append(Step(name, "ok", words + (f"; {plural(len(mine), 'warning')}" if mine else ""), mine))
    return tuple(steps)


def to_json(result: CheckResult, steps: tuple[Step, ...]) -> dict[str, Any]:
    """The object of `diagnose --json`."""
    fault = next((each for each in steps if each.state == "fault"), None)
    return {
        "status": "fail" if fault else "pass",
        "fault": fault.name if fault else None,
        "remedy": fault.words if fault else None,
        "rows": result.rows,
        "steps": [each.to_json() for each in steps],
    }


def text(result: CheckResult, steps: tuple[Step, ...]) -> str:
    """The walk in words."""
    fault = next((each for each in steps if each.state == "fault"), None)
    said = f"first fault: {fault.name}" if fault else "no fault found"
    lines = [f"{result.delivery} ({plural(result.rows, 'row')}): {said}"]
    for each in steps:
        if each.state == "fault":
            lines.append(f"  {each.name.ljust(12)} FAULT")
            lines += [f"  {line}" for one in each.findings for line in finding_lines(one)]
        elif each.state != "not reached":
            lines.append(f"  {each.name.ljust(12)} {each.state}: {each.words}")
    if fault is not None:
        later = [each.name for each in steps if each.state == "not reached"]
        lines.append(f"  not reached: {', '.join(later)}. Mend this first; then run merestone diagnose again." if later else "  Mend this.")
    return "\n".join(lines)
