"""Questions to the event store: the events of a run, the verdict, one feature's history, and deduplication at read time.

Not here: writing (`store`), gates over the answers (`complete`, `hygiene`), how answers look (`report`).

Readers know paths from run manifests alone: a file that no sealed run lists is not there. Partition folders are never parsed, so a run
`007` stays `007`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.errors import CorruptError, UsageError
from merestone.lineage import columns, merkle
from merestone.lineage.event import IDENTITY, make_event_id
from merestone.lineage.schema import LINEAGE_ARROW_SCHEMA, SCHEMA, is_readable
from merestone.lineage.store import FORMAT, ROOT, RUNS, Part, below
from merestone.lineage.tombstone import Expired, expired_runs
from merestone.outcome import SAMPLES
from merestone.storage.open import open_store
from merestone.storage.port import Store

ATTEMPT_BITS = 48
_UNPAYLOADED = ("sequence", "event_time_utc")  # what two deliveries of one event may differ in
_WORST = {"PASS": 0, "WARN": 1, "REJECT": 2}
MOST_REASONS = 10_000
"""How many different reasons are told apart: a reason quotes a value, so a broken delivery may have one a row. The rest counts as others."""
OTHERS = "other reasons"
_CODED = [each.name for each in LINEAGE_ARROW_SCHEMA if each.type == pa.string() and each.name not in ("event_id", "feature_id")]
_SLICE = 65_536  # rows encoded at a time
_STRETCH = 2_048  # rows: pieces of a table that are this long on average are not copied


@dataclass(frozen=True, slots=True)
class RunManifest:
    """A sealed attempt of a run, as its run manifest says. `path` is relative to the dataset's store, `doc` the whole JSON object.

    Of an attempt that `expired`, `parts` are those of the baseline: the rows of features that were live then.
    """

    path: str
    run_id: str
    attempt: int
    run_date: str
    sealed_utc: str
    schema_version: str
    plan: tuple[str, ...]
    counts: dict[str, int]
    parts: tuple[Part, ...]
    root: str
    doc: dict[str, Any]
    expired: Expired | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """One event id with two payloads in one attempt: an alert. `columns` are the fields that differ."""

    event_id: str
    run_id: str
    stage: str
    feature_id: str
    attempt: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeduplicationReport:
    """What deduplication sets aside, in rows.

    `replays` repeat the payload of another row; `corrections` gave way to a later attempt with another payload; `conflicts` contradict a
    row of their own attempt (`samples`: up to 20 of them).
    """

    rows: int
    standing: int
    replays: int
    corrections: int
    conflicts: int
    samples: tuple[Conflict, ...]

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "rows": self.rows, "standing": self.standing, "replays": self.replays, "corrections": self.corrections,
            "conflicts": self.conflicts,
            "samples": [{"event_id": c.event_id, "run_id": c.run_id, "stage": c.stage, "feature_id": c.feature_id, "attempt": c.attempt,
                         "columns": list(c.columns)} for c in self.samples],
        }


def read_manifest(store: Store, path: str, *, sha256: str | None = None) -> RunManifest:
    """A run manifest by its path in the store.

    Raises:
        CorruptError: it is missing, is no run manifest, or has another checksum than `sha256`.
    """
    try:
        data = store.get(path)
    except FileNotFoundError as fault:
        raise CorruptError(f"{path} is missing", field=path, hint="restore the file from a backup") from fault
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise CorruptError(f"{path} is not the file that was sealed: its checksum differs", field=path, hint="restore it from a backup")
    try:
        doc = json.loads(data)
        if doc["format"] != FORMAT:
            raise CorruptError(f"{path} has format {doc['format']}, this version of Merestone reads format {FORMAT}", field=path,
                               hint="use the Merestone version that wrote it, or a newer one")
        if not is_readable(str(doc["schema_version"])):
            raise CorruptError(f"{path} is of lineage schema {doc['schema_version']}, this version of Merestone reads {SCHEMA.version} and "
                               "the versions of its major number", field=path, hint="use the Merestone version that wrote it, or a newer one")
        parts = tuple(Part(each["path"], each["rows"], each["bytes"], each["sha256"], each["root"], each["target_crs"],
                           each["first_feature"], each["last_feature"]) for each in doc["parts"])
        return RunManifest(path, doc["run_id"], doc["attempt"], doc["run_date"], doc["sealed_utc"], doc["schema_version"],
                           tuple(doc["plan"]), doc["counts"], parts, doc["root"], doc)
    except (ValueError, KeyError, TypeError) as fault:
        raise CorruptError(f"{path} is not a readable run manifest: {fault!r}", field=path, hint="restore it from a backup") from fault


def sealed_runs(store: Store, root: str = ROOT) -> list[RunManifest]:
    """Every sealed attempt of every run, in the order of sealing.

    Raises:
        CorruptError: a run manifest cannot be read.
    """
    gone = expired_runs(store, root)
    found = [_standing_parts(store, read_manifest(store, name), gone, root) for name, _ in store.list(below(root, f"{RUNS}/")) if name.endswith(".json")]
    return sorted(found, key=lambda each: (each.sealed_utc, each.run_id, each.attempt))


def attempts_of(store: Store, run_id: str, root: str = ROOT) -> list[RunManifest]:
    """The sealed attempts of one run, first to last.

    Raises:
        UsageError: no attempt of that run is sealed.
        CorruptError: a run manifest cannot be read.
    """
    stem = below(root, f"{RUNS}/{quote(run_id, safe='')}-")
    names = [name for name, _ in store.list(below(root, f"{RUNS}/"))
             if name.startswith(stem) and name.removeprefix(stem).removesuffix(".json").isdecimal()]
    if not names:
        raise UsageError(f"there is no sealed run {run_id!r} in {store.url}/{root}".rstrip("/"), field="run_id",
                         hint="`merestone lineage runs DATASET` lists the runs")
    gone = expired_runs(store, root)
    return sorted((_standing_parts(store, read_manifest(store, name), gone, root) for name in names), key=lambda each: each.attempt)


def _standing_parts(store: Store, run: RunManifest, gone: Mapping[str, Expired], root: str) -> RunManifest:
    """The attempt with the parts that are there to be read."""
    expired = gone.get(run.path.removeprefix(below(root, "")))
    if expired is None:
        return run
    if expired.baseline is None:
        return replace(run, parts=(), expired=expired)
    kept = read_manifest(store, below(root, expired.baseline["run_manifest"]), sha256=expired.baseline["sha256"])
    place = expired.baseline["run_manifest"].partition(f"/{RUNS}/")[0]
    return replace(run, parts=tuple(replace(each, path=below(place, each.path)) for each in kept.parts), expired=expired)


def read_part(store: Store, part: Part, root: str = ROOT, *, names: Sequence[str] | None = None) -> Any:
    """The rows of a part (pyarrow.Table in the compiled schema, or its `names`). Optional fields that the file does not have yet are null.

    Raises:
        CorruptError: the part is missing, cannot be read, or has another number of rows than the run manifest says.
    """
    wanted = LINEAGE_ARROW_SCHEMA.names if names is None else list(names)
    with _reader(store, part, root) as reader:
        table = reader.read(columns=[each for each in wanted if each in reader.schema_arrow.names])
    if table.num_rows != part.rows:
        path = below(root, part.path)
        raise CorruptError(f"{path} has {table.num_rows} rows; its run manifest says {part.rows}", field=path,
                           hint="restore the file from a backup")
    return conform(table, wanted)


def conform(table: Any, names: Sequence[str] | None = None) -> Any:
    """A table of an older or newer minor version of the schema in the compiled one (or its `names`)."""
    fields = [LINEAGE_ARROW_SCHEMA.field(each) for each in (LINEAGE_ARROW_SCHEMA.names if names is None else names)]
    arrays = [pc.cast(table.column(each.name), each.type) if each.name in table.column_names else pa.nulls(table.num_rows, each.type)
              for each in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=LINEAGE_ARROW_SCHEMA.metadata))


def read_run(store: Store, run_id: str, root: str = ROOT, *, attempt: int | None = None, names: Sequence[str] | None = None) -> Any:
    """All rows of a run as they were sealed, every attempt (or one), not deduplicated.

    Raises:
        UsageError: no such sealed run or attempt.
        CorruptError: a manifest or a part cannot be read.
    """
    chosen = [each for each in attempts_of(store, run_id, root) if attempt is None or each.attempt == attempt]
    if not chosen:
        raise UsageError(f"run {run_id!r} has no sealed attempt {attempt}", field="attempt")
    tables = [read_part(store, part, root, names=names) for each in chosen for part in each.parts]
    return pa.concat_tables(tables) if tables else conform(LINEAGE_ARROW_SCHEMA.empty_table(), names)


def deduplicate(table: Any) -> Any:
    """The rows that stand: per event_id the one with the highest sequence, in the order of the table. Never raises on a conflict.

    Where one sequence bears two rows of an event, the worse outcome stands, so that no REJECT vanishes; among equals, the first row.
    """
    keep = _standing(table)
    return table if keep is None else _kept(table, keep)


def deduplicate_report(table: Any) -> DeduplicationReport:
    """What `deduplicate` sets aside, and why; conflicts are an alert."""
    rows, codes = _sharing(table)
    if not len(rows):
        return DeduplicationReport(table.num_rows, table.num_rows, 0, 0, 0, ())
    ascending = np.argsort(rows)
    rows, codes = rows[ascending], codes[ascending]
    standing = table.num_rows - len(rows) + len(np.unique(codes))
    part = conform(table.take(pa.array(rows)))
    sequence = _integers(part, "sequence")
    order = _by_event(codes, sequence, _severity(part), rows)
    event, attempt, payload = codes[order], (sequence >> ATTEMPT_BITS)[order], _payload(part)[order]
    index = np.arange(len(order))
    top = _last_alike(event)
    top_of_attempt = _last_alike(event, attempt)
    conflict = payload != payload[top_of_attempt]
    passed_over = (index == top_of_attempt) & (index != top)
    correction = passed_over & (payload != payload[top])
    replay = ~conflict & ~correction & (index != top)
    samples = tuple(_conflict(part, int(order[at]), int(order[top_of_attempt[at]])) for at in np.flatnonzero(conflict)[:SAMPLES])
    return DeduplicationReport(table.num_rows, standing, int(replay.sum()), int(correction.sum()), int(conflict.sum()), samples)


def conformance_summary(manifest_root: str | os.PathLike[str] | Store, run_id: str) -> dict[str, int]:
    """The verdict of a run: `total_events`, `passed`, `rejected`, `warned`, over the events that stand.

    Beside them `features`, `features_passed`, `features_rejected`, `features_warned`: each feature by its worst outcome.

    Args:
        manifest_root: the event store's root (`<dataset>/_lineage`), a path, URL or store.
        run_id: the run, as text.

    Raises:
        UsageError: no such sealed run.
        CorruptError: a manifest or a part cannot be read.
    """
    store: Any = open_store(manifest_root) if isinstance(manifest_root, (str, os.PathLike)) else manifest_root
    return verdict(store, attempts_of(store, run_id, ""), "")


def verdict(store: Store, attempts: Sequence[RunManifest], root: str = ROOT) -> dict[str, int]:
    """As `conformance_summary`, for the sealed attempts of one run; of a run that expired, what its tombstone says."""
    if attempts and attempts[-1].expired is not None:
        return dict(attempts[-1].expired.verdict)
    total = _no_verdict()
    for table in scan(store, attempts, root, names=("event_id", "sequence", "feature_id", "outcome")):
        _add_verdict(deduplicate(table), total)
    return total


def run_summary(store: Store, run_id: str, root: str = ROOT) -> dict[str, Any]:
    """What `lineage summary` shows of a run: its verdict, events per stage and outcome, reasons by frequency, software, Merkle root.

    Raises:
        UsageError: no such sealed run.
        CorruptError: a manifest or a part cannot be read.
    """
    attempts = attempts_of(store, run_id, root)
    last = attempts[-1]
    if last.expired is not None:
        return _of_tombstone(attempts, last.expired)
    total = _no_verdict()
    stages: dict[tuple[str, str, str], int] = {}
    reasons: dict[tuple[str, str, str], int] = {}
    names = ("event_id", "sequence", "feature_id", "stage", "event_type", "outcome", "rejection_reason")
    for table in scan(store, attempts, root, names=names):
        standing = deduplicate(table)
        _add_verdict(standing, total)
        _count(standing, ("stage", "event_type", "outcome"), stages)
        _count(standing.filter(pc.not_equal(standing.column("outcome"), "PASS")), ("stage", "outcome", "rejection_reason"), reasons, MOST_REASONS)
    often = sorted(reasons.items(), key=lambda each: (-each[1], each[0][0], each[0][1], each[0][2] or ""))
    told = [{"stage": stage, "outcome": outcome, "reason": reason, "events": events} for (stage, outcome, reason), events in often[:SAMPLES]]
    return _summary(attempts, total, stages, told)


def _of_tombstone(attempts: Sequence[RunManifest], expired: Expired) -> dict[str, Any]:
    stages: dict[tuple[str, str, str], int] = {}
    for step in expired.steps:
        for word, outcome in (("passed", "PASS"), ("warned", "WARN"), ("rejected", "REJECT")):
            if step[word]:
                key = step["stage"], step["event_type"], outcome
                stages[key] = stages.get(key, 0) + step[word]
    return _summary(attempts, expired.verdict, stages, [])


def _summary(
    attempts: Sequence[RunManifest], total: Mapping[str, int], stages: Mapping[tuple[str, str, str], int], reasons: list[dict[str, Any]],
) -> dict[str, Any]:
    last = attempts[-1]
    place = {stage: at for at, stage in enumerate(last.plan)}
    return {
        "run_id": last.run_id, "attempts": [each.attempt for each in attempts], "run_date": last.run_date, "sealed_utc": last.sealed_utc,
        "schema_version": last.schema_version, "plan": list(last.plan), "tool": last.doc["tool"], "root": last.root, **total,
        "stages": [{"stage": stage, "event_type": kind, "outcome": outcome, "events": events} for (stage, kind, outcome), events
                   in sorted(stages.items(), key=lambda each: (place.get(each[0][0].partition(".")[0], len(place)), each[0]))],
        "reasons": reasons,
    }


def scan(
    store: Store, attempts: Sequence[RunManifest], root: str = ROOT, *, names: Sequence[str], rows: int = 1_000_000,
) -> Iterator[Any]:
    """The rows of sealed attempts in tables of about `rows` rows, each with all rows of its features: bounded memory for any run.

    `names` has to hold feature_id.

    Raises:
        CorruptError: a part cannot be read.
    """
    parts = [part for each in attempts for part in each.parts]
    if sum(part.rows for part in parts) <= rows:
        if parts:
            yield pa.concat_tables([read_part(store, part, root, names=names) for part in parts])
        return
    groups = []
    for part in parts:
        with _reader(store, part, root) as reader:
            groups += _groups_of(reader, part)
    for low, high in _ranges(groups, rows):
        tables = []
        for part in parts:
            chosen = [each.number for each in groups if each.part is part and each.meets(low, high)]
            if chosen:
                with _reader(store, part, root) as reader:
                    table = conform(_read_groups(reader, chosen, names), names)
                features = table.column("feature_id")
                inside = pc.greater_equal(features, low)
                tables.append(table.filter(inside if high is None else pc.and_(inside, pc.less(features, high))))
        if tables:
            yield pa.concat_tables(tables)


def history(store: Store, feature_id: str, root: str = ROOT, *, runs: Sequence[RunManifest] | None = None) -> Any:
    """Every sealed row of one feature, by run (oldest first) and sequence: pyarrow.Table of the compiled schema, not deduplicated.

    Reads footers, and of the row groups that may hold the feature only what is needed; event_id is computed anew, not read.

    Raises:
        CorruptError: a manifest or a part cannot be read.
    """
    wanted = [each for each in LINEAGE_ARROW_SCHEMA.names if each != "event_id"]
    found = []
    for run in sealed_runs(store, root) if runs is None else runs:
        mine = []
        for part in run.parts:
            if not part.first_feature <= feature_id <= part.last_feature:
                continue
            with _reader(store, part, root, coded=_CODED) as reader:
                chosen = [each.number for each in _groups_of(reader, part) if each.may_hold(feature_id)]
                if chosen and pc.any(pc.equal(_read_groups(reader, chosen, ["feature_id"]).column(0), feature_id)).as_py():
                    table = _read_groups(reader, chosen, wanted)
                    mine.append(conform(table.filter(pc.equal(table.column("feature_id"), feature_id)), wanted))
        if mine:
            found.append(pa.concat_tables(mine).sort_by("sequence"))
    if not found:
        return LINEAGE_ARROW_SCHEMA.empty_table()
    table = pa.concat_tables(found)
    keys = table.select(IDENTITY).to_pylist()
    ids = pa.array([make_event_id(**each) for each in keys], pa.string())
    return pa.Table.from_arrays([ids, *table.columns], schema=LINEAGE_ARROW_SCHEMA)


def why(
    store: Store, feature_id: str, root: str = ROOT, *, versions: Mapping[str, int] | None = None, limit: int | None = None,
) -> list[dict[str, Any]]:
    """Why a feature is as it is: the runs that touched it, newest first, with what stands of their events.

    Args:
        store: the dataset's store.
        feature_id: the key as lineage writes it.
        root: the event store in it.
        versions: run manifest path to the version that names it; a run without a version was refused or did not get to its commit.
        limit: at most so many runs.

    Raises:
        CorruptError: a manifest or a part cannot be read.
    """
    known = versions or {}
    out: list[dict[str, Any]] = []
    runs: dict[str, list[RunManifest]] = {}
    for each in sealed_runs(store, root):
        runs.setdefault(each.run_id, []).append(each)
    for attempts in sorted(runs.values(), key=lambda each: each[-1].sealed_utc, reverse=True):
        table = deduplicate(history(store, feature_id, root, runs=attempts))
        if not table.num_rows:
            continue
        events = [_event_json(each) for each in table.sort_by("sequence").to_pylist()]
        worst = max(events, key=lambda each: _WORST[each["outcome"]])
        named = [known[each.path] for each in attempts if each.path in known]
        changes = [each for each in events if each["change_class"] is not None]
        out.append({
            "run_id": attempts[-1].run_id, "attempts": [each.attempt for each in attempts], "version": max(named, default=None),
            "run_date": attempts[-1].run_date, "outcome": worst["outcome"], "stage": worst["stage"], "reason": worst["rejection_reason"],
            "change_class": changes[-1]["change_class"] if changes else None, "events": events,
        })
        if limit is not None and len(out) == limit:
            break
    return out


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group and the features it spans; without statistics it may hold any."""

    part: Part
    number: int
    rows: int
    low: str | None
    high: str | None

    def may_hold(self, feature: str) -> bool:
        return self.low is None or self.high is None or self.low <= feature <= self.high

    def meets(self, low: str, high: str | None) -> bool:
        return self.low is None or self.high is None or (self.high >= low and (high is None or self.low < high))


