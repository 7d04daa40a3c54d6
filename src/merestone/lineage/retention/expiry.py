"""How long lineage is kept: which `run_date=` prefixes have outlived the window, which are held, and what is carried on before they go.

Not here: which features are live (`audit.retain`), what stays (`tombstone`), how readers find it (`run_manifest`).

The order makes every break harmless: rows of live features are sealed into a baseline, then the tombstone stands in the place of the parts,
then the objects that were listed are deleted. A baseline that no tombstone names does not count; objects that a tombstone left are deleted
by the next time.
"""

from __future__ import annotations

import calendar
import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.document.own_digest import with_digest
from merestone.errors import ConflictError, CorruptError, UsageError
from merestone.identity.key import written_ids
from merestone.json_value import Json, JsonObject
from merestone.lineage.event.checked_json import read_json
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA
from merestone.lineage.proof import inclusion as proof
from merestone.lineage.store import reading, steps
from merestone.lineage.store.run_manifest import RunManifest, runs_of
from merestone.lineage.store.tombstone import FORMAT, TOMBSTONES, expired_runs, tombstone_names
from merestone.lineage.store.verdict import verdict
from merestone.lineage.store.witness import HOLDS
from merestone.lineage.store.writing import ROOT, Besides, RunWriter, SealedRun, below
from merestone.storage.port import Store

BASELINE = "_baseline"
_WINDOW = re.compile(r"P(?=[0-9])(?:([0-9]{1,4})Y)?(?:([0-9]{1,5})M)?(?:([0-9]{1,5})W)?(?:([0-9]{1,6})D)?")
_PREFIX = re.compile(r"run_date=(\d{4}-\d{2}-\d{2})/")
_LEFT = timedelta(days=1)  # after which a baseline that no tombstone names belongs to a pass that died


# --- holds -------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hold:
    """A legal hold: lineage that has to stay whatever its age. `kind` is run, feature, date (one, or two with ".." between) or all."""

    id: str
    kind: str
    value: str
    reason: str
    placed_by: str
    placed_utc: str
    released: dict[str, str] | None = None

    def to_json(self) -> JsonObject:
        """The JSON object."""
        return asdict(self)

    def covers(self, run_date: str, runs: Sequence[Sequence[RunManifest]], store: Store, root: str) -> bool:
        """Whether a prefix with these runs has to stay."""
        if self.kind == "all":
            return True
        if self.kind == "run":
            return any(attempts[-1].run_id == self.value for attempts in runs)
        if self.kind == "date":
            days = [
                date.fromisoformat(each) for each in self.value.split("..")
            ]  # ISO 8601 has several forms, which do not compare as texts
            return days[0] <= date.fromisoformat(run_date) <= days[-1]
        return any(reading.history(store, each, root, runs=attempts).num_rows > 0 for attempts in runs for each in written_ids(self.value))


def hold_of(text: str) -> tuple[str, str]:
    """Kind and value of "run=ID", "feature=ID", "date=YYYY-MM-DD", "date=YYYY-MM-DD..YYYY-MM-DD" or "all".

    Raises:
        UsageError: another form.
    """
    kind, _, value = text.partition("=")
    if text == "all":
        return "all", ""
    if kind in ("run", "feature") and value:
        return kind, unicodedata.normalize("NFC", value)  # as lineage writes ids; a keyboard may compose otherwise
    if kind == "date":
        try:
            days = [date.fromisoformat(each) for each in value.split("..")]
            if len(days) <= 2 and days == sorted(days):
                return kind, value
        except ValueError:
            pass  # reported below
    raise UsageError(
        f"{text} says nothing that can be held",
        field="what",
        hint="run=ID, feature=ID, date=2026-03-01, date=2026-03-01..2026-03-31 or all",
    )


