from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import urlsplit

import jsonschema
import pytest

from merestone.render import ci
from merestone.render.iso19115_lint import read_record
from merestone.results.finding import Finding, Sample
from merestone.results.result import CheckResult

OVERLAP = Finding(
    "geometry",
    "geometry",
    "overlap",
    "error",
    "no ground covered twice",
    "a and b share 5 m2",
    1,
    (Sample("a", 3, 10.5, 20.25, "a and b share 5 m2"),),
    "cut one back",
)
BLANKS = Finding("semantics", "name", "blanks", "warning", "text without blanks", "x\x07 <&> in 2 rows: 50 %\nand more", 2)


def result(*findings, status=None, errors=()):
    status = status or ("fail" if any(each.severity == "error" for each in findings) else "pass")
    return CheckResult("my data/parcels.gpkg", "c.yaml", status, 42, findings, 1.5, errors)


def test_junit_has_a_case_for_each_finding_and_errors_fail():
    root = read_record(ci.junit(result(OVERLAP, BLANKS)).encode(), "test")
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    first, second = suite.findall("testcase")
    failure = first.find("failure")
    assert (first.get("classname"), failure.get("type"), failure.get("message")) == (
        "geometry.overlap",
        "geometry.overlap",
        "a and b share 5 m2",
    )
    assert "next: cut one back" in failure.text
    assert second.find("failure") is None
    assert "x\\x07 <&> in 2 rows: 50 %\\x0aand more" in second.find("system-out").text


def test_what_xml_cannot_carry_shows_itself_in_junit():
    (suite,) = read_record(ci.junit(result(replace(BLANKS, severity="error", field="a\x01\ufffe"))).encode(), "test")
    case = suite.find("testcase")
    assert (case.get("name"), case.find("failure").get("message")) == ("a\\u0001\\ufffe", BLANKS.observed.replace("\x07", "\\u0007"))


def test_junit_of_a_good_delivery_is_one_case_that_passes():
    (suite,) = read_record(ci.junit(result()).encode(), "test")
    (case,) = suite.findall("testcase")
    assert (suite.get("tests"), suite.get("failures"), list(case)) == ("1", "0", [])


def test_a_check_that_could_not_run_is_an_error_and_never_a_pass():
    ended = result(status="error", errors=("parcels.gpkg cannot be read",))
    (suite,) = read_record(ci.junit(ended).encode(), "test")
    assert (suite.get("errors"), suite.find("testcase/error").get("message")) == ("1", "parcels.gpkg cannot be read")
    (run,) = json.loads(ci.sarif(ended, version="1.0"))["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert ci.workflow_commands(ended) == "::error title=merestone::parcels.gpkg cannot be read"


def test_sarif_has_a_result_for_each_finding():
    log = json.loads(ci.sarif(result(OVERLAP, BLANKS), version="0.1.0"))
    (run,) = log["runs"]
    assert (log["version"], run["tool"]["driver"]["semanticVersion"]) == ("2.1.0", "0.1.0")
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [("geometry.overlap", "error"), ("semantics.blanks", "warning")]
    assert [run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] for each in run["results"]] == ["geometry.overlap", "semantics.blanks"]
    (place,) = run["results"][0]["relatedLocations"]
    assert (place["logicalLocations"][0]["name"], place["properties"]) == ("a", {"row": 3, "x": 10.5, "y": 20.25})
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "my%20data/parcels.gpkg"


def closed(*required, **members):
    return {"type": "object", "additionalProperties": False, "required": [*required], "properties": members}


def listed(of, least=0, *, unique=False):
    return {"type": "array", "minItems": least, "uniqueItems": unique, "items": of}


