"""Evidence: that the sealed runs are what was sealed (`verify_runs`), and that an event is part of a run (`prove`).

Not here: the tree itself (`merkle`), the data files of a dataset (`dataset.verify`).

What is compared: each part with its run manifest (size, checksum, rows, order, event ids, Merkle root), each run manifest with its own root,
with the counts of its events, and with the checksum that others remember of it: the next runs (`heads`), and the dataset's manifests and run
records (`remembered`). And all that run manifests, tombstones and holds remember of other objects.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.document.own_digest import fault_of
from merestone.errors import CorruptError, UsageError
from merestone.json_value import JsonObject
from merestone.lineage.event import columns, merkle
from merestone.lineage.event.checked_json import read_json, said
from merestone.lineage.event.record import IDENTITY
from merestone.lineage.event.schema import SCHEMA, is_newer, schema_text
from merestone.lineage.store.reading import read_part
from merestone.lineage.store.recorded_schema import SCHEMAS, conflicts
from merestone.lineage.store.run_manifest import RunManifest, read_manifest
from merestone.lineage.store.tombstone import TOMBSTONES, Expired, entries, read_tombstone, tombstone_names
from merestone.lineage.store.witness import HOLDS, QUARANTINE
from merestone.lineage.store.writing import ROOT, RUNS, VERDICTS, SealedPart, below, checksum_of
from merestone.storage.port import Store

_UNKNOWN = "of lineage schema {}: the hash of an event covers fields that this version of Merestone does not know"


@dataclass(frozen=True, slots=True)
class LineageDamage:
    """What is not as it was sealed: the object, what is wrong with it, and the run manifest that lists it, None for a manifest itself."""

    path: str
    message: str
    run: str | None = None

    def to_json(self) -> dict[str, str]:
        """The JSON object."""
        return {"path": self.path, "message": self.message}


def verify_runs(store: Store, root: str = ROOT, *, remembered: Mapping[str, str] | None = None) -> list[LineageDamage]:
    """Recompute every checksum and root of the sealed runs; what does not agree, by path.

    Args:
        store: the dataset's store.
        root: the event store in it.
        remembered: run manifest path to its checksum, as the manifests of the dataset name them.

    Raises:
        StoreError: the store cannot be read.
    """
    found: list[LineageDamage] = []
    known = dict(remembered or {})
    runs: list[RunManifest] = []
    for name, _ in store.list(below(root, f"{RUNS}/")):
        try:
            runs.append(read_manifest(store, name))
        except CorruptError as fault:
            found.append(LineageDamage(name, fault.message))
    gone, tombstones = _tombstones(store, root, found)
    for path, checksum in tombstones:
        if known.setdefault(path, checksum) != checksum:
            found.append(LineageDamage(path, "is remembered by a tombstone in another form"))
    for run in runs:
        named = [(head["run_manifest"], head["sha256"]) for head in run.doc["heads"]]
        named += [(each["path"], each["sha256"]) for each in run.doc["objects"]]
        found += [
            LineageDamage(run.path, f"remembers another {path} than others do")
            for path, checksum in named
            if known.setdefault(path, checksum) != checksum
        ]
    conflicting = dict(conflicts(store, root))
    found += [
        LineageDamage(path, f"conflicts with the schema of this version of Merestone: {problem}") for path, problem in conflicting.items()
    ]
    found += _verify_remembered(store, {path: checksum for path, checksum in known.items() if path not in conflicting})
    found += _verify_beside(store, root, {*known, *conflicting})
    for run in runs:
        expired = gone.get(run.path.removeprefix(below(root, "")))
        found += verify_run(store, run, root) if expired is None else _verify_expired(store, run, expired, root)
    return found


def _verify_remembered(store: Store, known: Mapping[str, str]) -> Iterator[LineageDamage]:
    """What versions, later runs and tombstones remember, against the files as they are."""
    for path, checksum in sorted(known.items()):
        try:
            data = store.get(path)
        except FileNotFoundError:
            yield LineageDamage(path, "is missing: a version or a later run names it")
            continue
        if hashlib.sha256(data).hexdigest() != checksum:
            yield LineageDamage(path, "is not the file that was sealed: its checksum differs from the one that was remembered")


def _verify_beside(store: Store, root: str, sealed: Collection[str]) -> Iterator[LineageDamage]:
    """What stands beside the runs, by its own marks: it may be younger than the last run, which would remember it."""
    for name, _ in store.list(below(root, f"{SCHEMAS}/")):
        running = (
            name.endswith(f"/{SCHEMA.version}.yaml") and store.get(name) == schema_text().encode()
        )  # an attempt may have died after it
        if name not in sealed and not running:
            yield LineageDamage(name, "is a schema by which no run wrote")
    for name, _ in chain(store.list(below(root, f"{TOMBSTONES}/")), store.list(below(root, f"{HOLDS}/"))):
        data = store.get(name)
        if fault := fault_of(data):
            yield LineageDamage(name, fault)
        elif _id_of(data) != name.rpartition("/")[2].partition(".")[0]:
            yield LineageDamage(name, f"is that of {_id_of(data)}")
    for name, _ in store.list(below(root, f"{QUARANTINE}/")):
        if name not in sealed:
            yield LineageDamage(name, "is accounted for by nothing: no sealed run lists it")
        elif not name.endswith(f"-{checksum_of(store, name)[1][:16]}.ndjson"):
            yield LineageDamage(name, "is altered: its name carries another checksum")


def _id_of(data: bytes) -> str:
    found: str = read_json(data, {"id": str})["id"]
    return found


def _tombstones(store: Store, root: str, found: list[LineageDamage]) -> tuple[dict[str, Expired], list[tuple[str, str]]]:
    """The expired runs, and what tombstones remember of others: run manifests, baselines and the tombstone before."""
    gone: dict[str, Expired] = {}
    remembered: list[tuple[str, str]] = []
    for name in tombstone_names(store, root):
        try:
            doc = read_tombstone(store, name)
        except CorruptError as fault:
            found.append(LineageDamage(name, fault.message))
            continue
        if doc["previous"] is not None:
            remembered.append((below(root, doc["previous"]["tombstone"]), doc["previous"]["sha256"]))
        for each in entries(name, doc):
            gone[each.run_manifest] = each
            remembered.append((below(root, each.run_manifest), each.sha256))
            if each.baseline is not None:
                remembered.append((below(root, each.baseline["run_manifest"]), each.baseline["sha256"]))
    return gone, remembered


def _verify_expired(store: Store, run: RunManifest, expired: Expired, root: str) -> Iterator[LineageDamage]:
    """Of a run whose parts expired: its manifest in itself, and the rows that were carried on."""
    yield from _verify_totals(run)
    if expired.baseline is None:
        return
    path = below(root, expired.baseline["run_manifest"])
    try:
        kept = read_manifest(store, path)
    except CorruptError as fault:
        if store.size(path) is not None:  # a missing file is reported already
            yield LineageDamage(path, fault.message)
        return
    yield from verify_run(store, kept, path.partition(f"/{RUNS}/")[0])
    yield from _verify_remembered(store, {each["path"]: each["sha256"] for each in kept.doc["objects"]})


def verify_run(store: Store, run: RunManifest, root: str = ROOT) -> Iterator[LineageDamage]:
    """What of one sealed run is not as its run manifest says."""
    steps: Counter[tuple[str, str, str]] = Counter()
    damages = [each for part in run.parts for each in _verify_part(store, run, part, steps, root)]
    yield from damages
    yield from _verify_totals(run)
    if damages:
        return  # its events cannot be counted
    said = {(each["stage"], each["event_type"], each["outcome"]): each["events"] for each in run.doc["steps"]}
    if said != dict(steps):
        yield LineageDamage(run.path, "its steps are not those of its events")
    counted: Counter[str] = Counter()
    for (_, _, outcome), events in steps.items():
        counted[VERDICTS[outcome]] += events
    if any(run.counts[name] != counted[name] for name in VERDICTS.values()):
        yield LineageDamage(run.path, "its counts are not those of its events")


def _verify_totals(run: RunManifest) -> Iterator[LineageDamage]:
    if merkle.root_of(leaves_of(run)).hex() != run.root:
        yield LineageDamage(run.path, "its Merkle root is not the root over its parts and itself")
    if sum(part.rows for part in run.parts) != run.counts["total_events"]:
        yield LineageDamage(run.path, "its total of events is not the sum over its parts")


def leaves_of(run: RunManifest) -> npt.NDArray[np.uint8]:
    """The leaves of a run's Merkle tree, as its run manifest gives them: those of its own parts, also where they have expired."""
    return merkle.leaves_of_run([bytes.fromhex(each["root"]) for each in run.doc["parts"]], said(run.doc))