def _groups_of(reader: Any, part: Part) -> list[_Group]:
    column = reader.schema_arrow.names.index("feature_id")
    found = []
    for number in range(reader.metadata.num_row_groups):
        group = reader.metadata.row_group(number)
        limits = group.column(column).statistics
        known = limits is not None and limits.has_min_max
        found.append(_Group(part, number, group.num_rows, limits.min if known else None, limits.max if known else None))
    return found


def _read_groups(reader: Any, groups: Sequence[int], names: Sequence[str]) -> Any:
    there = set(reader.schema_arrow.names)
    return reader.read_row_groups(list(groups), columns=[each for each in names if each in there])


@contextmanager
def _reader(store: Store, part: Part, root: str, *, coded: Sequence[str] = ()) -> Iterator[Any]:
    """The Parquet reader of a part, `coded` columns as dictionaries; what goes wrong while it is open is a damaged part."""
    path = below(root, part.path)
    try:
        with store.open(path) as file:
            yield pq.ParquetFile(file, read_dictionary=coded)
    except FileNotFoundError as fault:
        raise CorruptError(f"{path} is missing: a sealed run lists it", field=path, hint="restore the file from a backup") from fault
    except (pa.ArrowException, OSError) as fault:
        raise CorruptError(f"{path} cannot be read: {fault}", field=path, hint="restore the file from a backup") from fault


