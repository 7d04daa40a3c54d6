"""What the questions about a dataset, a contract or its lineage answer, as values with one JSON form (`results.form`).

Not here: the answers of publish, diff, apply and check (`results.result`), how an answer is found (the other modules of this room).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict

from merestone.contract.lint import LintMessage
from merestone.dataset.feed import Changes
from merestone.dataset.log import LogEntry
from merestone.dataset.manifest import DataFile
from merestone.dataset.verify import Damage
from merestone.results.finding import Finding
from merestone.results.form import PERSON, renamed, when_set
from merestone.results.notebook import Shown
from merestone.results.result import Changed, Counts

# --- drafts ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DraftResult(Shown):
    """What `draft` answers: the two files that it wrote.

    Attributes:
        status: done.
        contract: the contract file.
        publication: the publication file.
        notes: what a person should know before the first publish.
    """

    status: Literal["done"] = field(default="done", init=False)
    contract: Path
    publication: Path
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InferResult(Shown):
    """What `infer` answers: the text of a contract.

    Attributes:
        status: done.
        contract: the file that was written.
        text: the contract, as YAML.
        key: the columns of the key.
        notes: what a person should know before the contract is used.
    """

    status: Literal["done"] = field(default="done", init=False)
    contract: str | None
    text: str
    key: tuple[str, ...]
    notes: tuple[str, ...]


# --- contracts -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LintResult(Shown):
    """What `lint` answers: what is wrong or unwise in a contract file.

    Attributes:
        status: fail where there are errors, else pass.
        contract_version: the stamp of the contract; null where the file cannot be read as a contract.
        errors: how many messages are errors.
        warnings: how many messages are warnings.
        confirm: how many guesses still wait for a person.
        messages: every message, errors first.
    """

    status: Literal["pass", "fail"]
    contract_version: str | None
    errors: int
    warnings: int
    confirm: int
    messages: tuple[LintMessage, ...]

    @property
    def refused(self) -> bool:
        """Whether nothing can be published under the contract."""
        return self.status == "fail"


@dataclass(frozen=True, slots=True)
class ContractResult(Shown):
    """What `show_contract` answers: a contract as it is published.

    Attributes:
        contract: the body, with every default filled in.
        sha256: the digest of the body.
    """

    contract: Mapping[str, Any]
    sha256: str


# --- a dataset -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadResult(Shown):
    """What `read` answers: the file that it wrote.

    Attributes:
        name: the name of the dataset.
        version: the version that was read.
        crs: the CRS of the coordinates.
        features: how many features were written.
        columns: the columns, in their order.
        out: the file.
        notice: what was transformed on the way, in words.
    """

    name: str
    version: int
    crs: str
    features: int
    columns: tuple[str, ...]
    out: str
    notice: str | None = field(default=None, metadata=PERSON)


@dataclass(frozen=True, slots=True)
class FeatureCollection:
    """What `merestone read` prints where it writes no file: a version as one GeoJSON object.

    Attributes:
        type: FeatureCollection.
        crs: the CRS of the coordinates, where it is not WGS 84.
        name: the name of the dataset.
        version: the version that was read.
        features: the features, as GeoJSON.
    """

    type: Literal["FeatureCollection"] = field(default="FeatureCollection", init=False)
    name: str
    version: int
    features: tuple[Mapping[str, Any], ...]
    crs: Mapping[str, Any] | None = field(default=None, metadata=when_set())


@dataclass(frozen=True, slots=True)
class FilesResult(Shown):
    """What `files` answers: the live files of a version, or a view of them.

    Attributes:
        name: the name of the dataset.
        version: the version.
        url: where the dataset is.
        files: its data files; their paths are relative to `url`.
        duckdb: the SQL of a view for DuckDB.
        vrt: a VRT for GDAL and QGIS.
        paths: the files as a program opens them.
    """

    name: str
    version: int
    url: str
    files: tuple[DataFile, ...] | None = field(default=None, metadata=when_set())
    duckdb: str | None = field(default=None, metadata=when_set())
    vrt: str | None = field(default=None, metadata=when_set())
    paths: tuple[str, ...] = field(default=(), metadata=PERSON)


@dataclass(frozen=True, slots=True)
class ChangesResult(Shown):
    """What `changes` answers: what differs between two versions of a dataset.

    Attributes:
        name: the name of the dataset.
        start: the version that the change starts from; 0 for nothing.
        end: the version that it leads to.
        delta: features per class and label.
        changed: what the changed features have in common.
        unchanged: features that are the same in both versions.
        keys: the keys of each class and label, where they were asked for.
        findings: always empty; the name is there because every comparison has it.
        html: the page that was written.
        out: the file of changes that was written.
        notice: what was transformed on the way, in words.
        feed: the changed features; `feed.table` is a pyarrow table with a row for each.
        seconds: how long it took.
    """

    name: str
    start: int = field(metadata=renamed("from"))
    end: int = field(metadata=renamed("to"))
    delta: Counts
    unchanged: int
    changed: Changed | None = None
    keys: Mapping[str, tuple[str, ...]] | None = field(default=None, metadata=when_set())
    findings: tuple[Finding, ...] = ()
    html: str | None = None
    out: str | None = None
    notice: str | None = field(default=None, metadata=PERSON)
    feed: Changes | None = field(default=None, metadata=PERSON)
    seconds: float = field(default=0.0, metadata=PERSON)


@dataclass(frozen=True, slots=True)
class LogResult(Shown):
    """What `log` answers: the versions of a dataset, newest first.

    Attributes:
        url: where the dataset is.
        versions: the versions.
    """

    url: str
    versions: tuple[LogEntry, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run that brought no version.

    Attributes:
        run_id: the run.
        attempt: its number among the attempts of this run, from 1.
        status: refused, failed or abandoned.
        refused_by: what refused it.
        started_utc: when it began.
        why: why it brought nothing, in a sentence.
    """

    run_id: str
    attempt: int
    status: str
    refused_by: str | None
    started_utc: str
    why: str


