"""How a run ends: finished, refused or failed, and what it leaves behind as evidence.

Not here: the record's form (`dataset.record`), its protocol (`writer.commit`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from merestone.change import guards
from merestone.dataset.manifest import ObjectRef
from merestone.dataset.record import RunRecord, Status, read_records
from merestone.errors import InternalError, MerestoneError, UsageError
from merestone.json_value import JsonObject
from merestone.line import environment
from merestone.line.run import Run, begin_attempt
from merestone.line.tokens import expiry, token_for
from merestone.lineage.store.witness import seen
from merestone.lineage.store.writing import Besides, SealedRun
from merestone.results.finding import Finding
from merestone.results.result import PublishResult
from merestone.writer.commit import RunningAttempt, begun
from merestone.writer.files import write_table
from merestone.writer.records import version_of


def fates(result: PublishResult) -> dict[str, int]:
    """What became of the delivered rows, and the classes: for manifest and record."""
    return {
        "delivered": result.delivered,
        "unchanged": result.unchanged,
        "rejected": result.rejected,
        "held": result.held,
        **result.delta.known(),
    }


def refuse(run: Run, findings: Sequence[Finding], by: Literal["contract", "guard"], result: PublishResult | None = None) -> PublishResult:
    """End a run without a version; a stop by a guard gives out the token that would confirm it."""
    received = run.received
    if run.attempt is None:
        begin_attempt(run, None)
    if result is None:
        bad = max((each.count for each in findings if each.per_row and each.severity == "error"), default=0)
        result = PublishResult(
            name=run.publication.name,
            status="refused",
            version=run.parent_version,
            features=run.head.manifest.features if run.head else 0,
            delivered=received.rows if received else 0,
            run_id=None,
            current=run.parent_version,
            notices=run.publication.notices,
            rejected=bad,
            files_carried=len(run.files),
            partitions=len({each.partition for each in run.files}),
        )
    ordered = tuple(sorted(findings, key=lambda each: each.severity != "error"))
    warned = tuple(each for each in result.findings if by == "guard" and each not in ordered)  # before the stop
    notices = (*result.notices, run.doubt) if run.doubt and by == "guard" else result.notices
    result = replace(result, status="refused", refused_by=by, findings=(*ordered, *warned), notices=notices, version=run.parent_version)
    if by == "guard" and received is not None and run.attempt is not None:
        fired = guards.fired(findings)
        token, issued = token_for(run, fired)
        run.confirmations = [{"token": token, "issued_utc": issued, "guards": fired}]
        result = replace(result, confirm=token, expires=expiry(issued))
    return finish(run, result)


def finish(run: Run, result: PublishResult, lineage: SealedRun | None = None) -> PublishResult:
    """Write the run record, last of all.

    Where nothing is published, the file of the rejected rows and the lineage go before it: of rows that were rejected, and of every delivery
    that was read to its end and refused, also where no row of it could be named.
    """
    result = replace(result, seconds=run.seconds, run_id=run.run_id)
    if result.status == "published" and run.parent_version == result.version:
        result = replace(result, status="unchanged")
    if result.status != "refused" and run.settings.confirm is not None and not run.confirmations:
        unused = f"the token {run.settings.confirm} was not needed: no guard stopped the run"
        result = replace(result, notices=(*result.notices, unused))
    attempt = run.attempt
    if attempt is None:
        return result
    rejects = keep_rejects(run)
    if lineage is None and (rejects is not None or (result.status == "refused" and run.read_whole)):
        lineage = seal(run, result.findings if result.status == "refused" else ())
    status: Status
    if result.status == "planned":
        raise InternalError("a dry run leaves no record")
    status = result.status
    terms = run.prepared
    notices = close(
        attempt,
        result.version if status == "published" else None,
        RunRecord(
            run_id=attempt.run_id,
            attempt=attempt.number,
            status=status,
            name=run.publication.name,
            started_utc=environment.stamp(run.started),
            ended_utc=environment.stamp(environment.now()),
            parent_version=run.parent_version,
            version=result.version,
            refused_by=result.refused_by,
            settings=run.publication.to_json(),
            source=terms.source_record() if terms else {},
            delivery=_delivered(run),
            contract_version=str(terms.contract.contract_version) if terms else None,
            contract_sha256=terms.contract.digest if terms else None,
            counts=fates(result),
            delta=result.delta.known(),
            findings=[each.to_json() for each in result.findings],
            guards=[each.to_json() for each in result.findings if each.surface == "guard"],
            confirmations=run.confirmations,
            stages=run.stages,
            bytes_written=result.bytes_written,
            files_written=result.files_written,
            lineage=lineage.to_json() if lineage else None,
            rejects=rejects.to_json() if rejects else None,
            tool=environment.tools(),
        ),
    )
    return replace(result, notices=(*result.notices, *notices))


def keep_rejects(run: Run) -> ObjectRef | None:
    """Write the rejected rows of a run beside its record, once; None where there are none.

    A version's rejects are written before it is committed: the evidence must not hang on what may fail afterwards.
    """
    found = [each for each in run.evidence.rejects if each.num_rows]
    if run.rejects_file is None and found and run.attempt is not None:
        name = f"_runs/{run.attempt.run_id}-{run.attempt.number}.rejects.parquet"
        run.rejects_file = write_table(run.store, name, pa.concat_tables(found))
    return run.rejects_file


def close(attempt: RunningAttempt, made: int | None, record: RunRecord) -> tuple[str, ...]:
    """Write an attempt's record.

    Args:
        attempt: the attempt, which ends with this.
        made: the version that it has made current, None where it has made none.
        record: how it ended.

    Returns:
        What to say where the version is current and only its record is missing: the next run writes it from the manifest.

    Raises:
        MerestoneError: the record cannot be written, and nothing was made current.
    """
    try:
        attempt.finish(record)
    except MerestoneError as fault:
        if made is None:
            raise
        return (f"v{made} is current, but the record of its run is not complete: {fault.message}; the next publish completes it",)
    return ()


def _delivered(run: Run) -> JsonObject:
    received = run.received
    by_bytes = {"bytes_sha256": run.bytes_sha256} if run.bytes_sha256 is not None else {}
    if received is None:
        return by_bytes
    met = {"met": received.met} if run.head is not None else {}
    return by_bytes | {"rows": received.rows, "set_digest": received.set_digest} | met


def seal(run: Run, findings: Sequence[Finding] = ()) -> SealedRun | None:
    """Seal the run's lineage in the store; None where no feature was met and nothing was found.

    Args:
        run: the run.
        findings: why the delivery was refused.
    """
    if run.writer is None or not (run.writer.events or findings):
        return None
    state = seen(run.store)
    first = min((each.started_utc for each in read_records(run.store, run.writer.run_id)), default=environment.stamp(run.started))
    return run.writer.seal(
        run.store,
        run_date=environment.day_of(first),
        plan=run.plan,
        tool=environment.tools(),
        time=environment.now(),
        besides=Besides(state.heads, [*state.remembered(run.store), *_own_rejects(run)], [each.to_json() for each in findings]),
        about={
            "dataset": run.publication.name,
            "contract_version": str(run.terms.contract.contract_version),
            "source": run.terms.source_record(),
            "confirmations": run.confirmations,
            "delivery": _delivered(run),
        },
    )


def _own_rejects(run: Run) -> list[JsonObject]:
    """The file of the run's rejected rows, as its run manifest remembers it."""
    file = run.rejects_file
    return [{"path": file.path, "bytes": file.bytes, "sha256": file.sha256}] if file is not None else []


