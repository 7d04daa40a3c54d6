"""The key rule of a run: as it stands in every manifest, against the published one, and which types can be part of it.

Not here: canonical keys (`identity.key`), the table of old and new keys (`key_table`), what a migration finds again (`change.migration`).
"""

from __future__ import annotations

from collections.abc import Sequence

from merestone.dataset.manifest import Manifest
from merestone.errors import UsageError
from merestone.json_value import JsonObject
from merestone.normalise.cast import PARTITION_COLUMN, CastPlan
from merestone.publication.publication import KeyRule, Publication
from merestone.results.finding import Finding
from merestone.rules import catalogue


def key_record(rule: KeyRule, cast: CastPlan) -> JsonObject:
    """The key rule as it stands in every manifest."""
    if rule.published is not None:
        return dict(rule.published)
    types = {each.target: str(each.kind) for each in cast.columns}
    if rule.derive is None:
        return {"columns": list(rule.columns), "types": [types.get(name, "string") for name in rule.columns], "derive": None}
    return {
        "columns": list(rule.columns),
        "types": ["string"] * len(rule.columns),
        "derive": rule.derive,
        "from": [{"name": name, "type": types.get(name, "string")} for name in rule.made_from],
    }


def key_change(publication: Publication, now: JsonObject, last: Manifest) -> tuple[bool, list[Finding]]:
    """Whether keys are made by another rule than those that are published, and what is to be said of it.

    Raises:
        UsageError: they are, and the publication names no migration.
    """
    was = last.key
    there, here = _typed(was), _typed(now)
    same_rule = (list(there), was["derive"]) == (list(here), now["derive"])
    if same_rule and there == here:
        return False, []
    if publication.key_migration is not None:
        return True, []
    if same_rule:
        return False, [
            catalogue.KEY_TYPE.finding(name, case="changed", name=name, was=kind, kind=here[name])
            for name, kind in there.items()
            if here[name] != kind
        ]
    before = KeyRule.of_manifest(was, published=True).words
    raise UsageError(
        f"the key is {publication.key.words}, the published one is {before}",
        field="key",
        hint="keep the key, or name the migration: `key_migration: FILE` with old and new keys, or `renumber` to find features again by "
        "their content",
    )


def _typed(record: JsonObject) -> dict[str, str]:
    """The columns that a key is read from, with their types."""
    if record["derive"] is not None:
        return {each["name"]: each["type"] for each in record.get("from", ())}
    return dict(zip(record["columns"], record["types"], strict=True))


def exact_types(cast: CastPlan, key_columns: tuple[str, ...], partition_column: str | None) -> list[Finding]:
    """Keys and partition columns need a type in which equal means equal."""
    kinds = {each.target: str(each.kind) for each in cast.columns if each.place is not None}
    found = [
        catalogue.KEY_TYPE.finding(name, case="inexact", name=name, kind=kinds[name])
        for name in key_columns
        if _inexact(kinds.get(name, ""))
    ]
    column = PARTITION_COLUMN if PARTITION_COLUMN in kinds else partition_column
    if column is not None and _inexact(kinds.get(column, "")):
        found.append(catalogue.PARTITION_TYPE.finding(partition_column or column, name=partition_column, kind=kinds[column]))
    return found


def stops_reading(finding: Finding, needed: Sequence[str | None]) -> bool:
    """Whether rows cannot be keyed, placed or transformed at all."""
    hopeless = finding.surface == "crs" or finding.rule in ("key_type", "partition_type")
    return finding.severity == "error" and (hopeless or (finding.rule in ("missing", "column_type") and finding.field in needed))


def _inexact(kind: str) -> bool:
    return kind.partition("<")[0] in ("number", "binary", "geometry", "list", "struct")
