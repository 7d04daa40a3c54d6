"""What the questions about a dataset, a contract or its lineage answer, as values with one JSON form (`results.json_form`).

Not here: the answers of publish, diff, apply and check (`results.result`), how an answer is found (the other modules of this room).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypedDict

from merestone.contract.lint import LintMessage
from merestone.dataset.feed import Changes
from merestone.dataset.log import LogEntry
from merestone.dataset.manifest import DataFile
from merestone.dataset.verify import Damage
from merestone.json_value import Json
from merestone.results.finding import Finding
from merestone.results.json_form import PERSON, renamed, when_set
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
        unsettled: clauses of the contract that nobody could measure: a first publish stops until they are stated.
    """

    status: Literal["done"] = field(default="done", init=False)
    contract: Path
    publication: Path
    notes: tuple[str, ...]
    unsettled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InferResult(Shown):
    """What `infer` answers: the text of a contract.

    Attributes:
        status: done.
        contract: the file that was written.
        text: the contract, as YAML.
        key: the columns of the key.
        notes: what a person should know before the contract is used.
        unsettled: clauses that nobody could measure: a first publish stops until they are stated.
    """

    status: Literal["done"] = field(default="done", init=False)
    contract: str | None
    text: str
    key: tuple[str, ...]
    notes: tuple[str, ...]
    unsettled: tuple[str, ...] = ()


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

    contract: Mapping[str, Json]
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
    features: tuple[Mapping[str, Json], ...]
    crs: Mapping[str, Json] | None = field(default=None, metadata=when_set())


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
        notice: what was transformed on the way, and that the first version has none before it, in words.
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
        held: rows of the last delivery that were rejected while their last accepted ones stay published: as old as those are.
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
    held: int


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


class Failure(TypedDict):
    """Why a command could not run."""

    kind: str
    retry: bool
    message: str
    field: str | None
    hint: str | None


@dataclass(frozen=True, slots=True)
class ErrorResult:
    """What every command prints where it could not run.

    Attributes:
        status: error.
        error: kind, whether a retry helps, message, field and hint; see the reference of errors.
    """

    status: Literal["error"] = field(default="error", init=False)
    error: Failure
