"""One run on its way: what it was asked, what it has found so far, and the attempt that it holds.

Not here: the order of the steps (`publish`), how a run ends (`finish`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

import pyarrow as pa

from merestone.dataset.current import Current
from merestone.dataset.manifest import DataFile, ObjectRef
from merestone.dataset.pages import PartitionFiles, in_path_order, live_entries
from merestone.dataset.record import read_records
from merestone.dataset.scheme import Scheme, scheme_of
from merestone.engine.port import Engine
from merestone.errors import InternalError, UsageError
from merestone.json_value import JsonObject
from merestone.line import environment
from merestone.line.comparing.published_rows import Published, by_partition
from merestone.line.preparing.prepared import Prepared
from merestone.line.receiving.receive import Received
from merestone.line.receiving.row_evidence import RowEvidence
from merestone.line.settings import PublishSettings
from merestone.line.step_events import EventKeeping, EventTerms
from merestone.lineage.store.recorded_schema import check_schema
from merestone.lineage.store.writing import ROOT, RunWriter
from merestone.publication.publication import Publication
from merestone.results.progress import Progress
from merestone.source.delivered_bytes import digest_of_bytes
from merestone.storage.port import Store
from merestone.writer.commit import RunningAttempt, Step, begin, no_step
from merestone.writer.records import write_up_abandoned


@dataclass(slots=True)
class Run:
    """What one run gathers on its way. `folder` is its scratch folder, `nonce` sets its objects apart from those of any other process."""

    publication: Publication
    settings: PublishSettings
    store: Store
    head: Current | None
    folder: str
    engine: Engine
    nonce: str
    started: datetime
    clock: float
    stages: dict[str, float] = field(default_factory=dict)
    attempt: RunningAttempt | None = None
    writer: RunWriter | None = None
    plan: list[str] = field(default_factory=list)
    step: Step = no_step
    evidence: RowEvidence = field(default_factory=lambda: RowEvidence(hold=True))
    rejects_file: ObjectRef | None = None
    confirmations: list[JsonObject] = field(default_factory=list)
    doubt: str = ""  # why the token that came with the run does not fit
    prepared: Prepared | None = None
    received: Received | None = None
    bytes_sha256: str | None = None
    _entries: dict[str, PartitionFiles] | None = field(default=None, repr=False)
    _files: tuple[DataFile, ...] | None = field(default=None, repr=False)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage for the run record."""
        begun = time.perf_counter()
        self.settings.progress(Progress(name))
        try:
            yield
        finally:
            seconds = time.perf_counter() - begun
            self.stages[name] = round(self.stages.get(name, 0.0) + seconds, 3)
            self.settings.progress(Progress(name, ended=True))
            environment.give_back_memory()

    @property
    def terms(self) -> Prepared:
        """What was settled before a row was read."""
        if self.prepared is None:
            raise InternalError("the run asks for its terms before it has prepared them")
        return self.prepared

    @property
    def delivery(self) -> Received:
        """What pass 1 found."""
        if self.received is None:
            raise InternalError("the run asks for its delivery before it was read")
        return self.received

    @property
    def entries(self) -> dict[str, PartitionFiles]:
        """The partitions of the last version; read from its pages once."""
        if self._entries is None:
            self._entries = live_entries(self.store, self.head.manifest.files) if self.head else {}
        return self._entries

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The live files of the last version."""
        if self._files is None:
            self._files = in_path_order(self.entries.values())
        return self._files

    @property
    def scheme(self) -> Scheme | None:
        """How the last version places its rows."""
        return scheme_of(self.store, self.head.manifest, self.entries) if self.head else None

    @property
    def published(self) -> Published:
        """The features of the last version where they lie."""
        terms = self.terms
        return Published(terms.parent.published, self.store, by_partition(self.files), terms.partitions.names())

    @property
    def read_whole(self) -> bool:
        """Whether the delivery was read to its end."""
        return self.received is not None or self.bytes_sha256 is not None

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return time.perf_counter() - self.clock

    @property
    def parent_sha256(self) -> str | None:
        """The checksum of the last version's manifest."""
        return self.head.sha256 if self.head else None

    @property
    def parent_version(self) -> int | None:
        """The last version's number."""
        return self.head.manifest.version if self.head else None

    @property
    def run_id(self) -> str | None:
        """The run, once the attempt has begun."""
        return self.attempt.run_id if self.attempt is not None else None

    @property
    def events(self) -> EventKeeping | None:
        """What keeps the events of the attempt; None in a dry run, which keeps none."""
        if self.writer is None or self.attempt is None:
            return None
        tag, contract = self.publication.audit_tag, self.terms.contract
        return EventKeeping(EventTerms(self.attempt.run_id, self.attempt.number, tag, str(contract.contract_version)), self._keep)

    def _keep(self, stages: Sequence[str], events: pa.Table) -> None:
        """Keep the events of a batch in the scratch folder; `stages` is the plan that they follow."""
        self.plan = list(stages)
        if self.writer is not None:
            self.writer.write(events)


def begin_attempt(run: Run, delivery: str | None, *, own_id: bool = True) -> None:
    """Write up dead attempts and say that this one is running; a dry run writes nothing at all.

    Args:
        run: the run.
        delivery: the digest of what was delivered, None where it could not be read to its end.
        own_id: whether the given run id counts; an attempt that gave another delivery's id is on record under an id of its own.

    Raises:
        UsageError: the run id was used for another delivery.
        CorruptError: the event store was written by a schema that conflicts with the one that runs.
        StoreError: the store cannot be written.
    """
    if run.settings.dry_run:
        return
    given = run.settings.run_id if own_id else None
    run_id = given or derive_run_id(run.publication.name, run.parent_sha256, delivery or f"not read: {run.nonce}")
    write_up_abandoned(run.store, now=environment.stamp(environment.now()), by=run_id)
    if given is not None and delivery is not None:
        _check_run_id(run, delivery)
    run.attempt = begin(
        run.store,
        run_id=run_id,
        nonce=run.nonce,
        name=run.publication.name,
        started_utc=environment.stamp(run.started),
        parent=run.head,
        step=run.step,
    )
    check_schema(run.store, ROOT)  # before the work is done whose lineage could not be kept
    run.writer = RunWriter(run.folder, run_id, run.attempt.number, run.nonce, carry_out=run.engine.run_units)


def begin_by_bytes(run: Run) -> None:
    """As `begin_attempt`, for a delivery that no keys identify: by the bytes of its files. A retry is the same run.

    Raises:
        SourceError: a file cannot be read.
        MerestoneError: as `begin_attempt`.
    """
    if not run.settings.dry_run:
        run.bytes_sha256 = digest_of_bytes(run.publication.source.path)
        begin_attempt(run, run.bytes_sha256)


def derive_run_id(name: str, parent: str | None, delivery: str) -> str:
    """The id of the run that compares a delivery with a version of a dataset: the same question gets the same id."""
    return blake2b("\x1f".join([name, parent or "", delivery]).encode(), digest_size=8).hexdigest()


def _check_run_id(run: Run, delivery: str) -> None:
    for record in read_records(run.store, run.settings.run_id):
        by_bytes = record.delivery.get("bytes_sha256")
        # Rows and bytes cannot be compared: the file that was refused for its columns may be the one that is read now.
        seen = by_bytes if run.bytes_sha256 is not None else None if by_bytes else record.delivery.get("set_digest")
        if seen is not None and seen != delivery:
            raise UsageError(
                f"run id {run.settings.run_id} was used for another delivery",
                field="run_id",
                hint="give each delivery its own «run_id», or leave it out: the id is then derived from the delivery",
            )
