"""The result of a check in the forms that build systems read: JUnit XML, SARIF 2.1.0, and annotations of GitHub Actions.

Not here: text and JSON (`text`, `jsonout`), the page with a map (`findings_page`).

JUnit: one test case a finding, which a build page lists apart; a check without findings is one case that passes; what could not be judged is skipped.
SARIF: OASIS SARIF 2.1.0, one result a finding, the delivery as its artifact; samples are logical locations, with x and y as properties.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from merestone.json_value import JsonObject
from merestone.render.text import finding as finding_lines
from merestone.render.text import observed
from merestone.render.xml_text import Element, document
from merestone.results.finding import Finding
from merestone.results.result import CheckResult

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ANNOTATED = 10  # GitHub shows no more of one kind than ten in a step


def junit(result: CheckResult) -> str:
    """The result as JUnit XML: errors are failures, warnings are cases that pass with their words in `system-out`."""
    failing = [each for each in result.findings if each.severity == "error"]
    seconds = f"{result.seconds:.3f}"
    cases = [_case(each) for each in result.findings]
    if not cases:
        outcome = (
            (Element("error", "", {"type": "merestone.error", "message": "; ".join(result.errors)}),) if result.status == "error" else ()
        )
        cases = [Element("testcase", outcome, {"classname": "merestone.check", "name": result.contract, "time": seconds})]
    skipped = [_skipped(name, each.why) for each in result.not_judged for name in each.rules]
    cases += skipped
    about = {"delivery": result.delivery, "contract": result.contract, "rows": str(result.rows), "status": result.status}
    properties = Element("properties", tuple(Element("property", "", {"name": name, "value": value}) for name, value in about.items()))
    sums = {"tests": str(len(cases)), "failures": str(len(failing)), "errors": str(int(result.status == "error")), "time": seconds}
    suite = Element("testsuite", (properties, *cases), {"name": f"merestone check {result.delivery}", **sums, "skipped": str(len(skipped))})
    return document(Element("testsuites", (suite,), sums))


def _skipped(name: str, why: str) -> Element:
    """A rule that could not be judged: neither a pass nor a failure."""
    return Element(
        "testcase", (Element("skipped", "", {"message": why}),), {"classname": name, "name": name.partition(".")[2], "time": "0"}
    )


def _case(each: Finding) -> Element:
    name, words = f"{each.surface}.{each.rule}", "\n".join(finding_lines(each))
    outcome = (
        Element("failure", words, {"type": name, "message": each.observed}) if each.severity == "error" else Element("system-out", words)
    )
    return Element("testcase", (outcome,), {"classname": name, "name": each.field or each.rule, "time": "0"})


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
        rules.append(
            {
                "id": name,
                "name": "".join(part.title() for part in name.replace(".", "_").split("_")),
                "shortDescription": {"text": f"expected {first.expected}"},
                "help": {"text": first.remedy or f"expected {first.expected}"},
            }
        )
    results = [_sarif_result(each, names, result.delivery) for each in result.findings]
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "merestone", "semanticVersion": version, "rules": rules}},
                "artifacts": [{"location": {"uri": _uri(path)}} for path in (result.delivery, result.contract)],
                "results": results,
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": result.status != "error",
                        "toolExecutionNotifications": [
                            *({"level": "error", "message": {"text": each}} for each in result.errors),
                            *(
                                {"level": "warning", "message": {"text": f"not judged: {', '.join(each.rules)}: {each.why}"}}
                                for each in result.not_judged
                            ),
                        ],
                    }
                ],
                "properties": {"status": result.status, "rows": result.rows},
            }
        ],
    }
    return json.dumps(log, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _sarif_result(each: Finding, names: list[str], delivery: str) -> JsonObject:
    name = f"{each.surface}.{each.rule}"
    found: JsonObject = {
        "ruleId": name,
        "ruleIndex": names.index(name),
        "level": "error" if each.severity == "error" else "warning",
        "kind": "fail",
        "message": {"text": _sentence(each)},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": _uri(delivery), "index": 0}},
                "logicalLocations": [{"name": each.field or name, "kind": "member"}],
            }
        ],
        "occurrenceCount": max(each.count, 1),
        "partialFingerprints": {"merestone/v1": f"{name}/{each.field}"},
    }
    if each.features:
        found["relatedLocations"] = [
            {
                "id": at,
                "message": {"text": sample.observed or ""},
                "logicalLocations": [{"name": sample.id if sample.id is not None else f"row {sample.row}", "kind": "element"}],
                "properties": {"row": sample.row, "x": sample.x, "y": sample.y},
            }
            for at, sample in enumerate(each.features)
        ]
    return found


def workflow_commands(result: CheckResult) -> str:
    """The findings as workflow commands of GitHub Actions, which shows them on the page of the run."""
    lines = [f"::error title=merestone::{_command(each)}" for each in result.errors]
    for severity in ("error", "warning"):
        mine = [each for each in result.findings if each.severity == severity]
        for each in mine[:_ANNOTATED]:
            title = _command(f"{each.surface}.{each.rule}").replace(",", "%2C").replace(":", "%3A")
            lines.append(f"::{severity} title={title}::{_command(_sentence(each))}")
        if len(mine) > _ANNOTATED:
            lines.append(f"::{severity} title=merestone::{len(mine) - _ANNOTATED} more, see the log")
    return "\n".join(lines)


def _sentence(each: Finding) -> str:
    return f"{observed(each)}; expected {each.expected}" + (f". Next: {each.remedy}" if each.remedy else "")


def _command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _uri(path: str) -> str:
    """A path as a URI reference (RFC 3986)."""
    return quote(path.replace("\\", "/"), safe="/:@+-._~")
