"""The rows of sealed runs: of a part, of a run in bounded memory, of one feature over all runs.

Not here: which runs are sealed (`run_manifest`), which row of an event stands (`deduplication`), counts (`verdict`), gates (`complete`, `hygiene`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.errors import CorruptError, UsageError
from merestone.identity.key import written_ids
from merestone.json_value import Json, JsonObject
from merestone.lineage.event import columns
from merestone.lineage.event.record import IDENTITY, make_event_id
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA, file_problems
from merestone.lineage.store.deduplication import SEVERITY, deduplicate
from merestone.lineage.store.run_manifest import RunManifest, attempts_of, read_manifest, runs_of, sealed_runs
from merestone.lineage.store.writing import ROOT, SealedPart, below
from merestone.storage.port import Store

_CODED = [each.name for each in LINEAGE_ARROW_SCHEMA if each.type == pa.string() and each.name not in ("event_id", "feature_id")]


_FEW = 10_000
"""So many features are looked for group by group; of more, hardly a group holds none."""


def read_part(store: Store, part: SealedPart, root: str = ROOT, *, names: Sequence[str] | None = None) -> pa.Table:
    """The rows of a part (pyarrow.Table in the compiled schema, or its `names`). Optional fields that the file does not have yet are null.

    Raises:
        CorruptError: the part is missing, cannot be read, is of a schema that conflicts with the compiled one, lacks what is required, or
            has another number of rows than the run manifest says.
    """
    wanted = LINEAGE_ARROW_SCHEMA.names if names is None else list(names)
    with _reader(store, part, root) as reader:
        table = columns.conform(reader.read(columns=[each for each in wanted if each in reader.schema_arrow.names]), wanted)
    if table.num_rows != part.rows:
        path = below(root, part.path)
        raise CorruptError(
            f"{path} has {table.num_rows} rows; its run manifest says {part.rows}", field=path, hint="restore the file from a backup"
        )
    return table


def read_run(store: Store, run_id: str, root: str = ROOT, *, attempt: int | None = None, names: Sequence[str] | None = None) -> pa.Table:
    """All rows of a run as they were sealed, every attempt (or one), not deduplicated.

    Raises:
        UsageError: no such sealed run or attempt.
        CorruptError: a manifest or a part cannot be read.
    """
    chosen = [each for each in attempts_of(store, run_id, root) if attempt is None or each.attempt == attempt]
    if not chosen:
        raise UsageError(f"run {run_id!r} has no sealed attempt {attempt}", field="attempt")
    tables = [read_part(store, part, root, names=names) for each in chosen for part in each.parts]
    return pa.concat_tables(tables) if tables else columns.conform(LINEAGE_ARROW_SCHEMA.empty_table(), names)


def scan(
    store: Store,
    attempts: Sequence[RunManifest],
    root: str = ROOT,
    *,
    names: Sequence[str],
    rows: int = 1_000_000,
    only: pa.Array | None = None,
) -> Iterator[pa.Table]:
    """The rows of sealed attempts in tables of about `rows` rows, each with all rows of its features: bounded memory for any run.

    `names` has to hold feature_id. `only` are the features whose rows are wanted (a string array): what can hold none of them is not read.

    Raises:
        CorruptError: a part cannot be read.
    """
    if only is not None:
        yield from _scan_some(store, attempts, root, names, rows, only)
        return
    parts = [part for each in attempts for part in each.parts]
    if sum(part.rows for part in parts) <= rows:
        if parts:
            yield pa.concat_tables([read_part(store, part, root, names=names) for part in parts])
        return
    yield from _scan_ranges(store, parts, root, names, rows)


def _scan_some(
    store: Store, attempts: Sequence[RunManifest], root: str, names: Sequence[str], rows: int, only: pa.Array
) -> Iterator[pa.Table]:
    """The rows of some features."""
    if not len(only):
        return
    ends = pc.min_max(only).as_py()
    few = sorted(only.to_pylist()) if len(only) <= _FEW else None
    parts = [
        part
        for each in attempts
        for part in each.parts
        if part.last_feature >= ends["min"] and part.first_feature <= ends["max"] and (few is None or _any_in(few, part))
    ]
    for table in _scan_ranges(store, parts, root, names, rows, few):
        kept = table.filter(pc.is_in(table.column("feature_id"), only))
        if kept.num_rows:
            yield kept


def _any_in(few: Sequence[str], part: SealedPart) -> bool:
    return bisect_left(few, part.first_feature) < bisect_right(few, part.last_feature)


def _scan_ranges(
    store: Store, parts: Sequence[SealedPart], root: str, names: Sequence[str], rows: int, few: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Parts in ranges of features; of row groups only those that may hold one of a `few` features."""
    groups = []
    for part in parts:
        with _reader(store, part, root) as reader:
            groups += [each for each in _groups_of(reader, part) if few is None or each.may_hold_any(few)]
    for low, high in _ranges(groups, rows):
        tables = []
        for part in parts:
            chosen = [each.number for each in groups if each.part is part and each.meets(low, high)]
            if chosen:
                with _reader(store, part, root) as reader:
                    table = columns.conform(_read_groups(reader, chosen, names), names)
                features = table.column("feature_id")
                inside = pc.greater_equal(features, low)
                tables.append(table.filter(inside if high is None else pc.and_(inside, pc.less(features, high))))
        if tables:
            yield pa.concat_tables(tables)