def read_holds(store: Store, root: str = ROOT) -> list[Hold]:
    """All holds, released ones too, oldest first.

    Raises:
        CorruptError: a hold cannot be read.
    """
    found, released = [], {}
    for name, _ in store.list(below(root, f"{HOLDS}/")):
        try:
            if name.endswith(".released.json"):
                doc = read_json(store.get(name), dict.fromkeys(("id", "by", "reason", "utc"), str))
                released[doc["id"]] = {"by": doc["by"], "reason": doc["reason"], "utc": doc["utc"]}
            else:
                doc = read_json(store.get(name), dict.fromkeys(("id", "kind", "value", "reason", "placed_by", "placed_utc"), str))
                hold_of("all" if doc["kind"] == "all" else f"{doc['kind']}={doc['value']}")
                found.append(Hold(doc["id"], doc["kind"], doc["value"], doc["reason"], doc["placed_by"], doc["placed_utc"]))
        except (ValueError, UsageError) as fault:
            raise CorruptError(
                f"{name} is not a readable hold: {fault}", field=name, hint="restore it from a backup; until then nothing expires"
            ) from fault
    return sorted((replace(each, released=released.get(each.id)) for each in found), key=lambda each: (each.placed_utc, each.id))


def place_hold(store: Store, text: str, reason: str, *, number: str, by: str, time: str, root: str = ROOT) -> Hold:
    """Place a hold. `number` identifies it. Raises UsageError where `kind` and `value` name nothing that can be held."""
    kind, value = hold_of(text)
    hold = Hold(number, kind, value, reason, by, time)
    placed = {"id": number, "kind": kind, "value": value, "reason": reason, "placed_by": by, "placed_utc": time}
    store.create(below(root, f"{HOLDS}/{number}.json"), _json({"format": FORMAT, **placed}))
    return hold


def release_hold(store: Store, number: str, reason: str, *, by: str, time: str, root: str = ROOT) -> Hold:
    """Release a hold; it stays on record.

    Raises:
        UsageError: the hold does not exist, or it is released already.
    """
    hold = next((each for each in read_holds(store, root) if each.id == number), None)
    if hold is None or hold.released is not None:
        raise UsageError(
            f"hold {number} does not exist" if hold is None else f"hold {number} is released already",
            field="hold_id",
            hint="«lineage.retain(DATASET, window=P, basis=TEXT)» lists the holds",
        )
    released = {"by": by, "reason": reason, "utc": time}
    store.create(below(root, f"{HOLDS}/{number}.released.json"), _json({"format": FORMAT, "id": number, **released}))
    return replace(hold, released=released)


# --- what expires ------------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Prefix:
    """All of one `run_date=`: its runs (attempts each), the objects below it with their sizes, and the holds that keep it."""

    run_date: str
    runs: list[list[RunManifest]] = field(default_factory=list)
    objects: list[tuple[str, int]] = field(default_factory=list)
    held_by: list[str] = field(default_factory=list)

    @property
    def events(self) -> int:
        """How many events its parts hold."""
        return sum(part.rows for attempts in self.runs for each in attempts for part in each.parts)