def _ranges(groups: Sequence[_Group], rows: int) -> Iterator[tuple[str, str | None]]:
    """Cuts between features so that the groups that begin in a range hold about `rows` rows."""
    low, held = "", 0
    for each in sorted(groups, key=lambda group: group.low or ""):
        if held >= rows and each.low is not None and each.low > low:
            yield low, each.low
            low, held = each.low, 0
        held += each.rows
    yield low, None


def _sharing(table: Any) -> tuple[Any, Any]:
    """The rows that share their event_id with another, in no order, and for each of them a number per event_id."""
    words = columns.words(table.column("event_id"))
    if words is not None:
        mixed = columns.mixed(words)
        ranked = np.sort(mixed)
        if not (ranked[1:] == ranked[:-1]).any():
            return np.empty(0, np.int64), np.empty(0, np.int64)
        order = np.argsort(mixed)
        alike = mixed[order[1:]] == mixed[order[:-1]]
        if (words[order[1:][alike]] == words[order[:-1][alike]]).all():  # as good as always: what mixes alike is alike
            number = np.concatenate([[0], np.cumsum(~alike)])
            shared = np.concatenate([alike, [False]]) | np.concatenate([[False], alike])
            return order[shared], number[shared]
    encoded = columns.one_chunk(columns.one_chunk(table.column("event_id")).dictionary_encode())
    codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)))
    rows = np.flatnonzero(np.bincount(codes)[codes] > 1)
    return rows, codes[rows]


