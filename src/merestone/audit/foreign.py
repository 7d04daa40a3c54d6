"""Runs of other programs, written into an event store from Python: their events, sealed at the end or marked as failed.

Not here: events that come as a file (`ingest`), what other catalogues get of a run (`facts`, `iso`).

The job, its tool, its times and its outcome are the program's own; Merestone keeps them and says who wrote them down. Events wait on local
disk, a million in memory at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from merestone.errors import UsageError
from merestone.line import environment
from merestone.lineage.event.collector import OWN_STAGES, LineageCollector, base_stage
from merestone.lineage.event.record import ATTEMPT_BITS, LineageEvent, check_identity
from merestone.lineage.exchange.ingest import BATCH_ROWS, judge_columns
from merestone.lineage.store.run_manifest import attempts_of
from merestone.lineage.store.witness import seen
from merestone.lineage.store.writing import ROOT, RUNS, Besides, RunWriter, SealedRun, run_manifest_name
from merestone.masking import masked
from merestone.storage.port import Store

_OWN_FIELDS = ("event_id", "run_id", "sequence")


@dataclass(frozen=True, slots=True)
class Job:
    """A job of another program, and one run of it.

    Attributes:
        namespace: where the job is at home, as OpenLineage means it.
        name: what the job is called.
        run: what the run is called.
        tool: the program, name to version.
        plan: its stages in order, for the check of the chain; none where it does not say.
        inputs: what it read, as URIs.
        outputs: what it wrote, as URIs.
        basis: why its lineage is kept here.
    """

    namespace: str
    name: str
    run: str
    tool: Mapping[str, str]
    plan: Sequence[str] = ()
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    basis: str = ""

    @property
    def run_id(self) -> str:
        """The run as the store knows it."""
        return f"{self.namespace}/{self.name}/{self.run}"


def job_of(run_id: str) -> dict[str, str] | None:
    """Namespace, name and run of a run id of that form; None where it has another."""
    namespace, _, rest = run_id.rpartition("/")[0].rpartition("/") if run_id.count("/") >= 2 else ("", "", "")
    return {"namespace": namespace, "name": rest, "run": run_id.rpartition("/")[2]} if namespace and rest else None


@dataclass(slots=True)
class ForeignRun:
    """A run of another program that goes on. Use it in a `with` block: it is sealed at the end, or marked as failed where the block raises.

    Attributes:
        run_id: the run as the store knows it: namespace, job and run.
        events: how many events were taken so far.
        sealed: what was sealed, once the block has ended.
    """

    run_id: str
    events: int = 0
    sealed: SealedRun | None = None
    _job: Job = field(kw_only=True, repr=False)
    _store: Store = field(kw_only=True, repr=False)
    _held: ExitStack = field(kw_only=True, repr=False)
    _writer: RunWriter = field(kw_only=True, repr=False)
    _started: datetime = field(kw_only=True, repr=False)
    _collector: LineageCollector = field(default_factory=LineageCollector, kw_only=True, repr=False)
    _pending: int = field(default=0, kw_only=True, repr=False)

    def add(self, event: LineageEvent) -> None:
        """Take one event. Its run has to be this one; it is numbered by the order in which it comes.

        Raises:
            ValueError: it is of another run, or of a stage that belongs to a publish alone.
        """
        if event.run_id != self.run_id:
            raise ValueError(f"the event is of run {event.run_id!r}, not of run {self.run_id!r}")
        _check_stage(event.stage)
        self._collector.add(replace(event, sequence=self._numbered()))
        self.events += 1
        self._pending += 1
        if self._pending >= BATCH_ROWS:
            self._flush()

    def write(self, events: Any) -> int:
        """Take many events in columns. How many there were.

        They are judged batch by batch: where a row is not an event, the batches before it are taken.

        Args:
            events: a pyarrow.Table, RecordBatch or RecordBatchReader, or an iterable of them, with the fields of the event schema as
                columns. `run_id`, `sequence` and `event_id` are left out: they are this run's.

        Raises:
            ValueError: a row is not an event; the message names the first one.
        """
        self._flush()
        before = self.events
        for batch in _batches(events):
            self._write_batch(batch)
        return self.events - before

    def __enter__(self) -> Self:
        """The run itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        """Seal the run: as complete, or as failed with what the block raised."""
        with self._held:
            self._flush()
            self.sealed = self._seal(
                "complete" if fault is None else "failed", None if fault is None else masked(f"{type(fault).__name__}: {fault}")
            )

    def _write_batch(self, batch: pa.RecordBatch) -> None:
        if own := [each for each in batch.schema.names if each in _OWN_FIELDS]:
            raise ValueError(f"{', '.join(own)} cannot be given: the run numbers and names its events itself")
        rows = batch.num_rows
        numbers = pa.array(np.arange(self._numbered(), self._numbered() + rows, dtype=np.int64))
        whole = pa.RecordBatch.from_arrays(
            [pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([self.run_id])), numbers, *batch.columns],
            names=["run_id", "sequence", *batch.schema.names],
        )
        judged = judge_columns(whole, self.events + 1)
        for each in judged.quarantined:
            raise ValueError(f"row {each.line}: {each.reason}")
        for stage in judged.events.column("stage").unique().to_pylist():
            _check_stage(stage)
        self._writer.write(judged.events)
        self.events += rows

    def _numbered(self) -> int:
        return (self._writer.attempt << ATTEMPT_BITS) + self.events

    def _flush(self) -> None:
        if self._pending:
            self._writer.write(self._collector.drain())
            self._pending = 0

    def _seal(self, outcome: str, reason: str | None) -> SealedRun:
        state = seen(self._store)
        job, ended = self._job, environment.now()
        first = min(self._writer.first or self._started, self._started)
        about = {
            "job": {"namespace": job.namespace, "name": job.name, "run": job.run},
            "outcome": outcome,
            "reason": reason,
            "started_utc": environment.stamp(self._started),
            "ended_utc": environment.stamp(ended),
            "inputs": [masked(each) for each in job.inputs],
            "outputs": [masked(each) for each in job.outputs],
            "actor": environment.who(),
            "basis": job.basis,
            "recorded_by": f"merestone {environment.tools()['merestone']}",
        }
        return self._writer.seal(
            self._store,
            run_date=environment.day_of(environment.stamp(first)),
            plan=list(job.plan),
            tool=dict(job.tool),
            time=ended,
            besides=Besides(state.heads, state.remembered(self._store), origin="foreign"),
            about=about,
        )