def prove(store: Store, run_manifest: str, feature_id: str, root: str = ROOT) -> list[JsonObject]:
    """For each event of a feature in a run, what leads from it to the run's root.

    Each proof holds the event (by field, as docs/spec/lineage.md encodes it: texts, null left out), `in_part` and `in_run` (steps of
    `side` and `hash`, lowest first) and `root`. Whoever trusts the root needs nothing else.

    Raises:
        UsageError: the run has no event of that feature.
        CorruptError: the run manifest or a part cannot be read, or the part is not the one that was sealed.
    """
    run = read_manifest(store, run_manifest)
    if is_newer(run.schema_version):
        raise CorruptError(f"{run.path} is {_UNKNOWN.format(run.schema_version)}", field=run.path, hint="use a newer version of Merestone")
    roots = leaves_of(run)
    proofs: list[JsonObject] = []
    for number, part in enumerate(run.parts):
        if not part.first_feature <= feature_id <= part.last_feature:
            continue
        table = read_part(store, part, root)
        leaves = merkle.leaves(table)
        if merkle.root_of(leaves).hex() != part.root:
            path = below(root, part.path)
            raise CorruptError(
                f"{path} is not the part that was sealed: its Merkle root differs",
                field=path,
                hint="«verify(DATASET)» names everything that was altered",
            )
        in_run = merkle.prove(roots, number).to_json()
        places = np.flatnonzero(np.asarray(pc.equal(table.column("feature_id"), feature_id))).tolist()
        proofs += [
            {
                "event": merkle.as_texts(table.slice(place, 1)),
                "in_part": merkle.prove(leaves, place).to_json(),
                "in_run": in_run,
                "root": run.root,
            }
            for place in places
        ]
    if not proofs:
        raise UsageError(
            f"run {run.run_id!r} has no event of feature {feature_id!r}",
            field="feature_id",
            hint="«lineage.why(DATASET, FEATURE)» lists the runs that met it",
        )
    return proofs


