"""The commands `lineage history | rejects | runs | query | scorecard | check-complete`: questions and gates.

Not here: how events are found (`lineage.select`), the scorecard's forms (`report.scorecard`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from merestone.audit import completeness, event_file, questions
from merestone.cli import edge, lineage_words, options
from merestone.errors import EXIT_DONE, EXIT_REFUSED, CorruptError, UsageError
from merestone.inspect import browse
from merestone.inspect.output import check_outputs, written_whole
from merestone.line import environment
from merestone.lineage.event.record import EVENT_TYPES, OUTCOMES
from merestone.lineage.store import reading
from merestone.lineage.store.deduplication import deduplicate, deduplicate_report
from merestone.lineage.store.run_manifest import sealed_runs
from merestone.lineage.store.select import Conditions, select
from merestone.render import scorecard as cards

Command = TypeVar("Command", bound=Callable[..., Any])
SHOWN = 100
_FILE = "Write all of them to a file: .parquet, .arrow or .ndjson."


def _runs(command: Command) -> Command:
    return click.option("--run", "run_ids", multiple=True, metavar="ID", help="Only this run; may be given several times.")(command)


def _limit(command: Command) -> Command:
    return click.option("--limit", type=click.IntRange(min=1), default=SHOWN, show_default=True, metavar="N", help="Show at most so many.")(
        command
    )


@click.command()
@options.whole_dataset
@click.argument("feature", metavar="FEATURE")
@click.option("--everything", is_flag=True, help="Also the rows that another row of their event has replaced.")
@click.option("--out", metavar="FILE", help=_FILE)
@options.as_json
def history(dataset: str, feature: str, everything: bool, out: str | None, as_json: bool) -> int:
    """Show every event of one feature, over all runs, oldest run first.

    Exit 6 where events contradict each other.
    """
    check_outputs({"--out": out}, [dataset])
    opened = browse.whole(dataset)
    feature = reading.id_of(opened.store, feature)
    table = reading.history(opened.store, feature)
    if not table.num_rows:
        raise UsageError(f"no sealed run met a feature {feature}", field=feature, hint="letters, blanks and leading zeros count")
    report = deduplicate_report(table)
    shown = table if everything else deduplicate(table)
    if out is not None:
        event_file.write([shown], out)
    value = {
        "name": questions.name_of(opened),
        "feature_id": feature,
        "events": reading.plain(shown),
        "deduplication": report.to_json(),
        "out": out,
    }
    edge.answer(value, lineage_words.history(value, questions.versions_of(opened), sealed_runs(opened.store)), as_json=as_json)
    return CorruptError.exit_code if report.conflicts else EXIT_DONE


@click.command()
@options.dataset
@_runs
@click.option("--stage", metavar="STAGE", help="Only what this stage refused.")
@_limit
@click.option("--out", metavar="FILE", help=_FILE)
@options.as_json
def rejects(dataset: str, run_ids: Sequence[str], stage: str | None, limit: int, out: str | None, as_json: bool) -> int:
    """List what was rejected and why: by default in the run that made the version."""
    check_outputs({"--out": out}, [dataset])
    if run_ids:
        opened = browse.open_dataset(browse.parse_address(dataset).where)
    else:
        version = browse.version_at(dataset)
        opened, run_ids = browse.open_dataset(browse.parse_address(dataset).where), (browse.run_of(version)[0],)
    return _answer(opened, run_ids, Conditions(stage=stage, outcome="REJECT"), limit, out, as_json=as_json)


@click.command()
@options.whole_dataset
@_runs
@click.option("--stage", metavar="STAGE", help="Only events of this stage, with its qualified ones.")
@click.option("--type", "event_type", type=click.Choice(EVENT_TYPES), help="Only events of this type.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only events with this outcome.")
@click.option("--feature", metavar="FEATURE", help="Only events of this feature.")
@click.option("--reason", metavar="TEXT", help="Only events whose reason holds this text.")
@click.option("--tool", metavar="TEXT", help="Only events whose software holds this text.")
@click.option("--class", "change_class", metavar="CLASS", help="Only events of this change class (removed, moved, held, changed).")
@click.option("--everything", is_flag=True, help="Also the rows that another row of their event has replaced.")
@_limit
@click.option("--out", metavar="FILE", help=_FILE)
@options.as_json
def query(
    dataset: str,
    run_ids: Sequence[str],
    stage: str | None,
    event_type: str | None,
    outcome: str | None,
    feature: str | None,
    reason: str | None,
    tool: str | None,
    change_class: str | None,
    everything: bool,
    limit: int,
    out: str | None,
    as_json: bool,
) -> int:
    """Find events that meet all conditions, over all sealed runs or some."""
    check_outputs({"--out": out}, [dataset])
    opened = browse.whole(dataset)
    known_as = None if feature is None else reading.id_of(opened.store, feature)
    conditions = Conditions(stage, event_type, outcome, known_as, reason, tool, change_class)
    return _answer(opened, run_ids, conditions, limit, out, everything=everything, as_json=as_json)


def _answer(
    opened: Any,
    run_ids: Sequence[str],
    conditions: Conditions,
    limit: int,
    out: str | None,
    *,
    everything: bool = False,
    as_json: bool,
) -> int:
    found = select(opened.store, questions.chosen_runs(opened, run_ids), conditions, everything=everything)
    events: list[dict[str, Any]] = []
    count = 0

    def seen() -> Any:
        nonlocal count
        for table in found:
            count += table.num_rows
            if len(events) < limit:
                events.extend(reading.plain(table, limit=limit - len(events)))
            yield table

    if out is not None:
        event_file.write(seen(), out)
    else:
        for _ in seen():
            pass
    value = {"name": questions.name_of(opened), "count": count, "events": events, "out": out}
    edge.answer(value, lineage_words.events(value), as_json=as_json)
    return EXIT_DONE


@click.command()
@options.whole_dataset
@options.as_json
def runs(dataset: str, as_json: bool) -> int:
    """List the sealed runs of a dataset, newest first, refused ones too."""
    opened = browse.whole(dataset)
    value = {"name": questions.name_of(opened), "runs": questions.runs(opened)}
    edge.answer(value, lineage_words.runs(value), as_json=as_json)
    return EXIT_DONE


@click.command()
@options.whole_dataset
@_runs
@click.option("--last", type=click.IntRange(min=1), default=30, show_default=True, metavar="N", help="At most so many of the newest runs.")
@click.option(
    "--max-rejected",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="The share of features that a run may reject, 0.01 for 1 %; not judged by default.",
)
@click.option(
    "--max-warned",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="The share of features that a run may warn of, 0.01 for 1 %; not judged by default.",
)
@click.option("--html", metavar="FILE", help="Write a page with charts; it needs no network.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML, a test case a run.")
@options.as_json
def scorecard(
    dataset: str,
    run_ids: Sequence[str],
    last: int,
    max_rejected: float | None,
    max_warned: float | None,
    html: str | None,
    junit: str | None,
    as_json: bool,
) -> int:
    """Score runs against thresholds: exit 1 where one breaks them, which gates a merge.

    Shares are of the features that a run met, by worst outcome. Events that contradict each other break the gate in any case.
    """
    check_outputs({"--html": html, "--junit": junit}, [dataset])
    opened = browse.whole(dataset)
    name, limits = questions.name_of(opened), cards.Thresholds(max_rejected, max_warned)
    found = questions.scores(opened, run_ids, last)
    for path, render in ((html, cards.page), (junit, cards.junit)):
        if path is not None:
            with written_whole(path) as place:
                Path(place).write_text(render(name, found, limits), encoding="utf-8", newline="\n")
    value = {**cards.to_json(name, found, limits), "html": html, "junit": junit}
    edge.answer(value, cards.text(name, found, limits), as_json=as_json)
    return EXIT_DONE if value["status"] == "pass" else EXIT_REFUSED


@click.command("check-complete")
@options.dataset
@_runs
@click.option("--last-step", is_flag=True, help="Check only the run that made the version, not those before it.")
@options.as_json
def check_complete(dataset: str, run_ids: Sequence[str], last_step: bool, as_json: bool) -> int:
    """Check that lineage tells the whole story of a version: exit 1 with the missing ids where it does not.

    Each run has no gap in its order or its chain of stages; what was published is what was accepted or held, minus what was removed; what no
    run of late touched resolves to the run that made it. With --run only the chain of those runs is checked.
    """
    address = browse.parse_address(dataset)
    opened = browse.open_dataset(address.where)
    if run_ids or browse.current_version(opened.store) is None:
        found = completeness.check_runs(opened.store, questions.chosen_runs(opened, run_ids), now=environment.now())
    else:
        found = completeness.check_version(opened, address.version, now=environment.now(), last_step=last_step)
    value = {
        "status": "pass" if found.complete else "fail",
        "name": questions.name_of(opened),
        "runs": found.runs,
        "features": found.features,
        "gaps": [
            {"run_id": run, **gap.to_json(), "severity": "warning" if gap.rule in completeness.DOUBTFUL else "error"}
            for run, gap in found.gaps
        ],
    }
    edge.answer(value, lineage_words.complete(value), as_json=as_json)
    return EXIT_DONE if found.complete else EXIT_REFUSED
