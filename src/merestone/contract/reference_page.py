"""The reference page of the contract document as Markdown, made from the definition, the laws and the lint rules.

Not here: the definition itself (`definition`), prose about contracts (the documentation).
"""

from __future__ import annotations

from collections.abc import Iterator

from merestone.contract.definition import CONTRACT, INTERNAL, is_container
from merestone.contract.field_type import MAX_DECIMAL, MAX_NESTING, SCALARS
from merestone.contract.laws import LAWS
from merestone.contract.lint import RULES
from merestone.document.forms import Clause, Form, Group, Keyed, Listed, OneOf
from merestone.document.yaml_reader import MAX_BYTES, MAX_DEPTH, MAX_VALUES
from merestone.rules.catalogue import enforcers
from merestone.rules.reference_page import anchor

_HEAD = f"""# Contract: reference

<!-- Made from the definition by `make docs`; a test compares. Do not edit. -->

A contract is a YAML 1.2 or JSON document: UTF-8, or UTF-16 with a byte order mark; at most {MAX_BYTES // 1024} KiB,
{MAX_VALUES:,} values (aliases expanded) and {MAX_DEPTH} levels; one document, no tags, no merge keys, every key once and as text.
Plain scalars follow the YAML 1.2 core schema: `NO`, `on`, `12:30` and `2024-01-01` are text, while `012` is the number 12, `1e3` the
number 1000 and `~` is null; put such values in quotes where text is meant. Unknown and misspelt keys are refused with their path and
the likeliest meaning.

`merestone contract lint FILE` checks a contract; `merestone contract schema` prints its JSON Schema.
A line that ends in `# confirm` is a guess that waits for a person; lint counts them.
"""


_ENFORCERS = {
    "form": "the stored form",
    "words": "nothing to enforce",
    "monitor": "observed in operation, not gated",
    "http": "answers over HTTP, not in this version: refused",
}


def reference() -> str:
    """The page. Every clause, law and lint rule stands on it."""
    parts = [_HEAD, *_tables(CONTRACT, "Clauses"), _types(), _listed("Rules that bind several clauses", [law.words for law in LAWS])]
    parts.append(
        _listed(
            "Lint: errors",
            [rule.words for rule in RULES if rule.level == "error"],
            "A clause that cannot be enforced (exit 1, and nothing is published).",
        )
    )
    parts.append(
        _listed("Lint: warnings", [rule.words for rule in RULES if rule.level == "warning"], "A valid but careless contract (exit 0).")
    )
    keys = ", ".join(f"`{key}`" for key in INTERNAL)
    parts.append(
        f"## What a contract never says\n\nInternal mechanisms and how the data is made are refused with an explanation: {keys}.\n"
    )
    return "\n".join(parts)


def _enforcer(path: str, clause: Clause) -> str:
    """Who holds a product to a clause."""
    rules = [f"[`{each.name}`](findings.md#{anchor(each)})" for each in enforcers(path)]
    return ", ".join(rules if clause.enforcer == "gate" else [_ENFORCERS[clause.enforcer], *rules])


def _tables(group: Group, title: str, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The table of one mapping, then those of the mappings in it."""
    rows = ["| key | required | form | default | meaning | enforced by |", "|---|---|---|---|---|---|"]
    inner: list[tuple[str, Group]] = []
    for clause in group.clauses:
        nested = _group(clause.form)
        form = _form(clause.form) if nested is None else f"{_form(clause.form)}, see [below](#{clause.name})"
        by = "" if is_container(clause) else _enforcer(".".join((*path, clause.name)), clause)
        cells = (f"`{clause.name}`", "yes" if clause.required else "no", form, clause.default, clause.words, by)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        if nested is not None:
            inner.append((clause.name, nested))
    yield f"## {title}\n\n" + "\n".join(rows) + "\n"
    for name, nested in inner:
        yield from _tables(nested, name, (*path, name))


def _form(form: Form) -> str:
    match form:
        case Listed(item=Group()):
            return "a list of mappings"
        case Keyed(item=Group(), keys=keys):
            return f"a mapping from {keys} to a mapping"
        case Group():
            return "a mapping"
        case _:
            return form.words()


def _group(form: Form) -> Group | None:
    match form:
        case Group():
            return form
        case Listed(item=item) | Keyed(item=item):
            return _group(item)
        case OneOf(mapping=Group() as inner):
            return inner
        case _:
            return None


def _types() -> str:
    scalars = ", ".join(f"`{each}`" for each in SCALARS)
    return (
        "## Types of fields\n\n"
        f"{scalars}; `decimal(p,s)` with p from 1 to {MAX_DECIMAL} and s from 0 to p; `list<TYPE>`; `struct<name: TYPE, name: TYPE>`; and\n"
        f"`geometry`, for a geometry beside the first. Lists and structs nest up to {MAX_NESTING} levels.\n"
    )


def _listed(title: str, items: list[str], intro: str = "") -> str:
    return f"## {title}\n\n" + (f"{intro}\n\n" if intro else "") + "\n".join(f"- {item}" for item in items) + "\n"
