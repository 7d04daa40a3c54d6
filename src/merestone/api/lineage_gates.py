"""Gates over lineage: each passes or fails, and fails where it has nothing to judge.

Not here: what is counted and compared (`audit`, `lineage.store`), exit codes (`cli`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path as File

from merestone.api.lineage_answers import (
    CompleteResult,
    ProblemsResult,
    SchemaFaultsResult,
    ScorecardResult,
)
from merestone.api.places import AnyDataset, Path, any_version, keep_apart, whole
from merestone.audit import completeness, questions
from merestone.dataset.version import Dataset
from merestone.errors import UsageError
from merestone.given import names_of
from merestone.inspect import browse
from merestone.inspect.output import write_text
from merestone.line import environment
from merestone.lineage.event import schema as events
from merestone.lineage.store.hygiene import check_partitions as problems_of
from merestone.render import scorecard as cards
from merestone.storage.open import open_store
from merestone.storage.place import local_path, parse_place


def scorecard(
    dataset: AnyDataset,
    *,
    run_ids: Sequence[str] = (),
    last: int = 30,
    max_rejected: float | None = None,
    max_warned: float | None = None,
    allow_empty: bool = False,
    html: Path | None = None,
    junit: Path | None = None,
) -> ScorecardResult:
    """Score runs against thresholds. Shares are of the features that a run met, by worst outcome.

    Of a delivery that was refused before any feature could be named, all features count as rejected. Events that contradict each other break
    the gate in any case, and so do a store without runs and a version whose run is missing.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        run_ids: only these runs.
        last: at most so many of the newest runs.
        max_rejected: the share of features that a run may reject, 0.01 for 1 %; None does not judge it.
        max_warned: the share of features that a run may warn of; None does not judge it.
        allow_empty: accept a store without runs.
        html: write a page with charts to this file.
        junit: write JUnit XML to this file, a test case a run.

    Raises:
        UsageError: no such run exists.

    Example:
        >>> lineage.scorecard("parcels.yaml", max_rejected=0.01).status
        'pass'
    """
    keep_apart({"html": html, "junit": junit}, [dataset])
    opened = whole(dataset)
    name, limits = questions.name_of(opened), cards.Thresholds(max_rejected, max_warned, allow_empty)
    found = questions.scores(opened, names_of(run_ids, "run_ids"), last)
    texts: tuple[tuple[Path | None, Callable[[str, list[cards.Score], cards.Thresholds], str]], ...] = (
        (html, cards.page),
        (junit, cards.junit),
    )
    for path, render in texts:
        if path is not None:
            write_text(path, render(name, found, limits))
    return ScorecardResult(
        **cards.to_json(name, found, limits),
        html=None if html is None else os.fspath(html),
        junit=None if junit is None else os.fspath(junit),
        text=cards.text(name, found, limits),
    )


def check_complete(
    dataset: AnyDataset,
    *,
    run_ids: Sequence[str] = (),
    last_step: bool = False,
    allow_empty: bool = False,
    allow_no_plan: bool = False,
) -> CompleteResult:
    """Check that lineage accounts for every feature of a version.

    Each run has no gap in its order or its chain of stages. What was published is what was accepted or held, minus what was removed. What
    no recent run touched resolves to the run that made it. Where there is nothing to judge, the gate fails.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_ids: check only the chains of these runs.
        last_step: check only the run that made the version, not those before it.
        allow_empty: accept a store without runs, and runs without events.
        allow_no_plan: accept events of runs that do not say their stages.

    Raises:
        UsageError: no such version or run exists.
        CorruptError: a manifest, a change log, the index or an event file is damaged.

    Example:
        >>> lineage.check_complete("parcels.yaml").status
        'pass'
    """
    opened = any_version(dataset)
    allowed = completeness.Allowed(empty=allow_empty, no_plan=allow_no_plan)
    version = None if isinstance(dataset, Dataset) else browse.parse_address(os.fspath(dataset)).version
    if run_ids or browse.current_version(opened.store) is None:
        found = completeness.check_runs(
            opened.store, questions.chosen_runs(opened, names_of(run_ids, "run_ids")), now=environment.now(), allowed=allowed
        )
    else:
        found = completeness.check_version(opened, version, now=environment.now(), last_step=last_step, allowed=allowed)
    return CompleteResult(
        status="pass" if found.complete else "fail",
        name=questions.name_of(opened),
        runs=found.runs,
        features=found.features,
        gaps=[
            {
                "run_id": run,
                "rule": gap.rule,
                "message": gap.message,
                "count": gap.count,
                "samples": list(gap.samples),
                "severity": "error" if found.fails(gap) else "warning",
            }
            for run, gap in found.gaps
        ],
    )


def check_partitions(root: Path, *, require_epsg_target: bool = False, allow_empty: bool = False) -> ProblemsResult:
    """Check the folders and files of an event store, also of one that another tool wrote.

    Args:
        root: the root of an event store, such as `DATASET/_lineage`.
        require_epsg_target: every target_crs= folder has to name a canonical EPSG code.
        allow_empty: accept a root without event files.

    Raises:
        UsageError: `root` is not a folder.

    Example:
        >>> lineage.check_partitions("published/parcels/_lineage").status
        'pass'
    """
    named = os.fspath(root)
    place = parse_place(named, field="root")
    if place.is_local and not File(place.path).is_dir():
        raise UsageError(f"{named} is not a folder", field="root", hint="name the event store: the folder _lineage of a dataset")
    problems = problems_of(open_store(named, field="root"), require_epsg_target=require_epsg_target, allow_empty=allow_empty)
    return ProblemsResult("fail" if problems else "pass", problems)


def validate_schema(file: Path) -> SchemaFaultsResult:
    """Check an event schema file (lineage_schema.yaml).

    Raises:
        UsageError: the file cannot be read.

    Example:
        >>> lineage.validate_schema("lineage_schema.yaml").status
        'pass'
    """
    try:
        text = File(local_path(os.fspath(file), what="a schema file")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = getattr(fault, "strerror", None) or fault
        raise UsageError(f"{os.fspath(file)} cannot be read: {reason}", field="file", hint="check the path and its permissions") from fault
    faults = events.validate_schema(text)
    return SchemaFaultsResult("fail" if faults else "pass", faults)
