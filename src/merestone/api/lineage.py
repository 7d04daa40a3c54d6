"""Questions about the lineage of a dataset, one function for each command of `merestone lineage`.

Not here: how events are kept and found (`lineage.store`), what an auditor asks of them (`audit`), writing events of other tools
(`merestone.lineage`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path as File
from typing import Any, Literal

import pyarrow as pa

from merestone.api.lineage_answers import (
    CompleteResult,
    EventsResult,
    EvidenceResult,
    HeadResult,
    HistoryResult,
    HoldResult,
    IngestResult,
    Iso19115Result,
    OpenLineageResult,
    ProblemsResult,
    ProveResult,
    ProvResult,
    RetainResult,
    RunsResult,
    SchemaFaultsResult,
    ScorecardResult,
    SummaryResult,
    WhyResult,
)
from merestone.api.places import AnyDataset, Path, keep_apart, text_of, whole
from merestone.audit import completeness, event_file, evidence_file, facts, foreign, heads, iso, questions
from merestone.audit import ingest as ingesting
from merestone.audit import retain as retaining
from merestone.audit.foreign import ForeignRun
from merestone.dataset.version import Dataset
from merestone.errors import InternalError, SourceError, UsageError
from merestone.inspect import browse
from merestone.inspect.output import written_whole
from merestone.line import environment
from merestone.lineage.event import schema as events
from merestone.lineage.event.record import EVENT_TYPES, OUTCOMES
from merestone.lineage.store import reading
from merestone.lineage.store.deduplication import deduplicate, deduplicate_report
from merestone.lineage.store.hygiene import check_partitions as problems_of
from merestone.lineage.store.run_manifest import sealed_runs
from merestone.lineage.store.select import Conditions, select
from merestone.render import iso19115 as iso_text
from merestone.render import openlineage as openlineage_text
from merestone.render import prov as prov_text
from merestone.render import scorecard as cards
from merestone.render.iso19115_extend import encoding_of, extend
from merestone.render.iso19115_lint import lint, read_record
from merestone.results.form import to_json
from merestone.storage.open import open_store
from merestone.storage.place import local_path, parse_place

__all__ = ["EVENT_TYPES", "OUTCOMES"]
LIMIT = 100
"""How many events an answer holds unless it is asked for more."""


def _opened(dataset: AnyDataset) -> Dataset:
    """The dataset, whichever version is named."""
    return dataset if isinstance(dataset, Dataset) else browse.open_dataset(browse.parse_address(os.fspath(dataset)).where)


# --- questions -------------------------------------------------------------------------------------------------------------------------


def summary(dataset: AnyDataset, *, run_id: str | None = None) -> SummaryResult:
    """Give the verdict of a run: events and features that passed, were warned of or rejected, by stage and reason.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_id: a run, also a refused one; by default the one that made the version.

    Raises:
        UsageError: no such run exists.
        CorruptError: a run manifest or an event file is damaged.

    Example:
        >>> lineage.summary("parcels.yaml").rejected
        0
    """
    opened = _opened(dataset)
    run, made = (run_id, None) if run_id is not None else browse.run_of(browse.version_at(text_of(dataset)))
    return SummaryResult(name=questions.name_of(opened), version=made, **browse.lineage_summary(opened.store, run))


def why(dataset: AnyDataset, feature_id: str, *, limit: int | None = None, everything: bool = False) -> WhyResult:
    """Say why a feature is as it is: the versions that touched it and the runs that met it.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        feature_id: the key as messages write it: its text, or a JSON array where the key has several columns.
        limit: at most so many runs, newest first.
        everything: read every version and every run; otherwise the newest 64 versions, and the one that made the feature.

    Raises:
        UsageError: no version and no run knows the feature.
        CorruptError: a manifest, a change log or an event file is damaged.

    Example:
        >>> lineage.why("parcels.yaml", "p2").since
        2
    """
    return WhyResult(**browse.why(whole(dataset), feature_id, limit, everything=everything))


def history(dataset: AnyDataset, feature_id: str, *, everything: bool = False, out: Path | None = None) -> HistoryResult:
    """Show every event of one feature, over all runs, oldest run first.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        feature_id: the key as messages write it.
        everything: also the rows that another row of their event has replaced.
        out: write the events to this file (.parquet, .arrow or .ndjson).

    Raises:
        UsageError: no sealed run met the feature.

    Example:
        >>> lineage.history("parcels.yaml", "p2").events[0]["outcome"]
        'PASS'
    """
    keep_apart({"out": out}, [dataset])
    opened = whole(dataset)
    feature_id = reading.id_of(opened.store, feature_id)
    table = reading.history(opened.store, feature_id)
    if not table.num_rows:
        raise UsageError(f"no sealed run met a feature {feature_id}", field="feature_id", hint="letters, blanks and leading zeros count")
    shown = table if everything else deduplicate(table)
    if out is not None:
        event_file.write([shown], os.fspath(out))
    made = questions.versions_of(opened)
    return HistoryResult(
        name=questions.name_of(opened),
        feature_id=feature_id,
        events=reading.plain(shown),  # type: ignore[arg-type]  # the event schema gives exactly these names
        deduplication=to_json(deduplicate_report(table)),
        out=None if out is None else os.fspath(out),
        runs={each.run_id: (each.run_date, made.get(each.path)) for each in sealed_runs(opened.store)},
    )


def rejects(
    dataset: AnyDataset,
    *,
    run_ids: Sequence[str] = (),
    stage: str | None = None,
    limit: int = LIMIT,
    out: Path | None = None,
) -> EventsResult:
    """List what was rejected and why; by default in the run that made the version.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_ids: only these runs.
        stage: only what this stage rejected.
        limit: hold at most so many events.
        out: write all of them to this file (.parquet, .arrow or .ndjson).

    Raises:
        UsageError: no such run exists.

    Example:
        >>> lineage.rejects("parcels.yaml").count
        0
    """
    keep_apart({"out": out}, [dataset])
    chosen = run_ids or (browse.run_of(browse.version_at(text_of(dataset)))[0],)
    return _found(_opened(dataset), chosen, Conditions(stage=stage, outcome="REJECT"), limit, out)


def query(
    dataset: AnyDataset,
    *,
    run_ids: Sequence[str] = (),
    stage: str | None = None,
    event_type: str | None = None,
    outcome: str | None = None,
    feature_id: str | None = None,
    reason: str | None = None,
    tool: str | None = None,
    change_class: str | None = None,
    everything: bool = False,
    limit: int = LIMIT,
    out: Path | None = None,
) -> EventsResult:
    """Find events that meet all conditions, over all sealed runs or some.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        run_ids: only these runs.
        stage: only events of this stage, with its qualified ones.
        event_type: only events of this type.
        outcome: only events with this outcome.
        feature_id: only events of this feature.
        reason: only events whose reason holds this text.
        tool: only events whose software holds this text.
        change_class: only events of this change class.
        everything: also the rows that another row of their event has replaced.
        limit: hold at most so many events.
        out: write all of them to this file (.parquet, .arrow or .ndjson).

    Raises:
        UsageError: no such run exists.

    Example:
        >>> lineage.query("parcels.yaml", outcome="REJECT").count
        0
    """
    keep_apart({"out": out}, [dataset])
    opened = whole(dataset)
    known_as = None if feature_id is None else reading.id_of(opened.store, feature_id)
    conditions = Conditions(stage, event_type, outcome, known_as, reason, tool, change_class)
    return _found(opened, run_ids, conditions, limit, out, everything=everything)


def _found(
    opened: Dataset, run_ids: Sequence[str], conditions: Conditions, limit: int, out: Path | None, *, everything: bool = False
) -> EventsResult:
    found = select(opened.store, questions.chosen_runs(opened, run_ids), conditions, everything=everything)
    held: list[dict[str, Any]] = []
    count = 0

    def seen() -> Iterator[pa.Table]:
        nonlocal count
        for table in found:
            count += table.num_rows
            if len(held) < limit:
                held.extend(reading.plain(table, limit=limit - len(held)))
            yield table

    if out is not None:
        event_file.write(seen(), os.fspath(out))
    else:
        for _ in seen():
            pass
    return EventsResult(questions.name_of(opened), count, held, None if out is None else os.fspath(out))  # type: ignore[arg-type]  # as above


def runs(dataset: AnyDataset) -> RunsResult:
    """List the sealed runs of a dataset, newest first, also refused ones.

    Example:
        >>> len(lineage.runs("parcels.yaml").runs)
        2
    """
    opened = whole(dataset)
    return RunsResult(questions.name_of(opened), questions.runs(opened))  # type: ignore[arg-type]  # `questions.runs` gives these names


def head(dataset: AnyDataset, *, out: Path | None = None) -> HeadResult:
    """Give the head of a dataset's record: kept in another place, it answers for every version and run until now.

    Print it, sign it, or store it under an object lock; `merestone.verify` with this file then finds also a newest run that has gone.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        out: write the head to this file.

    Raises:
        UsageError: nothing was ever published or sealed there.

    Example:
        >>> made = lineage.head("parcels.yaml", out="head.json")
        >>> merestone.verify("parcels.yaml", head="head.json").status
        'whole'
    """
    keep_apart({"out": out}, [dataset])
    opened = whole(dataset)
    found = heads.head_of(opened)
    named = None if out is None else os.fspath(out)
    result = HeadResult(
        heads.FORMAT,
        questions.name_of(opened),
        found.version,
        list(found.runs),
        list(found.objects),  # type: ignore[arg-type]  # `Head.objects` has these names
        found.digest,
        named,
    )
    if out is not None:
        _write(out, json.dumps(to_json(result), ensure_ascii=False, indent=1) + "\n")
    return result


# --- gates -----------------------------------------------------------------------------------------------------------------------------


def scorecard(
    dataset: AnyDataset,
    *,
    run_ids: Sequence[str] = (),
    last: int = 30,
    max_rejected: float | None = None,
    max_warned: float | None = None,
    allow_empty: bool = False,
    html: Path | None = None,
    junit: Path | None = None,
) -> ScorecardResult:
    """Score runs against thresholds. Shares are of the features that a run met, by worst outcome.

    Of a delivery that was refused before any feature could be named, all features count as rejected. Events that contradict each other break
    the gate in any case, and so do a store without runs and a version whose run is missing.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        run_ids: only these runs.
        last: at most so many of the newest runs.
        max_rejected: the share of features that a run may reject, 0.01 for 1 %; None does not judge it.
        max_warned: the share of features that a run may warn of; None does not judge it.
        allow_empty: accept a store without runs.
        html: write a page with charts to this file.
        junit: write JUnit XML to this file, a test case a run.

    Raises:
        UsageError: no such run exists.

    Example:
        >>> lineage.scorecard("parcels.yaml", max_rejected=0.01).status
        'pass'
    """
    keep_apart({"html": html, "junit": junit}, [dataset])
    opened = whole(dataset)
    name, limits = questions.name_of(opened), cards.Thresholds(max_rejected, max_warned, allow_empty)
    found = questions.scores(opened, run_ids, last)
    texts: tuple[tuple[Path | None, Callable[[str, list[cards.Score], cards.Thresholds], str]], ...] = (
        (html, cards.page),
        (junit, cards.junit),
    )
    for path, render in texts:
        if path is not None:
            _write(path, render(name, found, limits))
    return ScorecardResult(
        **cards.to_json(name, found, limits),
        html=None if html is None else os.fspath(html),
        junit=None if junit is None else os.fspath(junit),
        text=cards.text(name, found, limits),
    )


def check_complete(
    dataset: AnyDataset,
    *,
    run_ids: Sequence[str] = (),
    last_step: bool = False,
    allow_empty: bool = False,
    allow_no_plan: bool = False,
) -> CompleteResult:
    """Check that lineage accounts for every feature of a version.

    Each run has no gap in its order or its chain of stages. What was published is what was accepted or held, minus what was removed. What
    no recent run touched resolves to the run that made it. Where there is nothing to judge, the gate fails.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_ids: check only the chains of these runs.
        last_step: check only the run that made the version, not those before it.
        allow_empty: accept a store without runs, and runs without events.
        allow_no_plan: accept events of runs that do not say their stages.

    Raises:
        UsageError: no such version or run exists.
        CorruptError: a manifest, a change log, the index or an event file is damaged.

    Example:
        >>> lineage.check_complete("parcels.yaml").status
        'pass'
    """
    opened = _opened(dataset)
    allowed = completeness.Allowed(empty=allow_empty, no_plan=allow_no_plan)
    version = None if isinstance(dataset, Dataset) else browse.parse_address(os.fspath(dataset)).version
    if run_ids or browse.current_version(opened.store) is None:
        found = completeness.check_runs(opened.store, questions.chosen_runs(opened, run_ids), now=environment.now(), allowed=allowed)
    else:
        found = completeness.check_version(opened, version, now=environment.now(), last_step=last_step, allowed=allowed)
    return CompleteResult(
        status="pass" if found.complete else "fail",
        name=questions.name_of(opened),
        runs=found.runs,
        features=found.features,
        gaps=[
            {
                "run_id": run,
                "rule": gap.rule,
                "message": gap.message,
                "count": gap.count,
                "samples": list(gap.samples),
                "severity": "error" if found.fails(gap) else "warning",
            }
            for run, gap in found.gaps
        ],
    )


def check_partitions(root: Path, *, require_epsg_target: bool = False, allow_empty: bool = False) -> ProblemsResult:
    """Check the folders and files of an event store, also of one that another tool wrote.

    Args:
        root: the root of an event store, such as `DATASET/_lineage`.
        require_epsg_target: every target_crs= folder has to name a canonical EPSG code.
        allow_empty: accept a root without event files.

    Raises:
        UsageError: `root` is not a folder.

    Example:
        >>> lineage.check_partitions("published/parcels/_lineage").status
        'pass'
    """
    named = os.fspath(root)
    place = parse_place(named, field="root")
    if place.is_local and not File(place.path).is_dir():
        raise UsageError(f"{named} is not a folder", field="root", hint="name the event store: the folder _lineage of a dataset")
    problems = problems_of(open_store(named, field="root"), require_epsg_target=require_epsg_target, allow_empty=allow_empty)
    return ProblemsResult("fail" if problems else "pass", problems)


def validate_schema(file: Path) -> SchemaFaultsResult:
    """Check an event schema file (lineage_schema.yaml).

    Raises:
        UsageError: the file cannot be read.

    Example:
        >>> lineage.validate_schema("lineage_schema.yaml").status
        'pass'
    """
    try:
        text = File(local_path(os.fspath(file), what="a schema file")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = getattr(fault, "strerror", None) or fault
        raise UsageError(f"{os.fspath(file)} cannot be read: {reason}", field="file", hint="check the path and its permissions") from fault
    faults = events.validate_schema(text)
    return SchemaFaultsResult("fail" if faults else "pass", faults)


# --- what changes an event store -------------------------------------------------------------------------------------------------------


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
        ingesting.store_of(os.fspath(store)), foreign.Job(namespace, job, named, tools, tuple(plan), tuple(inputs), tuple(outputs), basis)
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
    found = ingesting.ingest(os.fspath(dataset), os.fspath(file), mapping=None if mapping is None else os.fspath(mapping), plan=tuple(plan))
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


# --- for others ------------------------------------------------------------------------------------------------------------------------


def iso19115(
    dataset: AnyDataset,
    *,
    run_id: str | None = None,
    encoding: Literal["gmd", "mdb"] = "gmd",
    extends: Path | None = None,
    out: Path | None = None,
) -> Iso19115Result:
    """Write the lineage of a version or a run as an ISO 19115 metadata record. The record is checked before it is written.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_id: a run, also a refused one, in place of a version.
        encoding: gmd (ISO 19139) or mdb (ISO 19115-3).
        extends: put the lineage into this metadata record, in its own encoding.
        out: write the record to this file.

    Raises:
        UsageError: no such version or run exists.
        SourceError: the record to extend cannot be read, or is not a metadata record.

    Example:
        >>> lineage.iso19115("parcels.yaml", encoding="mdb").encoding
        'mdb'
    """
    keep_apart({"out": out}, [dataset, extends])
    named = text_of(dataset)
    record = iso.record_of_version(named) if run_id is None else iso.record_of_run(named, run_id)
    used: str = encoding
    if extends is not None:
        data = _bytes(extends)
        used = _encoding(data, os.fspath(extends))
        text = extend(data, record, os.fspath(extends))
    else:
        text = iso_text.render(record, encoding)
        if problems := lint(read_record(text.encode(), "the record")):
            raise InternalError(f"the record fails its own check: {'; '.join(problems)}", hint="please report this")
    if out is not None:
        _write(out, text)
    return Iso19115Result(
        identifier=record.identifier,
        version=record.version,
        encoding=used,
        steps=len(record.steps),
        sources=len(record.sources),
        out=None if out is None else os.fspath(out),
        xml=text if out is None else None,
        text=text,
    )


def lint_iso19115(file: Path) -> ProblemsResult:
    """Check an ISO 19115 metadata record for what its XML schemas let through. XML with a DOCTYPE is never read.

    Raises:
        SourceError: the file cannot be read or is not XML.

    Example:
        >>> made = lineage.iso19115("parcels.yaml", out="record.xml")
        >>> lineage.lint_iso19115("record.xml").status
        'pass'
    """
    problems = lint(read_record(_bytes(file), os.fspath(file)))
    return ProblemsResult("fail" if problems else "pass", list(problems))


def openlineage(dataset: AnyDataset, *, run_id: str | None = None, out: Path | None = None) -> OpenLineageResult:
    """Give a run as OpenLineage events: START, then COMPLETE or FAIL.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_id: a run, also a refused one; by default the one that made the version.
        out: write the events to this file, one a line.

    Raises:
        UsageError: no such run exists.

    Example:
        >>> [each["eventType"] for each in lineage.openlineage("parcels.yaml").events]
        ['START', 'COMPLETE']
    """
    keep_apart({"out": out}, [dataset])
    found = facts.facts_of(text_of(dataset), run_id)
    made = openlineage_text.events(found, f"urn:merestone:{found.written_by}")
    text = openlineage_text.ndjson(made)
    if out is not None:
        _write(out, text)
    return OpenLineageResult(found.run_id, found.version, list(made), None if out is None else os.fspath(out), text)


def prov(dataset: AnyDataset, *, run_id: str | None = None, out: Path | None = None) -> ProvResult:
    """Give a run as W3C PROV, in its JSON form.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_id: a run, also a refused one; by default the one that made the version.
        out: write the document to this file.

    Raises:
        UsageError: no such run exists.

    Example:
        >>> "activity" in lineage.prov("parcels.yaml").document
        True
    """
    keep_apart({"out": out}, [dataset])
    found = facts.facts_of(text_of(dataset), run_id)
    document = prov_text.document(found)
    text = prov_text.text(document)
    if out is not None:
        _write(out, text)
    return ProvResult(found.run_id, found.version, document, None if out is None else os.fspath(out), text)


def prove(dataset: AnyDataset, feature_id: str, *, run_id: str | None = None, out: Path | None = None) -> ProveResult:
    """Prove that what is said of a feature is part of a sealed run, by Merkle inclusion proofs of its events.

    Whoever has the root of the run from elsewhere verifies the proof with a short script that needs no Merestone.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        feature_id: the key as messages write it.
        run_id: the run; by default the newest one up to the version that met the feature.
        out: write the proof to this file, and the script beside it.

    Raises:
        UsageError: no such run, or no run of a version met the feature.
        CorruptError: the lineage is not what was sealed.

    Example:
        >>> len(lineage.prove("parcels.yaml", "p2").proofs) > 0
        True
    """
    beside = "" if out is None else str(File(out).parent / evidence_file.VERIFIER)
    keep_apart({"out": out, "the script beside it": beside or None}, [dataset])
    found = evidence_file.proof_of(text_of(dataset), feature_id, run_id)
    text = json.dumps(found, ensure_ascii=False, indent=1)
    if out is not None:
        _write(out, text + "\n")
        _write(beside, evidence_file.verifier())
    return ProveResult(**found, out=None if out is None else os.fspath(out), text=text, verifier=beside)


def evidence(dataset: AnyDataset, *, out: Path) -> EvidenceResult:
    """Write all that stands behind a version into one ZIP file, with a script that verifies it.

    It holds the contract, the chain of manifests, run records, sealed run manifests, ISO records, the verdict and the roots.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        out: the ZIP file.

    Raises:
        UsageError: no such version exists.
        CorruptError: what the version names is missing or altered.

    Example:
        >>> lineage.evidence("parcels.yaml", out="evidence.zip").files > 3
        True
    """
    keep_apart({"out": out}, [dataset])
    with written_whole(os.fspath(out)) as place:
        return EvidenceResult(**evidence_file.evidence(text_of(dataset), place), out=os.fspath(out))


def _encoding(data: bytes, path: str) -> str:
    found = encoding_of(read_record(data, path))
    if found is None:
        raise SourceError(
            f"{path} is not a metadata record: its root is neither gmd:MD_Metadata nor mdb:MD_Metadata",
            field=path,
            hint="give a record of ISO 19139 or ISO 19115-3",
        )
    return found


def _bytes(path: Path) -> bytes:
    try:
        return File(local_path(os.fspath(path), what="a record")).read_bytes()
    except OSError as fault:
        raise SourceError(
            f"{os.fspath(path)} cannot be read: {fault.strerror or fault}", field=os.fspath(path), hint="check the path and its permissions"
        ) from fault


def _write(path: Path, text: str) -> None:
    with written_whole(os.fspath(path)) as place:
        File(place).write_text(text, encoding="utf-8", newline="\n")