def _standing(table: Any) -> Any:
    """Which rows stand, None for all."""
    rows, codes = _sharing(table)
    if not len(rows):
        return None
    stands = np.ones(len(rows), np.bool_)
    for value in (_integers(table, "sequence")[rows], _severity(table)[rows], -rows):
        best = np.full(int(codes.max()) + 1, np.iinfo(np.int64).min)
        np.maximum.at(best, codes[stands], value[stands])
        stands &= value == best[codes]
    keep = np.ones(table.num_rows, np.bool_)
    keep[rows] = stands
    return keep


def _kept(table: Any, keep: Any) -> Any:
    """The rows for which `keep` is true. What is repeated are mostly whole batches: long stretches are cut out without a copy."""
    edges = np.flatnonzero(np.diff(keep, prepend=False, append=False))
    if len(edges) * _STRETCH > table.num_rows:
        return table.filter(pa.array(keep))
    return pa.concat_tables([table.slice(0, 0), *(table.slice(start, end - start) for start, end in edges.reshape(-1, 2).tolist())])


def _by_event(codes: Any, sequence: Any, severity: Any, rows: Any) -> Any:
    """An order in which the row that stands comes last among the rows of its event."""
    return np.lexsort((-rows, severity, sequence, codes))


def _last_alike(*keys: Any) -> Any:
    """For each row of sorted keys, the place of the last row with the same keys."""
    changes = np.zeros(len(keys[0]), np.bool_)
    for key in keys:
        changes[:-1] |= key[1:] != key[:-1]
    changes[-1:] = True
    ends = np.flatnonzero(changes)
    return np.repeat(ends, np.diff(ends, prepend=-1))


