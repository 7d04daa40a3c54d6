"""Digests of parts of a contract: the clauses that decide one feature, the rules that judge it, and the schema.

Not here: the digest of the whole (`body`), the rules themselves (`rules.catalogue`), their checks (`gate`, `normalise`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from merestone.contract.body import body, canonical_json
from merestone.contract.contract import Contract
from merestone.contract.definition import CLAUSES, CONTRACT, is_container
from merestone.document.forms import Form, Group, Keyed, Listed
from merestone.json_value import Json
from merestone.reference.units import canonical_unit
from merestone.rules.catalogue import RULES

_WHOLE_DELIVERY = {path for each in RULES if each.scope == "delivery" for path in (*each.clauses, *each.reads)}
_ONE_FEATURE = {path for each in RULES if each.scope != "delivery" for path in (*each.clauses, *each.reads)}
DECIDING = frozenset(
    path
    for path, clause in CLAUSES.items()
    if not is_container(clause)
    and (path in _ONE_FEATURE or clause.enforcer == "form" or (clause.enforcer == "gate" and path not in _WHOLE_DELIVERY))
)
"""The clauses that decide how one feature is judged or stored: all but those that only rules over a whole delivery read, and mere words.

A clause that no rule knows decides: to judge a row again costs time, not to judge it lets a breach pass.
"""


def rules_hash(contract: Contract) -> str:
    """The digest of the clauses that decide one feature, hex (docs/spec/gate.md#rules-of-one-row).

    While it holds, a feature with a known source digest gets the verdict and the stored form that it had. Rules over a whole delivery
    (uniqueness, units) run in full every night and have no part in it; nor have words, service levels, owner and the order of fields.
    """
    return _digest(_deciding(contract))


def rule_version(contract: Contract) -> str:
    """The digest of the versions of the rules that judge one feature of a contract, hex (16 digits).

    A rule that is new or has a new version judges published rows again, in the datasets whose contract asks for it.
    """
    stated = set(_stated(body(contract), CONTRACT, ()))
    asked = [each for each in RULES if each.scope != "delivery" and (not each.clauses or each.clauses[0] in stated)]
    return _digest({each.name: each.version for each in asked})[:16]


def schema_hash(contract: Contract) -> str:
    """The digest of name, type, nullable and unit over fields sorted by name, hex (docs/spec/gate.md#schema)."""
    rows = [[field.name, str(field.type), field.nullable, canonical_unit(field.unit)] for field in contract.schema_fields]
    return _digest(sorted(rows, key=lambda row: str(row[0])))


def _deciding(contract: Contract) -> Json:
    values = _pruned(body(contract), CONTRACT, ())
    return values | {"contract_version": contract.contract_version.resolution_m}  # of the stamp, rules read the resolution


def _pruned(value: Json, form: Form, path: tuple[str, ...]) -> Json:
    """The values of the deciding clauses; fields by name, code lists in one order."""
    match form:
        case Group(clauses=clauses):
            there = [each for each in clauses if each.name in value and (is_container(each) or ".".join((*path, each.name)) in DECIDING)]
            inner = {each.name: _pruned(value[each.name], each.form, (*path, each.name)) for each in there}
            return {name: each for name, each in inner.items() if each not in ({}, [])}
        case Listed(item=Group() as item):
            return {each["name"]: _pruned(each, item, path) for each in value}
        case Keyed(item=item):
            kept = {name: _pruned(each, item, path) for name, each in value.items()}
            return {name: each for name, each in kept.items() if each}
        case Listed(ordered=False):
            return sorted(value, key=canonical_json)
        case _:
            return value


def _stated(value: Json, form: Form, path: tuple[str, ...]) -> Iterator[str]:
    """The paths of the clauses that ask for something."""
    match form:
        case Group(clauses=clauses):
            for each in clauses:
                if value.get(each.name) not in (None, "none"):
                    yield ".".join((*path, each.name))
                    yield from _stated(value[each.name], each.form, (*path, each.name))
        case Listed(item=Group() as item):
            for each in value:
                yield from _stated(each, item, path)
        case Keyed(item=item):
            for each in value.values():
                yield from _stated(each, item, path)


def _digest(value: Json) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()
