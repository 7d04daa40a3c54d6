"""The commit: the manifest by create-only, then the pointer by compare-and-swap. The only code that writes either of them.

Not here: data files and logs (`files`), run records (`records`), going back to an old version (`rollback`).

The rules, as numbered in docs/spec/store.md:

1. Before its first object an attempt takes a lease, writes an intent, and renews the lease as long as it lives.
2. A version's objects are whole in the store before its manifest is written.
3. A manifest's number is one above the highest of pointer, history and listing; it is created, never replaced.
4. The pointer moves from exactly what the attempt saw when it began, or not at all.
5. After anything but a clear yes the pointer is read back. Own success is success. An unknown outcome is reported, and nothing is deleted.
6. The record is written last, then the intent goes. A dead attempt is written up by the next run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from merestone.dataset.current import POINTER, Current, Pointer, current, manifest_name, manifest_numbers, read_manifest
from merestone.dataset.history import lines
from merestone.dataset.log import new_records, objects, stem_of, written_as
from merestone.dataset.manifest import Manifest, sha256
from merestone.dataset.record import RunRecord
from merestone.errors import ConflictError, CorruptError, InternalError, StoreError, UnknownOutcomeError
from merestone.storage.lease import Lease, take
from merestone.storage.port import LostReplyError, Store
from merestone.writer.history import next_history
from merestone.writer.records import Intent, check_run_id, intents, next_attempt, write_record

__all__ = ["Committed", "Current", "RunningAttempt", "Step", "begin", "begun", "current", "no_step"]

Step = Callable[[str], None]
_TRIES = 3


def no_step(name: str) -> None:
    """The step hook of a run that nobody watches. Names are `<what>.before` and `<what>.after`."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What became current."""

    current: Current

    @property
    def manifest(self) -> Manifest:
        """The manifest of the new version."""
        return self.current.manifest


@dataclass(slots=True)
class RunningAttempt:
    """A running attempt: it commits at most once, and ends with `finish` (a record) or `leave` (the next run writes it up)."""

    store: Store
    intent: Intent
    step: Step = no_step
    _lease: Lease | None = field(default=None, repr=False)

    @property
    def run_id(self) -> str:
        """The run that this is an attempt of."""
        return self.intent.run_id

    @property
    def number(self) -> int:
        """Which attempt of the run, from 1."""
        return self.intent.attempt

    def commit(self, build: Callable[[int], Manifest], expected: Current | None) -> Committed:
        """Make a version current.

        Args:
            build: gives the manifest for a version number, its objects being in the store; called again where a number is taken. The
                commit itself adds the history.
            expected: what was current when the attempt began (None: nothing).

        Raises:
            ConflictError: another publisher moved the pointer first. Nothing was lost; what this attempt wrote is not part of any version.
            StoreError: an object of the version is missing or cut, or the store refused; the old version stays.
            UnknownOutcomeError: whether the pointer moved is unknown. End the attempt with `leave`, never with `finish`.
        """
        _still_there(self.store, expected)
        self.step("manifest.before")
        manifest, data = self._create_manifest(build, expected)
        self.step("manifest.after")
        checksum = sha256(data)
        pointer = Pointer(manifest_name(manifest.version), manifest.version, manifest.run_id, checksum)
        self.step("pointer.before")
        _move(self.store, expected, pointer)
        self.step("pointer.after")
        return Committed(Current(pointer.to_bytes(), pointer, manifest, checksum))

    def finish(self, record: RunRecord) -> None:
        """Write the record, remove the intent.

        Raises:
            StoreError: the record cannot be written. The intent stays, and the next run writes the attempt up as what it was.
        """
        if (record.run_id, record.attempt) != (self.run_id, self.number):
            raise InternalError(f"the record of {record.run_id}-{record.attempt} is not that of {self.run_id}-{self.number}")
        try:
            self.step("record.before")
            write_record(self.store, replace(record, nonce=self.intent.nonce))
            self.step("record.after")
            self.store.delete(self.intent.path)
            if self._lease is None:  # an attempt that was found again (`begun`) left it behind
                self.store.delete(self.intent.lease)
        finally:
            self.leave()

    def leave(self) -> None:
        """End without a record: the intent stays, and its lease is given up."""
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def _create_manifest(self, build: Callable[[int], Manifest], expected: Current | None) -> tuple[Manifest, bytes]:
        number = max([expected.manifest.version if expected else 0, *manifest_numbers(self.store)]) + 1
        history = next_history(self.store, expected, f"{self.run_id}-{self.intent.nonce}")
        records = new_records(self.store, expected)
        checked = False
        while True:
            manifest = replace(build(number), history=history, records=records)
            self._check_manifest(manifest, number, expected)
            if not checked:
                _check_objects(self.store, manifest)
                checked = True
            data = manifest.to_bytes()
            try:
                self.store.create(manifest_name(number), data)
            except (FileExistsError, StoreError) as fault:
                if _get(self.store, manifest_name(number)) == data:
                    return manifest, data  # our own success, whose answer got lost
                if isinstance(fault, StoreError):
                    raise
                number += 1  # another publisher, or an orphan
            else:
                return manifest, data

    def _check_manifest(self, manifest: Manifest, number: int, expected: Current | None) -> None:
        parent = (expected.manifest.version, expected.sha256) if expected else (None, None)
        if (manifest.version, manifest.run_id, manifest.attempt) != (number, self.run_id, self.number):
            raise InternalError(f"{self.intent.path} built {manifest.version} of {manifest.run_id}-{manifest.attempt} for {number}")
        if (manifest.parent, manifest.parent_sha256) != parent:
            raise InternalError(f"manifest {number} names parent {manifest.parent}, the attempt began at {parent[0]}")