def begin(store: Store, job: Job) -> ForeignRun:
    """Begin to record a run of another program; a run of that name that is sealed already gets another attempt.

    Raises:
        UsageError: a name is empty or cannot be part of a run id, or a stage of the plan belongs to a publish alone.
        StoreError: the store cannot be read.
    """
    for name, value in (("namespace", job.namespace), ("job", job.name), ("run", job.run)):
        try:
            check_identity(name, value)
        except ValueError as fault:
            raise UsageError(str(fault), field=name, hint="give a text without control characters") from fault
        if "/" in value and name != "namespace":
            raise UsageError(f"{name} {value!r} holds a slash", field=name, hint="put what stands before it into the namespace")
    for each in job.plan:
        try:
            _check_stage(each)
        except ValueError as fault:
            raise UsageError(str(fault), field="plan", hint=f"name the stage otherwise, such as {job.name}_{base_stage(each)}") from fault
    stem = run_manifest_name(job.run_id, 0).removesuffix("-0.json")
    known = next((True for name, _ in store.list(f"{ROOT}/{RUNS}/") if name.startswith(f"{ROOT}/{stem}-")), False)
    attempt = attempts_of(store, job.run_id)[-1].attempt + 1 if known else 1
    held = ExitStack()
    folder = held.enter_context(environment.scratch())
    try:
        writer = RunWriter(folder, job.run_id, attempt, environment.nonce())
    except ValueError as fault:
        held.close()
        raise UsageError(str(fault), field="job", hint="give shorter names") from fault
    return ForeignRun(job.run_id, _job=job, _store=store, _held=held, _writer=writer, _started=environment.now())


def _check_stage(stage: str) -> None:
    if base_stage(stage) in OWN_STAGES:
        raise ValueError(
            f"stage {base_stage(stage)} is one of Merestone's own ({', '.join(sorted(OWN_STAGES))}), and belongs to a publish alone"
        )


def _batches(events: Any) -> Iterable[pa.RecordBatch]:
    """What was given as batches of a bounded number of rows."""
    if isinstance(events, pa.Table):
        yield from events.to_batches(max_chunksize=BATCH_ROWS)
    elif isinstance(events, pa.RecordBatch):
        yield from pa.Table.from_batches([events]).to_batches(max_chunksize=BATCH_ROWS)
    else:
        for each in events:
            yield from _batches(each)
