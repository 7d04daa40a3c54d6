"""A read document to a contract, or to every problem that it has.

Not here: YAML (`document.yaml_reader`), the clauses (`definition`) and laws (`laws`), files (`contract.files`).
"""

from __future__ import annotations

from merestone.contract.body import assemble
from merestone.contract.contract import Contract
from merestone.contract.definition import CONTRACT
from merestone.contract.laws import LAWS
from merestone.document.forms import Problem, Report
from merestone.document.yaml_reader import Document
from merestone.json_value import JsonObject


def parse(source: Document | JsonObject) -> Contract | tuple[Problem, ...]:
    """The contract of a document or of a plain tree; otherwise all its problems, in order of the document."""
    document = source if isinstance(source, Document) else None
    tree = source.tree if isinstance(source, Document) else source
    report = Report(document)
    values = CONTRACT.read(tree, (), report)
    if isinstance(values, dict):
        for law in LAWS:
            law.check(values, report)
    if report.problems:
        return tuple(sorted(report.problems, key=lambda problem: problem.line or 0))
    return assemble(values, document.confirm if document else ())