# What the log is made of, by OASIS SARIF 2.1.0: sections 3.13 (log), 3.14 (run), 3.18 (tool), 3.20 (invocation), 3.27 (result), 3.49 (rule).
TEXT, BAG = {"type": "string"}, {"type": "object"}
MESSAGE, ARTIFACT = closed("text", text=TEXT), closed(uri=TEXT, index={"type": "integer", "minimum": -1})
LOGICAL = closed("name", name=TEXT, kind={"enum": ["member", "element"]})
LEVEL = {"enum": ["error", "warning"]}
LOCATION = closed(
    id={"type": "integer", "minimum": -1},
    message=MESSAGE,
    physicalLocation=closed(artifactLocation=ARTIFACT),
    logicalLocations=listed(LOGICAL, unique=True),
    properties=BAG,
)
RULE = closed(
    "id", "name", "shortDescription", "help", id=TEXT, name={"pattern": "^([A-Z][A-Za-z0-9]*)+$"}, shortDescription=MESSAGE, help=MESSAGE
)
RESULT = closed(
    "ruleId",
    "ruleIndex",
    "level",
    "message",
    "locations",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    kind={"const": "fail"},
    message=MESSAGE,
    locations=listed(LOCATION, 1),
    occurrenceCount={"type": "integer", "minimum": 1},
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    relatedLocations=listed(LOCATION, unique=True),
)
RUN = closed(
    "tool",
    "results",
    "invocations",
    tool=closed("driver", driver=closed("name", name=TEXT, semanticVersion=TEXT, rules=listed(RULE, unique=True))),
    artifacts=listed(closed("location", location=ARTIFACT), unique=True),
    results=listed(RESULT),
    columnKind={"const": "unicodeCodePoints"},
    invocations=listed(
        closed(
            "executionSuccessful",
            executionSuccessful={"type": "boolean"},
            toolExecutionNotifications=listed(closed("message", level=LEVEL, message=MESSAGE)),
        ),
        1,
    ),
    properties=BAG,
)
LOG = closed("version", "runs", **{"$schema": TEXT}, version={"const": "2.1.0"}, runs=listed(RUN, 1))


@pytest.mark.parametrize(
    "ended",
    [
        result(),
        result(OVERLAP, BLANKS),
        result(OVERLAP, OVERLAP),
        result(replace(OVERLAP, field="", remedy="", count=0)),
        result(replace(OVERLAP, features=(Sample(None, 3), Sample(None, 3)))),
        result(status="error", errors=("a", "b")),
    ],
    ids=["none", "two", "twice", "bare", "rows", "error"],
)
def test_sarif_holds_what_the_standard_knows_and_nothing_else(ended):
    log = json.loads(ci.sarif(ended, version="0.1.0"))
    jsonschema.validate(log, LOG)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({each["id"] for each in rules}) == len(rules)
    for each in run["results"]:
        assert rules[each["ruleIndex"]]["id"] == each["ruleId"]
        place = each["locations"][0]["physicalLocation"]["artifactLocation"]
        assert run["artifacts"][place["index"]]["location"]["uri"] == place["uri"]
    assert all(urlsplit(each["location"]["uri"]).geturl().isascii() and " " not in each["location"]["uri"] for each in run["artifacts"])


def test_two_findings_of_one_rule_share_it():
    (run,) = json.loads(ci.sarif(result(OVERLAP, OVERLAP), version="1"))["runs"]
    assert len(run["tool"]["driver"]["rules"]) == 1


def test_annotations_stay_on_one_line_and_are_escaped():
    lines = ci.workflow_commands(result(OVERLAP, BLANKS)).splitlines()
    assert lines[0] == "::error title=geometry.overlap::geometry: a and b share 5 m2; expected no ground covered twice. Next: cut one back"
    assert lines[1].startswith("::warning title=semantics.blanks::name: x\x07 <&> in 2 rows: 50 %25%0Aand more")


def test_a_finding_of_no_field_has_no_empty_name_before_it():
    none = replace(OVERLAP, field="")
    assert "::a and b share 5 m2;" in ci.workflow_commands(result(none))


@pytest.mark.parametrize("count", [10, 11])
def test_no_more_annotations_than_are_shown(count):
    lines = ci.workflow_commands(result(*[OVERLAP] * count)).splitlines()
    assert len(lines) == min(count, 10) + (count > 10)
