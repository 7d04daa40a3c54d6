"""Proof of a whole dataset: every object that a version names, and every sealed run of the event store, down to each event's place in its tree.

Not here: the data files and the index (`dataset.verify`), the runs (`lineage.proof`); this joins the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from merestone.audit import witnesses
from merestone.dataset import verify as dataset
from merestone.dataset.current import POINTER, manifest_numbers
from merestone.dataset.verify import Damage, VerifyReport
from merestone.errors import CorruptError, UsageError
from merestone.lineage.proof import inclusion as proof
from merestone.lineage.store.run_manifest import RunManifest, read_manifest
from merestone.lineage.store.writing import ROOT, RUNS, SealedPart
from merestone.results.progress import Watch, nobody, staged
from merestone.storage.place import shown_place
from merestone.storage.port import Store
from merestone.words import plural


def verify(store: Store, watch: Watch = nobody) -> VerifyReport:
    """Read a dataset whole, lineage included, and name all that is not as it was published or sealed.

    Where nothing was published but events of other tools are sealed, objects, bytes and rows are those of their runs. A run
    manifest is held to the checksums that the versions, the run records and the next run remember of it.

    Args:
        store: where the dataset is.
        watch: is called after each object.

    Raises:
        UsageError: nothing was ever published here, nor do other tools keep events here: what has nothing to judge does not pass.
        StoreError: the store cannot be reached.
    """
    report = _of_events(store) if _holds_events_alone(store) else dataset.verify(store, watch)
    damages: list[Damage] = []
    records = witnesses.read_all(store, damages)
    versions: dict[str, list[int]] = {}
    remembered: dict[str, str] = {}
    for named, version in (
        *((each.lineage, each.version) for each in report.manifests),
        *((each.lineage, None) for each in records.by_attempt.values()),
    ):
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
    with staged(watch, "prove lineage"):
        for each in proof.verify_runs(store, remembered=remembered):
            numbers = tuple(sorted(versions.get(each.run or each.path, ())))
            damages.append(
                Damage(each.path, each.message, "what was sealed", "nothing" if "is missing" in each.message else "something else", numbers)
            )
    runs, broken = _sealed(store, damages)
    own = [each for path, each in runs.items() if path.startswith(f"{ROOT}/{RUNS}/")]
    damages += witnesses.of_records(store, records, report.manifests, own)
    broken |= {each.path for each in damages}
    damages += witnesses.of_names(store, records, report.named, report.manifests, runs, broken)
    report = replace(report, damages=(*report.damages, *_once(damages, {each.path for each in report.damages})))
    if not (report.versions or report.damages or any(each.foreign for each in runs.values())):
        shown = shown_place(store.url)
        raise UsageError(
            f"{shown} holds no published dataset: its {plural(len(runs), 'sealed run')} published nothing",
            field=shown,
            hint="publish first: «publish(FILE)»",
        )
    return report


def _once(damages: Iterable[Damage], reported: set[str]) -> Iterator[Damage]:
    """Each object once: what was found first says most."""
    for each in damages:
        if each.path not in reported:
            reported.add(each.path)
            yield each


def _sealed(store: Store, damages: list[Damage]) -> tuple[dict[str, RunManifest], set[str]]:
    """All run manifests by path, those of baselines too, and the paths of those that cannot be read, which are damages."""
    found: dict[str, RunManifest] = {}
    broken: set[str] = set()
    for name, _ in store.list(f"{ROOT}/"):
        if f"/{RUNS}/" in name:
            try:
                found[name] = read_manifest(store, name)
            except CorruptError as fault:
                broken.add(name)
                damages.append(Damage(name, fault.message, "a run manifest", "something else", ()))
    return found, broken


def _holds_events_alone(store: Store) -> bool:
    """Neither pointer nor manifest, not even a lost one, but sealed runs."""
    return store.size(POINTER) is None and not manifest_numbers(store) and next(iter(store.list(f"{ROOT}/{RUNS}/")), None) is not None


def _of_events(store: Store) -> VerifyReport:
    parts: list[SealedPart] = []
    manifests = 0
    for name, _ in store.list(f"{ROOT}/{RUNS}/"):
        manifests += 1
        with suppress(CorruptError):  # it is among the damages
            parts += read_manifest(store, name).parts
    return VerifyReport((), manifests + len(parts), sum(each.bytes for each in parts), sum(each.rows for each in parts), (), ())