def cutoff(today: date, window: str) -> date:
    """The first run date that is kept: `today` less an ISO 8601 window of years, months, weeks and days.

    Raises:
        UsageError: the window is none, or shorter than a day.
    """
    match = _WINDOW.fullmatch(window)
    years, months, weeks, days = (int(each or 0) for each in match.groups()) if match else (0, 0, 0, 0)
    try:
        place = today.year * 12 + today.month - 1 - years * 12 - months
        first = date(place // 12, place % 12 + 1, 1)
        first = first.replace(day=min(today.day, calendar.monthrange(first.year, first.month)[1])) - timedelta(weeks=weeks, days=days)
    except (ValueError, OverflowError):
        first = date.min
    if not match or first >= today:
        raise UsageError(f"{window!r} is not a window of at least a day", field="window", hint="an ISO 8601 duration such as P6Y or P18M")
    return first


def prefixes(store: Store, first_kept: date, root: str = ROOT) -> tuple[list[Prefix], list[tuple[str, int]]]:
    """The prefixes that have outlived the window, oldest first, and the objects that an earlier time left behind.

    Raises:
        CorruptError: a run manifest, a hold or a tombstone cannot be read.
    """
    found: dict[str, Prefix] = {}
    start = below(root, "run_date=")
    for name, size in store.list(below(root, "")):
        if name.startswith(start) and (match := _PREFIX.match(name.removeprefix(below(root, "")))) and match[1] < first_kept.isoformat():
            found.setdefault(match[1], Prefix(match[1])).objects.append((name, size))
    for sealed in runs_of(store, root):
        attempts = [each for each in sealed if each.expired is None]
        if any(each.parts for each in attempts) and attempts[0].run_date < first_kept.isoformat():
            found.setdefault(attempts[0].run_date, Prefix(attempts[0].run_date)).runs.append(attempts)
    dead = {each.run_date for each in expired_runs(store, root).values()}
    left = [one for each in found.values() if each.run_date in dead and not each.runs for one in each.objects]
    alive = [each for each in sorted(found.values(), key=lambda each: each.run_date) if each.runs or each.run_date not in dead]
    standing = [each for each in read_holds(store, root) if each.released is None]
    for prefix in alive:
        prefix.held_by = [hold.id for hold in standing if hold.covers(prefix.run_date, prefix.runs, store, root)]
    return alive, left


# --- expiring ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pass:
    """One time of expiring: why, by whom, when, in which scratch folder; `number` names what it writes."""

    number: str
    window: str
    basis: str
    by: str
    time: datetime
    scratch: str
    tool: Mapping[str, str]


def expire(
    store: Store, going: Sequence[Prefix], needed: Mapping[str, pa.Array], this: Pass, unchanged: Callable[[], bool], root: str = ROOT
) -> JsonObject:
    """Carry what live features need, put up the tombstone, delete the objects.

    Args:
        store: the dataset's store.
        going: prefixes, none of them held.
        needed: run to the ids of the live features that it made: a string array.
        this: what is written down about this time.
        unchanged: says whether the dataset and the holds are still those that `going` and `needed` were found by.
        root: the event store.

    Returns:
        The tombstone.

    Raises:
        CorruptError: a part is not what was sealed. Nothing is deleted then: damaged evidence has to be seen, not cleaned away.
        ConflictError: the dataset or a hold changed meanwhile. Nothing is deleted.
        StoreError: the store cannot be written.
    """
    prefixes = [_prefix(store, each, needed, this, root) for each in going]
    if not unchanged():
        raise ConflictError(
            "the dataset or a hold changed while lineage was carried on; nothing expired", field=root, hint="repeat the dry run"
        )
    names = tombstone_names(store, root)
    previous = (
        {"tombstone": names[-1].removeprefix(below(root, "")), "sha256": hashlib.sha256(store.get(names[-1])).hexdigest()}
        if names
        else None
    )
    doc = {
        "format": FORMAT,
        "id": this.number,
        "expired_utc": _stamp(this.time),
        "window": this.window,
        "basis": this.basis,
        "by": this.by,
        "tool": dict(this.tool),
        "prefixes": prefixes,
        "previous": previous,
    }
    store.create(below(root, f"{TOMBSTONES}/{this.number}.json"), _json(doc))
    sweep(store, [one for each in going for one in each.objects])
    return doc


def sweep(store: Store, objects: Sequence[tuple[str, int]]) -> None:
    """Delete objects that were listed."""
    for name, _ in objects:
        store.delete(name)


def lost_baselines(store: Store, now: datetime, root: str = ROOT) -> list[tuple[str, int]]:
    """Objects of baselines that no tombstone names and no living pass can still be writing."""
    named = {each.baseline["run_manifest"].split("/")[1] for each in expired_runs(store, root).values() if each.baseline is not None}
    oldest = pass_number(now - _LEFT, "")
    prefix = below(root, f"{BASELINE}/")
    return [
        (name, size)
        for name, size in store.list(prefix)
        if (number := name.removeprefix(prefix).partition("/")[0]) not in named and number < oldest
    ]


def pass_number(time: datetime, nonce: str) -> str:
    """The name of a pass; names sort by time."""
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%SZ}-{nonce}"