def id_of(store: Store, text: str, root: str = ROOT) -> str:
    """The id under which the store knows the feature that a person asks for by its own text, or by its id as messages write it.

    Raises:
        CorruptError: a manifest or a part cannot be read.
    """
    first, *others = written_ids(text)
    if not others or history(store, first, root).num_rows:
        return first
    return next((each for each in others if history(store, each, root).num_rows), first)


def history(store: Store, feature_id: str, root: str = ROOT, *, runs: Sequence[RunManifest] | None = None) -> pa.Table:
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
                    mine.append(columns.conform(table.filter(pc.equal(table.column("feature_id"), feature_id)), wanted))
        if mine:
            found.append(pa.concat_tables(mine).sort_by("sequence"))
    if not found:
        return LINEAGE_ARROW_SCHEMA.empty_table()
    table = pa.concat_tables(found)
    keys = table.select(IDENTITY).to_pylist()
    ids = pa.array([make_event_id(**each) for each in keys], pa.string())
    return pa.Table.from_arrays([ids, *table.columns], schema=LINEAGE_ARROW_SCHEMA)


def why(
    store: Store,
    feature_id: str,
    root: str = ROOT,
    *,
    limit: int | None = None,
    only: Sequence[str] | None = None,
    fate: Callable[[Sequence[RunManifest]], Mapping[str, Json]] | None = None,
) -> list[JsonObject]:
    """Why a feature is as it is: the runs that touched it, newest first, with what stands of their events.

    Args:
        store: the dataset's store.
        feature_id: the key as lineage writes it.
        root: the event store in it.
        limit: at most so many runs.
        only: paths of run manifests, newest first: no other run is looked at. None: every run.
        fate: what came of a run, by its sealed attempts: members that stand beside the others; none by default.

    Raises:
        CorruptError: a manifest or a part cannot be read.
    """
    out: list[JsonObject] = []
    ids = None if only is None else dict.fromkeys(read_manifest(store, path).run_id for path in only)
    for attempts in reversed(runs_of(store, root)) if ids is None else (attempts_of(store, run_id, root) for run_id in ids):
        table = deduplicate(history(store, feature_id, root, runs=attempts))
        if not table.num_rows:
            continue
        events = plain(table.sort_by("sequence"))
        worst = max(events, key=lambda each: SEVERITY[each["outcome"]])
        changes = [each for each in events if each["change_class"] is not None]
        out.append(
            {
                "run_id": attempts[-1].run_id,
                "attempts": [each.attempt for each in attempts],
                **({} if fate is None else fate(attempts)),
                "run_date": attempts[-1].run_date,
                "outcome": worst["outcome"],
                "stage": worst["stage"],
                "reason": worst["rejection_reason"],
                "change_class": changes[-1]["change_class"] if changes else None,
                "events": events,
            }
        )
        if limit is not None and len(out) == limit:
            break
    return out


def plain(table: pa.Table, *, limit: int | None = None) -> list[JsonObject]:
    """Events as dictionaries, the time as RFC 3339 text."""
    rows: list[JsonObject] = (table if limit is None else table.slice(0, limit)).to_pylist()
    for row in rows:
        row["event_time_utc"] = row["event_time_utc"].isoformat(timespec="microseconds").replace("+00:00", "Z")
    return rows


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group and the features it spans; without statistics it may hold any."""

    part: SealedPart
    number: int
    rows: int
    low: str | None
    high: str | None

    def may_hold(self, feature: str) -> bool:
        return self.low is None or self.high is None or self.low <= feature <= self.high

    def may_hold_any(self, features: Sequence[str]) -> bool:
        """Whether it may hold one of the features, which are sorted."""
        if self.low is None or self.high is None:
            return True
        return bisect_left(features, self.low) < bisect_right(features, self.high)

    def meets(self, low: str, high: str | None) -> bool:
        return self.low is None or self.high is None or (self.high >= low and (high is None or self.low < high))


def _groups_of(reader: pq.ParquetFile, part: SealedPart) -> list[_Group]:
    column = reader.schema_arrow.names.index("feature_id")
    found = []
    for number in range(reader.metadata.num_row_groups):
        group = reader.metadata.row_group(number)
        limits = group.column(column).statistics
        low, high = (limits.min, limits.max) if limits is not None and limits.has_min_max else (None, None)
        found.append(_Group(part, number, group.num_rows, low, high))
    return found


def _read_groups(reader: pq.ParquetFile, groups: Sequence[int], names: Sequence[str]) -> pa.Table:
    there = set(reader.schema_arrow.names)
    return reader.read_row_groups(list(groups), columns=[each for each in names if each in there])


@contextmanager
def _reader(store: Store, part: SealedPart, root: str, *, coded: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """The Parquet reader of a part, `coded` columns as dictionaries; what goes wrong while it is open is a damaged part."""
    path = below(root, part.path)
    try:
        with store.open(path) as file:
            reader = pq.ParquetFile(file)
            there = reader.schema_arrow
            if problems := file_problems(there):
                raise CorruptError(
                    f"{path} holds no events as this version of Merestone reads them: {'; '.join(problems)}",
                    field=path,
                    hint="use the Merestone version that wrote it, or restore the file from a backup",
                )
            yield (
                pq.ParquetFile(file, metadata=reader.metadata, read_dictionary=[each for each in coded if each in there.names])
                if coded
                else reader
            )
    except FileNotFoundError as fault:
        raise CorruptError(f"{path} is missing: a sealed run lists it", field=path, hint="restore the file from a backup") from fault
    except (pa.ArrowException, OSError, ValueError) as fault:
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