@dataclass(frozen=True, slots=True)
class StatusResult(Shown):
    """What `status` answers: how a dataset stands.

    Attributes:
        name: the name of the dataset.
        url: where it is.
        version: the current version.
        time_utc: when that version was published.
        features: how many features it holds.
        contract_version: the stamp of its contract.
        fresh_utc: when a delivery last proved to be what is published.
        sla_minutes: how many minutes the contract allows the data to be old.
        fresh: whether `fresh_utc` lies within that promise; null where no run record gives a time.
        since: the runs after that time that brought nothing, oldest first.
        versions: how many versions are kept.
        live_bytes: bytes that the current version names.
        old_bytes: bytes that only older versions name.
        loose_bytes: bytes that no version names.
        suppressed_share: the share of the last delivery that differed from what is published by noise only.
    """

    name: str
    url: str
    version: int
    time_utc: str
    features: int
    contract_version: str
    fresh_utc: str | None
    sla_minutes: int
    fresh: bool | None
    since: tuple[Attempt, ...]
    versions: int
    live_bytes: int
    old_bytes: int
    loose_bytes: int
    suppressed_share: float


@dataclass(frozen=True, slots=True)
class RollbackResult(Shown):
    """What `rollback` answers: the version that brings an older one back.

    Attributes:
        status: rolled_back.
        name: the name of the dataset.
        version: the new version.
        to: the version whose content came back.
        reason: why, as it was given.
        features: how many features the new version holds.
        delta: features per class and label, against the version that was current.
        run_id: the run.
        withdrawn: the digests of the deliveries that were taken back; one that comes again stops at a guard.
        notices: records that are not complete.
    """

    status: Literal["rolled_back"] = field(default="rolled_back", init=False)
    name: str
    version: int
    to: int
    reason: str
    features: int
    delta: Counts
    run_id: str
    withdrawn: tuple[str, ...]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerifyResult(Shown):
    """What `verify` answers: whether every object of a dataset is what was published.

    Attributes:
        url: where the dataset is.
        status: whole or damaged.
        versions: the versions that were looked at.
        objects: how many objects were read.
        bytes: how many bytes they hold.
        rows: how many rows they hold.
        damages: what is not as it was published or sealed.
        orphans: manifests of attempts that were cut off; they do no harm.
    """

    url: str
    status: Literal["whole", "damaged"]
    versions: tuple[int, ...]
    objects: int
    bytes: int
    rows: int
    damages: tuple[Damage, ...]
    orphans: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged."""
        return self.status == "whole"


# --- lineage ---------------------------------------------------------------------------------------------------------------------------


class Event(TypedDict):
    """One lineage event; the fields are those of the event schema."""

    event_id: str
    run_id: str
    sequence: int
    event_time_utc: str
    stage: str
    event_type: str
    feature_id: str
    source_crs: str
    target_crs: str
    outcome: str
    strategy_index: int | None
    accuracy_m: float | None
    rejection_reason: str | None
    tool_version: str | None
    audit_tag: str | None
    change_class: str | None
    from_partition: str | None
    to_partition: str | None
    contract_version: str | None


class StageCount(TypedDict):
    """How many events a stage has of one type and outcome."""

    stage: str
    event_type: str
    outcome: str
    events: int


class ReasonCount(TypedDict):
    """How often a stage gave a reason."""

    stage: str
    outcome: str
    reason: str | None
    events: int


class ConflictSample(TypedDict):
    """Two events of one attempt that contradict each other, and the fields that differ."""

    event_id: str
    run_id: str
    stage: str
    feature_id: str
    attempt: int
    columns: list[str]


class Deduplication(TypedDict):
    """What was set aside when several rows were of one event."""

    rows: int
    standing: int
    replays: int
    corrections: int
    conflicts: int
    samples: list[ConflictSample]


class Expiry(TypedDict):
    """When and on what basis the lineage of a run expired, and where its tombstone stands."""

    utc: str
    window: str
    basis: str
    tombstone: str


@dataclass(frozen=True, slots=True)
class SummaryResult(Shown):
    """What `summary` answers: the verdict of a run.

    Attributes:
        name: the name of the dataset.
        version: the version that the run made.
        run_id: the run.
        attempts: its sealed attempts.
        run_date: its date, UTC.
        sealed_utc: when its lineage was sealed.
        schema_version: the version of the event schema.
        plan: its stages, in order.
        tool: versions of the software.
        root: the Merkle root over its events.
        total_events: events that stand.
        passed: events with outcome PASS.
        rejected: events with outcome REJECT.
        warned: events with outcome WARN.
        features: features that the run met.
        features_passed: features whose worst outcome is PASS.
        features_rejected: features whose worst outcome is REJECT.
        features_warned: features whose worst outcome is WARN.
        stages: events per stage, type and outcome.
        reasons: the most frequent reasons.
        sealed_events: events that were sealed, replays included.
        deduplication: what was set aside; null where no two rows are of one event.
        expired: when its lineage expired.
    """

    name: str
    version: int | None
    run_id: str
    attempts: list[int]
    run_date: str
    sealed_utc: str
    schema_version: str
    plan: list[str]
    tool: Mapping[str, str]
    root: str
    total_events: int
    passed: int
    rejected: int
    warned: int
    features: int
    features_passed: int
    features_rejected: int
    features_warned: int
    stages: list[StageCount]
    reasons: list[ReasonCount]
    sealed_events: int
    deduplication: Deduplication | None
    expired: Expiry | None

    @property
    def contradicts_itself(self) -> bool:
        """Whether events of the run contradict each other."""
        return self.deduplication is not None and self.deduplication["conflicts"] > 0


# `class` is no name in Python, so this one is not written as a class.
Touch = TypedDict(
    "Touch",
    {
        "version": int,
        "time_utc": str,
        "run_id": str,
        "class": str,
        "labels": list[str],
        "attributes": bool | None,
        "geometry": bool | None,
        "geometry_change": float | None,
        "fields": list[str],
        "partition": str | None,
        "old_partition": str | None,
        "reason": str | None,
    },
)
Touch.__doc__ = "What one version did to a feature."


class RunOfFeature(TypedDict):
    """What one run did to a feature."""

    run_id: str
    attempts: list[int]
    version: int | None
    run_date: str
    outcome: str
    stage: str
    reason: str | None
    change_class: str | None
    events: list[Event]


@dataclass(frozen=True, slots=True)
class WhyResult(Shown):
    """What `why` answers: why a feature is as it is.

    Attributes:
        feature_id: the feature.
        name: the name of the dataset.
        version: the current version.
        present: whether the current version holds the feature.
        partition: the partition that it is in.
        since: the version that made it what it is.
        versions: the versions that touched it, newest first.
        runs: the runs that met it, newest first.
        complete: whether every version and every run was read.
    """

    feature_id: str
    name: str
    version: int
    present: bool
    partition: str | None
    since: int | None
    versions: list[Touch]
    runs: list[RunOfFeature]
    complete: bool


@dataclass(frozen=True, slots=True)
class HistoryResult(Shown):
    """What `history` answers: every event of one feature, oldest run first.

    Attributes:
        name: the name of the dataset.
        feature_id: the feature.
        events: its events.
        deduplication: what was set aside.
        out: the file that was written.
        runs: date and version of each run, by its id.
    """

    name: str
    feature_id: str
    events: list[Event]
    deduplication: Deduplication
    out: str | None
    runs: Mapping[str, tuple[str, int | None]] = field(default_factory=dict, metadata=PERSON)

    @property
    def contradicts_itself(self) -> bool:
        """Whether events of the feature contradict each other."""
        return self.deduplication["conflicts"] > 0


@dataclass(frozen=True, slots=True)
class EventsResult(Shown):
    """What `query` and `rejects` answer: the events that meet the conditions.

    Attributes:
        name: the name of the dataset.
        count: how many events meet the conditions.
        events: the first of them.
        out: the file that holds all of them.
    """

    name: str
    count: int
    events: list[Event]
    out: str | None


class SealedRunEntry(TypedDict):
    """One sealed attempt of a run."""

    run_id: str
    attempt: int
    version: int | None
    run_date: str
    sealed_utc: str
    total_events: int
    passed: int
    rejected: int
    warned: int
    plan: list[str]
    schema_version: str
    root: str
    run_manifest: str
    expired_utc: str | None


@dataclass(frozen=True, slots=True)
class RunsResult(Shown):
    """What `runs` answers: the sealed runs of a dataset, newest first.

    Attributes:
        name: the name of the dataset.
        runs: the sealed attempts.
    """

    name: str
    runs: list[SealedRunEntry]


class GapEntry(TypedDict):
    """What is missing in the lineage of a run: the rule, the number and some of the ids."""

    run_id: str
    rule: str
    message: str
    count: int
    samples: list[str]
    severity: str


@dataclass(frozen=True, slots=True)
class CompleteResult(Shown):
    """What `check_complete` answers: whether lineage accounts for every feature.

    Attributes:
        status: pass or fail.
        name: the name of the dataset.
        runs: the runs that were looked at.
        features: features of the version; 0 where only runs were looked at.
        gaps: what is missing.
    """

    status: Literal["pass", "fail"]
    name: str
    runs: list[str]
    features: int
    gaps: list[GapEntry]

    @property
    def refused(self) -> bool:
        """Whether something is missing."""
        return self.status == "fail"


class ScoreEntry(TypedDict):
    """The score of one run, and the thresholds that it breaks."""

    run_id: str
    version: int | None
    sealed_utc: str
    events: int
    features: int
    passed: int
    warned: int
    rejected: int
    conflicts: int
    breaches: list[str]


class Limits(TypedDict):
    """The largest shares of features that a run may reject or warn of; null asks for nothing."""

    max_rejected: float | None
    max_warned: float | None


@dataclass(frozen=True, slots=True)
class ScorecardResult(Shown):
    """What `scorecard` answers: the scores of runs against thresholds.

    Attributes:
        name: the name of the dataset.
        status: fail where a run breaks a threshold.
        thresholds: the thresholds.
        runs: the runs, oldest first.
        html: the page that was written.
        junit: the JUnit file that was written.
        text: the scores in words.
    """

    name: str
    status: Literal["pass", "fail"]
    thresholds: Limits
    runs: list[ScoreEntry]
    html: str | None
    junit: str | None
    text: str = field(default="", metadata=PERSON)

    @property
    def refused(self) -> bool:
        """Whether a run breaks a threshold."""
        return self.status == "fail"


class IngestedRun(TypedDict):
    """A run that was sealed from a file."""

    run_id: str
    attempt: int
    events: int
    root: str


class QuarantinedLine(TypedDict):
    """A line that became no event, and why."""

    line: int
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class IngestResult(Shown):
    """What `ingest` answers: what became of the lines of a file.

    Attributes:
        status: done, or quarantined where a line became no event.
        lines: lines in the file.
        events: lines that became events.
        quarantined: lines that did not.
        runs: the runs that were sealed.
        known: runs that held the file before.
        quarantine: where the lines in quarantine stand.
        samples: some of them.
    """

    status: Literal["done", "quarantined"]
    lines: int
    events: int
    quarantined: int
    runs: list[IngestedRun]
    known: list[str]
    quarantine: str | None
    samples: list[QuarantinedLine]

    @property
    def refused(self) -> bool:
        """Whether a line went to quarantine."""
        return self.status == "quarantined"


class HoldEntry(TypedDict):
    """A legal hold."""

    id: str
    kind: str
    value: str
    reason: str
    placed_by: str
    placed_utc: str
    released: dict[str, str] | None


class RetainedDay(TypedDict):
    """The lineage of one day, and whether a hold keeps it."""

    run_date: str
    runs: list[str]
    events: int
    objects: int
    bytes: int
    held_by: list[str]
    carried_features: int


@dataclass(frozen=True, slots=True)
class RetainResult(Shown):
    """What `retain` answers: the lineage that expires.

    Attributes:
        status: planned, done or nothing.
        window: the retention window.
        basis: its legal basis.
        first_kept: the first day that is kept.
        prefixes: the days that go or that a hold keeps.
        bytes: bytes that are freed.
        leftover: objects that an earlier time left behind.
        confirm: the token that deletes exactly what was planned.
        tombstone: where the counts and roots of what went are kept.
        holds: the legal holds.
    """

    status: Literal["planned", "done", "nothing"]
    window: str
    basis: str
    first_kept: str
    prefixes: list[RetainedDay]
    bytes: int
    leftover: int
    confirm: str | None
    tombstone: str | None
    holds: list[HoldEntry]


@dataclass(frozen=True, slots=True)
class HoldResult(Shown):
    """What `hold` and `release` answer.

    Attributes:
        status: held or released.
        hold: the hold.
    """

    status: Literal["held", "released"]
    hold: HoldEntry


@dataclass(frozen=True, slots=True)
class Iso19115Result(Shown):
    """What `iso19115` answers: a metadata record.

    Attributes:
        status: written.
        identifier: the identifier of the record.
        version: the version that it describes; null for a run.
        encoding: gmd (ISO 19139) or mdb (ISO 19115-3).
        steps: how many process steps it has.
        sources: how many sources it has.
        out: the file that was written.
        xml: the record, where no file was written.
        text: the record in any case.
    """

    status: Literal["written"] = field(default="written", init=False)
    identifier: str
    version: int | None
    encoding: str
    steps: int
    sources: int
    out: str | None
    xml: str | None = field(default=None, metadata=when_set())
    text: str = field(default="", metadata=PERSON)


@dataclass(frozen=True, slots=True)
class ProblemsResult(Shown):
    """What a check of a record or of a store answers.

    Attributes:
        status: fail where there are problems.
        problems: the problems, one sentence each.
    """

    status: Literal["pass", "fail"]
    problems: list[str]

    @property
    def refused(self) -> bool:
        """Whether there are problems."""
        return self.status == "fail"


@dataclass(frozen=True, slots=True)
class SchemaFaultsResult(Shown):
    """What `validate_schema` answers.

    Attributes:
        status: fail where there are faults.
        faults: the faults, one sentence each.
    """

    status: Literal["pass", "fail"]
    faults: list[str]

    @property
    def refused(self) -> bool:
        """Whether there are faults."""
        return self.status == "fail"


@dataclass(frozen=True, slots=True)
class OpenLineageResult:
    """What `openlineage` answers: a run as OpenLineage events.

    Attributes:
        run_id: the run.
        version: the version that it made.
        events: the events.
        out: the file that was written.
        text: the events, one a line.
    """

    run_id: str
    version: int | None
    events: list[Mapping[str, Any]]
    out: str | None
    text: str = field(default="", metadata=PERSON)


@dataclass(frozen=True, slots=True)
class ProvResult:
    """What `prov` answers: a run as W3C PROV.

    Attributes:
        run_id: the run.
        version: the version that it made.
        document: the document, in the JSON form of PROV.
        out: the file that was written.
        text: the document as text.
    """

    run_id: str
    version: int | None
    document: Mapping[str, Any]
    out: str | None
    text: str = field(default="", metadata=PERSON)


class ProofStep(TypedDict):
    """One step from an event to the root: the hash beside the path, and on which side it stands."""

    side: str
    hash: str


class Proof(TypedDict):
    """The way from one event to the root of its run."""

    event: dict[str, str]
    in_part: list[ProofStep]
    in_run: list[ProofStep]
    root: str


@dataclass(frozen=True, slots=True)
class ProveResult:
    """What `prove` answers: the Merkle inclusion proofs of the events of a feature.

    Attributes:
        format: the version of this form.
        dataset: the name of the dataset.
        version: the version that the run made.
        feature_id: the feature.
        run_id: the run.
        attempt: its attempt.
        root: the root of the run.
        run_manifest: the manifest of the run.
        run_manifest_sha256: its checksum.
        proofs: the proofs.
        out: the file that was written.
        text: the proof as it is written to a file.
        verifier: the script that verifies the proof, written beside it.
    """

    format: int
    dataset: str | None
    version: int | None
    feature_id: str
    run_id: str
    attempt: int
    root: str
    run_manifest: str
    run_manifest_sha256: str
    proofs: list[Proof]
    out: str | None
    text: str = field(default="", metadata=PERSON)
    verifier: str = field(default="", metadata=PERSON)


@dataclass(frozen=True, slots=True)
class EvidenceResult(Shown):
    """What `evidence` answers: a ZIP file with all that stands behind a version.

    Attributes:
        name: the name of the dataset.
        version: the version.
        run_id: the run that made it.
        root: the Merkle root of its lineage.
        manifest_sha256: the checksum of its manifest.
        evidence_sha256: the checksum of the list of all files.
        files: how many files the ZIP holds.
        out: the ZIP file.
    """

    name: str
    version: int
    run_id: str
    root: str | None
    manifest_sha256: str
    evidence_sha256: str
    files: int
    out: str


class Failure(TypedDict):
    """Why a command could not run."""

    kind: str
    message: str
    field: str | None
    hint: str | None


@dataclass(frozen=True, slots=True)
class ErrorResult:
    """What every command prints where it could not run.

    Attributes:
        status: error.
        error: kind, message, field and hint; see the reference of errors.
    """

    status: Literal["error"] = field(default="error", init=False)
    error: Failure
