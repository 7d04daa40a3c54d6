"""Evidence of every attempt: the intent that says it is running, the record that says how it ended, and writing up the dead ones.

Not here: what a record holds (`dataset.record`), moving the pointer (`commit`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from merestone.dataset.current import Current, current, read_manifest
from merestone.dataset.history import lines
from merestone.dataset.manifest import Manifest
from merestone.dataset.record import RunRecord, record_name, record_names
from merestone.document.json_reader import parse_json
from merestone.errors import ConflictError, CorruptError, StoreError, UsageError
from merestone.json_value import JsonObject
from merestone.storage.lease import is_held
from merestone.storage.port import Store

INTENTS = "_intents/"
_NAME = re.compile(r"_intents/(?P<run_id>[^/]+)-(?P<attempt>[1-9]\d*)\.json")
_LEASE = ".lease"
_NUMBERED = re.compile(rf"{_NAME.pattern}(?:{re.escape(_LEASE)})?")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Intent:
    """What an attempt says before it writes its first object: who it is, what it saw, and the nonce in the names of its objects."""

    run_id: str
    attempt: int
    nonce: str
    name: str
    started_utc: str
    parent_version: int | None
    format: int = 1

    @property
    def path(self) -> str:
        """Where the intent stands."""
        return f"{INTENTS}{self.run_id}-{self.attempt}.json"

    @property
    def lease(self) -> str:
        """Where the lease of the attempt stands, as long as it runs."""
        return self.path + _LEASE

    def to_bytes(self) -> bytes:
        """The bytes that stand on disk (UTF-8 JSON)."""
        return (json.dumps(asdict(self), ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str) -> Intent:
        """Read an intent.

        Raises:
            CorruptError: the bytes are not an intent.
        """
        try:
            doc: JsonObject = parse_json(data)
            return cls(
                str(doc["run_id"]),
                int(doc["attempt"]),
                str(doc["nonce"]),
                str(doc["name"]),
                str(doc["started_utc"]),
                doc["parent_version"],
                int(doc["format"]),
            )
        except (ValueError, KeyError, TypeError) as fault:
            raise CorruptError(
                f"{where} is not a readable intent: {fault!r}",
                field=where,
                hint="if no publisher is running, move the file away: versions do not depend on it",
            ) from fault


def check_run_id(run_id: str) -> str:
    """A run id that can stand in object names.

    Raises:
        UsageError: it holds other than letters, digits, '.', '_' and '-', or is longer than 100.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise UsageError(
            f"run id {run_id!r} cannot be part of a file name",
            field="run_id",
            hint="use up to 100 letters, digits, '.', '_' and '-', starting with a letter or digit",
        )
    return run_id


def intents(store: Store) -> Iterator[Intent]:
    """All open intents, in name order."""
    for name, _ in store.list(INTENTS):
        if _NAME.fullmatch(name):
            try:
                data = store.get(name)
            except FileNotFoundError:
                continue  # its attempt ended while we looked
            yield Intent.from_bytes(data, where=name)


def next_attempt(store: Store, run_id: str) -> int:
    """The number of a run's next attempt, from 1; open and ended ones count."""
    ended = [attempt for _, attempt, _ in record_names(store, run_id)]
    matches = (_NUMBERED.fullmatch(name) for name, _ in store.list(INTENTS))
    running = [int(match["attempt"]) for match in matches if match and match["run_id"] == run_id]
    return max([0, *ended, *running]) + 1


def write_record(store: Store, record: RunRecord) -> None:
    """Write a run record, once.

    Raises:
        ConflictError: another record of this attempt stands there.
        StoreError: it cannot be written.
    """
    data = record.to_bytes()
    try:
        store.create(record.path, data)
    except (FileExistsError, StoreError) as fault:
        if _holds(store, record.path, data):
            return  # our own success, whose answer got lost
        if isinstance(fault, StoreError):
            raise
        raise ConflictError(
            f"{record.path} was already written by another run",
            field=record.path,
            hint="see «log(DATASET)»: the run may have been taken for dead",
        ) from fault


def write_up_abandoned(store: Store, *, now: str, by: str) -> list[RunRecord]:
    """Write the records of attempts that ended without one, and remove their intents. Attempts of living processes are left alone.

    An attempt whose version became current (it died, or lost sight, between pointer and record) is recorded as published; all others
    as abandoned. Two that write up at once agree: records are create-only.

    Args:
        store: where the dataset is.
        now: the time, UTC, kept as `ended_utc` of abandoned attempts.
        by: the run id that writes them up.
    """
    dead = [intent for intent in intents(store) if not is_held(store, intent.lease)]
    _sweep_leases(store)
    if not dead:
        return []
    # Read after the look at the holds: what a dead attempt did is done by now.
    head = current(store)
    written = []
    for intent in dead:
        if store.size(record_name(intent.run_id, intent.attempt)) is None:
            record = _write_up(intent, _version_in(store, intent, head), head, now, by)
            try:
                write_record(store, record)
            except ConflictError:
                pass  # another run wrote it up at the same time
            else:
                written.append(record)
        store.delete(intent.path)
        store.delete(intent.lease)
    return written


def _sweep_leases(store: Store) -> None:
    """Remove leases that dead attempts left without an intent."""
    names = {name for name, _ in store.list(INTENTS)}
    for name in names:
        if name.endswith(_LEASE) and name.removesuffix(_LEASE) not in names and not is_held(store, name):
            store.delete(name)


def version_of(store: Store, intent: Intent) -> Manifest | None:
    """The version that an attempt published, None where it published none.

    Raises:
        CorruptError: what is current cannot be read.
    """
    return _version_in(store, intent, current(store))


def _version_in(store: Store, intent: Intent, head: Current | None) -> Manifest | None:
    """The version that an attempt published, looked for back to what it saw when it began."""
    if head is None:
        return None
    for each in lines(store, head):
        if (each.run_id, each.attempt) == (intent.run_id, intent.attempt):
            return read_manifest(store, each.version, each.sha256)
        if intent.parent_version is not None and each.version <= intent.parent_version:
            return None
    return None


def _write_up(intent: Intent, manifest: Manifest | None, head: Current | None, now: str, by: str) -> RunRecord:
    if manifest is None:
        return RunRecord(
            intent.run_id,
            intent.attempt,
            "abandoned",
            intent.name,
            intent.started_utc,
            now,
            parent_version=intent.parent_version,
            version=head.manifest.version if head else None,
            written_up_by=by,
            nonce=intent.nonce,
        )
    return RunRecord(
        intent.run_id,
        intent.attempt,
        "rolled_back" if manifest.rollback else "published",
        intent.name,
        intent.started_utc,
        manifest.time_utc,
        parent_version=manifest.parent,
        version=manifest.version,
        delivery=manifest.delivery,
        contract_version=manifest.contract_version,
        contract_sha256=manifest.contract_sha256,
        counts=manifest.counts,
        files_written=manifest.files_written,
        lineage=manifest.lineage,
        rollback=manifest.rollback,
        written_up_by=by,
        nonce=intent.nonce,
        tool=manifest.tool,
    )


def _holds(store: Store, name: str, data: bytes) -> bool:
    try:
        return store.get(name) == data
    except FileNotFoundError:
        return False
