"""Run manifests: which attempts of which runs are sealed, and the parts that hold their events.

Not here: the rows of the parts (`reading`), writing them (`store`).

Readers know paths from run manifests alone: a file that no sealed run lists is not there. Partition folders are never parsed, so a run
`007` stays `007`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from urllib.parse import quote

from merestone.errors import CorruptError, UsageError
from merestone.json_value import JsonObject
from merestone.lineage.event.checked_json import DAY, HASH, MOMENT, PATH, read_json
from merestone.lineage.event.schema import SCHEMA, is_readable
from merestone.lineage.store.tombstone import Expired, expired_runs
from merestone.lineage.store.writing import FORMAT, ROOT, RUNS, SealedPart, below, run_manifest_name
from merestone.storage.place import shown_place
from merestone.storage.port import Store

_FORM: JsonObject = {
    "run_id": str,
    "attempt": int,
    "run_date": DAY,
    "sealed_utc": MOMENT,
    "plan": [str],
    "tool": dict,
    "root": HASH,
    "steps": [{"stage": str, "event_type": str, "outcome": str, "events": int}],
    "counts": dict.fromkeys(("total_events", "passed", "rejected", "warned"), int),
    "parts": [
        {
            "path": PATH,
            "rows": int,
            "bytes": int,
            "sha256": HASH,
            "root": HASH,
            "target_crs": str,
            "first_feature": str,
            "last_feature": str,
        }
    ],
    "origin": re.compile("own|foreign"),
    "findings": [dict],
    "objects": [{"path": PATH, "bytes": int, "sha256": HASH}],
    "heads": [{"run_manifest": PATH, "sha256": HASH, "root": HASH}],
    "about": dict,
}


@dataclass(frozen=True, slots=True)
class RunManifest:
    """A sealed attempt of a run, as its run manifest says. `path` is relative to the dataset's store, `doc` the whole JSON object.

    Of an attempt that `expired`, `parts` are those of the baseline: the rows of features that were live then.
    """

    path: str
    run_id: str
    attempt: int
    run_date: str
    sealed_utc: str
    schema_version: str
    plan: tuple[str, ...]
    counts: dict[str, int]
    parts: tuple[SealedPart, ...]
    root: str
    doc: JsonObject
    expired: Expired | None = None

    @property
    def foreign(self) -> bool:
        """Whether another program ran, and Merestone only keeps what it said."""
        return bool(self.doc["origin"] == "foreign")


def read_manifest(store: Store, path: str, *, sha256: str | None = None) -> RunManifest:
    """A run manifest by its path in the store.

    Raises:
        CorruptError: it is missing, is not a run manifest, or has another checksum than `sha256`.
    """
    try:
        data = store.get(path)
    except FileNotFoundError as fault:
        raise CorruptError(f"{path} is missing", field=path, hint="restore the file from a backup") from fault
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise CorruptError(f"{path} is not the file that was sealed: its checksum differs", field=path, hint="restore it from a backup")
    try:
        doc = read_json(data, {"format": int, "schema_version": str})
        if doc["format"] != FORMAT:
            raise CorruptError(
                f"{path} has format {doc['format']}, this version of Merestone reads format {FORMAT}",
                field=path,
                hint="use the Merestone version that wrote it, or a newer one",
            )
        if not is_readable(doc["schema_version"]):
            raise CorruptError(
                f"{path} is of lineage schema {doc['schema_version']}, this version of Merestone reads {SCHEMA.version} and "
                "the versions of its major number",
                field=path,
                hint="use the Merestone version that wrote it, or a newer one",
            )
        doc = read_json(data, _FORM)
        return _parsed(path, doc)
    except ValueError as fault:
        raise CorruptError(f"{path} is not a readable run manifest: {fault}", field=path, hint="restore it from a backup") from fault


def _parsed(path: str, doc: JsonObject) -> RunManifest:
    """A run manifest of the right form. Raises ValueError where it is not that of its name, or its days are none."""
    name = run_manifest_name(doc["run_id"], doc["attempt"])
    if not f"/{path}".endswith(f"/{name}"):
        raise ValueError(f"it is that of {name}")
    datetime.fromisoformat(doc["sealed_utc"])
    date.fromisoformat(doc["run_date"])
    parts = tuple(
        SealedPart(
            each["path"],
            each["rows"],
            each["bytes"],
            each["sha256"],
            each["root"],
            each["target_crs"],
            each["first_feature"],
            each["last_feature"],
        )
        for each in doc["parts"]
    )
    return RunManifest(
        path,
        doc["run_id"],
        doc["attempt"],
        doc["run_date"],
        doc["sealed_utc"],
        doc["schema_version"],
        tuple(doc["plan"]),
        doc["counts"],
        parts,
        doc["root"],
        doc,
    )


def sealed_runs(store: Store, root: str = ROOT) -> list[RunManifest]:
    """Every sealed attempt of every run, in the order of sealing: a clock that was set back does not turn it round where runs are chained.

    Raises:
        CorruptError: a run manifest cannot be read.
    """
    gone = expired_runs(store, root)
    found = [
        _standing_parts(store, read_manifest(store, name), gone, root)
        for name, _ in store.list(below(root, f"{RUNS}/"))
        if name.endswith(".json")
    ]
    return _in_order(found)


def _in_order(found: Sequence[RunManifest]) -> list[RunManifest]:
    """By when they were sealed. What one of them names came before it whatever the clock said then; between others the clock decides."""
    named = {_name(each.path): each for each in found}
    ranks: dict[str, tuple[str, int]] = {}
    entered: set[str] = set()
    waiting = list(named)
    while waiting:
        name = waiting[-1]
        before = [each for head in named[name].doc["heads"] if (each := _name(head["run_manifest"])) in named]
        left = [each for each in before if each not in ranks and each not in entered]
        if name not in ranks and left:
            entered.add(name)
            waiting += left
            continue
        waiting.pop()
        if name not in ranks:
            behind = [ranks[each] for each in before if each in ranks]
            ranks[name] = max([named[name].sealed_utc, *(time for time, _ in behind)]), max([0, *(depth for _, depth in behind)]) + 1
    return sorted(found, key=lambda each: (*ranks[_name(each.path)], each.run_id, each.attempt))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def runs_of(store: Store, root: str = ROOT, *, only: Sequence[str] = ()) -> list[list[RunManifest]]:
    """The sealed runs, each as its attempts, in the order in which their last attempts were sealed.

    Raises:
        CorruptError: a run manifest cannot be read.
    """
    found: dict[str, list[RunManifest]] = {}
    for each in sealed_runs(store, root):
        if not only or each.run_id in only:
            found[each.run_id] = sorted([*found.pop(each.run_id, []), each], key=lambda one: one.attempt)  # the last one met stands last
    return list(found.values())


def attempts_of(store: Store, run_id: str, root: str = ROOT) -> list[RunManifest]:
    """The sealed attempts of one run, first to last.

    Raises:
        UsageError: no attempt of that run is sealed.
        CorruptError: a run manifest cannot be read.
    """
    stem = below(root, f"{RUNS}/{quote(run_id, safe='')}-")
    names = [
        name
        for name, _ in store.list(below(root, f"{RUNS}/"))
        if name.startswith(stem) and name.removeprefix(stem).removesuffix(".json").isdecimal()
    ]
    if not names:
        raise UsageError(
            f"no sealed run {run_id!r} in {shown_place(store.url)}/{root}".rstrip("/"),
            field="run_id",
            hint="«lineage.runs(DATASET)» lists the runs",
        )
    gone = expired_runs(store, root)
    return sorted((_standing_parts(store, read_manifest(store, name), gone, root) for name in names), key=lambda each: each.attempt)


def attempts_that_count(attempts: Sequence[RunManifest]) -> list[RunManifest]:
    """The attempts whose events count: the run's own, where it is a publish, and not what other programs said of it."""
    return [each for each in attempts if not each.foreign] or list(attempts)


def _standing_parts(store: Store, run: RunManifest, gone: Mapping[str, Expired], root: str) -> RunManifest:
    """The attempt with the parts that are there to be read."""
    expired = gone.get(run.path.removeprefix(below(root, "")))
    if expired is None:
        return run
    if expired.baseline is None:
        return replace(run, parts=(), expired=expired)
    kept = read_manifest(store, below(root, expired.baseline["run_manifest"]), sha256=expired.baseline["sha256"])
    place = expired.baseline["run_manifest"].partition(f"/{RUNS}/")[0]
    return replace(run, parts=tuple(replace(each, path=below(place, each.path)) for each in kept.parts), expired=expired)
