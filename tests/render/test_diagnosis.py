from __future__ import annotations

import pytest

from merestone.render.diagnosis import text, to_json, walk
from merestone.results.finding import Finding
from merestone.results.result import CheckResult

STAMP = "v1.0.0-crs:EPSG:28992-res:1m"


def finding(surface, rule, severity="error"):
    return Finding(surface, "f", rule, severity, "good", f"bad {rule}", 1, (), f"mend {rule}")


def steps(*findings):
    result = CheckResult("d.gpkg", "c.yaml", "fail" if findings else "pass", 3, findings)
    return result, walk(result, STAMP)


def test_without_a_fault_every_step_is_told():
    result, walked = steps()
    assert [each.name for each in walked] == [
        "version pin",
        "schema",
        "crs",
        "precision",
        "geometry",
        "semantics",
        "idempotency",
        "service",
    ]
    assert {each.state for each in walked} == {"ok", "not judged"}
    assert to_json(result, walked)["status"] == "pass"
    assert "no fault found" in text(result, walked)


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
    result, walked = steps(finding("service", "freshness"), finding(surface, rule))
    states = {each.name: each.state for each in walked}
    at = [each.name for each in walked].index(name)
    assert states[name] == "fault"
    assert all(each.state == "not reached" for each in walked[at + 1 :])
    doc = to_json(result, walked)
    assert (doc["status"], doc["fault"], doc["remedy"]) == ("fail", name, f"mend {'freshness' if name == 'service' else rule}")
    assert f"first fault: {name}" in text(result, walked)


def test_warnings_do_not_stop_the_walk():
    _, walked = steps(finding("schema", "key_twin", "warning"))
    assert {each.state for each in walked} == {"ok", "not judged"}
    assert "1 warning" in walked[1].words
