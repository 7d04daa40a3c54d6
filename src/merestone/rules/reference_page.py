"""The reference page of findings as Markdown, made from the catalogue.

Not here: the rules and their words (`catalogue`), the page of the contract's clauses (`contract.reference_page`).
"""

from __future__ import annotations

from merestone.rules.catalogue import RULES
from merestone.rules.rule import FindingWords, Rule

_HEAD = """# Findings: reference

<!-- Made from the catalogue of rules by `make docs`; a test compares. Do not edit. -->

A finding says what is wrong with a delivery: surface and rule, what is expected, what was observed, in how many rows, and the next step.
Reports name a rule as `surface.rule`. In the texts below, `{name}` stands for a value.

- *Refuses its rows*: the rows go to quarantine, and the delivery is refused where their share exceeds `rejects.max_fraction` (0 by default).
- *Refuses the delivery*: nothing is published.
- *Warning*: it refuses nothing.

The clause of the contract that a rule enforces stands beside it. A rule without a clause holds for every product.
"""
_SURFACES = {
    "schema": "Schema",
    "crs": "CRS and axis order",
    "geometry": "Geometry",
    "service": "Service levels",
    "semantics": "Semantics",
    "guard": "Guards",
}
_REFUSES = {"rows": "refuses its rows", "delivery": "refuses the delivery", "nothing": "warning"}
_SCOPES = {"row": "one row", "delivery": "the whole delivery", "neighbourhood": "features near to each other"}


def anchor(rule: Rule) -> str:
    """The place of a rule on the page."""
    return rule.name.replace(".", "")


def reference() -> str:
    """The page. Every rule stands on it."""
    parts = [_HEAD]
    for surface, title in _SURFACES.items():
        parts.append(f"## {title}\n")
        parts += [_rule(each) for each in RULES if each.surface == surface]
    return "\n".join(parts)


def _rule(rule: Rule) -> str:
    clauses = "".join(f", `{each}`" for each in rule.clauses)
    lines = [f"### {rule.name}", "", rule.title, ""]
    lines += [f"{_REFUSES[rule.refuses].capitalize()}. Decided on {_SCOPES[rule.scope]}{'; clause ' + clauses[2:] if clauses else ''}."]
    lines += [f"Check: `{rule.check}`.", "", "| expected | observed | next step |", "|---|---|---|"]
    lines += [_row(each) for each in (rule.words, *rule.cases.values())]
    return "\n".join(lines) + "\n"


def _row(words: FindingWords) -> str:
    texts = (words.expected, words.observed or "the value of each row", words.remedy)
    return "| " + " | ".join(each.replace("{{", "{").replace("}}", "}").replace("|", "\\|") for each in texts) + " |"
