"""What happened to a dataset: its versions one by one, and how it stands now.

Not here: words on a screen (`render`), the changes themselves (`feed`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from merestone.dataset.manifest import Manifest, ObjectRef
from merestone.dataset.record import RunRecord, read_records
from merestone.dataset.version import Dataset


@dataclass(frozen=True, slots=True)
class Entry:
    """One version in the log. `bytes_written` is what it added: its data files, change log, index and findings."""

    version: int
    parent: int | None
    time_utc: str
    run_id: str
    contract_version: str
    features: int
    counts: dict[str, int]
    files_written: int
    files_carried: int
    bytes_written: int
    reason: str | None

    def to_json(self) -> dict[str, Any]:
        """The object in `merestone log --json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Status:
    """How a dataset stands.

    `fresh_utc`: when a delivery last proved to be what is published: the end of the newest published or unchanged attempt, None where no
    record says so. `since`: the attempts that began after it and brought nothing, oldest first. `live_bytes` are named by the current
    version, `old_bytes` only by older ones, `loose_bytes` by none (attempts that failed or still run); lineage is evidence and not
    counted. `suppressed_share`: of the rows of that delivery, how many differed from what is published by noise only.
    """

    version: int
    time_utc: str
    features: int
    contract_version: str
    fresh_utc: str | None
    since: tuple[RunRecord, ...]
    versions: int
    live_bytes: int
    old_bytes: int
    loose_bytes: int
    suppressed_share: float

    def to_json(self) -> dict[str, Any]:
        """The object in `merestone status --json`."""
        since = [
            {
                "run_id": each.run_id,
                "attempt": each.attempt,
                "status": each.status,
                "refused_by": each.refused_by,
                "started_utc": each.started_utc,
                "why": _why(each),
            }
            for each in self.since
        ]
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"since": since}


def log(dataset: Dataset) -> list[Entry]:
    """Every version, newest first.

    Raises:
        UsageError: nothing was ever published here.
        CorruptError: the chain of versions is broken.
    """
    return [
        Entry(
            manifest.version,
            manifest.parent,
            manifest.time_utc,
            manifest.run_id,
            manifest.contract_version,
            manifest.features,
            manifest.counts,
            manifest.files_written,
            manifest.files_carried,
            sum(ref.bytes for ref in objects(manifest) if added_by(manifest, ref)),
            manifest.rollback["reason"] if manifest.rollback else None,
        )
        for manifest in dataset.manifests()
    ]


def status(dataset: Dataset) -> Status:
    """How the dataset stands now. Raises as `log` does, and CorruptError where a run record cannot be read."""
    manifests = list(dataset.manifests())
    head = manifests[0]
    live = {ref.path for ref in objects(head)}
    old = {ref.path for manifest in manifests[1:] for ref in objects(manifest)} - live
    live_bytes = old_bytes = loose_bytes = 0
    for folder in ("data/", "_changes/", "_index/", "_findings/"):
        for name, size in dataset.store.list(folder):
            if name in live:
                live_bytes += size
            elif name in old:
                old_bytes += size
            else:
                loose_bytes += size
    records = read_records(dataset.store)
    good = [record for record in records if record.status in ("published", "unchanged")]
    fresh = max(good, key=lambda record: (record.ended_utc or "", record.started_utc), default=None)
    since = tuple(
        record
        for record in records
        if record.status in ("refused", "failed", "abandoned") and (fresh is None or record.started_utc > fresh.started_utc)
    )
    counts = fresh.counts if fresh else {}
    delivered = counts.get("delivered", 0)
    return Status(
        head.version,
        head.time_utc,
        head.features,
        head.contract_version,
        fresh.ended_utc if fresh else None,
        since,
        len(manifests),
        live_bytes,
        old_bytes,
        loose_bytes,
        counts.get("suppressed", 0) / delivered if delivered else 0.0,
    )


def _why(record: RunRecord) -> str:
    """In one sentence, why an attempt brought nothing."""
    if record.status == "abandoned":
        return "its process ended without a word: it was killed, or the machine stopped"
    if record.error is not None:
        return str(record.error["message"])
    first = next(iter(record.findings), None)
    return f"{first['surface']}.{first['rule']}: {first['observed']}" if first else ""


def objects(manifest: Manifest) -> Iterator[ObjectRef]:
    """Every object that a version names, lineage apart (it names its own parts)."""
    yield from manifest.files
    yield manifest.changes
    if manifest.index.checkpoint:
        yield manifest.index.checkpoint
    yield from (ref for _, ref in manifest.index.log if ref.path != manifest.changes.path)
    if manifest.findings:
        yield manifest.findings


def added_by(manifest: Manifest, ref: ObjectRef) -> bool:
    """Whether the version wrote the object itself: its name carries the run."""
    return ref.path.rsplit("/", 1)[-1].startswith(f"{manifest.run_id}-")