def _integers(table: Any, name: str) -> Any:
    return np.asarray(columns.one_chunk(table.column(name)).fill_null(-1))


def _severity(table: Any) -> Any:
    """PASS 0, WARN 1, REJECT 2."""
    return np.asarray(pc.index_in(columns.one_chunk(table.column("outcome")), pa.array(list(_WORST))).fill_null(-1))


def _payload(table: Any) -> Any:
    """A number per payload: all fields but sequence and event_time_utc."""
    pieces = [merkle.encode_events(table.slice(start, _SLICE), without=_UNPAYLOADED) for start in range(0, table.num_rows, _SLICE)]
    return np.asarray(columns.one_chunk(pa.chunked_array(pieces, pa.binary()).dictionary_encode()).indices)


def _conflict(table: Any, row: int, stands: int) -> Conflict:
    one, other = table.slice(row, 1).to_pylist()[0], table.slice(stands, 1).to_pylist()[0]
    return Conflict(one["event_id"], one["run_id"], one["stage"], one["feature_id"], one["sequence"] >> ATTEMPT_BITS,
                    tuple(name for name in one if name not in _UNPAYLOADED and one[name] != other[name]))


def _no_verdict() -> dict[str, int]:
    return dict.fromkeys(("total_events", "passed", "rejected", "warned",
                          "features", "features_passed", "features_rejected", "features_warned"), 0)


