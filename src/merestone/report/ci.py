"""The result of a check in the forms that build systems read: JUnit XML, SARIF 2.1.0, and annotations of GitHub Actions.

Not here: text and JSON (`text`, `jsonout`), the page with a map (`findings_page`).

JUnit: one test case a finding, so that a build page lists them apart; a check without findings is one case that passes.
SARIF: OASIS SARIF 2.1.0, one result a finding, the delivery as its artifact; samples are logical locations, with x and y as properties.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET  # what is made here is written and never read

from merestone.outcome import Finding
from merestone.report.result import CheckResult
from merestone.report.text import finding as finding_lines

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ANNOTATED = 10  # GitHub shows no more of one kind than ten in a step
_NOT_IN_XML = {code: None for code in range(32) if code not in (9, 10, 13)} | {0xFFFE: None, 0xFFFF: None}


def junit(result: CheckResult) -> str:
    """The result as JUnit XML: errors are failures, warnings are cases that pass with their words in `system-out`."""
    failing = [each for each in result.findings if each.severity == "error"]
    cases = max(len(result.findings), 1)
    suite = ET.Element("testsuite", {
        "name": f"merestone check {_xml(result.delivery)}", "tests": str(cases), "failures": str(len(failing)),
        "errors": str(int(result.status == "error")), "skipped": "0",
        "time": f"{result.seconds:.3f}",
    })
    properties = ET.SubElement(suite, "properties")
    for name, value in (("delivery", result.delivery), ("contract", result.contract), ("rows", str(result.rows)), ("status", result.status)):
        ET.SubElement(properties, "property", {"name": name, "value": _xml(value)})
    for each in result.findings:
        case = ET.SubElement(suite, "testcase", {"classname": f"{each.surface}.{each.rule}", "name": _xml(each.field or each.rule), "time": "0"})
        words = "\n".join(finding_lines(each))
        if each.severity == "error":
            ET.SubElement(case, "failure", {"type": f"{each.surface}.{each.rule}", "message": _xml(each.observed)}).text = _xml(words)
        else:
            ET.SubElement(case, "system-out").text = _xml(words)
    if not result.findings:
        case = ET.SubElement(suite, "testcase", {"classname": "merestone.check", "name": _xml(result.contract), "time": f"{result.seconds:.3f}"})
        if result.status == "error":
            ET.SubElement(case, "error", {"type": "merestone.error", "message": _xml("; ".join(result.errors))})
    root = ET.Element("testsuites", {"tests": str(cases), "failures": str(len(failing)), "errors": suite.attrib["errors"], "time": f"{result.seconds:.3f}"})
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def sarif(result: CheckResult, *, version: str) -> str:
    """The result as SARIF 2.1.0.

    Args:
        result: of a check.
        version: of Merestone.
    """
    names = list(dict.fromkeys(f"{each.surface}.{each.rule}" for each in result.findings))
    rules = []
    for name in names:
        first = next(each for each in result.findings if f"{each.surface}.{each.rule}" == name)
        rules.append({"id": name, "name": "".join(part.title() for part in name.replace(".", "_").split("_")),
                      "shortDescription": {"text": f"expected {first.expected}"}, "help": {"text": first.remedy or f"expected {first.expected}"}})
    results = [_sarif_result(each, names, result.delivery) for each in result.findings]
    log = {
        "$schema": _SCHEMA, "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "merestone", "semanticVersion": version, "rules": rules}},
            "artifacts": [{"location": {"uri": _uri(path)}} for path in (result.delivery, result.contract)],
            "results": results, "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": result.status != "error",
                "toolExecutionNotifications": [{"level": "error", "message": {"text": each}} for each in result.errors],
            }],
            "properties": {"status": result.status, "rows": result.rows},
        }],
    }
    return json.dumps(log, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _sarif_result(each: Finding, names: list[str], delivery: str) -> dict[str, Any]:
    name = f"{each.surface}.{each.rule}"
    said = each.observed if not each.field or each.field in each.observed else f"{each.field}: {each.observed}"
    found: dict[str, Any] = {
        "ruleId": name, "ruleIndex": names.index(name), "level": "error" if each.severity == "error" else "warning", "kind": "fail",
        "message": {"text": f"{said}; expected {each.expected}" + (f". Next: {each.remedy}" if each.remedy else "")},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(delivery), "index": 0}},
                       "logicalLocations": [{"name": each.field or name, "kind": "member"}]}],
        "occurrenceCount": max(each.count, 1),
        "partialFingerprints": {"merestone/v1": f"{name}/{each.field}"},
    }
    if each.features:
        found["relatedLocations"] = [
            {"id": at, "message": {"text": sample.observed or ""},
             "logicalLocations": [{"name": sample.id if sample.id is not None else f"row {sample.row}", "kind": "element"}],
             "properties": {"row": sample.row, "x": sample.x, "y": sample.y}}
            for at, sample in enumerate(each.features)
        ]
    return found


def workflow_commands(result: CheckResult) -> str:
    """The findings as workflow commands of GitHub Actions, which shows them on the page of the run."""
    lines = [f"::error title=merestone::{_command(each)}" for each in result.errors]
    for severity in ("error", "warning"):
        mine = [each for each in result.findings if each.severity == severity]
        for each in mine[:_ANNOTATED]:
            said = f"{each.field}: {each.observed}; expected {each.expected}" + (f". Next: {each.remedy}" if each.remedy else "")
            title = _command(f"{each.surface}.{each.rule}").replace(",", "%2C").replace(":", "%3A")
            lines.append(f"::{severity} title={title}::{_command(said)}")
        if len(mine) > _ANNOTATED:
            lines.append(f"::{severity} title=merestone::{len(mine) - _ANNOTATED} more, see the log")
    return "\n".join(lines)


def _command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _xml(text: str) -> str:
    """Text without what XML 1.0 has no form for."""
    return text.translate(_NOT_IN_XML).encode("utf-8", "replace").decode()


def _uri(path: str) -> str:
    """A path as a URI reference (RFC 3986)."""
    return quote(path.replace("\\", "/"), safe="/:@+-._~")
