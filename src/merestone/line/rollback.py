"""The run of a roll-back: its attempt, its commit, its record.

Not here: what a roll-back commits (`writer.rollback`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from merestone.dataset.record import RunRecord
from merestone.dataset.version import Dataset
from merestone.errors import MerestoneError, UnknownOutcomeError, UsageError
from merestone.inspect.browse import canonical_key
from merestone.line import environment
from merestone.line.finish import close
from merestone.line.run import derive_run_id
from merestone.writer.commit import Attempt, begin
from merestone.writer.records import version_of, write_up_abandoned
from merestone.writer.rollback import RolledBack, rollback


def roll_back(dataset: Dataset, *, to: int, reason: str, wrong: Sequence[str] = ()) -> RolledBack:
    """Commit a new version with the content of an older one.

    Args:
        dataset: the dataset.
        to: the version whose content comes back.
        reason: why, in a person's words.
        wrong: the features whose withdrawn content is wrong, as messages write their keys.

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
    named = [canonical_key(head.manifest.name, head.manifest.key, each) for each in wrong]
    run_id = derive_run_id(head.manifest.name, head.sha256, f"roll back to {to}")
    write_up_abandoned(store, now=environment.stamp(environment.now()), by=run_id)
    attempt = begin(
        store,
        run_id=run_id,
        nonce=environment.nonce(),
        name=head.manifest.name,
        started_utc=environment.stamp(started),
        parent=head,
        step=environment.fault_step(),
    )
    try:
        done = rollback(attempt, head, to=to, reason=reason.strip(), now=environment.stamp(started), wrong=named)
        made = done.committed.manifest
        notices = close(
            attempt,
            made.version,
            RunRecord(
                run_id=attempt.run_id,
                attempt=attempt.number,
                status="rolled_back",
                name=made.name,
                started_utc=environment.stamp(started),
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
                rollback={"to": to, "reason": reason.strip(), "by": environment.who()},
                tool=environment.tools(),
            ),
        )
    except UnknownOutcomeError:
        raise  # no record: the next run writes up what became of it
    except (MerestoneError, KeyboardInterrupt) as fault:
        _record_failure(attempt, head.manifest.name, head.manifest.version, environment.stamp(started), fault)
        raise
    finally:
        attempt.leave()
    return replace(done, notices=notices)


def _record_failure(attempt: Attempt, name: str, version: int, started: str, fault: BaseException) -> None:
    """Leave a record of an attempt that failed; where even that fails, the first fault is the one that is reported.

    Where the version is there and only its record is not, the next run writes it up as what it is.
    """
    error = (
        fault.to_json()
        if isinstance(fault, MerestoneError)
        else {"kind": "interrupted", "message": "interrupted", "field": None, "hint": None}
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