def begin(
    store: Store,
    *,
    run_id: str,
    nonce: str,
    name: str,
    started_utc: str,
    parent: Current | None,
    step: Step = no_step,
) -> RunningAttempt:
    """Say that an attempt is running, before it writes anything else.

    Args:
        store: where the dataset is.
        run_id: the run; the attempt's number is the next one free.
        nonce: what separates the objects of this process from all others; part of their names.
        name: the dataset's name.
        started_utc: ISO 8601 with Z.
        parent: what was current when the attempt began.
        step: called before and after each durable step; a test stops the process there.

    Raises:
        UsageError: the run id cannot stand in names.
        StoreError: the store cannot be written.
    """
    check_run_id(run_id)
    step("intent.before")
    while True:
        attempt = next_attempt(store, run_id)
        intent = Intent(run_id, attempt, nonce, name, started_utc, parent.manifest.version if parent else None)
        # The lease comes first: an intent that can be seen is never taken for a dead one's.
        lease = take(store, intent.lease)
        if lease is None:
            continue  # another process began the same run just now: it has this number
        running = RunningAttempt(store, intent, step, lease)
        try:
            store.create(intent.path, intent.to_bytes())
            step("intent.after")
        except FileExistsError:
            running.leave()
            continue  # as above
        except BaseException:
            running.leave()
            raise
        return running


def begun(store: Store, nonce: str) -> RunningAttempt | None:
    """The attempt that this process has begun and then lost hold of, interrupted before it knew: its intent alone stands."""
    return next((RunningAttempt(store, each) for each in intents(store) if each.nonce == nonce), None)


def _still_there(store: Store, expected: Current | None) -> None:
    """Lose early where the race is already lost: no orphan manifest."""
    found = _get(store, POINTER)
    if found != (expected.pointer_bytes if expected else None):
        raise _lost(found)


def _check_objects(store: Store, manifest: Manifest) -> None:
    """Each object that this version adds is there, and as long as it should be; its pages can be read back."""
    own = {stem_of(manifest.changes)}
    for ref in (each for each in objects(store, manifest) if written_as(each.path, own)):
        found = store.size(ref.path)
        if found != ref.bytes:
            state = "is missing" if found is None else f"has {found} bytes instead of {ref.bytes}"
            raise StoreError(
                f"{ref.path} {state} after it was written; nothing was published",
                field=ref.path,
                hint="look at the disk or store, then repeat",
            )


def _move(store: Store, expected: Current | None, pointer: Pointer) -> None:
    before = expected.pointer_bytes if expected else None
    after = pointer.to_bytes()
    fault: StoreError | None = None
    unanswered = False
    for _ in range(_TRIES):
        try:
            if store.swap(POINTER, before, after):
                return
            fault = None
        except StoreError as refused:
            fault = refused
            unanswered = unanswered or isinstance(refused, LostReplyError)
        try:
            found = _get(store, POINTER)
        except StoreError as unreadable:
            raise _unknown(pointer, f"the pointer could not be read back ({unreadable.message})") from unreadable
        if found == after:
            return  # our own success, whose answer got lost
        if found != before:
            if _descends(store, found, pointer):
                return  # and somebody has already published on top of it
            # No two pointers are equal, so a late write of ours can no longer find what it expects.
            raise _lost(found)
        if fault is not None and not unanswered:
            raise fault
        # No answer, and not done yet: asking again is safe, since only one of the two can find what it expects. A refusal now
        # says nothing about the request before, which may still be on its way.
    raise _unknown(pointer, "the store gives no answer, and the pointer has not moved so far") from fault


def _descends(store: Store, found: bytes | None, pointer: Pointer) -> bool:
    """Whether our version is an ancestor of the one that is current."""
    if found is None:
        return False
    try:
        newer = Pointer.from_bytes(found)
        head = Current(found, newer, read_manifest(store, newer.version, newer.sha256), newer.sha256)
        for each in lines(store, head):
            if each.version <= pointer.version:
                return (each.version, each.sha256) == (pointer.version, pointer.sha256)
    except (CorruptError, StoreError) as fault:
        raise _unknown(pointer, f"what is current cannot be read ({fault.message})") from fault
    return False


def _get(store: Store, name: str) -> bytes | None:
    try:
        return store.get(name)
    except FileNotFoundError:
        return None


def _lost(found: bytes | None) -> ConflictError:
    who = "the pointer is gone"
    if found is not None:
        winner = Pointer.from_bytes(found)
        who = f"run {winner.run_id} published version {winner.version} meanwhile"
    return ConflictError(
        f"another publisher won: {who}; nothing of this run was published",
        field=POINTER,
        hint="repeat the command: it compares with the new version",
    )


def _unknown(pointer: Pointer, why: str) -> UnknownOutcomeError:
    return UnknownOutcomeError(
        f"it is unknown whether version {pointer.version} of run {pointer.run_id} became current: {why}",
        field=POINTER,
        hint="nothing was deleted; «status(DATASET)» or the next publish names what is current",
    )
