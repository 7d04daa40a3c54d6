"""`lineage ingest`: events of other tools into a dataset's event store, sealed run by run, with everything else in quarantine.

Not here: reading the lines (`lineage.ingest`), the store (`lineage.store`).

Ingesting a file again adds nothing: a run that holds it already, by its sha256 and that of the mapping, is passed over. So a broken-off ingest
is repeated. What Merestone published itself nobody else records again: such lines go to quarantine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merestone.audit.foreign import job_of
from merestone.columnar.arrays import one_chunk
from merestone.contract.files import read_document
from merestone.errors import SourceError, UsageError
from merestone.inspect.browse import parse_address, publication_at
from merestone.json_value import JsonObject
from merestone.line import environment
from merestone.lineage.event.collector import OUTSIDE_CHAIN
from merestone.lineage.event.record import ATTEMPT_BITS
from merestone.lineage.exchange.ingest import read_batches
from merestone.lineage.exchange.mapping import LogMapping, read_mapping
from merestone.lineage.store.run_manifest import RunManifest, runs_of
from merestone.lineage.store.witness import QUARANTINE, seen
from merestone.lineage.store.writing import PART_ROWS, ROOT, Besides, RunWriter
from merestone.results.finding import SAMPLES
from merestone.storage.open import open_store
from merestone.storage.place import local_path, parse_place
from merestone.storage.port import Store

_LEAST_ROWS = 10_000  # of a part, however many runs a file holds


@dataclass(slots=True)
class Ingested:
    """What became of the lines of a file. `runs` are the runs that were sealed, `known` those that held the file already."""

    lines: int = 0
    events: int = 0
    quarantined: int = 0
    runs: list[JsonObject] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    quarantine: str | None = None
    samples: list[JsonObject] = field(default_factory=list)


def ingest(text: str, path: str, *, mapping: str | None = None, plan: Sequence[str] = ()) -> Ingested:
    """Read a file into the event store of a dataset, or of a folder that becomes a store of events alone.

    Args:
        text: a dataset's folder or URL, its publication file, or a folder that does not exist yet.
        path: the file (`lineage.ingest.read_batches` says which forms).
        mapping: the mapping file of a rejection log.
        plan: the stages of the tool, in order, for the check of the chain; by default those of the mapping or of the run's last attempt.

    Raises:
        UsageError: the mapping is broken, or the file has another form.
        SourceError: the file cannot be read.
        StoreError: the store cannot be written; what was sealed until then stays, and the same command goes on.
    """
    store = store_of(text)
    path = local_path(path, what="events")
    rules = _mapping(mapping) if mapping is not None else None
    origin: JsonObject = {
        "file": Path(path).name,
        "sha256": _checksum(path),
        "mapping_sha256": _checksum(mapping) if mapping is not None else None,
    }
    sealed = {attempts[0].run_id: attempts for attempts in runs_of(store)}
    known = {run_id for run_id, attempts in sealed.items() if any(_same(_ingest_of(one), origin) for one in attempts)}
    reserved = {run_id: stages for run_id, attempts in sealed.items() if (stages := _own_stages(attempts))}
    found = Ingested(known=sorted(known))
    with environment.scratch() as folder:
        writers: dict[str, RunWriter] = {}
        aside = Path(folder) / "quarantine.ndjson"
        with aside.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as kept:
            for batch in read_batches(path, rules, reserved=reserved):
                found.lines += batch.lines
                found.events += batch.events.num_rows
                found.quarantined += len(batch.quarantined)
                kept.writelines(json.dumps(each.to_json(), ensure_ascii=False) + "\n" for each in batch.quarantined)
                found.samples += [each.to_json() for each in batch.quarantined[: SAMPLES - len(found.samples)]]
                _keep(writers, batch.events, known, sealed, folder, numbered=rules is not None)
        if found.quarantined:  # before any run is sealed that says so
            found.quarantine = f"{ROOT}/{QUARANTINE}/{origin['sha256'][:16]}-{_checksum(str(aside))[:16]}.ndjson"
            if store.size(found.quarantine) is None:
                store.create_from(found.quarantine, str(aside))
        summary = {**origin, "lines": found.lines, "quarantined": found.quarantined, "quarantine": found.quarantine}
        if found.quarantined and not writers and not known:  # a run without events is the witness of the quarantined lines
            alone = f"ingest-{origin['sha256'][:16]}"
            writers[alone] = RunWriter(folder, alone, sealed[alone][-1].attempt + 1 if alone in sealed else 0, environment.nonce())
        state, recorded_by = seen(store), f"merestone {environment.tools()['merestone']}"
        heads, objects = state.heads, state.remembered(store)
        for run_id, writer in sorted(writers.items()):
            attempts = sealed.get(run_id, [])
            steps = list(plan) or (list(rules.plan) if rules is not None else []) or (list(attempts[-1].plan) if attempts else [])
            happened = writer.first or environment.now()  # a run is dated by its events, not by when they came here
            date = environment.day_of(f"{attempts[0].run_date}T00:00:00Z" if attempts else environment.stamp(happened))
            made = writer.seal(
                store,
                run_date=date,
                plan=steps,
                tool={},  # what ran stands in the events; Merestone only keeps them
                time=environment.now(),
                besides=Besides(heads, objects, origin="foreign"),
                about={
                    "ingest": summary,
                    "job": job_of(run_id),
                    "actor": environment.who(),
                    "basis": f"events of {origin['file']}",
                    "recorded_by": recorded_by,
                },
            )
            heads, objects = (made.to_json(),), []
            found.runs.append({"run_id": run_id, "attempt": writer.attempt, "events": made.events, "root": made.root})
    return found


def _keep(
    writers: dict[str, RunWriter],
    events: pa.Table,
    known: set[str],
    sealed: dict[str, list[RunManifest]],
    folder: str,
    *,
    numbered: bool,
) -> None:
    """Hand the events of a batch to the writers of their runs."""
    runs = one_chunk(one_chunk(events.column("run_id")).dictionary_encode())
    for code, run_id in enumerate(runs.dictionary.to_pylist()):
        if run_id in known:
            continue
        mine = events if len(runs.dictionary) == 1 else events.filter(pc.equal(runs.indices, code))
        if run_id not in writers:
            attempts = sealed.get(run_id, [])
            writers[run_id] = RunWriter(folder, run_id, attempts[-1].attempt + 1 if attempts else 0, environment.nonce())
            for each in writers.values():  # what all of them keep in memory stays what one would
                each.part_rows = max(_LEAST_ROWS, PART_ROWS // len(writers))
        writer = writers[run_id]
        if numbered:  # a log has no order of its own but that of its lines
            first = (writer.attempt << ATTEMPT_BITS) + writer.events
            at = mine.schema.get_field_index("sequence")
            mine = mine.set_column(at, mine.schema.field(at), pa.array(np.arange(first, first + mine.num_rows, dtype=np.int64)))
        writer.write(mine)


def _own_stages(attempts: Sequence[RunManifest]) -> frozenset[str]:
    """The stages of a run that Merestone published itself; none of an ingested one."""
    own = [each for each in attempts if not each.foreign]
    return frozenset({OUTSIDE_CHAIN, *(stage for each in own for stage in each.plan)}) if own else frozenset()


def store_of(text: str) -> Store:
    """The store of a dataset, or of a folder that becomes a store of events alone. Raises UsageError where a version is named."""
    address = parse_address(text)
    place = parse_place(text)
    if address.version is not None:
        raise UsageError(f"{text} names a version, but events go into the whole dataset", field=text, hint=f"leave out @{address.version}")
    if place.is_local and Path(place.path).is_file():
        return open_store(publication_at(text).destination)
    return open_store(text)


def _mapping(path: str) -> LogMapping:
    if not Path(local_path(path, field="mapping", what="a mapping")).is_file():
        raise UsageError(f"mapping {path} does not exist", field=path, hint="check the path")
    try:
        return read_mapping(read_document(path, what="mapping").tree)
    except ValueError as fault:
        raise UsageError(
            f"mapping {path}: {fault}", field=path, hint="docs/spec/lineage.md describes the mapping of a rejection log"
        ) from fault


def _checksum(path: str) -> str:
    try:
        with Path(local_path(path)).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as fault:
        raise SourceError(f"{path} cannot be read: {fault.strerror or fault}", field=path, hint="check the file and its path") from fault


def _ingest_of(run: RunManifest) -> JsonObject:
    about = run.doc.get("about") or {}
    return about.get("ingest") or {}


def _same(one: JsonObject, other: JsonObject) -> bool:
    return all(one.get(name) == other[name] for name in ("sha256", "mapping_sha256"))
