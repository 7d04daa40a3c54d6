"""From what a person types (a path, a publication file, @N) to a dataset and its version, and the evidence on one feature.

Not here: reading rows (`dataset.version`), changes as a map (`show`), files for other tools (`extract`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from merestone.contract.files import read_document
from merestone.dataset.columns import stored_type
from merestone.dataset.current import current
from merestone.dataset.index import rows_of_keys
from merestone.dataset.manifest import HistoryLine, Manifest
from merestone.dataset.version import Dataset, Version
from merestone.document.json_reader import parse_json
from merestone.document.yaml_reader import Document
from merestone.errors import UsageError
from merestone.identity import key as keys
from merestone.inspect.fates import Fates
from merestone.json_value import Json, JsonObject
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.store import reading
from merestone.lineage.store.deduplication import deduplicate_report
from merestone.lineage.store.run_manifest import RunManifest, attempts_of, read_manifest
from merestone.lineage.store.verdict import run_summary
from merestone.lineage.store.writing import ROOT, RUNS
from merestone.publication.publication import Publication
from merestone.publication.reader import read_destination, read_publication
from merestone.source.located import named_as_delivery
from merestone.storage.open import open_store
from merestone.storage.place import local_path, parse_place
from merestone.storage.port import Store

_VERSION = re.compile(r"(?P<where>.+)@v?(?P<version>0|[1-9]\d{0,8})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Address:
    """What a person typed for a dataset: where it is, and which version (None: the current one)."""

    where: str
    version: int | None


def parse_address(text: str) -> Address:
    """Split `DATASET@N`. A path that exists as it was typed is taken whole; an @ in a name does no harm."""
    match = _VERSION.fullmatch(text)
    if match is None or _exists(text):
        return Address(text, None)
    return Address(match["where"], int(match["version"]))


def open_dataset(path: str | os.PathLike[str]) -> Dataset:
    """The dataset at a folder, or at the destination of a publication file. Its versions are read when they are asked for.

    Args:
        path: a folder or `file://` URL that holds a published dataset, or a publication file.

    Raises:
        UsageError: there is nothing there, or the publication file is broken.
    """
    text = os.fspath(path)
    place = parse_place(text)
    if not place.is_local or Path(place.path).is_dir():
        return Dataset(open_store(text))
    if Path(place.path).is_file():
        return Dataset(open_store(destination_at(text)))
    address = parse_address(text)
    hint = "check the path: a folder that holds a published dataset, or a publication file"
    if address.version is not None and _exists(address.where):
        hint = f"a version is named where rows are read: version={address.version}"
    raise UsageError(f"{text} does not exist", field=text, hint=hint)


def publication_at(path: str) -> Publication:
    """A publication file, read.

    Raises:
        UsageError: it is missing or broken, or is a contract or a delivery.
    """
    return read_publication(path, document=_document_at(path))


def destination_at(path: str) -> str:
    """Where a publication file publishes to. Its contract is not read.

    Raises:
        UsageError: as `publication_at`.
    """
    return read_destination(path, _document_at(path))


def _document_at(path: str) -> Document:
    if Path(local_path(path, what="a publication file")).is_file() and named_as_delivery(path):
        raise UsageError(
            f"{path} is a delivery, not a publication file",
            field=path,
            hint=f"«draft({path})» drafts a publication file for it; with one: «publish(FILE, source={path})»",
        )
    document = read_document(path, what="publication")
    if "contract_version" in document.tree and "destination" not in document.tree:
        raise UsageError(
            f"{path} is a contract, not a publication file",
            field=path,
            hint="name the publication file, which says where the source and the destination are",
        )
    return document


def _exists(text: str) -> bool:
    place = parse_place(text)
    return place.is_local and Path(place.path).exists()


def whole(text: str) -> Dataset:
    """The dataset of a command that is about all of its versions.

    Raises:
        UsageError: as `open_dataset`, or a version is named.
    """
    address = parse_address(text)
    if address.version is not None:
        raise UsageError(f"{text} names a version, but this is about the whole dataset", field=text, hint=f"leave out @{address.version}")
    return open_dataset(address.where)


def version_at(text: str) -> Version:
    """The version that `DATASET[@N]` names.

    Raises:
        UsageError: as `open_dataset`, nothing was published there, or the version does not exist.
        CorruptError: the published state contradicts itself.
    """
    address = parse_address(text)
    return open_dataset(address.where).version(address.version)


def current_version(store: Store) -> int | None:
    """The number of the version that readers see, None where nothing was published yet."""
    head = current(store)
    return head.manifest.version if head else None


# --- lineage ---------------------------------------------------------------------------------------------------------------------------


def run_of(version: Version) -> tuple[str, int]:
    """The run that made what a version holds, and the version that it made: behind a roll-back, the one that was gone back to.

    Raises:
        UsageError: that version names no lineage.
    """
    manifest = version.manifest
    while manifest.rollback is not None:
        manifest = Dataset(version.store).manifest(int(manifest.rollback["to"]))
    return sealed_of(version.store, manifest).run_id, manifest.version


def sealed_of(store: Store, manifest: Manifest | HistoryLine) -> RunManifest:
    """The run manifest of lineage that a version names, proved by its checksum.

    Raises:
        UsageError: the version names none.
        CorruptError: it is missing or altered.
    """
    if manifest.lineage is None:
        raise UsageError(
            f"version {manifest.version} names no lineage",
            field=str(manifest.version),
            hint="name another version with @N, or a run: «run_id»",
        )
    return read_manifest(store, manifest.lineage["run_manifest"], sha256=manifest.lineage["sha256"])


def lineage_summary(store: Store, run_id: str) -> JsonObject:
    """What happened in a run, with `sealed_events` and, where rows had to be set aside, what deduplication found (`deduplication`).

    Of a run that `expired` only the tombstone is left; `sealed_events` are then those that were carried on for live features.

    Raises:
        UsageError: no such sealed run.
        CorruptError: a manifest or a part cannot be read.
    """
    summary = run_summary(store, run_id)
    attempts = attempts_of(store, run_id)
    summary["sealed_events"] = sum(part.rows for each in attempts for part in each.parts)
    summary["deduplication"] = None
    expired = attempts[-1].expired
    summary["expired"] = (
        None
        if expired is None
        else {
            "utc": expired.expired_utc,
            "window": expired.window,
            "basis": expired.basis,
            "tombstone": expired.tombstone,
        }
    )
    if summary["sealed_events"] > summary["total_events"]:
        summary["deduplication"] = set_aside(store, attempts)
    return summary


def set_aside(store: Store, attempts: Sequence[RunManifest]) -> JsonObject:
    """What deduplication sets aside in a run, and the conflicts among it."""
    total: JsonObject = {"rows": 0, "standing": 0, "replays": 0, "corrections": 0, "conflicts": 0, "samples": []}
    for table in reading.scan(store, attempts, names=LINEAGE_ARROW_SCHEMA.names):
        found = deduplicate_report(table).to_json()
        for name in ("rows", "standing", "replays", "corrections", "conflicts"):
            total[name] += found[name]
        total["samples"] = [*total["samples"], *found["samples"]][:20]
    return total


# --- one feature -----------------------------------------------------------------------------------------------------------------------

STEPS = 64
"""So many versions and runs are read for one feature, however many there are: more than the index has logs."""


def why(dataset: Dataset, feature_id: str, limit: int | None = None, *, everything: bool = False) -> JsonObject:
    """Why a feature is as it is: where it stands, the versions that touched it, the runs that met it. Newest first.

    What is read does not grow with the number of versions: the change logs of the newest STEPS versions, and of the version that the
    index names where none of them touched the feature; of a store with more than STEPS sealed runs, the runs of those versions.

    Args:
        dataset: the dataset.
        feature_id: the key as messages and lineage write it: its text, a JSON array for composite keys.
        limit: at most so many runs.
        everything: read every version and every run.

    Returns:
        `feature_id`, `version` (the current one), `present`, `partition`, `since` (the version that made it what it is), `versions`
        (the change logs' entries), `runs` (lineage), and `complete`: whether every version and every run was looked at.

    Raises:
        UsageError: neither a version nor a run knows the feature, or the text is not a key of this dataset.
        CorruptError: a manifest, change log or event file cannot be read.
    """
    head = dataset.current().manifest
    versions = list(dataset.history())
    known_as = pa.array(_canonical_keys(head.name, versions, feature_id), pa.binary())
    near = versions if everything else versions[:STEPS]
    touched = list(_touches(dataset.store, near, known_as))
    if not touched and head.index.checkpoint is not None and not everything:
        rows = rows_of_keys(dataset.store, head.index.checkpoint, known_as, ["key", "version"])
        touched = list(_touches(dataset.store, [each for each in versions if each.version in rows["version"].to_pylist()], known_as))
    fates = Fates(dataset.store, versions)
    all_runs = everything or sum(1 for _ in dataset.store.list(f"{ROOT}/{RUNS}/")) <= STEPS
    touching = {each["version"] for each in touched}
    made_by = [each.lineage["run_manifest"] for each in versions if each.version in touching and each.lineage]
    written_as = keys.written(feature_id) if touched else reading.id_of(dataset.store, feature_id)
    runs = reading.why(
        dataset.store, written_as, limit=limit, only=None if all_runs else made_by, fate=lambda attempts: fates.of_run(attempts).to_json()
    )
    complete = all_runs and len(near) == len(versions)
    if not touched and not runs:
        where = "no version and no run" if complete else f"neither the index nor the newest {STEPS} versions"
        raise UsageError(
            f"{where} of {head.name} knows a feature {feature_id}",
            field=feature_id,
            hint=("" if complete else "read every version, «everything=True», or ")
            + f"write the key as it stands in {', '.join(head.key['columns'])}; letters, blanks and leading zeros count",
        )
    present = bool(touched) and touched[0]["class"] != "removed"
    made = next((each["version"] for each in touched if each["class"] in ("added", "changed", "reprocessed")), None)
    return {
        "feature_id": feature_id,
        "name": head.name,
        "version": head.version,
        "present": present,
        "partition": touched[0]["partition"] if present else None,
        "since": made if present else None,
        "versions": touched,
        "runs": runs,
        "complete": complete,
    }


def _canonical_keys(name: str, versions: Sequence[HistoryLine], feature_id: str) -> list[bytes]:
    """The canonical keys that a feature id has had: one for each key rule under which the text is a key.

    Raises:
        UsageError: it is a key under no rule that the dataset ever had.
    """
    rules = {str((each.key["columns"], each.key.get("types"))): each.key for each in versions}
    found, wrong = [], []
    for each in rules.values():
        try:
            found.append(canonical_key(name, each, feature_id))
        except UsageError as fault:
            wrong.append(fault)
    if not found:
        raise wrong[0]
    return list(dict.fromkeys(found))


def canonical_key(name: str, key: Mapping[str, Json], feature_id: str) -> bytes:
    """The canonical key bytes of a feature id, under the key rule of a version of the dataset `name`.

    Raises:
        UsageError: the text is not a key of this dataset.
    """
    columns = list(key["columns"])
    kinds = [stored_type(kind) for kind in key.get("types") or ["string"] * len(columns)]
    wrong = UsageError(
        f"{feature_id} is not a key of {name}",
        field=feature_id,
        hint=f"the key is {', '.join(f'{column} ({kind})' for column, kind in zip(columns, kinds, strict=True))}"
        + ("; write it as a JSON array" if len(columns) > 1 else ""),
    )
    try:
        values = parse_json(feature_id) if len(columns) > 1 else ["" if feature_id == '""' else _unescaped(feature_id)]
        if not isinstance(values, list) or len(values) != len(columns):
            raise wrong
        arrays = [
            pa.array([str(value)], pa.string()).cast(kind) if not pa.types.is_binary(kind) else pa.array([bytes.fromhex(value)], kind)
            for value, kind in zip(values, kinds, strict=True)
        ]
    except (ValueError, TypeError, pa.ArrowException) as fault:
        raise wrong from fault
    canonical, _ = keys.key_bytes(pa.table(dict(zip(columns, arrays, strict=True))), columns)
    out: bytes = canonical[0].as_py()
    return out


def _unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)


def _touches(store: Store, versions: Sequence[HistoryLine], known_as: Any) -> Iterator[JsonObject]:
    """What the change logs say of one key (its bytes under each key rule), newest version first."""
    for each in versions:
        rows = rows_of_keys(store, each.changes, known_as)
        for row in rows.to_pylist():
            yield {
                "version": each.version,
                "time_utc": each.time_utc,
                "run_id": each.run_id,
                "class": row["class"],
                "labels": [name for name in ("reversed", "rekeyed") if row[name]],
                "attributes": row["attributes"],
                "geometry": row["geometry"],
                "geometry_change": row["geometry_change"],
                "fields": row["fields"] or [],
                "partition": row["partition"],
                "old_partition": row["old_partition"],
                "reason": each.rollback["reason"] if each.rollback else None,
            }
