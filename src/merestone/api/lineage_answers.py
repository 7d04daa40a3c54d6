"""What the questions about a dataset's lineage answer, as values with one JSON form (`results.json_form`).

Not here: the answers of other questions (`answers`), how an answer is found (`lineage`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from merestone.json_value import Json
from merestone.results.json_form import PERSON, when_set
from merestone.results.notebook import Shown

# --- drafts ----------------------------------------------------------------------------------------------------------------------------


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
        status: what came of it: published, unchanged, refused, failed, abandoned, foreign or unknown.
        refused_by: what refused it.
        why: why it published nothing, in a sentence.
        rolled_back_by: the version that went back behind the one that it made.
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
    status: str
    refused_by: str | None
    why: str | None
    rolled_back_by: int | None
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


# `class` cannot be a name in Python, so this one is not written as a class.
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
    status: str
    refused_by: str | None
    why: str | None
    rolled_back_by: int | None
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


class HistoryRun(TypedDict):
    """A run that met a feature: when, and what came of it."""

    run_date: str
    version: int | None
    status: str
    refused_by: str | None
    why: str | None
    rolled_back_by: int | None


@dataclass(frozen=True, slots=True)
class HistoryResult(Shown):
    """What `history` answers: every event of one feature, oldest run first.

    Attributes:
        name: the name of the dataset.
        feature_id: the feature.
        events: its events.
        deduplication: what was set aside.
        out: the file that was written.
        runs: what came of each run, by its id.
    """

    name: str
    feature_id: str
    events: list[Event]
    deduplication: Deduplication
    out: str | None
    runs: Mapping[str, HistoryRun] = field(default_factory=dict)

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
    status: str
    refused_by: str | None
    why: str | None
    rolled_back_by: int | None
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
    status: str
    refused_by: str | None
    why: str | None
    rolled_back_by: int | None
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
    events: list[Mapping[str, Json]]
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
    document: Mapping[str, Json]
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


class HeadObject(TypedDict):
    """An object that a head names: its path in the dataset and its checksum."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class HeadResult(Shown):
    """What `head` answers: what answers for the whole record of a dataset when it is kept in another place.

    Attributes:
        format: the version of this form.
        name: the name of the dataset.
        version: the current version; null where nothing is published.
        runs: the run manifests that no other names.
        objects: path and sha256 of the current manifest, of these runs, and of what no run lists yet.
        digest: one digest over version and objects.
        out: the file that was written.
    """

    format: int
    name: str
    version: int | None
    runs: list[str]
    objects: list[HeadObject]
    digest: str
    out: str | None
