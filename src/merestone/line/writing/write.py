"""A version made: pass 3, change log, index, findings, lineage, and the commit that makes all of them true at once.

Not here: the protocol of the commit (`writer.commit`), what is written in a file (`writer.files`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Before
from merestone.contract.body import body
from merestone.dataset.index import needs_checkpoint
from merestone.dataset.known import Sum
from merestone.dataset.manifest import DataFile, FileSet, IndexRef, Manifest, ObjectRef
from merestone.dataset.pages import PartitionFiles
from merestone.dataset.partition import tree_to_table
from merestone.dataset.tables import ChangeLog
from merestone.errors import InternalError
from merestone.gate.findings import FindingLines
from merestone.gate.freshness import record
from merestone.line import environment
from merestone.line.comparing.key_order import in_order, key_batches
from merestone.line.finish import fates, keep_rejects, seal
from merestone.line.judging.change_verdict import ChangeVerdict
from merestone.line.processing.process import Processed
from merestone.line.run import Run
from merestone.line.step_events import BatchTerms
from merestone.line.writing.change_log import LogContent, log_units
from merestone.line.writing.index_order import first_checkpoint, next_checkpoint
from merestone.line.writing.log_piece import LogTerms, log_piece
from merestone.line.writing.rewrite import rewrite
from merestone.line.writing.rewrite_partition import RewriteJob
from merestone.lineage.store.writing import SealedRun
from merestone.results.result import PublishResult
from merestone.writer.files import FileLayout, write_pieces, write_table
from merestone.writer.pages import PAGES, write_page

PUBLISH_BATCH = 1 << 23  # batch numbers of stage `publish` start here, beyond those of any delivery


def write_version(run: Run, processed: Processed, before: Before, verdict: ChangeVerdict) -> tuple[PublishResult, SealedRun | None]:
    """Write everything that the new version names, and commit it.

    Raises:
        StoreError, ConflictError, UnknownOutcomeError: as `writer.commit`; the old version stays valid and readable.
        InternalError: the files hold another number of features than was counted; nothing is committed then.
    """
    attempt, terms, received, head, step = run.attempt, run.terms, run.delivery, run.head, environment.fault_step()
    if attempt is None:
        raise InternalError("a run writes only after it has begun")
    stem, version = f"{attempt.run_id}-{run.nonce}", (run.parent_version or 0) + 1
    layout = terms.layout_with(processed.extent)
    candidates, settled = received.candidates, verdict.settled
    step("data.before")
    with run.stage("pass 3"):
        job = RewriteJob(run.store.url, layout, terms.parent.published, stem, attempt.run_id)
        written = rewrite(job, verdict.plan, run.files, verdict.names, settled.ready, verdict.leaving, run.engine)
    step("data.after")
    with run.stage("commit"):
        step("changes.before")
        content = LogContent(
            np.flatnonzero(settled.codes < classes.UNCHANGED),
            settled.codes,
            verdict.labels,
            processed.digest,
            candidates.source,
            before,
            verdict.placed,
            verdict.removed,
            verdict.removed_rekeyed,
        )
        total = Sum(head.manifest.set_digest) if head else Sum()
        changes = write_pieces(
            run.store, f"_changes/{stem}.parquet", ChangeLog.schema, _log(run, content, verdict.names, total), run.folder
        )
        step("changes.after")
        index = _index(run, changes, version, verdict, processed, stem)
        lines = FindingLines.concat([each for each in run.evidence.lines if len(each)])
        findings = write_table(run.store, f"_findings/{stem}.parquet", lines.table) if len(lines) else None
        step("lineage.before")
        keep_rejects(run)
        lineage = seal(run)
        step("lineage.after")
        held = sum(each.rows for each in (*verdict.plan.carried, *written))
        if held != verdict.features:
            raise InternalError(
                f"the files of the new version hold {held} rows, {verdict.features} features were counted; nothing was published",
                hint="please report this, with the run record",
            )
        draft = _manifest(run, layout, verdict, changes, index, findings, lineage, str(total), version)
        added = (*written, changes, *([findings] if findings else ()), *([index.checkpoint] if index.checkpoint_version == version else ()))
        draft = replace(
            draft,
            tree=_tree(run, verdict, stem),
            files_written=len(written),
            files_carried=len(verdict.plan.carried),
            bytes_written=sum(each.bytes for each in added if each),
        )
        draft = _with_memory(run, draft, verdict, stem)
        replaced = _replaced(run, verdict, written)
        committed = attempt.commit(lambda number: _numbered(run, draft, stem, replaced, version, number), head)
    touched, partitions = _touched(run, written, verdict.plan.carried)
    result = replace(
        verdict.result,
        status="published",
        version=committed.manifest.version,
        features=verdict.features,
        files_written=len(written),
        files_carried=len(verdict.plan.carried),
        bytes_written=sum(each.bytes for each in written),
        rows_written=sum(each.rows for each in written),
        partitions_touched=touched,
        partitions=partitions,
    )
    return result, lineage


def _touched(run: Run, written: Sequence[DataFile], carried: Sequence[DataFile]) -> tuple[int, int]:
    """How many partitions have other files than before, and of how many, by what was really written."""
    kept = {each.partition for each in carried}
    there = {each.partition for each in (*run.files, *written)}
    return len(there - kept), len(there)


def _ordered(run: Run, content: LogContent) -> Iterator[tuple[pa.Array, npt.NDArray[np.int64]]]:
    """The keys that a log speaks of, in their order."""

    def keys_of_log() -> Iterator[pa.Array]:
        yield from key_batches(run.delivery.candidates.spool, content.rows)
        for gone in content.removed.key.chunks:
            yield gone.cast(pa.binary())

    return in_order(keys_of_log, run.folder)


def _index(run: Run, changes: ObjectRef, version: int, verdict: ChangeVerdict, processed: Processed, stem: str) -> IndexRef:
    """The index of the new version: one log more, or the whole of it in the order of the delivery."""
    name, received = f"_index/{stem}.parquet", run.delivery
    if run.head is None:
        index = IndexRef(None, None, ((version, changes),))
        if not needs_checkpoint(index, verdict.features):
            return index
        whole = first_checkpoint(
            run.store,
            name,
            received.candidates,
            verdict.settled.codes,
            processed.digest,
            verdict.placed,
            verdict.names,
            version,
            run.folder,
        )
        return IndexRef(whole, version, ())
    last = run.head.manifest.index
    index = IndexRef(last.checkpoint, last.checkpoint_version, (*last.log, (version, changes)))
    if not needs_checkpoint(index, verdict.features, received.met.get("searched", 0) / max(received.rows, 1)):
        return index
    return IndexRef(next_checkpoint(run.store, name, index, received.keys(), run.folder), version, ())


def _log(run: Run, content: LogContent, names: Sequence[str], total: Sum) -> Iterator[pa.Table]:
    """The log's pieces on their way into the file: each brings the digest of the whole set forward and leaves its events."""
    events, parent, crs = run.events, run.terms.parent, run.terms.projection.crs
    terms = LogTerms(tuple(names), crs, f"merestone {environment.tools()['merestone']}", parent.keeps_rows, parent.short_cut)

    def lineage(number: int) -> BatchTerms | None:
        return BatchTerms(events.terms, PUBLISH_BATCH + number, environment.now()) if events is not None else None

    for piece in run.engine.run_units(log_piece, log_units(content, _ordered(run, content), terms, lineage)):
        total.include(piece.difference)
        if events is not None and piece.events is not None:
            events.keep(run.plan, piece.events)
        yield piece.log.table