def _prefix(store: Store, prefix: Prefix, needed: Mapping[str, pa.Array], this: Pass, root: str) -> JsonObject:
    runs = []
    for attempts in prefix.runs:
        for each in attempts:
            for damage in proof.verify_run(store, each, root):
                raise CorruptError(
                    f"{damage.path} {damage.message}; nothing expired",
                    field=damage.path,
                    hint="restore it from a backup; «verify(DATASET)» names everything that was altered",
                )
        ids = needed.get(attempts[-1].run_id)
        carried = [_carried(store, each, ids, this, root) if ids is not None and len(ids) else None for each in attempts]
        runs.append(
            {
                "run_id": attempts[-1].run_id,
                "verdict": verdict(store, attempts, root),
                "steps": [_step(each) for each in steps.run_steps(store, attempts, root)],
                "attempts": [
                    {
                        "run_manifest": each.path.removeprefix(below(root, "")),
                        "sha256": hashlib.sha256(store.get(each.path)).hexdigest(),
                        "events": each.counts["total_events"],
                        "root": each.root,
                        "baseline": None
                        if kept is None
                        else {**kept.to_json(), "run_manifest": kept.run_manifest.removeprefix(below(root, ""))},
                    }
                    for each, kept in zip(attempts, carried, strict=True)
                ],
            }
        )
    return {"run_date": prefix.run_date, "objects": len(prefix.objects), "bytes": sum(size for _, size in prefix.objects), "runs": runs}


def _carried(store: Store, run: RunManifest, ids: pa.Array, this: Pass, root: str) -> SealedRun | None:
    """The rows of some features of an attempt, sealed into the baseline of this pass; None where there are none."""
    writer = RunWriter(this.scratch, run.run_id, run.attempt, f"b{this.number[-8:]}")
    for table in reading.scan(store, [run], root, names=LINEAGE_ARROW_SCHEMA.names):
        features = one_chunk(table.column("feature_id"))
        span = pc.min_max(features)
        near = ids.filter(pc.and_(pc.greater_equal(ids, span["min"]), pc.less_equal(ids, span["max"])))
        writer.write(table.filter(pc.is_in(features, near)))
    if not writer.events:
        return None
    about = {"baseline_of": {"run_manifest": run.path.removeprefix(below(root, "")), "root": run.root}, **(run.doc.get("about") or {})}
    return writer.seal(
        store,
        below(root, f"{BASELINE}/{this.number}"),
        run_date=date.fromisoformat(run.run_date),
        plan=run.plan,
        tool=run.doc["tool"],
        time=this.time,
        besides=Besides(origin=run.doc["origin"]),
        about=about,
    )


def _step(step: steps.RunStep) -> JsonObject:
    """A step as the tombstone keeps it: all but the reasons, which quote what was delivered."""
    return {
        "stage": step.stage,
        "event_type": step.event_type,
        "source_crs": step.source_crs,
        "target_crs": step.target_crs,
        "strategy_index": step.strategy_index,
        "passed": step.passed,
        "warned": step.warned,
        "rejected": step.rejected,
        "first": _stamp(step.first) if step.first else None,
        "last": _stamp(step.last) if step.last else None,
        "accuracy_m": list(step.accuracy_m) if step.accuracy_m else None,
        "tools": step.tools,
        "classes": step.classes,
    }


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _json(doc: Mapping[str, Json]) -> bytes:
    return with_digest(doc, indent=1)
