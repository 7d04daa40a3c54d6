"""The settings of a publication file and its contract put together to the value.

Not here: reading the file and what it may state (`reader`), the values themselves (`publication`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from merestone.contract.contract import Contract
from merestone.document.yaml_reader import Path as KeyPath
from merestone.errors import UsageError
from merestone.identity.derived import COLUMN
from merestone.json_value import JsonObject
from merestone.publication.publication import (
    CrsRule,
    FilesRule,
    GuardRule,
    KeyRule,
    LineageRetention,
    PartitionRule,
    Publication,
    RejectsRule,
)
from merestone.source.port import SourceSpec
from merestone.storage.place import local_path


def assemble(path: str, places: Mapping[KeyPath, str], values: JsonObject, contract: Contract, notices: tuple[str, ...]) -> Publication:
    """The publication that a file states.

    Args:
        path: the file, for messages.
        places: the absolute path of every place that it names, by key.
        values: its settings, of the right form and without contradictions.
        contract: the contract that it names.
        notices: what it states without effect.

    Raises:
        UsageError: no key, or file and contract disagree on name or key.
    """
    lineage = values.get("lineage", {})
    crs = dict(values.get("crs", {}))
    for name in ("strategies", "accept"):
        if name in crs:
            crs[name] = tuple(crs[name])
    if "grids" in crs:
        crs["grids"] = places[("crs", "grids")]
    return Publication(
        path=local_path(path),
        name=_agreed(path, "name", values.get("name"), contract.name) or fallback_name(path),
        contract=places[("contract",)],
        source=_source(values["source"], places),
        destination=places[("destination",)],
        key=_key(path, values.get("key"), contract),
        columns=tuple(values.get("columns", {}).items()),
        key_migration="renumber" if values.get("key_migration") == "renumber" else places.get(("key_migration",)),
        partition=_partition(values.get("partition", {})),
        files=FilesRule(**values.get("files", {})),
        crs=CrsRule(**crs),
        extra_columns=values.get("extra_columns", "refuse"),
        guard=GuardRule(**values.get("guard", {})),
        rejects=RejectsRule(**values.get("rejects", {})),
        audit_tag=lineage.get("audit_tag"),
        lineage_retention=LineageRetention(**lineage["retention"]) if "retention" in lineage else None,
        notices=notices,
    )


def _source(value: str | JsonObject, places: Mapping[KeyPath, str]) -> SourceSpec:
    if isinstance(value, str):
        return SourceSpec(places[("source",)])
    return SourceSpec(
        places[("source", "path")],
        layer=value.get("layer"),
        crs=value.get("crs"),
        encoding=value.get("encoding"),
        geometry=value.get("geometry"),
        feature_id=value.get("feature_id"),
    )


def _partition(value: str | JsonObject) -> PartitionRule:
    return PartitionRule(by="none") if value == "none" or isinstance(value, str) else PartitionRule(**value)


def _derived(path: str, stated: JsonObject, contract: Contract) -> KeyRule:
    made_from = tuple(stated["from"])
    if contract.key and contract.key != made_from:
        raise UsageError(
            f"publication {path}: key is made from {', '.join(made_from)}, but the contract's is {', '.join(contract.key)}",
            field="key",
            hint="make it from the contract's key, or change one of them",
        )
    if contract.field(COLUMN) is not None:
        raise UsageError(
            f"publication {path}: a derived key is published as column {COLUMN}, and the contract has a field of that name",
            field="key",
            hint="give the field another name in the contract, and map it under `columns`",
        )
    for name in made_from:
        field = contract.field(name)
        if field is not None and not field.compared:
            raise UsageError(
                f"publication {path}: {name} is volatile or derived: it cannot identify a feature",
                field="key.from",
                hint="make the key from attributes that never change",
            )
    return KeyRule((COLUMN,), stated["derive"], made_from)


def _key(path: str, stated: list[str] | JsonObject | None, contract: Contract) -> KeyRule:
    if isinstance(stated, dict):
        return _derived(path, stated, contract)
    columns = tuple(stated) if stated is not None else contract.key
    if not columns:
        raise UsageError(
            f"publication {path}: no key: neither the publication nor the contract names one",
            field="key",
            hint="add `key: COLUMN`, a column whose value identifies a feature in every delivery",
        )
    if stated is not None and contract.key and columns != contract.key:
        raise UsageError(
            f"publication {path}: key is {', '.join(columns)}, but the contract's is {', '.join(contract.key)}",
            field="key",
            hint="remove the publication's, or change one of them",
        )
    return KeyRule(columns)


def _agreed(path: str, key: str, stated: str | None, agreed: str | None) -> str | None:
    if stated is not None and agreed is not None and stated != agreed:
        raise UsageError(
            f"publication {path}: {key} is {stated}, but the contract's is {agreed}",
            field=key,
            hint="remove the publication's, or change one of them",
        )
    return stated if stated is not None else agreed


def fallback_name(path: str) -> str:
    """The name of a dataset that neither publication nor contract names."""
    return Path(local_path(path)).stem.removesuffix(".publication")
