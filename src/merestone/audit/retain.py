"""`lineage retain`: what of the lineage has outlived its window: listed first, deleted on confirmation; holds placed and released.

Not here: prefixes, holds and tombstones (`lineage.retention`).

A live feature is one of the current version. The run that made it what it is, as the change logs tell, is never forgotten of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merestone.audit.completeness import MADE, made_by
from merestone.dataset.current import current
from merestone.dataset.feed import read_classes
from merestone.dataset.index import load_table
from merestone.dataset.tables import IndexRows
from merestone.dataset.version import Dataset
from merestone.errors import UsageError
from merestone.identity import key as keys
from merestone.inspect import browse
from merestone.line import environment
from merestone.lineage.retention import expiry as retention
from merestone.lineage.retention.expiry import Hold, Prefix
from merestone.lineage.store.tombstone import TOMBSTONES
from merestone.lineage.store.writing import ROOT
from merestone.storage.place import parse_place
from merestone.storage.port import Store


@dataclass(frozen=True, slots=True)
class Retained:
    """The answer. `status` is planned, done or nothing; `prefixes` say what goes or is held; `confirm` is the token of the plan."""

    status: str
    window: str
    basis: str
    first_kept: str
    prefixes: list[dict[str, Any]]
    bytes: int
    leftover: int
    confirm: str | None = None
    tombstone: str | None = None
    holds: list[dict[str, Any]] = field(default_factory=list)


def retain(text: str, window: str | None, basis: str | None, confirm: str | None) -> Retained:
    """Tell what would expire; with the token of that very plan, let it expire.

    Args:
        text: DATASET; a publication file says window and basis itself.
        window: an ISO 8601 duration; goes before that of the publication file.
        basis: why lineage is kept so long and no longer.
        confirm: the token that the dry run gave.

    Raises:
        UsageError: no window or basis; the token is not that of the plan as it is now.
        CorruptError, ConflictError, StoreError: as `lineage.retention.expire`.
    """
    window, basis = _terms(text, window, basis)
    dataset = browse.whole(text)
    store = dataset.store
    now = environment.now()
    first_kept = retention.cutoff(now.date(), window)
    holds = retention.read_holds(store)
    found, left = retention.prefixes(store, first_kept)
    left = [*left, *retention.lost_baselines(store, now)]
    going = [each for each in found if not each.held_by]
    head = current(store)
    needed = _needed(dataset, going) if head is not None else {}
    token = _token(window, basis, going, left, needed)
    plan = [_shown(each, needed) for each in found]
    freed = sum(size for each in going for _, size in each.objects) + sum(size for _, size in left)

    def answer(status: str, **more: Any) -> Retained:
        return Retained(
            status, window, basis, first_kept.isoformat(), plan, freed, len(left), holds=[each.to_json() for each in holds], **more
        )

    if not going and not left:
        return answer("nothing")
    if confirm is None:
        return answer("planned", confirm=token)
    if confirm != token:
        raise UsageError(
            f"{confirm} is not the token of what would expire now",
            field="confirm",
            hint="leave out «confirm»: the dry run lists what would expire and gives the token",
        )
    name = None
    if going:
        number = retention.pass_number(now, environment.nonce())

        def unchanged() -> bool:
            return current(store) == head and retention.read_holds(store) == holds

        with environment.scratch() as folder:
            this = retention.Pass(number, window, basis, environment.who(), now, folder, environment.tools())
            retention.expire(store, going, needed, this, unchanged)
        name = f"{ROOT}/{TOMBSTONES}/{number}.json"
    retention.sweep(store, left)
    return answer("done", tombstone=name)


def hold(text: str, what: str, reason: str) -> Hold:
    """Place a hold. Raises UsageError where `what` says nothing that can be held."""
    now = environment.stamp(environment.now())
    return retention.place_hold(_store(text), what, reason, number=environment.nonce(), by=environment.who(), time=now)


def release(text: str, number: str, reason: str) -> Hold:
    """Release a hold. Raises UsageError where there is none of that number that stands."""
    return retention.release_hold(_store(text), number, reason, by=environment.who(), time=environment.stamp(environment.now()))


def _store(text: str) -> Store:
    return browse.whole(text).store


def _terms(text: str, window: str | None, basis: str | None) -> tuple[str, str]:
    """Window and basis, from the command or the publication file."""
    place = parse_place(text)
    if place.is_local and Path(place.path).is_file() and (window is None or basis is None):
        stated = browse.publication_at(text).lineage_retention
        if stated is not None:
            window, basis = window or stated.window, basis or stated.basis
    if not window or not (basis or "").strip():
        raise UsageError(
            "lineage expires only where a window and its legal basis are given",
            field="window" if not window else "basis",
            hint="give «window=P6Y» and «basis=TEXT», or lineage.retention in the publication file",
        )
    return window, str(basis)


def _needed(dataset: Dataset, going: Sequence[Prefix]) -> dict[str, pa.Array]:
    """Run to the ids of the live features that it made, of the runs that are to go. What no change log explains, every one of them keeps."""
    expiring = {each.path: each.run_id for prefix in going for attempts in prefix.runs for each in attempts}
    if not expiring:
        return {}
    manifest = dataset.manifest(None)
    live = IndexRows(load_table(dataset.store, manifest.index)).key.combine_chunks()
    found: dict[str, list[pa.Array]] = {}
    for each in made_by(dataset, manifest.version):
        if not len(live):
            break
        log = read_classes(dataset.store, each.changes)
        made = pc.is_in(live, log.filter(pc.is_in(log.kind, MADE)).key.combine_chunks())
        run = expiring.get(each.lineage["run_manifest"]) if each.lineage is not None else None
        if run is not None:
            found.setdefault(run, []).append(live.filter(made))
        live = live.filter(pc.invert(made))
    if len(live):
        for run in set(expiring.values()):
            found.setdefault(run, []).append(live)
    return {run: keys.ids_of(pa.concat_arrays(arrays)) for run, arrays in found.items()}


def _shown(prefix: Prefix, needed: dict[str, pa.Array]) -> dict[str, Any]:
    runs = [attempts[-1].run_id for attempts in prefix.runs]
    return {
        "run_date": prefix.run_date,
        "runs": runs,
        "events": prefix.events,
        "objects": len(prefix.objects),
        "bytes": sum(size for _, size in prefix.objects),
        "held_by": prefix.held_by,
        "carried_features": sum(len(needed[run]) for run in runs if run in needed),
    }


def _token(window: str, basis: str, going: Sequence[Prefix], left: Sequence[tuple[str, int]], needed: dict[str, pa.Array]) -> str:
    """What identifies this plan."""
    what = [
        window,
        basis,
        [[each.run_date, each.objects] for each in going],
        list(left),
        sorted((run, len(ids)) for run, ids in needed.items()),
    ]
    text = hashlib.sha256(json.dumps(what, ensure_ascii=False).encode()).hexdigest()
    return f"{text[:4]}-{text[4:8]}"
