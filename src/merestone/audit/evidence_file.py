"""Evidence to hand out: the proof of one feature's events, and all that stands behind a version in one file.

Not here: the hash tree (`lineage.merkle`, `lineage.proof`), the script that others verify with (`lineage.verify_lineage`).

Both are made of what is stored alone, without a clock: the same version gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from merestone.audit.iso import record_of_version
from merestone.dataset.current import chain, current, manifest_name
from merestone.dataset.manifest import HistoryLine, Manifest
from merestone.dataset.record import record_names
from merestone.dataset.version import Dataset
from merestone.errors import CorruptError, UsageError
from merestone.inspect import browse
from merestone.json_value import JsonObject
from merestone.lineage.proof import inclusion as proof
from merestone.lineage.store import reading
from merestone.lineage.store.run_manifest import RunManifest, attempts_of, read_manifest
from merestone.lineage.store.tombstone import Expired, expired_runs
from merestone.lineage.store.writing import ROOT, RUNS
from merestone.render.iso19115 import ENCODINGS, render
from merestone.storage.port import Store

FORMAT = 1
VERIFIER = "verify_lineage.py"
_README = """\
Evidence for version {version} of {name}, run {run}.

  contract.json            the contract that the version was judged by
  manifests/               the chain of versions: each names the sha256 of the one before
  runs/record/             the record of each attempt of the run that made the version
  runs/lineage/            the sealed run manifests: parts, counts and Merkle roots, chained
  iso/                     the version's lineage as ISO 19139 (gmd) and ISO 19115-3 (mdb)
  conformance.json         the verdict of the run, counted from its events
  roots.json               the Merkle root of each run
  evidence.json            the sha256 of each file here
  verify_lineage.py        checks all of this with nothing but hashes; read it first, it is short

