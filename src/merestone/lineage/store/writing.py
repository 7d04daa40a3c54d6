"""The only writer of the event store: parts in a local scratch folder while a run goes on, sealed into the store at its end.

Not here: the rows (`collector`), reading them (`reading`), what a version of the dataset names (`line` joins them).

Below the store's root, `_lineage` in a dataset:

    run_date=2026-03-03/run_id=r1/target_crs=EPSG%3A4326/part-1-5f0c-00000.parquet     events, sorted by feature_id and sequence
    _runs/r1-1.json                                                                   the run manifest: written last, it seals the run
    _schemas/1.3.0.yaml                                                               by which the events were written

Names are create-only. A part that no run manifest lists does not exist for readers, so a killed run leaves nothing that could be taken for
evidence, and its next attempt writes under other names.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merestone.errors import ConflictError
from merestone.json_value import Json, JsonObject
from merestone.lineage.event import columns, merkle
from merestone.lineage.event.checked_json import said
from merestone.lineage.event.record import MAX_ATTEMPT, check_identity
from merestone.lineage.event.schema import SCHEMA
from merestone.lineage.store.encode_part import PartFacts, PartUnit, encode_part, part_units
from merestone.lineage.store.recorded_schema import record_schema
from merestone.storage.port import Store

Origin = Literal["own", "foreign"]
FORMAT = 1
RUNS = "_runs"
ROOT = "_lineage"
PART_ROWS = 1_000_000  # a usual night is one part; a question about one feature reads one footer of it
GROUP_ROWS = 16_384
CarryOut = Callable[[Callable[[PartUnit], tuple[pa.Buffer, PartFacts]], Iterable[PartUnit]], Iterable[tuple[pa.Buffer, PartFacts]]]
VERDICTS = {"PASS": "passed", "REJECT": "rejected", "WARN": "warned"}
_COPY = 1 << 20


@dataclass(frozen=True, slots=True)
class SealedPart:
    """A Parquet file of events; `path` is relative to the store's root, `root` is the Merkle root over its rows, hex."""

    path: str
    rows: int
    bytes: int
    sha256: str
    root: str
    target_crs: str
    first_feature: str
    last_feature: str

    def to_json(self) -> JsonObject:
        """The object in the run manifest's `parts`."""
        return {
            "path": self.path,
            "rows": self.rows,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "root": self.root,
            "target_crs": self.target_crs,
            "first_feature": self.first_feature,
            "last_feature": self.last_feature,
        }


@dataclass(frozen=True, slots=True)
class Besides:
    """What a run manifest names and holds beside its events; all of it is under its Merkle root.

    Attributes:
        heads: the sealed runs that no other names (`witness.seen`), which chains the runs.
        objects: what is to be remembered with its checksum: run records, rejected rows, quarantine (`witness.Seen.remembered`).
        findings: what was wrong with the delivery, of a run that was refused.
        origin: whose run it is: `foreign` where another program ran.
    """

    heads: Sequence[Mapping[str, Json]] = ()
    objects: Sequence[Mapping[str, Json]] = ()
    findings: Sequence[Mapping[str, Json]] = ()
    origin: Origin = "own"


@dataclass(frozen=True, slots=True)
class SealedRun:
    """What `seal` leaves: the run manifest's path (relative to the dataset), its checksum, and what it says in total."""

    run_manifest: str
    sha256: str
    events: int
    root: str
    counts: dict[str, int]
    parts: tuple[SealedPart, ...]

    def to_json(self) -> JsonObject:
        """The `lineage` object of a dataset manifest and of a run record."""
        return {"run_manifest": self.run_manifest, "sha256": self.sha256, "events": self.events, "root": self.root}


@dataclass(slots=True)
class _Written:
    """A part in the scratch folder."""

    local: str
    facts: PartFacts