def _manifest(
    run: Run,
    layout: FileLayout,
    verdict: ChangeVerdict,
    changes: ObjectRef,
    index: IndexRef,
    findings: ObjectRef | None,
    lineage: SealedRun | None,
    set_digest: str,
    version: int,
) -> Manifest:
    terms, attempt, head = run.terms, run.attempt, run.head
    if attempt is None:
        raise InternalError("a run writes only after it has begun")
    partitioning = terms.placement.record(layout.bounds)
    return Manifest(
        version=version,
        parent=run.parent_version,
        parent_sha256=run.parent_sha256,
        run_id=attempt.run_id,
        attempt=attempt.number,
        time_utc=environment.stamp(run.started),
        name=run.publication.name,
        contract_version=str(terms.contract.contract_version),
        contract_sha256=terms.contract.digest,
        contract=body(terms.contract),
        key=terms.reading.key_record(),
        domain=terms.domain,
        processing=terms.processing,
        partitioning=partitioning,
        features=verdict.features,
        counts=fates(verdict.result),
        files=head.manifest.files if head else FileSet(),
        changes=changes,
        index=index,
        findings=findings,
        lineage=lineage.to_json() if lineage else None,
        delivery={
            "rows": run.delivery.rows,
            "set_digest": run.delivery.set_digest,
            "extent": run.delivery.extent,
            **({"distributions": run.delivery.distributions} if run.delivery.distributions else {}),
            **({"coordinates": run.delivery.coordinates} if run.delivery.coordinates else {}),
            **({"newest": newest} if (newest := record(terms.contract, run.delivery.newest)) else {}),
            "source": terms.source_record(),
            "confirmations": run.confirmations,
        },
        set_digest=set_digest,
        files_written=0,
        files_carried=0,
        withdrawn=head.manifest.withdrawn if head else (),
        tool=environment.tools(),
    )