def _verify_part(
    store: Store, run: RunManifest, part: SealedPart, steps: Counter[tuple[str, str, str]], root: str
) -> Iterator[LineageDamage]:
    """What is wrong with a part; where nothing is, its events are counted by stage, type and outcome."""
    path = below(root, part.path)
    try:
        size, checksum = checksum_of(store, path)
    except FileNotFoundError:
        yield LineageDamage(path, "is missing: a sealed run lists it", run.path)
        return
    if (size, checksum) != (part.bytes, part.sha256):
        yield LineageDamage(path, f"has {size} bytes with checksum {checksum}; {part.bytes} bytes with {part.sha256} were sealed", run.path)
    if is_newer(run.schema_version):
        yield LineageDamage(path, f"is {_UNKNOWN.format(run.schema_version)}; only its checksum was compared", run.path)
        return
    try:
        table = read_part(store, part, root)
    except CorruptError as fault:
        yield LineageDamage(path, fault.message, run.path)
        return
    if merkle.root_of(merkle.leaves(table)).hex() != part.root:
        yield LineageDamage(path, "its events are not those that were sealed: the Merkle root differs", run.path)
    if pc.unique(table.column("run_id")).to_pylist() != [run.run_id]:
        yield LineageDamage(path, f"holds events of another run than {run.run_id!r}", run.path)
    if (wrong := _wrong_ids(table)) is not None:
        yield LineageDamage(path, f"event_id {wrong!r} is not that of its row", run.path)
    counted = table.group_by(["stage", "event_type", "outcome"], use_threads=False).aggregate([([], "count_all")])
    for each in counted.to_pylist():
        steps[each["stage"], each["event_type"], each["outcome"]] += each["count_all"]


def _wrong_ids(table: pa.Table) -> str | None:
    """The first event_id that is not the hash of its row's identity."""
    given = one_chunk(table.column("event_id"))
    ids = columns.to_hex(columns.id_array(columns.event_ids(*(one_chunk(table.column(name)) for name in IDENTITY))))
    differs = pc.not_equal(ids, given)
    return str(given[pc.index(differs, True).as_py()].as_py()) if pc.any(differs).as_py() else None