@dataclass(slots=True)
class RunWriter:
    """Takes the events of one attempt of a run, batch by batch, and keeps at most `part_rows` of them in memory (about 70 bytes each).

    `scratch` is a local folder that exists; parts wait there until `seal`. `nonce` separates the files of this process from those of another.
    `carry_out` applies the task to its units, here or in another process (`engine.port`).
    """

    scratch: str
    run_id: str
    attempt: int
    nonce: str
    part_rows: int = PART_ROWS
    group_rows: int = GROUP_ROWS
    carry_out: CarryOut = map
    events: int = 0
    first: datetime | None = None
    last: datetime | None = None
    _waiting: list[pa.Table] = field(default_factory=list)
    _waiting_rows: int = 0
    _written: list[_Written] = field(default_factory=list)
    _steps: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _sealed: bool = False

    def __post_init__(self) -> None:
        check_identity("run_id", self.run_id)
        if not names_files(self.run_id):
            raise ValueError(f"run_id {self.run_id[:40]!r}... is too long to be part of a file name")
        if not 0 <= self.attempt <= MAX_ATTEMPT:
            raise ValueError(f"attempt is {self.attempt}; it has to be from 0 to {MAX_ATTEMPT}")

    def write(self, table: pa.Table) -> None:
        """Take a collector's events (`drain` or `to_table`).

        Raises:
            ValueError: the table is of another schema or another run.
        """
        if self._sealed:
            raise ValueError(f"the lineage of run {self.run_id}, attempt {self.attempt} is sealed")
        if not table.num_rows:
            return
        if not table.schema.equals(columns.COMPACT_SCHEMA):
            table = columns.compact(table)
        runs = _texts_of(table, "run_id")
        if runs != [self.run_id]:
            raise ValueError(f"the events are of run {', '.join(map(repr, runs))}, not of run {self.run_id!r}")
        if self._waiting_rows + table.num_rows > self.part_rows:
            self._flush()
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        self.events += table.num_rows
        times = pc.min_max(table.column("event_time_utc")).as_py()
        self.first = times["min"] if self.first is None else min(self.first, times["min"])
        self.last = times["max"] if self.last is None else max(self.last, times["max"])

    def counts(self) -> dict[str, int]:
        """Events written so far: total_events, passed, rejected, warned."""
        found = {"total_events": self.events, "passed": 0, "rejected": 0, "warned": 0}
        for (_, _, outcome), events in self._steps_now().items():
            found[VERDICTS[outcome]] += events
        return found

    def seal(
        self,
        store: Store,
        root: str = ROOT,
        *,
        run_date: date,
        plan: Sequence[str],
        tool: Mapping[str, str],
        time: datetime,
        besides: Besides | None = None,
        about: Mapping[str, Json] | None = None,
    ) -> SealedRun:
        """Copy the parts into the store and write the run manifest, which makes them count.

        Args:
            store: the dataset's store.
            root: folder of the event store in it.
            run_date: UTC date of the run's first attempt.
            plan: the stages that act on a feature in this run, in order (without `publish`).
            tool: versions of the software.
            time: now, aware.
            besides: what the run manifest names and holds beside the events; nothing by default.
            about: what else the run manifest should say (dataset, contract, delivery).

        Raises:
            ConflictError: this attempt of the run is sealed already.
            CorruptError: the store was written by a schema that conflicts with the one that runs (`recorded_schema`).
            StoreError: the store cannot be written.
        """
        besides = besides or Besides()
        schema = witness_of(store, record_schema(store, root))
        self._flush()
        folder = f"run_date={run_date.isoformat()}/run_id={quote(self.run_id, safe='')}"
        parts = []
        for number, each in enumerate(self._written):
            facts = each.facts
            path = f"{folder}/target_crs={quote(facts.target_crs, safe='')}/part-{self.attempt}-{self.nonce}-{number:05d}.parquet"
            store.create_from(below(root, path), each.local)
            parts.append(
                SealedPart(
                    path, facts.rows, facts.size, facts.sha256, facts.root.hex(), facts.target_crs, facts.first_feature, facts.last_feature
                )
            )
        doc: JsonObject = {
            "format": FORMAT,
            "origin": besides.origin,
            "run_id": self.run_id,
            "attempt": self.attempt,
            "run_date": run_date.isoformat(),
            "sealed_utc": _stamp(time),
            "schema_version": SCHEMA.version,
            "plan": list(plan),
            "tool": dict(tool),
            "first_event_utc": _stamp(self.first) if self.first is not None else None,
            "last_event_utc": _stamp(self.last) if self.last is not None else None,
            "counts": self.counts(),
            "steps": [
                {"stage": stage, "event_type": kind, "outcome": outcome, "events": events}
                for (stage, kind, outcome), events in sorted(self._steps.items())
            ],
            "parts": [each.to_json() for each in parts],
            "findings": [dict(each) for each in besides.findings],
            "objects": sorted([schema, *map(dict, besides.objects)], key=lambda each: each["path"]),
            "heads": [dict(each) for each in besides.heads],
            "about": dict(about or {}),
        }
        total = doc["root"] = merkle.root_of_run([each.facts.root for each in self._written], said(doc)).hex()
        data = (json.dumps(doc, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()
        name = below(root, run_manifest_name(self.run_id, self.attempt))
        try:
            store.create(name, data)
        except FileExistsError as fault:
            raise ConflictError(
                f"the lineage of run {self.run_id}, attempt {self.attempt} is sealed already: {name}",
                field=name,
                hint="run again: the next attempt gets its own number",
            ) from fault
        self._sealed = True
        for each in self._written:
            Path(each.local).unlink()
        return SealedRun(name, hashlib.sha256(data).hexdigest(), self.events, total, self.counts(), tuple(parts))

    def _steps_now(self) -> dict[tuple[str, str, str], int]:
        found = dict(self._steps)
        for table in self._waiting:
            _count_steps(table, found)
        return found

    def _flush(self) -> None:
        """Write what waits as one part per target CRS."""
        if not self._waiting:
            return
        table, self._waiting_rows = columns.concat(self._waiting), 0
        _count_steps(table, self._steps)
        for data, facts in self.carry_out(encode_part, part_units(table, self.group_rows)):
            local = os.path.join(self.scratch, f"lineage-{self.attempt}-{self.nonce}-{len(self._written):05d}.parquet")  # noqa: PTH118 - the scratch folder is a str for workers
            with open(local, "wb") as file:  # noqa: PTH123 - as above
                file.write(data)
            self._written.append(_Written(local, facts))


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def witness_of(store: Store, path: str) -> JsonObject:
    """An object as a run manifest remembers it: `path`, `bytes`, `sha256`. Raises FileNotFoundError where there is none."""
    size, checksum = checksum_of(store, path)
    return {"path": path, "bytes": size, "sha256": checksum}


def checksum_of(store: Store, path: str) -> tuple[int, str]:
    """Size and SHA-256 of an object, read piece by piece. Raises FileNotFoundError where there is none."""
    digest, size = hashlib.sha256(), 0
    with store.open(path) as file:
        while data := file.read(_COPY):
            digest.update(data)
            size += len(data)
    return size, digest.hexdigest()


def below(root: str, path: str) -> str:
    """A path below the store's root; the root "" is the store itself."""
    return f"{root}/{path}" if root else path


def names_files(run_id: str) -> bool:
    """Whether a run's id, percent-encoded, can be part of a file name; the longest that file systems have is 255 bytes."""
    return len(quote(run_id, safe="")) <= 200


def run_manifest_name(run_id: str, attempt: int) -> str:
    """The run manifest's path, relative to the store's root."""
    return f"{RUNS}/{quote(run_id, safe='')}-{attempt}.json"


def _texts_of(table: pa.Table, name: str) -> list[str]:
    """The texts that stand in a dictionary column."""
    found: set[str] = set()
    for chunk in table.column(name).chunks:
        found.update([chunk.dictionary[0].as_py()] if columns.is_uniform(chunk) else pc.unique(chunk).dictionary_decode().to_pylist())
    return sorted(found, key=str)


def _count_steps(table: pa.Table, into: dict[tuple[str, str, str], int]) -> None:
    names = ["stage", "event_type", "outcome"]
    for batch in table.select(names).to_batches():
        texts = [column.dictionary.to_pylist() for column in batch.columns]
        code = np.zeros(batch.num_rows, np.int64)
        for column in batch.columns:
            code = code * len(column.dictionary) + np.asarray(column.indices)
        for each, events in enumerate(np.bincount(code).tolist()):
            if events:
                at = np.unravel_index(each, [len(known) for known in texts])
                key = (texts[0][at[0]], texts[1][at[1]], texts[2][at[2]])
                into[key] = into.get(key, 0) + events
