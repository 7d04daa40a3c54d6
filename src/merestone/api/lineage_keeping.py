"""What goes into an event store and what leaves it: runs of other programs, files of events, retention, holds.

Not here: how it is done (`audit`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from merestone.api.lineage_answers import (
    HoldResult,
    IngestResult,
    RetainResult,
)
from merestone.api.places import Path
from merestone.audit import foreign
from merestone.audit import ingest as ingesting
from merestone.audit import retain as retaining
from merestone.audit.foreign import ForeignRun
from merestone.errors import UsageError
from merestone.given import names_of
from merestone.line import environment


def run(
    store: Path,
    *,
    job: str,
    tool: str | Mapping[str, str],
    plan: Sequence[str] = (),
    namespace: str = "default",
    run: str | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    basis: str = "",
) -> ForeignRun:
    """Record what a run of another program did to features: a `with` block, sealed at its end or marked as failed where it raises.

    Job, tool, times and outcome are the program's own in every answer about the run. Events wait on local disk; memory does not
    grow with their number.

    Args:
        store: a dataset, or a folder that does not exist yet; it then holds events alone.
        job: what the job is called.
        tool: the program and its version ("spark 3.5.1"), or several by name.
        plan: its stages, in order, for the check of the chain.
        namespace: where the job is at home, as OpenLineage means it.
        run: what this run is called; a new name by default. A run of a name that is sealed already gets another attempt.
        inputs: URIs of what it reads.
        outputs: URIs of what it writes.
        basis: why its lineage is kept here.

    Returns:
        The run. `add` takes one event, `write` a table, a batch or a reader of batches.

    Raises:
        UsageError: a name cannot be part of a run id, or the plan holds the stage `publish`.
        StoreError: the store cannot be reached.

    Example:
        >>> events = pyarrow.table({
        ...     "feature_id": ["p1", "p2"], "stage": ["load", "load"], "event_type": ["CAST", "CAST"], "outcome": ["PASS", "PASS"],
        ...     "event_time_utc": pyarrow.array([datetime(2026, 3, 1, tzinfo=UTC)] * 2, pyarrow.timestamp("us", "UTC")),
        ...     "source_crs": ["EPSG:4326"] * 2, "target_crs": ["EPSG:4326"] * 2,
        ... })
        >>> with lineage.run("events", job="clean", tool="pandas 2.2.3", plan=["load"], run="monday") as run:
        ...     run.write(events)
        2
        >>> lineage.check_complete("events", run_ids=[run.run_id]).status
        'pass'
    """
    name, _, version = tool.rpartition(" ") if isinstance(tool, str) else ("", "", "")
    tools = {name or version: version if name else "unknown"} if isinstance(tool, str) else dict(tool)
    named = run if run is not None else f"{environment.stamp(environment.now())}-{environment.nonce()}"
    return foreign.begin(
        ingesting.store_of(os.fspath(store)),
        foreign.Job(namespace, job, named, tools, names_of(plan, "plan"), names_of(inputs, "inputs"), names_of(outputs, "outputs"), basis),
    )


def ingest(dataset: Path, file: Path, *, mapping: Path | None = None, plan: Sequence[str] = ()) -> IngestResult:
    """Take in events of other tools: .ndjson, .jsonl, .parquet or .arrow, or a rejection log through a mapping.

    Every line becomes an event or a row in quarantine. A file that was taken in before adds nothing.

    Args:
        dataset: a dataset, or a folder that does not exist yet; it then holds events alone.
        file: the file.
        mapping: the mapping of a rejection log: every line becomes a REJECT.
        plan: the stages of the tool, in order, for the check of the chain.

    Raises:
        UsageError: the mapping is broken, or the file has another form.
        SourceError: the file cannot be read.
        StoreError: the store cannot be written; the same call goes on where it stopped.

    Example:
        >>> lineage.ingest("events", "events.ndjson", plan=["load"]).events
        1
    """
    found = ingesting.ingest(
        os.fspath(dataset), os.fspath(file), mapping=None if mapping is None else os.fspath(mapping), plan=names_of(plan, "plan")
    )
    return IngestResult(
        status="quarantined" if found.quarantined else "done",
        lines=found.lines,
        events=found.events,
        quarantined=found.quarantined,
        runs=found.runs,  # type: ignore[arg-type]  # `ingest` makes these names
        known=found.known,
        quarantine=found.quarantine,
        samples=found.samples,  # type: ignore[arg-type]  # as above
    )


def retain(dataset: Path, *, window: str | None = None, basis: str | None = None, confirm: str | None = None) -> RetainResult:
    """Delete lineage older than its retention window. Dry run by default; pass the printed token to delete.

    Whole days of runs go. What live features need of them is carried on first, legal holds keep theirs, and a tombstone keeps counts and
    roots.

    Args:
        dataset: a folder, a URL, or a publication file, which may name window and basis itself.
        window: how long lineage is kept, an ISO 8601 duration such as P6Y.
        basis: the legal basis of the window.
        confirm: the token that the dry run gave for exactly this.

    Raises:
        UsageError: window or basis is missing, or the token is another plan's.

    Example:
        >>> lineage.retain("parcels.yaml", window="P6Y", basis="Archives Act").status
        'nothing'
    """
    return RetainResult(**asdict(retaining.retain(os.fspath(dataset), window, basis, confirm)))


def hold(dataset: Path, what: str, *, reason: str) -> HoldResult:
    """Place a legal hold on lineage.

    Args:
        dataset: a folder, a URL, or a publication file.
        what: run=ID, feature=ID, date=DAY, date=DAY..DAY or all.
        reason: why.

    Raises:
        UsageError: `what` has another form, or the reason is missing.

    Example:
        >>> lineage.hold("parcels.yaml", "all", reason="court case 12").status
        'held'
    """
    _reasoned(reason)
    return HoldResult("held", retaining.hold(os.fspath(dataset), what, reason).to_json())  # type: ignore[arg-type]  # `Hold` has these names


def release(dataset: Path, hold_id: str, *, reason: str) -> HoldResult:
    """Release a legal hold.

    Args:
        dataset: a folder, a URL, or a publication file.
        hold_id: the id of the hold.
        reason: why.

    Raises:
        UsageError: no such hold exists, or the reason is missing.

    Example:
        >>> placed = lineage.hold("parcels.yaml", "run=nightly", reason="court case 13")
        >>> lineage.release("parcels.yaml", placed.hold["id"], reason="settled").status
        'released'
    """
    _reasoned(reason)
    return HoldResult("released", retaining.release(os.fspath(dataset), hold_id, reason).to_json())  # type: ignore[arg-type]  # as above


def _reasoned(reason: str) -> None:
    if not reason.strip():
        raise UsageError("a hold is placed or released for a reason", field="reason", hint="say why: «reason=TEXT»")
