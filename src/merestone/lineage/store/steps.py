"""What a run did, by stage and operation: how many events passed, were warned of or rejected, when, by which software, and why.

Not here: one feature (`reading.history`), how the steps are written for others (`render`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from merestone.json_value import Json, JsonObject
from merestone.lineage.event.collector import OUTSIDE_CHAIN, base_stage
from merestone.lineage.store.deduplication import deduplicate
from merestone.lineage.store.reading import scan
from merestone.lineage.store.run_manifest import RunManifest
from merestone.lineage.store.verdict import MOST_REASONS, OTHERS
from merestone.storage.port import Store

_OPERATION = ("stage", "event_type", "source_crs", "target_crs", "strategy_index")
_READ = (
    *_OPERATION,
    "event_id",
    "sequence",
    "feature_id",
    "outcome",
    "event_time_utc",
    "accuracy_m",
    "rejection_reason",
    "tool_version",
    "change_class",
)
MOST_STEPS = 200
_WORDS = {"PASS": "passed", "WARN": "warned", "REJECT": "rejected"}


@dataclass(slots=True)
class RunStep:
    """The events of one stage and operation that stand.

    `tools`, `reasons` (outcome and text) and `classes` (change classes) hold how many events said each; `accuracy_m` the lowest and the
    highest of any event; times are aware, in UTC.
    """

    stage: str
    event_type: str
    source_crs: str
    target_crs: str
    strategy_index: int | None
    passed: int = 0
    warned: int = 0
    rejected: int = 0
    first: datetime | None = None
    last: datetime | None = None
    accuracy_m: tuple[float, float] | None = None
    tools: dict[str, int] = field(default_factory=dict)
    reasons: dict[tuple[str, str], int] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """How many events stand."""
        return self.passed + self.warned + self.rejected


def run_steps(store: Store, attempts: Sequence[RunManifest], root: str) -> list[RunStep]:
    """The steps of one run, in the order of its stage plan; stage `publish` comes last. Those of a run that expired have no reasons.

    Args:
        store: the dataset's store.
        attempts: the sealed attempts of the run.
        root: the event store in it.

    Raises:
        CorruptError: a part cannot be read.
    """
    if attempts and attempts[-1].expired is not None:
        return [_of_tombstone(each) for each in attempts[-1].expired.steps]
    found: dict[tuple[Any, ...], RunStep] = {}
    for table in scan(store, attempts, root, names=_READ):
        _gather(deduplicate(table), found, _OPERATION)
    plan = {stage: at for at, stage in enumerate(attempts[-1].plan if attempts else ())}
    return sorted(found.values(), key=lambda each: _order(each, plan))


def steps_of_features(store: Store, made: Iterable[tuple[Sequence[RunManifest], pa.Array]], root: str) -> list[RunStep]:
    """How some features came to be: the steps that the runs which made them did on them, added up over the runs.

    One step for each stage, operation, software and accuracy, in the order of the plan of the first run; at most MOST_STEPS, and the rest in
    one more. Of features of a run that expired, the rows are counted that were carried on.

    Args:
        store: the dataset's store.
        made: the sealed attempts of each run, newest run first, with the ids of the features that it made (a string array).
        root: the event store in it.

    Raises:
        CorruptError: a part cannot be read.
    """
    found: dict[tuple[Any, ...], RunStep] = {}
    plan: dict[str, int] = {}
    for attempts, ids in made:
        for stage in attempts[-1].plan:
            plan.setdefault(stage, len(plan))
        for table in scan(store, attempts, root, names=_READ, only=ids):
            _gather(deduplicate(table), found, (*_OPERATION, "tool_version", "accuracy_m"))
    often = sorted(found.values(), key=lambda each: -each.events)
    kept = sorted(often[:MOST_STEPS], key=lambda each: _order(each, plan))
    return [*kept, _rest(often[MOST_STEPS:])] if len(often) > MOST_STEPS else kept


def _rest(steps: Sequence[RunStep]) -> RunStep:
    """Steps as one that says so."""
    others = RunStep(f"{len(steps)} more steps", "VARIOUS", "various", "various", None)
    for each in steps:
        others.passed, others.warned, others.rejected = (
            others.passed + each.passed,
            others.warned + each.warned,
            others.rejected + each.rejected,
        )
        for tool, events in each.tools.items():
            _add(others.tools, tool, events)
    others.first = min((each.first for each in steps if each.first is not None), default=None)
    others.last = max((each.last for each in steps if each.last is not None), default=None)
    return others


def _gather(standing: pa.Table, found: dict[tuple[Any, ...], RunStep], by: Sequence[str]) -> None:
    """Add the events of a table to the steps that they belong to."""
    _measure(standing, found, by)
    for name, into in (("tool_version", "tools"), ("change_class", "classes")):
        for row in _counted(standing, tuple(dict.fromkeys((*by, name)))):
            if row[name] is not None:
                _add(getattr(found[_key(row, by)], into), row[name], row["count_all"])
    for row in _counted(standing, (*by, "outcome", "rejection_reason")):
        if row["outcome"] != "PASS" and row["rejection_reason"] is not None:
            reasons = found[_key(row, by)].reasons
            key = (row["outcome"], row["rejection_reason"])
            _add(reasons, key if key in reasons or len(reasons) < MOST_REASONS else (row["outcome"], OTHERS), row["count_all"])


def _of_tombstone(kept: Mapping[str, Json]) -> RunStep:
    first, last = (datetime.fromisoformat(kept[name]) if kept[name] else None for name in ("first", "last"))
    accuracy = (float(kept["accuracy_m"][0]), float(kept["accuracy_m"][1])) if kept["accuracy_m"] else None
    return RunStep(
        kept["stage"],
        kept["event_type"],
        kept["source_crs"],
        kept["target_crs"],
        kept["strategy_index"],
        kept["passed"],
        kept["warned"],
        kept["rejected"],
        first,
        last,
        accuracy,
        dict(kept["tools"]),
        {},
        dict(kept["classes"]),
    )


def _measure(standing: pa.Table, found: dict[tuple[Any, ...], RunStep], by: Sequence[str]) -> None:
    grouped = (
        standing.append_column("accuracy", standing.column("accuracy_m"))
        .group_by([*by, "outcome"])
        .aggregate(
            [
                ([], "count_all"),
                ("event_time_utc", "min"),
                ("event_time_utc", "max"),
                ("accuracy", "min"),
                ("accuracy", "max"),
            ]
        )
    )
    for row in grouped.to_pylist():
        step = found.setdefault(_key(row, by), RunStep(*_key(row, _OPERATION)))
        setattr(step, _WORDS[row["outcome"]], getattr(step, _WORDS[row["outcome"]]) + row["count_all"])
        first, last = row["event_time_utc_min"], row["event_time_utc_max"]
        step.first = first if step.first is None else min(step.first, first)
        step.last = last if step.last is None else max(step.last, last)
        if row["accuracy_min"] is not None:
            low, high = step.accuracy_m or (row["accuracy_min"], row["accuracy_max"])
            step.accuracy_m = min(low, row["accuracy_min"]), max(high, row["accuracy_max"])


def _counted(table: pa.Table, names: Sequence[str]) -> list[JsonObject]:
    rows: list[JsonObject] = table.select(names).group_by(list(names)).aggregate([([], "count_all")]).to_pylist()
    return rows


def _key(row: JsonObject, by: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in by)


def _add(into: dict[Any, int], key: Any, count: int) -> None:
    into[key] = into.get(key, 0) + count


def _order(step: RunStep, plan: dict[str, int]) -> tuple[Any, ...]:
    base = base_stage(step.stage)
    place = len(plan) + 1 if base == OUTSIDE_CHAIN else plan.get(base, len(plan))
    index = -1 if step.strategy_index is None else step.strategy_index
    return place, step.stage, step.event_type, step.source_crs, step.target_crs, index
