"""Questions about the lineage of a dataset: a run, a feature, events that meet conditions.

Not here: how events are kept and found (`lineage.store`), gates over them (`lineage_gates`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pyarrow as pa

from merestone.api.lineage_answers import (
    EventsResult,
    HistoryResult,
    RunsResult,
    SummaryResult,
    WhyResult,
)
from merestone.api.places import AnyDataset, Path, any_version, keep_apart, text_of, whole
from merestone.audit import event_file, questions
from merestone.dataset.version import Dataset
from merestone.errors import UsageError
from merestone.given import names_of
from merestone.inspect import browse
from merestone.inspect.fates import Fates
from merestone.json_value import JsonObject
from merestone.lineage.store import reading
from merestone.lineage.store.deduplication import deduplicate, deduplicate_report
from merestone.lineage.store.run_manifest import attempts_of, runs_of
from merestone.lineage.store.select import Conditions, select
from merestone.results.json_form import to_json

LIMIT = 100
"""How many events an answer holds unless it is asked for more."""


def summary(dataset: AnyDataset, *, run_id: str | None = None) -> SummaryResult:
    """Give the verdict of a run: events and features that passed, were warned of or rejected, by stage and reason.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_id: a run, also a refused one; by default the one that made the version.

    Raises:
        UsageError: no such run exists.
        CorruptError: a run manifest or an event file is damaged.

    Example:
        >>> lineage.summary("parcels.yaml").rejected
        0
    """
    opened = any_version(dataset)
    run = run_id if run_id is not None else browse.run_of(browse.version_at(text_of(dataset)))[0]
    fate = Fates.of(opened).of_run(attempts_of(opened.store, run))
    return SummaryResult(name=questions.name_of(opened), **fate.to_json(), **browse.lineage_summary(opened.store, run))


def why(dataset: AnyDataset, feature_id: str, *, limit: int | None = None, everything: bool = False) -> WhyResult:
    """Say why a feature is as it is: the versions that touched it and the runs that met it.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        feature_id: the key as messages write it: its text, or a JSON array where the key has several columns.
        limit: at most so many runs, newest first.
        everything: read every version and every run; otherwise the newest 64 versions, and the one that made the feature.

    Raises:
        UsageError: no version and no run knows the feature.
        CorruptError: a manifest, a change log or an event file is damaged.

    Example:
        >>> lineage.why("parcels.yaml", "p2").since
        2
    """
    return WhyResult(**browse.why(whole(dataset), feature_id, limit, everything=everything))


def history(dataset: AnyDataset, feature_id: str, *, everything: bool = False, out: Path | None = None) -> HistoryResult:
    """Show every event of one feature, over all runs, oldest run first.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        feature_id: the key as messages write it.
        everything: also the rows that another row of their event has replaced.
        out: write the events to this file (.parquet, .arrow or .ndjson).

    Raises:
        UsageError: no sealed run met the feature.

    Example:
        >>> lineage.history("parcels.yaml", "p2").events[0]["outcome"]
        'PASS'
    """
    keep_apart({"out": out}, [dataset])
    opened = whole(dataset)
    feature_id = reading.id_of(opened.store, feature_id)
    table = reading.history(opened.store, feature_id)
    if not table.num_rows:
        raise UsageError(f"no sealed run met a feature {feature_id}", field="feature_id", hint="letters, blanks and leading zeros count")
    shown = table if everything else deduplicate(table)
    if out is not None:
        event_file.write([shown], os.fspath(out))
    fates, met = Fates.of(opened), set(table.column("run_id").to_pylist())
    return HistoryResult(
        name=questions.name_of(opened),
        feature_id=feature_id,
        events=reading.plain(shown),  # type: ignore[arg-type]  # the event schema gives exactly these names
        deduplication=to_json(deduplicate_report(table)),
        out=None if out is None else os.fspath(out),
        runs={
            attempts[-1].run_id: {"run_date": attempts[-1].run_date, **fates.of_run(attempts).to_json()}  # type: ignore[typeddict-item]  # as above
            for attempts in runs_of(opened.store, only=sorted(met))
        },
    )


def rejects(
    dataset: AnyDataset,
    *,
    run_ids: Sequence[str] = (),
    stage: str | None = None,
    limit: int = LIMIT,
    out: Path | None = None,
) -> EventsResult:
    """List what was rejected and why; by default in the run that made the version.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_ids: only these runs.
        stage: only what this stage rejected.
        limit: hold at most so many events.
        out: write all of them to this file (.parquet, .arrow or .ndjson).

    Raises:
        UsageError: no such run exists.

    Example:
        >>> lineage.rejects("parcels.yaml").count
        0
    """
    keep_apart({"out": out}, [dataset])
    chosen = names_of(run_ids, "run_ids") or (browse.run_of(browse.version_at(text_of(dataset)))[0],)
    return _found(any_version(dataset), chosen, Conditions(stage=stage, outcome="REJECT"), limit, out)


def query(
    dataset: AnyDataset,
    *,
    run_ids: Sequence[str] = (),
    stage: str | None = None,
    event_type: str | None = None,
    outcome: str | None = None,
    feature_id: str | None = None,
    reason: str | None = None,
    tool: str | None = None,
    change_class: str | None = None,
    everything: bool = False,
    limit: int = LIMIT,
    out: Path | None = None,
) -> EventsResult:
    """Find events that meet all conditions, over all sealed runs or some.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        run_ids: only these runs.
        stage: only events of this stage, with its qualified ones.
        event_type: only events of this type.
        outcome: only events with this outcome.
        feature_id: only events of this feature.
        reason: only events whose reason holds this text.
        tool: only events whose software holds this text.
        change_class: only events of this change class.
        everything: also the rows that another row of their event has replaced.
        limit: hold at most so many events.
        out: write all of them to this file (.parquet, .arrow or .ndjson).

    Raises:
        UsageError: no such run exists.

    Example:
        >>> lineage.query("parcels.yaml", outcome="REJECT").count
        0
    """
    keep_apart({"out": out}, [dataset])
    opened = whole(dataset)
    known_as = None if feature_id is None else reading.id_of(opened.store, feature_id)
    conditions = Conditions(stage, event_type, outcome, known_as, reason, tool, change_class)
    return _found(opened, run_ids, conditions, limit, out, everything=everything)


def _found(
    opened: Dataset, run_ids: Sequence[str], conditions: Conditions, limit: int, out: Path | None, *, everything: bool = False
) -> EventsResult:
    found = select(opened.store, questions.chosen_runs(opened, names_of(run_ids, "run_ids")), conditions, everything=everything)
    held: list[JsonObject] = []
    count = 0

    def seen() -> Iterator[pa.Table]:
        nonlocal count
        for table in found:
            count += table.num_rows
            if len(held) < limit:
                held.extend(reading.plain(table, limit=limit - len(held)))
            yield table

    if out is not None:
        event_file.write(seen(), os.fspath(out))
    else:
        for _ in seen():
            pass
    return EventsResult(questions.name_of(opened), count, held, None if out is None else os.fspath(out))  # type: ignore[arg-type]  # as above


def runs(dataset: AnyDataset) -> RunsResult:
    """List the sealed runs of a dataset, newest first, also refused ones.

    Example:
        >>> len(lineage.runs("parcels.yaml").runs)
        2
    """
    opened = whole(dataset)
    return RunsResult(questions.name_of(opened), questions.runs(opened))  # type: ignore[arg-type]  # `questions.runs` gives these names