def _tree(run: Run, verdict: ChangeVerdict, stem: str) -> ObjectRef | None:
    """The object that holds the splits of the kd-tree: the one that is there, or a new one."""
    if verdict.tree is None:
        return None
    if run.head is not None and run.head.manifest.tree is not None and verdict.tree == run.terms.placement.tree:
        return run.head.manifest.tree
    return write_table(run.store, f"{PAGES}{stem}-tree.parquet", tree_to_table(verdict.tree))


def _with_memory(run: Run, draft: Manifest, verdict: ChangeVerdict, stem: str) -> Manifest:
    """The manifest with what stays remembered of a withdrawn change."""
    if not len(verdict.brought.entries) or run.head is None:
        return draft
    left = verdict.brought.after(confirmed=bool(run.confirmations))
    page = write_table(run.store, f"{PAGES}{stem}-withdrawn.parquet", left.table) if len(left) else None
    return replace(draft, withdrawn_page=page, withdrawn_domain=run.head.manifest.withdrawn_domain if page else None)


def _replaced(run: Run, verdict: ChangeVerdict, written: Sequence[DataFile]) -> dict[str, PartitionFiles]:
    """The partitions that the version replaces, with their files. A column value keeps its name for ever, also while no feature has it."""
    found: dict[str, list[DataFile]] = {each: [] for each in (*verdict.plan.touched, *verdict.plan.dropped)}
    for file in written:
        found[file.partition].append(file)
    by_column = run.publication.partition.by == "column"
    values = run.terms.partitions.values_of(found) if by_column else {}
    return {name: PartitionFiles(name, values.get(name), tuple(files)) for name, files in found.items()}


def _numbered(run: Run, draft: Manifest, stem: str, replaced: dict[str, PartitionFiles], version: int, number: int) -> Manifest:
    """The manifest under the number that it got, and its page: an orphan may have taken the number that was foreseen."""
    index = draft.index
    files = write_page(run.store, stem, number, draft.files, run.entries, replaced)
    return replace(
        draft,
        version=number,
        files=files,
        index=replace(
            index,
            checkpoint_version=number if index.checkpoint_version == version else index.checkpoint_version,
            log=tuple((number if at == version else at, ref) for at, ref in index.log),
        ),
    )
