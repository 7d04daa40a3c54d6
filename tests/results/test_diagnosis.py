"""The walk of `diagnose`: it stops at the first fault, and a step is ok only where something was judged."""

from __future__ import annotations

import pytest

from merestone.render.diagnosis import text
from merestone.results.diagnosis import Promised, walk
from merestone.results.finding import Finding
from merestone.results.result import CheckResult

PROMISED = Promised("v1.0.0-crs:EPSG:28992-res:1m", 2, raster=False, semantics=True)
NAMES = ["version pin", "schema", "crs", "precision", "geometry", "semantics", "idempotency", "service"]
DECIDED = {"geometry": {"decision": "ok", "evidence": []}}


def finding(surface, rule, severity="error"):
    return Finding(surface, "f", rule, severity, "good", f"bad {rule}", 1, (), f"correct {rule}")


def walked(*findings, promised=PROMISED, rows=3, axes=DECIDED):
    return walk(CheckResult("d.gpkg", "c.yaml", "fail" if findings else "pass", rows, findings, axes=axes), promised)


def states(found):
    return {each.name: each.state for each in found.steps}


def test_without_a_fault_every_step_that_was_judged_is_ok():
    found = walked()
    assert [each.name for each in found.steps] == NAMES
    assert states(found) == {name: "not judged" if name in ("version pin", "idempotency") else "ok" for name in NAMES}
    assert (found.status, found.fault, found.refused) == ("pass", None, False)
    assert "no fault found" in text(found)


@pytest.mark.parametrize(
    ("surface", "rule", "name"),
    [
        ("schema", "missing", "schema"),
        ("crs", "axis_order", "crs"),
        ("geometry", "precision", "precision"),
        ("geometry", "overlap", "geometry"),
        ("semantics", "enum", "semantics"),
        ("service", "freshness", "service"),
    ],
)
def test_the_walk_stops_at_the_first_fault_with_its_remedy(surface, rule, name):
    found = walked(finding("service", "freshness"), finding(surface, rule))
    at = NAMES.index(name)
    assert states(found)[name] == "fault"
    assert all(each.state == "not reached" for each in found.steps[at + 1 :])
    assert (found.status, found.fault, found.remedy) == ("fail", name, f"correct {'freshness' if name == 'service' else rule}")
    assert f"first fault: {name}" in text(found)


def test_warnings_do_not_stop_the_walk():
    found = walked(finding("schema", "key_twin", "warning"))
    assert states(found)["schema"] == "ok"
    assert "1 warning" in found.steps[1].words


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("crs", {"axes": {"geometry": {"decision": "undecidable", "evidence": []}}}),
        ("precision", {"promised": Promised("v1", 0, raster=False, semantics=True)}),
        ("precision", {"findings": [finding("geometry", "precision", "warning")]}),
        ("precision", {"promised": Promised("v1", 2, raster=True, semantics=True)}),
        ("semantics", {"promised": Promised("v1", 2, raster=False, semantics=False)}),
        ("service", {"findings": [finding("service", "freshness", "warning")]}),
        ("crs", {"rows": 0}),
        ("precision", {"rows": 0}),
        ("geometry", {"rows": 0}),
        ("semantics", {"rows": 0}),
        ("service", {"rows": 0}),
    ],
)
def test_what_nothing_was_judged_in_is_never_ok(name, more):
    found = walked(*more.pop("findings", ()), **more)
    step = next(each for each in found.steps if each.name == name)
    assert step.state == "not judged"
    assert step.words
