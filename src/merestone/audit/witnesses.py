"""What the records of a dataset and the names in it say of each other: what has gone without a word, and what nothing accounts for.

Not here: the bytes of what is named (`dataset.verify`, `lineage.proof`), which joins them (`verify`).

An attempt that was cut off may leave objects that count for nothing: its intent or its record says so. Of what looks like an object of
Merestone and belongs to no version, no sealed run and no such attempt, nobody can say who wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from merestone.dataset.current import MANIFESTS, POINTER, manifest_name, manifest_numbers
from merestone.dataset.log import FOLDERS, stem_of
from merestone.dataset.manifest import Manifest, ObjectRef
from merestone.dataset.record import RECORDS, RunRecord, record_name, record_names
from merestone.dataset.verify import Damage, damages_of_object
from merestone.document.own_digest import fault_of
from merestone.errors import CorruptError
from merestone.lineage.store.run_manifest import RunManifest
from merestone.lineage.store.tombstone import TOMBSTONES
from merestone.lineage.store.witness import HOLDS, QUARANTINE
from merestone.lineage.store.writing import ROOT, RUNS
from merestone.storage.port import Store
from merestone.writer.pages import PAGES
from merestone.writer.records import INTENTS, Intent, intents

_OWN = re.compile(r"(?P<run_id>.+)-(?P<nonce>[0-9a-f]{8})(?:-[^/]*)?\.parquet")
_PART = re.compile(r"run_date=[^/]+/run_id=(?P<run_id>[^/]+)/target_crs=[^/]+/part-(?P<attempt>\d+)-(?P<nonce>[^/-]+)-\d+\.parquet")
_REJECTS = re.compile(rf"{RECORDS}(?P<run_id>[^/]+)-(?P<attempt>[1-9]\d*)\.rejects\.parquet")
_BASELINE = f"{ROOT}/_baseline/"
_CUT_OFF = ("failed", "abandoned")
_MADE = ("published", "rolled_back")


@dataclass(slots=True)
class Records:
    """The run records of a dataset by attempt, and the intents of attempts that have none yet."""

    by_attempt: dict[tuple[str, int], RunRecord]
    open: list[Intent]

    def explains(self, run_id: str, attempt: int | None, nonce: str | None) -> bool:
        """Whether an attempt that was cut off, or goes on, may have left something that counts for nothing."""
        for each in self.open:
            if each.run_id == run_id and attempt in (None, each.attempt) and nonce in (None, each.nonce):
                return True
        for record in self.by_attempt.values():
            same = record.run_id == run_id and attempt in (None, record.attempt) and (nonce is None or record.nonce in (None, nonce))
            if same and record.status in _CUT_OFF:
                return True
        return False

    def has_record(self, run_id: str, attempt: int) -> bool:
        """Whether an attempt is on record, or about to be."""
        return (run_id, attempt) in self.by_attempt or any((each.run_id, each.attempt) == (run_id, attempt) for each in self.open)


def read_all(store: Store, damages: list[Damage]) -> Records:
    """All run records and intents; what of them cannot be read, or is not as it was written, is a damage."""
    found: dict[tuple[str, int], RunRecord] = {}
    for run_id, attempt, name in record_names(store):
        data = store.get(name)
        try:
            record = RunRecord.from_bytes(data, where=name)
        except CorruptError as fault:
            damages.append(_damage(name, fault.message, "a run record"))
            continue
        if record.path != name:
            damages.append(_damage(name, f"is the record of run {record.run_id}, attempt {record.attempt}", "that of its name"))
            continue
        if problem := fault_of(data):
            damages.append(_damage(name, problem, "a run record as it was written"))
        found[run_id, attempt] = record
    try:
        return Records(found, list(intents(store)))
    except CorruptError as fault:
        damages.append(_damage(fault.field or INTENTS, fault.message, "an intent"))
        return Records(found, [])


def of_records(store: Store, records: Records, versions: Sequence[Manifest], runs: Sequence[RunManifest]) -> Iterator[Damage]:
    """What the records say against what is there, and attempts that nothing is on record of."""
    chain = {each.version: each for each in versions}
    for record in records.by_attempt.values():
        if record.rejects is not None:
            ref = record.rejects
            yield from damages_of_object(store, ObjectRef.from_json(ref), ())
        made = chain.get(record.version) if record.version is not None else None
        if record.status in _MADE and (made is None or (made.run_id, made.attempt) != (record.run_id, record.attempt)):
            newest = max(chain, default=0)
            if versions and record.version is not None and record.version > newest:
                problem = f"names version {newest}, but {record.path} says that version {record.version} became current"
                yield Damage(POINTER, problem, f"version {record.version}", f"version {newest}", ())
            elif versions:
                yield _damage(record.path, f"says that it made version {record.version}, which another run made", "a version of its own")
    for each in versions:
        if not records.has_record(each.run_id, each.attempt):
            name = record_name(each.run_id, each.attempt)
            yield Damage(name, "is missing: a version was made by this attempt", "a run record", "nothing", (each.version,))
    made_by = {(each.run_id, each.attempt) for each in versions}
    for run in runs:
        if not run.foreign and not records.has_record(run.run_id, run.attempt) and (run.run_id, run.attempt) not in made_by:
            yield Damage(record_name(run.run_id, run.attempt), f"is missing: {run.path} seals this attempt", "a run record", "nothing", ())


def of_names(
    store: Store,
    records: Records,
    named: Collection[str] | None,
    versions: Sequence[Manifest],
    runs: Mapping[str, RunManifest],
    broken: Collection[str],
) -> Iterator[Damage]:
    """Objects that nothing accounts for.

    Args:
        store: the dataset's store.
        records: its run records and intents.
        named: all objects that versions name; None where that cannot be known.
        versions: the versions in the chain.
        runs: the run manifests that can be read, baselines too, by path.
        broken: what cannot be read; it may name more.
    """
    yield from _manifests(store, records, {each.version for each in versions})
    # A version whose number was taken meanwhile left a page under each number that it foresaw.
    spare = {
        f"{PAGES}{stem_of(each.changes)}-{number}.parquet" for each in versions for number in range((each.parent or 0) + 1, each.version)
    }
    for folder in FOLDERS if named is not None else ():
        for name, _ in store.list(folder):
            if named is not None and name not in named:
                match = _OWN.fullmatch(name.rpartition("/")[2])
                if name not in spare and (match is None or not records.explains(match["run_id"], None, match["nonce"])):
                    yield _stray(name, "no version names it, and no attempt that was cut off wrote it")
    rejects = {each.rejects["path"] for each in records.by_attempt.values() if each.rejects is not None}
    recorded = {name for _, _, name in record_names(store)}
    for name, _ in store.list(RECORDS):
        match = _REJECTS.fullmatch(name)
        if match is None:
            if name not in recorded:
                yield _stray(name, "nothing of Merestone is called so")
            continue
        run_id, attempt = match["run_id"], int(match["attempt"])
        if name not in rejects and record_name(run_id, attempt) not in broken and not records.explains(run_id, attempt, None):
            yield _stray(name, "no run record names it")
    yield from _lineage(store, records, runs, broken)


def _manifests(store: Store, records: Records, chained: Collection[int]) -> Iterator[Damage]:
    """Manifests outside the chain: legal where an attempt that was cut off left them."""
    known = {manifest_name(number) for number in manifest_numbers(store)}
    for name, _ in store.list(MANIFESTS):
        if name not in known:
            yield _stray(name, "nothing of Merestone is called so")
    for number in manifest_numbers(store):
        if number in chained:
            continue
        name = manifest_name(number)
        try:
            manifest = Manifest.from_bytes(store.get(name), where=name)
        except CorruptError as fault:
            yield _damage(name, fault.message, "a manifest")
            continue
        record = records.by_attempt.get((manifest.run_id, manifest.attempt))
        if manifest.version != number:
            yield _damage(name, f"says that it is version {manifest.version}", f"version {number}")
        elif not records.explains(manifest.run_id, manifest.attempt, None) and (record is None or record.status not in _MADE):
            yield _stray(name, "it is in no chain, and no attempt that was cut off wrote it")


def _lineage(store: Store, records: Records, runs: Mapping[str, RunManifest], broken: Collection[str]) -> Iterator[Damage]:
    listed = {f"{path.partition(f'/{RUNS}/')[0]}/{part.path}" for path, run in runs.items() for part in run.parts}
    listed |= {each["path"] for run in runs.values() for each in run.doc["objects"]}
    known = (f"{ROOT}/{RUNS}/", *(f"{ROOT}/{each}/" for each in ("_schemas", TOMBSTONES, HOLDS, QUARANTINE)))
    for name, _ in store.list(f"{ROOT}/"):
        if name in listed or name in runs or name in broken or name.startswith(known):
            continue
        if name.startswith(_BASELINE):
            continue  # reported below, baseline by baseline
        match = _PART.fullmatch(name.removeprefix(f"{ROOT}/"))
        if match is None:
            yield _stray(name, "nothing of Merestone is called so")
            continue
        run_id, attempt = unquote(match["run_id"]), int(match["attempt"])
        if any(each.endswith(f"/{match['run_id']}-{attempt}.json") for each in broken):
            continue  # its run manifest cannot be read: a damage names it
        if not records.explains(run_id, attempt, match["nonce"]):
            yield _stray(name, "no sealed run lists it, and no attempt that was cut off wrote it")
    for path in [each for each in runs if each.startswith(_BASELINE)]:
        place = path.partition(f"/{RUNS}/")[0]
        for name, _ in store.list(f"{place}/"):
            if name not in listed and name not in runs and name not in broken:
                yield _stray(name, "no sealed run lists it")


def _damage(path: str, problem: str, expected: str) -> Damage:
    return Damage(path, problem, expected, "something else", ())


def _stray(path: str, why: str) -> Damage:
    return Damage(path, f"is accounted for by nothing: {why}", "nothing", "an object", ())
