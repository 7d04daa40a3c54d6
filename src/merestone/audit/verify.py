"""Proof of a whole dataset: every object that a version names, and every sealed run of the event store, down to each event's place in its tree.

Not here: the data files and the index (`publish.verify`), the runs (`lineage.proof`); this joins the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from merestone.dataset import verify as dataset
from merestone.dataset.current import POINTER, chain, current, manifest_numbers
from merestone.dataset.manifest import Manifest
from merestone.dataset.record import RunRecord, record_names
from merestone.dataset.verify import Damage, VerifyReport
from merestone.errors import CorruptError
from merestone.lineage.proof import inclusion as proof
from merestone.lineage.store.run_manifest import read_manifest
from merestone.lineage.store.writing import ROOT, RUNS, Part
from merestone.storage.port import Store


def verify(store: Store, progress: Callable[[str], None] = lambda _: None) -> VerifyReport:
    """Read a dataset whole, lineage included, and name all that is not as it was published or sealed.

    Where nothing was published but runs are sealed (events of other tools, refused deliveries), objects, bytes and rows are those of the runs. A run
    manifest is held to the checksums that the versions, the run records and the next run remember of it.

    Args:
        store: where the dataset is.
        progress: called with the name of each object before it is read.

    Raises:
        UsageError: nothing was ever published or sealed here.
        StoreError: the store cannot be reached.
    """
    report = _of_events(store) if _holds_events_alone(store) else dataset.verify(store, progress)
    versions: dict[str, list[int]] = {}
    remembered: dict[str, str] = {}
    damages: list[Damage] = []
    witnesses = [
        *((each.lineage, each.version) for each in _manifests(store)),
        *((each.lineage, None) for each in _records(store, damages)),
    ]
    for named, version in witnesses:
        if named is None:
            continue
        if version is not None:
            versions.setdefault(named["run_manifest"], []).append(version)
        if remembered.setdefault(named["run_manifest"], named["sha256"]) != named["sha256"]:
            damages.append(
                Damage(
                    named["run_manifest"],
                    "is remembered in two ways",
                    remembered[named["run_manifest"]],
                    named["sha256"],
                    tuple(versions.get(named["run_manifest"], ())),
                )
            )
    progress(f"{ROOT}/")
    for each in proof.verify_runs(store, remembered=remembered):
        numbers = tuple(sorted(versions.get(each.run or each.path, ())))
        damages.append(
            Damage(each.path, each.message, "what was sealed", "nothing" if "is missing" in each.message else "something else", numbers)
        )
    return replace(report, damages=(*report.damages, *damages))


def _holds_events_alone(store: Store) -> bool:
    """Neither pointer nor manifest, not even a lost one, but sealed runs."""
    return store.size(POINTER) is None and not manifest_numbers(store) and next(iter(store.list(f"{ROOT}/{RUNS}/")), None) is not None


def _of_events(store: Store) -> VerifyReport:
    parts: list[Part] = []
    manifests = 0
    for name, _ in store.list(f"{ROOT}/{RUNS}/"):
        manifests += 1
        with suppress(CorruptError):  # it is among the damages
            parts += read_manifest(store, name).parts
    return VerifyReport((), manifests + len(parts), sum(each.bytes for each in parts), sum(each.rows for each in parts), (), ())


def _manifests(store: Store) -> Iterator[Manifest]:
    """The versions down to where their chain breaks, which the report names."""
    try:
        head = current(store)
        if head is not None:
            for manifest, _ in chain(store, head):
                yield manifest
    except CorruptError:
        return


def _records(store: Store, damages: list[Damage]) -> Iterator[RunRecord]:
    """The run records. No version depends on one, but an altered one is a damage."""
    for _, _, name in record_names(store):
        try:
            yield RunRecord.from_bytes(store.get(name), where=name)
        except CorruptError as fault:
            damages.append(Damage(name, fault.message, "a run record", "something else", ()))
