"""What came of a run, counted over the events that stand: its verdict, and its stages, outcomes and reasons.

Not here: the steps with times and software (`steps`), how answers look (`render`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.arrays import one_chunk
from merestone.json_value import JsonObject
from merestone.lineage.store.deduplication import deduplicate
from merestone.lineage.store.deduplication import severity as severity_of
from merestone.lineage.store.reading import scan
from merestone.lineage.store.run_manifest import RunManifest, attempts_of
from merestone.lineage.store.tombstone import Expired
from merestone.lineage.store.writing import ROOT
from merestone.results.finding import SAMPLES
from merestone.storage.open import open_store
from merestone.storage.port import Store

MOST_REASONS = 10_000
"""How many different reasons are counted apart. A reason quotes a value, and a broken delivery can have one in each row. The rest counts as others."""
OTHERS = "other reasons"


def conformance_summary(manifest_root: str | os.PathLike[str] | Store, run_id: str) -> dict[str, int]:
    """The verdict of a run: `total_events`, `passed`, `rejected`, `warned`, over the events that stand.

    Beside them `features`, `features_passed`, `features_rejected`, `features_warned`: each feature by its worst outcome.

    Args:
        manifest_root: the event store's root (`<dataset>/_lineage`), a path, URL or store.
        run_id: the run, as text.

    Raises:
        UsageError: no such sealed run.
        CorruptError: a manifest or a part cannot be read.
    """
    store: Any = open_store(manifest_root) if isinstance(manifest_root, (str, os.PathLike)) else manifest_root
    return verdict(store, attempts_of(store, run_id, ""), "")


def verdict(store: Store, attempts: Sequence[RunManifest], root: str = ROOT) -> dict[str, int]:
    """As `conformance_summary`, for the sealed attempts of one run; of a run that expired, what its tombstone says."""
    if attempts and attempts[-1].expired is not None:
        return dict(attempts[-1].expired.verdict)
    total = _no_verdict()
    for table in scan(store, attempts, root, names=("event_id", "sequence", "feature_id", "outcome")):
        _add_verdict(deduplicate(table), total)
    return total


def run_summary(store: Store, run_id: str, root: str = ROOT) -> JsonObject:
    """What `lineage summary` shows of a run: its verdict, events per stage and outcome, reasons by frequency, software, Merkle root.

    Raises:
        UsageError: no such sealed run.
        CorruptError: a manifest or a part cannot be read.
    """
    attempts = attempts_of(store, run_id, root)
    last = attempts[-1]
    if last.expired is not None:
        return _of_tombstone(attempts, last.expired)
    total = _no_verdict()
    stages: dict[tuple[str, str, str], int] = {}
    reasons: dict[tuple[str, str, str], int] = {}
    names = ("event_id", "sequence", "feature_id", "stage", "event_type", "outcome", "rejection_reason")
    for table in scan(store, attempts, root, names=names):
        standing = deduplicate(table)
        _add_verdict(standing, total)
        _count(standing, ("stage", "event_type", "outcome"), stages)
        _count(
            standing.filter(pc.not_equal(standing.column("outcome"), "PASS")),
            ("stage", "outcome", "rejection_reason"),
            reasons,
            MOST_REASONS,
        )
    often = sorted(reasons.items(), key=lambda each: (-each[1], each[0][0], each[0][1], each[0][2] or ""))
    counts = [
        {"stage": stage, "outcome": outcome, "reason": reason, "events": events} for (stage, outcome, reason), events in often[:SAMPLES]
    ]
    return _summary(attempts, total, stages, counts)


def _of_tombstone(attempts: Sequence[RunManifest], expired: Expired) -> JsonObject:
    stages: dict[tuple[str, str, str], int] = {}
    for step in expired.steps:
        for word, outcome in (("passed", "PASS"), ("warned", "WARN"), ("rejected", "REJECT")):
            if step[word]:
                key = step["stage"], step["event_type"], outcome
                stages[key] = stages.get(key, 0) + step[word]
    return _summary(attempts, expired.verdict, stages, [])


def _summary(
    attempts: Sequence[RunManifest],
    total: Mapping[str, int],
    stages: Mapping[tuple[str, str, str], int],
    reasons: list[JsonObject],
) -> JsonObject:
    last = attempts[-1]
    place = {stage: at for at, stage in enumerate(last.plan)}
    return {
        "run_id": last.run_id,
        "attempts": [each.attempt for each in attempts],
        "run_date": last.run_date,
        "sealed_utc": last.sealed_utc,
        "schema_version": last.schema_version,
        "plan": list(last.plan),
        "tool": last.doc["tool"],
        "root": last.root,
        **total,
        "stages": [
            {"stage": stage, "event_type": kind, "outcome": outcome, "events": events}
            for (stage, kind, outcome), events in sorted(
                stages.items(), key=lambda each: (place.get(each[0][0].partition(".")[0], len(place)), each[0])
            )
        ],
        "reasons": reasons,
    }


def _no_verdict() -> dict[str, int]:
    return dict.fromkeys(
        ("total_events", "passed", "rejected", "warned", "features", "features_passed", "features_rejected", "features_warned"), 0
    )


def _add_verdict(standing: pa.Table, total: dict[str, int]) -> None:
    """Count the events of a table that holds all rows of its features."""
    severity = severity_of(standing)
    features = one_chunk(one_chunk(standing.column("feature_id")).dictionary_encode())
    codes = np.asarray(features.indices)
    worst = np.zeros(len(features.dictionary), np.int8)
    for level in (1, 2):
        worst[codes[severity == level]] = level
    total["total_events"] += len(severity)
    total["features"] += len(worst)
    for level, word in enumerate(("passed", "warned", "rejected")):
        total[word] += int((severity == level).sum())
        total[f"features_{word}"] += int((worst == level).sum())


def _count(table: pa.Table, names: Sequence[str], into: dict[Any, int], most: int | None = None) -> None:
    """Count rows by some texts; beyond `most` of them, what was not met before counts under the others of its kind."""
    for each in table.select(names).group_by(list(names)).aggregate([([], "count_all")]).to_pylist():
        key = tuple(each[name] for name in names)
        if most is not None and len(into) >= most and key not in into:
            key = (*key[:-1], OTHERS)
        into[key] = into.get(key, 0) + each["count_all"]
