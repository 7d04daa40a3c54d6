"""What happened to a dataset: its versions one by one, and how it stands now.

Not here: words on a screen (`render`), the changes themselves (`feed`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from merestone.dataset.current import Current
from merestone.dataset.history import descent, lines
from merestone.dataset.manifest import HistoryLine, Manifest, ObjectRef
from merestone.dataset.pages import PartitionFiles, live_files
from merestone.dataset.record import RunRecord, read_named, record_names
from merestone.dataset.version import Dataset
from merestone.storage.port import Store

FOLDERS = ("data/", "_changes/", "_index/", "_findings/", "_pages/", "_history/")
"""Where the objects of versions stand; each is called `<run_id>-<nonce>...`."""
GOOD = ("published", "unchanged")
"""How an attempt ends whose delivery is what is published."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One version in the log. `bytes_written` is what it added: its data files, change log, index, findings and page."""

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


@dataclass(frozen=True, slots=True)
class Status:
    """How a dataset stands.

    `fresh_utc`: when a delivery last proved to be what is published: the end of the newest published or unchanged attempt for a version that
    no roll-back took back, None where no record says so. `held`: how many rows of that delivery were rejected while their last accepted
    ones stay. `since`: the attempts that began after it and brought nothing, oldest first. `live_bytes` are named by the current
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
    held: int


def log(dataset: Dataset) -> list[LogEntry]:
    """Every version, newest first.

    Raises:
        UsageError: nothing was ever published here.
        CorruptError: the chain of versions is broken.
    """
    return [
        LogEntry(
            each.version,
            each.parent,
            each.time_utc,
            each.run_id,
            each.contract_version,
            each.features,
            each.counts,
            each.files_written,
            each.files_carried,
            each.bytes_written,
            each.rollback["reason"] if each.rollback else None,
        )
        for each in dataset.history()
    ]


def status(dataset: Dataset) -> Status:
    """How the dataset stands now. Raises as `log` does, and CorruptError where a run record cannot be read."""
    current = dataset.current()
    head, versions = current.manifest, list(lines(dataset.store, current))
    live = {ref.path for ref in objects(dataset.store, head)}
    stems = {stem_of(each.changes) for each in versions}
    live_bytes = old_bytes = loose_bytes = 0
    for folder in FOLDERS:
        for name, size in dataset.store.list(folder):
            if name in live:
                live_bytes += size
            elif written_as(name, stems):
                old_bytes += size
            else:
                loose_bytes += size
    records = recent_records(dataset.store, current)
    standing = _standing(versions, head.version)
    good = [record for record in records if _proves(record, standing)]
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
        len(versions),
        live_bytes,
        old_bytes,
        loose_bytes,
        counts.get("suppressed", 0) / delivered if delivered else 0.0,
        counts.get("held", 0),
    )


def _standing(newest_first: Sequence[HistoryLine], version: int) -> frozenset[int]:
    """The versions that a version follows: what was delivered for another one was taken back."""
    return frozenset(each.version for each in descent(newest_first, version))


def _proves(record: RunRecord, standing: frozenset[int]) -> bool:
    """Whether a delivery was, at the end of its run, what is published now or became so."""
    return record.status in GOOD and (record.version is None or record.version in standing)


def why(record: RunRecord) -> str:
    """In one sentence, why an attempt brought nothing."""
    if record.status == "abandoned":
        return "its process ended without a word: it was killed, or the machine stopped"
    if record.error is not None:
        return str(record.error["message"])
    first = next(iter(record.findings), None)
    return f"{first['surface']}.{first['rule']}: {first['observed']}" if first else ""


def recent_records(store: Store, head: Current) -> list[RunRecord]:
    """The run records that stand in the store since the last delivery that proved to be what is published, older ones at need.

    The history says which records each commit found; so only those are read that came later, back to a published or unchanged one.

    Raises:
        CorruptError: a record or a piece of the history cannot be read.
    """
    names = {f"{run_id}-{attempt}": name for run_id, attempt, name in record_names(store)}
    history = list(lines(store, head))
    groups, standing = [each.records for each in history], _standing(history, head.manifest.version)
    before = {each for group in groups for each in group}
    found = read_named(store, [name for key, name in names.items() if key not in before])
    settled = False
    for group in groups:
        # One group more than needed: an attempt that was refused while another ran began after it and ended before.
        last, settled = settled, any(_proves(each, standing) for each in found)
        if last:
            break
        found += read_named(store, [names[key] for key in group if key in names])
    return sorted(found, key=lambda record: (record.started_utc, record.run_id, record.attempt))


def new_records(store: Store, head: Current | None) -> tuple[str, ...]:
    """The run records that no version knows of yet, as `<run_id>-<attempt>`; what the next version says in `records`."""
    before = {each for line in lines(store, head) for each in line.records} if head is not None else set()
    return tuple(each for each in (f"{run_id}-{attempt}" for run_id, attempt, _ in record_names(store)) if each not in before)


def objects(store: Store, manifest: Manifest, read: dict[str, dict[str, PartitionFiles]] | None = None) -> Iterator[ObjectRef]:
    """Every object that a version names, lineage apart (it names its own parts). `read` as for `live_entries`."""
    yield from manifest.files.pages
    yield from live_files(store, manifest.files, read)
    yield manifest.changes
    if manifest.tree:
        yield manifest.tree
    if manifest.index.checkpoint:
        yield manifest.index.checkpoint
    yield from (ref for _, ref in manifest.index.log if ref.path != manifest.changes.path)
    if manifest.findings:
        yield manifest.findings
    if manifest.withdrawn_page:
        yield manifest.withdrawn_page
    yield from manifest.history.chunks


def stem_of(changes: ObjectRef) -> str:
    """How the objects of a version's attempt are called: `<run_id>-<nonce>`, from its change log."""
    return changes.path.rpartition("/")[2].removesuffix(".parquet")


def written_as(path: str, stems: Collection[str]) -> bool:
    """Whether an object was written by an attempt of one of the stems."""
    name = path.rpartition("/")[2].removesuffix(".parquet")
    return name in stems or name.rpartition("-")[0] in stems