def failed(run: Run, fault: BaseException) -> None:
    """Leave a record of an attempt that failed; where even that cannot be written, the first fault is the one that is reported.

    Where the fault came after the version had become current, nothing is on record as failed: the next run writes up that it was published.
    """
    error: JsonObject = dict(InternalError(repr(fault), hint="please report this, with the run record").to_json())
    if isinstance(fault, KeyboardInterrupt):
        error |= {"kind": "interrupted", "retry": True, "message": "interrupted by the user", "hint": "run the command again"}
    if isinstance(fault, MerestoneError):
        error = dict(fault.to_json())
    try:
        run.attempt = run.attempt or begun(run.store, run.nonce)
        if run.attempt is None:
            begin_attempt(run, None, own_id=not (isinstance(fault, UsageError) and fault.field == "run_id"))
        if run.attempt is None:
            return  # a dry run
        if version_of(run.store, run.attempt.intent) is None:
            run.attempt.finish(
                RunRecord(
                    run_id=run.attempt.run_id,
                    attempt=run.attempt.number,
                    status="failed",
                    name=run.publication.name,
                    started_utc=environment.stamp(run.started),
                    ended_utc=environment.stamp(environment.now()),
                    parent_version=run.parent_version,
                    version=run.parent_version,
                    error=error,
                    delivery=_delivered(run),
                    settings=run.publication.to_json(),
                    stages=run.stages,
                    tool=environment.tools(),
                )
            )
    except MerestoneError as second:
        fault.add_note(f"no run record could be written: {second.message}")
