"""Questions about a dataset's lineage as the commands ask them: its runs, their scores, events that meet conditions.

Not here: why one feature is as it is (`inspect.browse`), the gates over completeness (`completeness`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from merestone.dataset.current import current
from merestone.dataset.manifest import HistoryLine
from merestone.dataset.version import Dataset
from merestone.errors import UsageError
from merestone.inspect import browse
from merestone.inspect.fates import Fates
from merestone.json_value import JsonObject
from merestone.lineage.store.run_manifest import RunManifest, runs_of, sealed_runs
from merestone.lineage.store.verdict import verdict
from merestone.render.scorecard import Score
from merestone.storage.place import place_name, shown_place


def name_of(dataset: Dataset) -> str:
    """The dataset's name; of a store of events alone, its folder's."""
    head = current(dataset.store)
    return head.manifest.name if head is not None else place_name(dataset.url)


def version_of(dataset: Dataset, run_manifests: Collection[str]) -> HistoryLine | None:
    """The version that one of the run manifests made, the oldest that names it; None where none does."""
    if current(dataset.store) is None:
        return None
    found = [each for each in dataset.history() if each.lineage and each.lineage["run_manifest"] in run_manifests]
    return found[-1] if found else None


def chosen_runs(dataset: Dataset, run_ids: Sequence[str]) -> list[list[RunManifest]]:
    """The sealed runs of a dataset, or those that are named, oldest first.

    Raises:
        UsageError: a run that is named is not there.
        CorruptError: a run manifest cannot be read.
    """
    found = runs_of(dataset.store, only=run_ids)
    known = {each[-1].run_id for each in found}
    for each in run_ids:
        if each not in known:
            raise UsageError(
                f"no sealed run {each!r} in {shown_place(dataset.url)}", field="run_ids", hint="«lineage.runs(DATASET)» lists the runs"
            )
    return found


def runs(dataset: Dataset) -> list[JsonObject]:
    """Every sealed attempt, newest first, with the version that it made."""
    fates = Fates.of(dataset)
    return [
        {
            "run_id": each.run_id,
            "attempt": each.attempt,
            **fates.of_run([each]).to_json(),
            "run_date": each.run_date,
            "sealed_utc": each.sealed_utc,
            **each.counts,
            "plan": list(each.plan),
            "schema_version": each.schema_version,
            "root": each.root,
            "run_manifest": each.path,
            "expired_utc": each.expired.expired_utc if each.expired is not None else None,
        }
        for each in reversed(sealed_runs(dataset.store))
    ]


def scores(dataset: Dataset, run_ids: Sequence[str], last: int) -> list[Score]:
    """The scores of the newest runs, oldest first; before them those that versions name and that are not there.

    Raises:
        UsageError, CorruptError: as `chosen_runs`.
    """
    fates = Fates.of(dataset)
    there = {each.path for each in sealed_runs(dataset.store)}
    found = [
        Score(line.run_id, line.version, line.time_utc, 0, 0, 0, 0, 0, 0, missing=True, status="published")
        for line in (() if run_ids or current(dataset.store) is None else dataset.history())
        if line.rollback is None and (line.lineage is None or line.lineage["run_manifest"] not in there)
    ]
    for attempts in chosen_runs(dataset, run_ids)[-last:]:
        total = verdict(dataset.store, attempts)
        sealed = sum(part.rows for each in attempts for part in each.parts)
        conflicts = browse.set_aside(dataset.store, attempts)["conflicts"] if sealed > total["total_events"] else 0
        found.append(
            Score(
                attempts[-1].run_id,
                (fate := fates.of_run(attempts)).version,
                attempts[-1].sealed_utc,
                total["total_events"],
                total["features"],
                total["features_passed"],
                total["features_warned"],
                total["features_rejected"],
                conflicts,
                nameless=not total["features"] and bool(attempts[-1].doc["findings"]),
                status=fate.status,
                refused_by=fate.refused_by,
                why=fate.why,
                rolled_back_by=fate.rolled_back_by,
            )
        )
    return found
