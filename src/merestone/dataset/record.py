"""What is kept of every attempt to publish: the run record as a value, and reading the records of a dataset.

Not here: writing a record (`writer.records`), what they add up to (`log`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from merestone.document.json_reader import parse_json
from merestone.document.own_digest import with_digest
from merestone.errors import CorruptError
from merestone.json_value import JsonObject
from merestone.storage.port import Store

RECORDS = "_runs/"
FORMAT = 1
Status = Literal["published", "unchanged", "refused", "failed", "abandoned", "rolled_back"]
_NAME = re.compile(r"_runs/(?P<run_id>[^/]+)-(?P<attempt>[1-9]\d*)\.json")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One attempt. Names are those of the JSON (docs/spec/run-record.schema.json); times are UTC, ISO 8601 with Z.

    `version` is what readers see when the attempt ends, `parent_version` what they saw when it began; both None before the first version and
    where the attempt could not begin.
    `delivery` holds `rows` and `set_digest`, `stages` seconds per stage, `predicted` what the plan said (files, rows, bytes).
    `error` is the error object of an attempt that failed; `written_up_by` the run that wrote this record for a dead one; `nonce` is part of
    the names of all that the attempt wrote.
    """

    run_id: str
    attempt: int
    status: Status
    name: str
    started_utc: str
    ended_utc: str | None
    parent_version: int | None = None
    version: int | None = None
    refused_by: Literal["contract", "guard", "policy", "profile"] | None = None
    error: JsonObject | None = None
    settings: JsonObject = field(default_factory=dict)
    source: JsonObject = field(default_factory=dict)
    delivery: JsonObject = field(default_factory=dict)
    contract_version: str | None = None
    contract_sha256: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    delta: dict[str, int] = field(default_factory=dict)
    findings: list[JsonObject] = field(default_factory=list)
    guards: list[JsonObject] = field(default_factory=list)
    confirmations: list[JsonObject] = field(default_factory=list)
    stages: dict[str, float] = field(default_factory=dict)
    bytes_written: int = 0
    files_written: int = 0
    predicted: JsonObject = field(default_factory=dict)
    lineage: JsonObject | None = None
    rejects: JsonObject | None = None
    rollback: JsonObject | None = None
    written_up_by: str | None = None
    nonce: str | None = None
    tool: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def path(self) -> str:
        """Where the record stands."""
        return record_name(self.run_id, self.attempt)

    def to_json(self) -> JsonObject:
        """The JSON object, keys in a fixed order."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def to_bytes(self) -> bytes:
        """The bytes that stand on disk (UTF-8 JSON, no NaN), with their own digest."""
        return with_digest(self.to_json(), indent=1)

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str) -> RunRecord:
        """Read a record; keys that later versions add are passed over.

        Raises:
            CorruptError: the bytes are not a run record.
        """
        try:
            doc = parse_json(data)
            known = {each.name for each in fields(cls)}
            get_args(Status).index(doc["status"])
            return cls(**{name: value for name, value in doc.items() if name in known})
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise CorruptError(
                f"{where} is not a readable run record: {fault!r}",
                field=where,
                hint="restore it from a backup, or move it away: versions do not depend on it",
            ) from fault


def record_name(run_id: str, attempt: int) -> str:
    """The name of an attempt's record."""
    return f"{RECORDS}{run_id}-{attempt}.json"


def record_names(store: Store, run_id: str | None = None) -> Iterator[tuple[str, int, str]]:
    """(run id, attempt, name) of every record, or of those of one run, in name order."""
    for name, _ in store.list(RECORDS):
        match = _NAME.fullmatch(name)
        if match and run_id in (None, match["run_id"]):
            yield match["run_id"], int(match["attempt"]), name


def read_records(store: Store, run_id: str | None = None) -> list[RunRecord]:
    """All records, or those of one run, by start time and then by attempt.

    Raises:
        CorruptError: a record cannot be read.
    """
    found = read_named(store, [name for _, _, name in record_names(store, run_id)])
    return sorted(found, key=lambda record: (record.started_utc, record.run_id, record.attempt))


def read_named(store: Store, names: Iterable[str]) -> list[RunRecord]:
    """The records of some names, in their order. Raises CorruptError where one cannot be read."""
    return [RunRecord.from_bytes(store.get(name), where=name) for name in names]
