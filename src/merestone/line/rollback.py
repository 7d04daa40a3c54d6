"""The run of a roll-back: its attempt, its commit, its record.

Not here: what a roll-back commits (`writer.rollback`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from merestone.dataset import feed
from merestone.dataset.current import Current
from merestone.dataset.feed import Changes, Feed
from merestone.dataset.filter import Filter, check, parse_where
from merestone.dataset.record import RunRecord
from merestone.dataset.version import Dataset
from merestone.errors import MerestoneError, UnknownOutcomeError, UsageError
from merestone.inspect.browse import canonical_key
from merestone.line import environment
from merestone.line.finish import close
from merestone.line.run import derive_run_id
from merestone.line.undisturbed import undisturbed
from merestone.results.progress import Watch, nobody
from merestone.writer.commit import RunningAttempt, begin, begun
from merestone.writer.records import version_of, write_up_abandoned
from merestone.writer.rollback import RolledBack, rollback


def roll_back(dataset: Dataset, *, to: int, reason: str, wrong: Sequence[str] = (), watch: Watch = nobody) -> RolledBack:
    """Commit a new version with the content of an older one.

    Args:
        dataset: the dataset.
        to: the version whose content comes back.
        reason: why, in a person's words.
        wrong: the features whose withdrawn content is wrong: their keys as messages write them, or conditions that they meet.
        watch: is called after each object of the older version that is proven.

    Raises:
        UsageError: the older version does not exist, no reason, or a feature of `wrong` is not part of what is taken back.
        CorruptError: an object of the older version is missing, cut or altered.
        ConflictError, StoreError, UnknownOutcomeError: as a publish.
    """
    store, head, started = dataset.store, dataset.current(), environment.now()
    if not reason.strip():
        raise UsageError("a roll-back needs a reason", field="reason", hint='say why: «reason="wrong export of 2026-03-02"»')
    if to == head.manifest.version:
        raise UsageError(f"v{to} is the current version already", field="to", hint="«log(DATASET)» lists the versions")
    dataset.manifest(to)
    named = _named(dataset, head, to, wrong)
    run_id = derive_run_id(head.manifest.name, head.sha256, f"roll back to {to}")
    write_up_abandoned(store, now=environment.stamp(environment.now()), by=run_id)
    nonce, stamp = environment.nonce(), environment.stamp(started)
    attempt: RunningAttempt | None = None
    try:
        with undisturbed(environment.fault_step()) as step:
            attempt = begin(store, run_id=run_id, nonce=nonce, name=head.manifest.name, started_utc=stamp, parent=head, step=step)
            done = rollback(attempt, head, to=to, reason=reason.strip(), now=stamp, wrong=named, watch=watch)
            notices = close(attempt, done.committed.manifest.version, _record(attempt, head, done, stamp, to, reason.strip()))
    except UnknownOutcomeError:
        raise  # no record: the next run writes up what became of it
    except (MerestoneError, KeyboardInterrupt) as fault:
        attempt = attempt or begun(store, nonce)
        if attempt is not None:
            _record_failure(attempt, head.manifest.name, head.manifest.version, stamp, fault)
        raise
    finally:
        if attempt is not None:
            attempt.leave()
    return replace(done, notices=notices)


def _record(attempt: RunningAttempt, head: Current, done: RolledBack, started: str, to: int, reason: str) -> RunRecord:
    made = done.committed.manifest
    return RunRecord(
        run_id=attempt.run_id,
        attempt=attempt.number,
        status="rolled_back",
        name=made.name,
        started_utc=started,
        ended_utc=environment.stamp(environment.now()),
        parent_version=head.manifest.version,
        version=made.version,
        contract_version=made.contract_version,
        contract_sha256=made.contract_sha256,
        counts=made.counts,
        delta={
            name: made.counts.get(name, 0)
            for name in ("added", "changed", "removed", "moved", "reversed", "rekeyed", "suppressed", "reprocessed")
        },
        rollback={"to": to, "reason": reason, "by": environment.who()},
        tool=environment.tools(),
    )


def _named(dataset: Dataset, head: Current, to: int, wrong: Sequence[str]) -> list[bytes]:
    """The canonical keys of the features that `wrong` names: of the change that is taken back, those with the key or that meet the conditions.

    A text that is the key of such a feature is that key, whatever else it may be.

    Raises:
        UsageError: a text is neither a key nor conditions, or no feature of the change meets them.
    """
    if not wrong:
        return []
    change = feed.changes(dataset, to, head.manifest.version)
    touched = set(change.touched.key.to_pylist())
    out: list[bytes] = []
    for each in wrong:
        key: bytes | None = None
        unknown: UsageError | None = None
        try:
            key = canonical_key(head.manifest.name, head.manifest.key, each)
        except UsageError as fault:
            unknown = fault
        if key is not None and key in touched:
            out.append(key)
            continue
        try:
            conditions = parse_where(each)
        except UsageError:
            if unknown is not None:
                raise unknown from None
            out += [key] if key is not None else []  # no part of the change, as the roll-back says
            continue
        out += _meeting(dataset, change, Filter(where=conditions), each)
    return out


def _meeting(dataset: Dataset, change: Changes, wanted: Filter, typed: str) -> list[bytes]:
    """The keys of a change whose rows meet conditions: as they are now, or as they were before they were removed."""
    found: list[bytes] = []
    now = change.touched.filter(change.touched.has)
    gone = change.touched.filter(pc.invert(change.touched.has))
    for number, rows, side in ((change.to_version, now, Feed.partition), (change.from_version, gone, Feed.old_partition)):
        version = dataset.version(number)
        check(wanted, version.columns.schema)
        if len(rows):
            meets = wanted.matches(feed.rows_of(version, rows, side), version.columns.geometry)
            found += rows.key.filter(pa.array(meets)).to_pylist()
    if not found:
        raise UsageError(
            f"no feature of the change that is taken back meets {typed}",
            field="wrong",
            hint=f"«changes(DATASET, from_version={change.from_version})» shows the change",
        )
    return found


def _record_failure(attempt: RunningAttempt, name: str, version: int, started: str, fault: BaseException) -> None:
    """Leave a record of an attempt that failed; where even that fails, the first fault is the one that is reported.

    Where the version is there and only its record is not, the next run writes it up as what it is.
    """
    error = (
        fault.to_json()
        if isinstance(fault, MerestoneError)
        else {"kind": "interrupted", "retry": True, "message": "interrupted", "field": None, "hint": None}
    )
    try:
        if version_of(attempt.store, attempt.intent) is None:
            attempt.finish(
                RunRecord(
                    run_id=attempt.run_id,
                    attempt=attempt.number,
                    status="failed",
                    name=name,
                    started_utc=started,
                    ended_utc=environment.stamp(environment.now()),
                    parent_version=version,
                    version=version,
                    error=error,
                    tool=environment.tools(),
                )
            )
    except MerestoneError as second:
        fault.add_note(f"no run record could be written either: {second.message}")