def _add_verdict(standing: Any, total: dict[str, int]) -> None:
    """Count the events of a table that holds all rows of its features."""
    severity = _severity(standing)
    features = columns.one_chunk(columns.one_chunk(standing.column("feature_id")).dictionary_encode())
    codes = np.asarray(features.indices)
    worst = np.zeros(len(features.dictionary), np.int8)
    for level in (1, 2):
        worst[codes[severity == level]] = level
    total["total_events"] += len(severity)
    total["features"] += len(worst)
    for level, word in enumerate(("passed", "warned", "rejected")):
        total[word] += int((severity == level).sum())
        total[f"features_{word}"] += int((worst == level).sum())


def _count(table: Any, names: Sequence[str], into: dict[Any, int], most: int | None = None) -> None:
    """Count rows by some texts; beyond `most` of them, what was not met before counts under the others of its kind."""
    for each in table.select(names).group_by(list(names)).aggregate([([], "count_all")]).to_pylist():
        key = tuple(each[name] for name in names)
        if most is not None and len(into) >= most and key not in into:
            key = (*key[:-1], OTHERS)
        into[key] = into.get(key, 0) + each["count_all"]


def _event_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its time as RFC 3339 text."""
    return {**row, "event_time_utc": row["event_time_utc"].isoformat(timespec="microseconds").replace("+00:00", "Z")}