Verify: unpack, then `python verify_lineage.py . {checksum}`
The sha256 above is that of the newest manifest; compare it with one that you were given at the time. It answers for contract, manifests, runs
and roots. For the ISO records and the verdict too, give the script the sha256 of evidence.json instead, where you were given that.
"""


def verifier() -> str:
    """The script that verifies proofs and evidence without Merestone."""
    return (files("merestone.lineage.proof") / VERIFIER).read_text(encoding="utf-8")


def proof_of(text: str, feature_id: str, run_id: str | None = None) -> JsonObject:
    """The proof that the events of a feature are part of a sealed run.

    Args:
        text: DATASET[@N].
        feature_id: the key by its own text, or as lineage writes it.
        run_id: the run; by default the newest one up to the version that made or kept the feature. Of a run that expired, what was carried on
            is proved, up to the root of the baseline.

    Raises:
        UsageError: no such run, or no run that a version names met the feature.
        CorruptError: the lineage is not what was sealed.
    """
    address = browse.parse_address(text)
    dataset = browse.open_dataset(address.where)
    feature_id = reading.id_of(dataset.store, feature_id)
    gone = expired_runs(dataset.store, ROOT)
    for version, found in _candidates(dataset, address.version, run_id):
        sealed = _there(dataset.store, found, gone)
        if sealed is None:
            continue
        if not any(part.first_feature <= feature_id <= part.last_feature for part in sealed.parts):
            continue
        root = sealed.path.partition(f"/{RUNS}/")[0]
        if not reading.history(dataset.store, feature_id, root, runs=[sealed]).num_rows:
            continue
        proofs = proof.prove(dataset.store, sealed.path, feature_id, root)
        checksum = hashlib.sha256(dataset.store.get(sealed.path)).hexdigest()
        return {
            "format": FORMAT,
            "dataset": sealed.doc.get("about", {}).get("dataset"),
            "version": version,
            "feature_id": feature_id,
            "run_id": sealed.run_id,
            "attempt": sealed.attempt,
            "root": sealed.root,
            "run_manifest": sealed.path,
            "run_manifest_sha256": checksum,
            "proofs": proofs,
        }
    where = f"run {run_id!r}" if run_id is not None else "no run of a version"
    raise UsageError(
        f"{where} met a feature {feature_id!r}" if run_id is None else f"{where} has no event of feature {feature_id!r}",
        field=feature_id,
        hint="«lineage.why(DATASET, FEATURE)» lists the runs that met it",
    )


def evidence(text: str, place: str) -> JsonObject:
    """Write all that stands behind a version into one ZIP file.

    Args:
        text: DATASET[@N].
        place: the file to write.

    Returns:
        `name`, `version`, `run_id`, `root`, `manifest_sha256`, `evidence_sha256` (of the list of all files), `files`.

    Raises:
        UsageError: no such version.
        CorruptError: what the version names is missing or altered.
    """
    version = browse.version_at(text)
    store, manifest = version.store, version.manifest
    contents = dict(_contents(text, store, manifest))
    checksums = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(contents.items())}
    about = {"format": FORMAT, "name": manifest.name, "version": manifest.version, "run_id": manifest.run_id, "files": checksums}
    contents["evidence.json"] = _json(about)
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as whole:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # no clock: the same version gives the same bytes
            entry.external_attr = 0o644 << 16
            whole.writestr(entry, contents[name], zipfile.ZIP_DEFLATED)
    return {
        "name": manifest.name,
        "version": manifest.version,
        "run_id": manifest.run_id,
        "root": manifest.lineage["root"] if manifest.lineage else None,
        "manifest_sha256": checksums[f"manifests/v{manifest.version:06d}.json"],
        "evidence_sha256": hashlib.sha256(contents["evidence.json"]).hexdigest(),
        "files": len(contents),
    }


def _contents(text: str, store: Store, manifest: Manifest) -> Iterator[tuple[str, bytes]]:
    yield VERIFIER, verifier().encode()
    yield "contract.json", _json(manifest.contract)
    newest = _object(store, manifest_name(manifest.version))
    yield (
        "README.txt",
        _README.format(
            version=manifest.version, name=manifest.name, run=manifest.run_id, checksum=hashlib.sha256(newest).hexdigest()
        ).encode(),
    )
    roots: list[JsonObject] = []
    seen: set[str] = set()
    versions = list(_versions(store, manifest.version))
    # A roll-back names the lineage of an older version: the oldest version that names a run is the one that it made.
    made = {each.lineage["run_manifest"]: each.version for each in versions if each.lineage}
    for each in versions:
        yield f"manifests/v{each.version:06d}.json", _object(store, manifest_name(each.version))
        waiting = [each.lineage] if each.lineage is not None else []
        while waiting:
            named = waiting.pop()
            if named["run_manifest"] in seen:
                continue
            seen.add(named["run_manifest"])
            sealed = read_manifest(store, named["run_manifest"], sha256=named["sha256"])
            yield f"runs/lineage/{sealed.path.rpartition('/')[2]}", _object(store, sealed.path)
            roots.append(
                {
                    "version": made.get(sealed.path),
                    "run_id": sealed.run_id,
                    "attempt": sealed.attempt,
                    "events": sealed.counts["total_events"],
                    "root": sealed.root,
                    "sealed_utc": sealed.sealed_utc,
                }
            )
            waiting += sealed.doc["heads"]
    yield "roots.json", _json({"runs": roots})
    for _, _, name in record_names(store, manifest.run_id):
        yield f"runs/record/{name.rpartition('/')[2]}", _object(store, name)
    record = record_of_version(text)
    for encoding in ENCODINGS:
        yield f"iso/{encoding}.xml", render(record, encoding).encode()
    if manifest.lineage is not None:
        run_id, _ = browse.run_of(Dataset(store).version(manifest.version))
        yield "conformance.json", _json(browse.lineage_summary(store, run_id))


def _versions(store: Store, version: int) -> Iterator[Manifest]:
    """The version and its ancestors, newest first, every link proved."""
    head = current(store)
    if head is None:
        return
    for manifest, _ in chain(store, head):
        if manifest.version <= version:
            yield manifest


def _candidates(dataset: Dataset, version: int | None, run_id: str | None) -> Iterator[tuple[int | None, RunManifest]]:
    """Sealed runs to look for a feature in, newest first, each with the version that it made."""
    if run_id is not None:
        attempts = attempts_of(dataset.store, run_id)
        made = {each.lineage["run_manifest"]: each.version for each in _all(dataset) if each.lineage and each.rollback is None}
        yield from ((made.get(each.path), each) for each in reversed(attempts))
        return
    top = dataset.version(version).number
    for manifest in _all(dataset):
        if manifest.version > top:
            continue  # later than what was asked for, or taken back by a roll-back
        if manifest.rollback is not None:
            top = int(manifest.rollback["to"])
        elif manifest.lineage is not None:
            yield manifest.version, browse.sealed_of(dataset.store, manifest)


def _there(store: Store, sealed: RunManifest, gone: Mapping[str, Expired]) -> RunManifest | None:
    """The run manifest to prove from: of a run that expired, that of the rows which were carried on; None without any."""
    expired = gone.get(sealed.path.removeprefix(f"{ROOT}/"))
    if expired is None:
        return sealed
    kept = expired.baseline
    return read_manifest(store, f"{ROOT}/{kept['run_manifest']}", sha256=kept["sha256"]) if kept is not None else None


def _all(dataset: Dataset) -> list[HistoryLine]:
    return list(dataset.history()) if current(dataset.store) is not None else []


def _object(store: Store, name: str) -> bytes:
    try:
        return store.get(name)
    except FileNotFoundError as fault:
        raise CorruptError(f"{name} is missing", field=name, hint="restore the file from a backup") from fault


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()
