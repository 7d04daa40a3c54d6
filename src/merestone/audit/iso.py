"""The facts of an ISO 19115 record: a version's or a run's lineage, its contract, extent and sources, gathered from the store.

Not here: the XML (`render.iso19115`), its checks (`render.iso19115_lint`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Any
from uuid import UUID, uuid5

from merestone.audit import questions
from merestone.audit.makers import makers
from merestone.dataset.current import current
from merestone.dataset.manifest import Manifest
from merestone.dataset.version import Dataset
from merestone.inspect.browse import open_dataset, parse_address, sealed_of
from merestone.json_value import Json
from merestone.lineage.store import steps
from merestone.lineage.store.run_manifest import RunManifest, attempts_of, attempts_that_count
from merestone.lineage.store.verdict import verdict
from merestone.lineage.store.writing import ROOT
from merestone.reference.area import box_in
from merestone.render.iso19115 import ProcessStep, Record, RecordSource
from merestone.storage.place import place_name
from merestone.storage.port import Store

_SPACE = UUID("4f3d8b1e-9a67-5c1d-8a52-6f0f3d0c7e21")
"""Namespace of the identifiers of records that no contract names; never changes."""


def record_of_version(text: str) -> Record:
    """The record of the version that `DATASET[@N]` names.

    Raises:
        UsageError: the dataset or the version does not exist.
        CorruptError: its lineage cannot be read.
    """
    address = parse_address(text)
    return _of_version(open_dataset(address.where), address.version)


def _of_version(dataset: Dataset, version: int | None, *, whole_run: Sequence[RunManifest] | None = None) -> Record:
    """The record of a version: of its live features, or with the steps of `whole_run` alone."""
    manifest = dataset.version(version).manifest
    made = manifest
    while made.rollback is not None:
        made = dataset.manifest(int(made.rollback["to"]))
    attempts = attempts_that_count(attempts_of(dataset.store, sealed_of(dataset.store, made).run_id)) if made.lineage is not None else []
    parent = dataset.manifest(made.parent) if made.parent is not None else None
    opening = f"Version {manifest.version} of {manifest.name}"
    if manifest is not made:
        opening += f" restores version {made.version}" + (f" ({manifest.rollback['reason']})" if manifest.rollback else "") + "; that"
    opening += f" was made by run {made.run_id} from {_shown(made.delivery.get('source', {}))} and holds {made.features} features."
    counts = ", ".join(
        f"{value} {name}" for name, value in made.counts.items() if value or name in ("delivered", "added", "changed", "removed")
    )
    sources = [_delivery(made.delivery.get("source", {}), made.delivery)]
    if parent is not None:
        root = f", lineage root {parent.lineage['root']}" if parent.lineage else ""
        sources.append(
            RecordSource(
                f"{parent.name}, version {parent.version}",
                f"{parent.features} features as version {parent.version} published them{root}",
                f"EPSG:{parent.contract['crs_epsg']}",
            )
        )
    opening = f"{opening} Rows: {counts}."
    live = _live(dataset, manifest) if whole_run is None else None
    return _record(dataset.store, attempts, manifest, opening, sources, manifest.version, live=live)


@dataclass(frozen=True, slots=True)
class _Live:
    """How the live features of a version came to be: the steps of the runs that made them, these runs, and where they read."""

    steps: tuple[steps.RunStep, ...]
    features: int
    runs: int
    sources: tuple[Mapping[str, Json], ...]

    def words(self) -> str:
        """For the statement: whose steps follow."""
        return f"The steps are those of its {self.features} live features, which {self.runs} {'run' if self.runs == 1 else 'runs'} made."


def _live(dataset: Dataset, manifest: Manifest) -> _Live:
    """The steps of the live features. Of a version without lineage, none."""
    sources: list[Mapping[str, Json]] = []

    def made() -> Iterator[tuple[list[RunManifest], Any]]:
        for line, ids in makers(dataset, manifest):
            if line.lineage is not None:
                sealed = sealed_of(dataset.store, line)
                sources.append(sealed.doc["about"].get("source") or {})
                yield (
                    [each for each in attempts_that_count(attempts_of(dataset.store, sealed.run_id)) if each.attempt <= sealed.attempt],
                    ids,
                )

    found = steps.steps_of_features(dataset.store, made(), ROOT)
    return _Live(tuple(found), manifest.features, len(sources), tuple(sources))


def record_of_run(text: str, run_id: str) -> Record:
    """The record of one run, refused ones too: what it did, without a claim to a finished dataset where no version came of it.

    Raises:
        UsageError: the dataset or the sealed run does not exist.
        CorruptError: its lineage cannot be read.
    """
    dataset = open_dataset(parse_address(text).where)
    attempts = attempts_that_count(attempts_of(dataset.store, run_id))
    head = current(dataset.store)
    made = questions.version_of(dataset, {each.path for each in attempts})
    if made is not None:
        return _of_version(dataset, made.version, whole_run=attempts)
    about = attempts[-1].doc.get("about", {})
    name = about.get("dataset") or _folder(dataset)
    opening = f"Run {run_id} of {name} published no version." if not attempts[-1].foreign else f"Run {run_id} of another program."
    why = [str(each["observed"]) for each in attempts[-1].doc["findings"] if each.get("severity") == "error"]
    opening += f" It was refused: {'; '.join(why[:3])}{f'; and {len(why) - 3} more' if len(why) > 3 else ''}." if why else ""
    sources = [_delivery(about["source"], {})] if about.get("source") else []
    return _record(dataset.store, attempts, head.manifest if head is not None else None, opening, sources, None, name=name)


def _record(
    store: Store,
    attempts: Sequence[RunManifest],
    manifest: Manifest | None,
    opening: str,
    sources: Sequence[RecordSource],
    version: int | None,
    *,
    name: str | None = None,
    live: _Live | None = None,
) -> Record:
    last = attempts[-1] if attempts else None
    about: Mapping[str, Json] = last.doc.get("about", {}) if last is not None else {}
    found = live.steps if live is not None else steps.run_steps(store, attempts, ROOT)
    read = live.sources if live is not None else (about.get("source") or {},)
    title = manifest.name if manifest is not None else name or ""
    contract = manifest.contract if manifest is not None else {}
    product = _uuid(contract.get("product_id"))
    resource = product or uuid5(_SPACE, title)
    before = manifest.parent if manifest is not None and version is not None else None
    identifier = _of_one(resource, version) if version is not None else uuid5(product or _SPACE, last.run_id if last is not None else title)
    time = datetime.fromisoformat(
        last.sealed_utc if last is not None and version is None else manifest.time_utc if manifest is not None else "1970-01-01T00:00:00Z"
    )
    if version is None and last is not None:
        title = f"{title}: run {last.run_id}" + ("" if last.foreign else ", nothing published")
    named = manifest.name if manifest is not None else name
    described = str(contract.get("description") or f"The dataset {named}.")
    stamp = about.get("contract_version") or (manifest.contract_version if manifest is not None and version is not None else None)
    return Record(
        identifier=str(identifier),
        resource=str(resource),
        predecessor=str(_of_one(resource, before)) if before is not None else None,
        title=title,
        abstract=described,
        contact=contract.get("product_owner_id"),
        time=time,
        version=version,
        epsg=contract.get("crs_epsg"),
        extent=_extent(manifest) if manifest is not None and version is not None else None,
        statement=f"{opening} {_verdict(store, attempts)}" + (f" {live.words()}" if live is not None and live.steps else ""),
        rationale=f"Contract {stamp} of {named}." if stamp else "",
        steps=tuple(_step(each, read, manifest) for each in found),
        sources=tuple(sources),
    )


def _verdict(store: Store, attempts: Sequence[RunManifest]) -> str:
    """The counts of a run and its root; both come from the rows that the scorecard counts."""
    total = verdict(store, attempts)
    if not total["total_events"]:
        return "No processing was recorded."
    last = attempts[-1]
    gone = f" The events {last.expired.words()}; the counts are those that they gave." if last.expired is not None else ""
    return (
        f"{total['features']} features met: {total['features_passed']} passed, {total['features_warned']} warned, "
        f"{total['features_rejected']} rejected; {total['total_events']} lineage events: {total['passed']} PASS, {total['warned']} WARN, "
        f"{total['rejected']} REJECT. Run {last.run_id}, attempt {last.attempt}, Merkle root {last.root} (blake2b-256, {last.path}).{gone}"
    )


def _step(step: steps.RunStep, sources: Sequence[Mapping[str, Json]], manifest: Manifest | None) -> ProcessStep:
    procedure, parameters = [], []
    operations = [source.get("operation") or {} for source in sources if step.event_type == "TRANSFORM"]
    same = (step.source_crs, step.strategy_index)
    operation = next((each for each in operations if (each.get("source"), each.get("strategy_index")) == same), None)
    if operation is not None:
        procedure.append(str(operation["name"]))
        parameters += [str(operation["pipeline"]), f"PROJ {operation['proj']}, EPSG database {operation['database']}"]
        for word, names in (("grids", operation.get("grids")), ("missing grids", operation.get("missing_grids"))):
            if names:
                parameters.append(f"{word}: {', '.join(map(str, names))}")
        if operation.get("swap"):
            parameters.append("x and y swapped as declared")
    if step.strategy_index is not None:
        procedure.append(f"strategy_index {step.strategy_index}")
    if step.accuracy_m is not None:
        low, high = step.accuracy_m
        procedure.append(f"accuracy_m {low:g}" + (f" to {high:g}" if high > low else ""))
    if step.event_type == "SNAP" and manifest is not None:
        parameters.append(f"coordinate precision {manifest.contract.get('coordinate_precision')} decimals")
    if step.classes:
        procedure.append(", ".join(f"{count} {name}" for name, count in sorted(step.classes.items())))
    reasons = sorted(
        ((outcome, text, count) for (outcome, text), count in step.reasons.items()), key=lambda each: (-each[2], each[0], each[1])
    )
    if step.first is None or step.last is None:
        raise ValueError(f"step {step.stage} has no events")
    return ProcessStep(
        step.stage,
        step.event_type,
        step.source_crs,
        step.target_crs,
        step.passed,
        step.warned,
        step.rejected,
        step.first,
        step.last,
        tuple(sorted(step.tools)),
        tuple(reasons),
        "; ".join(procedure),
        "; ".join(parameters),
    )


def _delivery(source: Mapping[str, Json], delivery: Mapping[str, Json]) -> RecordSource:
    described = [f"{source['driver']} file" if source.get("driver") else "delivery"]
    if source.get("layer"):
        described.append(f"layer {source['layer']}")
    if source.get("encoding"):
        described.append(f"encoding {source['encoding']}")
    if delivery.get("rows") is not None:
        described.append(f"{delivery['rows']} rows")
    if delivery.get("set_digest"):
        described.append(f"set digest {delivery['set_digest']}")
    crs = source.get("crs")
    return RecordSource(_shown(source), ", ".join(described), crs if isinstance(crs, str) and crs.startswith("EPSG:") else None)


def _shown(source: Mapping[str, Json]) -> str:
    """The file's name: a folder on the machine of the run is nobody else's business."""
    return PurePath(str(source["path"])).name if source.get("path") else "an unnamed delivery"


def _extent(manifest: Manifest) -> tuple[float, float, float, float] | None:
    """West, south, east, north of the files in degrees (WGS 84), None where no feature has a position."""
    box = manifest.files.bbox
    if box is None or not all(map(math.isfinite, box)):
        return None
    found = box_in(box, f"EPSG:{manifest.contract['crs_epsg']}", "EPSG:4326")
    if found is None:
        return None
    west, south, east, north = found
    return max(west, -180.0), max(south, -90.0), min(east, 180.0), min(north, 90.0)


def _of_one(resource: UUID, version: int) -> UUID:
    """The identifier of the record of one version."""
    return uuid5(resource, f"version {version}")


def _uuid(text: Any) -> UUID | None:
    try:
        return UUID(str(text)) if text else None
    except ValueError:
        return None


def _folder(dataset: Dataset) -> str:
    return place_name(dataset.url)
