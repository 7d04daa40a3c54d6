"""What stays of lineage that expired: tombstones, with the counts, steps and roots of each run, and where its rows of live features went.

Not here: what expires, and expiring it (`retention`); how readers pass over the gap (`run_manifest`).

A tombstone stands for a run's parts from the moment it is there, whether they are deleted yet or not. Paths are relative to the event store.
"""

from __future__ import annotations

from dataclasses import dataclass

from merestone.errors import CorruptError
from merestone.json_value import JsonObject
from merestone.lineage.event.checked_json import DAY, HASH, MOMENT, PATH, read_json
from merestone.storage.port import Store

FORMAT = 1
TOMBSTONES = "_tombstones"
_STEP = {
    "stage": str,
    "event_type": str,
    "source_crs": str,
    "target_crs": str,
    "strategy_index": (None, int),
    "passed": int,
    "warned": int,
    "rejected": int,
    "first": (None, MOMENT),
    "last": (None, MOMENT),
    "accuracy_m": (None, [(int, float)]),
    "tools": dict,
    "classes": dict,
}
_ATTEMPT = {"run_manifest": PATH, "sha256": HASH, "baseline": (None, {"run_manifest": PATH, "sha256": HASH})}
_VERDICT = dict.fromkeys(
    ("total_events", "passed", "rejected", "warned", "features", "features_passed", "features_rejected", "features_warned"), int
)
_FORM: JsonObject = {
    "expired_utc": MOMENT,
    "window": str,
    "basis": str,
    "previous": (None, {"tombstone": PATH, "sha256": HASH}),
    "prefixes": [{"run_date": DAY, "runs": [{"run_id": str, "verdict": _VERDICT, "steps": [_STEP], "attempts": [_ATTEMPT]}]}],
}


@dataclass(frozen=True, slots=True)
class Expired:
    """One sealed attempt of a run whose parts expired.

    `run_manifest` and `sha256` name the run manifest, which stays; `verdict` and `steps` summarise what the run's events recorded;
    `baseline` names the run manifest that holds its rows of live features (`run_manifest`, `sha256`, `events`, `root`), None without such rows.
    """

    tombstone: str
    run_date: str
    expired_utc: str
    window: str
    basis: str
    run_id: str
    run_manifest: str
    sha256: str
    verdict: dict[str, int]
    steps: list[JsonObject]
    baseline: JsonObject | None

    def words(self) -> str:
        """When and why, for messages."""
        return f"expired on {self.expired_utc[:10]} after {self.window} ({self.basis})"


def tombstone_names(store: Store, root: str) -> list[str]:
    """The tombstones of an event store, oldest first, relative to the dataset's store."""
    prefix = f"{root}/{TOMBSTONES}/" if root else f"{TOMBSTONES}/"
    return sorted(name for name, _ in store.list(prefix) if name.endswith(".json"))


def read_tombstone(store: Store, name: str) -> JsonObject:
    """A tombstone as it stands.

    Raises:
        CorruptError: it cannot be read.
    """
    try:
        data = store.get(name)
        doc = read_json(data, {"format": int})
        if doc["format"] != FORMAT:
            raise CorruptError(
                f"{name} has format {doc['format']}, this version of Merestone reads format {FORMAT}",
                field=name,
                hint="use the Merestone version that wrote it, or a newer one",
            )
        return read_json(data, _FORM)
    except (ValueError, FileNotFoundError) as fault:
        raise CorruptError(f"{name} is not a readable tombstone: {fault}", field=name, hint="restore it from a backup") from fault


def expired_runs(store: Store, root: str) -> dict[str, Expired]:
    """Run manifest (relative to the event store) to what stands in the place of its parts.

    Raises:
        CorruptError: a tombstone cannot be read.
    """
    return {each.run_manifest: each for name in tombstone_names(store, root) for each in entries(name, read_tombstone(store, name))}


def entries(name: str, doc: JsonObject) -> list[Expired]:
    """The attempts that a tombstone stands for."""
    return [
        Expired(
            name,
            prefix["run_date"],
            doc["expired_utc"],
            doc["window"],
            doc["basis"],
            run["run_id"],
            attempt["run_manifest"],
            attempt["sha256"],
            run["verdict"],
            run["steps"],
            attempt["baseline"],
        )
        for prefix in doc["prefixes"]
        for run in prefix["runs"]
        for attempt in run["attempts"]
    ]
