"""What a run remembers of others as it is sealed: the runs that no other names, and what stands beside them without a witness.

Not here: holding the store to what is remembered (`proof`, `audit.verify`).

So nothing can vanish unseen once another run is sealed: a run manifest names all heads that it saw, and lists the run records, quarantined
lines, tombstones and holds that no run manifest before it lists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from merestone.dataset.record import RECORDS
from merestone.errors import CorruptError
from merestone.json_value import JsonObject
from merestone.lineage.store.run_manifest import RunManifest, read_manifest
from merestone.lineage.store.tombstone import TOMBSTONES
from merestone.lineage.store.writing import ROOT, RUNS, below, witness_of
from merestone.storage.port import Store

QUARANTINE = "_quarantine"
HOLDS = "_holds"


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of an event store: its heads (`run_manifest`, `sha256`, `events`, `root` of each), and what no run manifest lists yet."""

    heads: tuple[JsonObject, ...]
    unlisted: tuple[str, ...]

    def remembered(self, store: Store) -> list[JsonObject]:
        """What is not listed yet, as a run manifest lists it; what has gone since is left out."""
        found = []
        for path in self.unlisted:
            with suppress(FileNotFoundError):
                found.append(witness_of(store, path))
        return found


def seen(store: Store, root: str = ROOT) -> Seen:
    """The heads of an event store, and what stands beside its runs without a witness.

    A damaged run manifest is for `verify` to name; the next night goes on without it.

    Raises:
        StoreError: the store cannot be read.
    """
    runs: list[RunManifest] = []
    for name, _ in store.list(below(root, f"{RUNS}/")):
        with suppress(CorruptError):
            runs.append(read_manifest(store, name))
    return seen_of(store, runs, root)


def seen_of(store: Store, runs: Sequence[RunManifest], root: str = ROOT) -> Seen:
    """As `seen`, of run manifests that were read before."""
    named = {head["run_manifest"] for each in runs for head in each.doc["heads"]}
    listed = {each["path"] for run in runs for each in run.doc["objects"]}
    heads = tuple(head_of(store, each) for each in runs if each.path not in named)
    return Seen(heads, tuple(name for name in witnessed(store, root) if name not in listed))


def head_of(store: Store, run: RunManifest) -> JsonObject:
    """A sealed run as another names it."""
    return {
        "run_manifest": run.path,
        "sha256": hashlib.sha256(store.get(run.path)).hexdigest(),
        "events": run.counts["total_events"],
        "root": run.root,
    }


def witnessed(store: Store, root: str = ROOT) -> Iterator[str]:
    """The names of all that run manifests list beside their own: run records (which name their rejected rows), quarantine, tombstones, holds."""
    if root:  # else the store holds events alone, and `_runs` the run manifests themselves
        yield from (name for name, _ in store.list(RECORDS) if name.endswith(".json"))
    for folder in (QUARANTINE, TOMBSTONES, HOLDS):
        yield from (name for name, _ in store.list(below(root, f"{folder}/")))
