"""The commands `lineage ...`: questions, gates, what changes an event store, and lineage for others.

Not here: the answers (`api.lineage`), their words (`lineage_words`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import click

from merestone.api import lineage as api
from merestone.cli import edge, lineage_words, options, words
from merestone.cli.family import Family
from merestone.errors import EXIT_DONE, EXIT_REFUSED, CorruptError, UsageError

Command = TypeVar("Command", bound=Callable[..., Any])
_FILE = "Write all of them to a file: .parquet, .arrow or .ndjson."
_RUN = "A run, also a refused one; by default the one that made the version."


@click.group(cls=Family)
def lineage() -> None:
    """Ask what happened to the features of a run, and why."""


def _runs(command: Command) -> Command:
    return click.option("--run", "run_ids", multiple=True, metavar="ID", help="Only this run; may be given several times.")(command)


def _limit(command: Command) -> Command:
    return click.option(
        "--limit", type=click.IntRange(min=1), default=api.LIMIT, show_default=True, metavar="N", help="Show at most so many."
    )(command)


# --- questions -------------------------------------------------------------------------------------------------------------------------


@lineage.command()
@options.dataset
@click.option("--run", "run_id", metavar="ID", help=_RUN)
@options.as_json
def summary(dataset: str, run_id: str | None, as_json: bool) -> int:
    """Give the verdict of a run: events and features that passed, were warned of or rejected, by stage and reason.

    Exit 6 where events contradict each other.
    """
    result = api.summary(dataset, run_id=run_id)
    edge.answer(result, words.run_summary(result), as_json=as_json)
    return CorruptError.exit_code if result.contradicts_itself else EXIT_DONE


@lineage.command()
@options.whole_dataset
@click.argument("feature_id", metavar="FEATURE")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="At most so many runs, newest first.")
@click.option("--all", "everything", is_flag=True, help="Read every version and every run, however many there are.")
@options.as_json
def why(dataset: str, feature_id: str, limit: int, everything: bool, as_json: bool) -> int:
    """Say why a feature is as it is: the versions that touched it and the runs that met it.

    FEATURE is the key as messages write it: its text, or a JSON array where the key has several columns.

    Of a dataset with many versions, only the newest 64 are read, and the one that made the feature; --all reads all.
    """
    result = api.why(dataset, feature_id, limit=limit, everything=everything)
    edge.answer(result, words.reasons(result), as_json=as_json)
    return EXIT_DONE


@lineage.command()
@options.whole_dataset
@click.argument("feature_id", metavar="FEATURE")
@click.option("--everything", is_flag=True, help="Also the rows that another row of their event has replaced.")
@click.option("--out", metavar="FILE", help=_FILE)
@options.as_json
def history(dataset: str, feature_id: str, everything: bool, out: str | None, as_json: bool) -> int:
    """Show every event of one feature, over all runs, oldest run first.

    Exit 6 where events contradict each other.
    """
    result = api.history(dataset, feature_id, everything=everything, out=out)
    edge.answer(result, lineage_words.history(result), as_json=as_json)
    return CorruptError.exit_code if result.contradicts_itself else EXIT_DONE


@lineage.command()
@options.dataset
@_runs
@click.option("--stage", metavar="STAGE", help="Only what this stage rejected.")
@_limit
@click.option("--out", metavar="FILE", help=_FILE)
@options.as_json
def rejects(dataset: str, run_ids: Sequence[str], stage: str | None, limit: int, out: str | None, as_json: bool) -> int:
    """List what was rejected and why; by default in the run that made the version."""
    result = api.rejects(dataset, run_ids=run_ids, stage=stage, limit=limit, out=out)
    edge.answer(result, lineage_words.events(result), as_json=as_json)
    return EXIT_DONE


@lineage.command()
@options.whole_dataset
@options.as_json
def runs(dataset: str, as_json: bool) -> int:
    """List the sealed runs of a dataset, newest first, also refused ones."""
    result = api.runs(dataset)
    edge.answer(result, lineage_words.runs(result), as_json=as_json)
    return EXIT_DONE


@lineage.command()
@options.whole_dataset
@_runs
@click.option("--stage", metavar="STAGE", help="Only events of this stage, with its qualified ones.")
@click.option("--type", "event_type", type=click.Choice(api.EVENT_TYPES), help="Only events of this type.")
@click.option("--outcome", type=click.Choice(api.OUTCOMES), help="Only events with this outcome.")
@click.option("--feature", "feature_id", metavar="FEATURE", help="Only events of this feature.")
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
    feature_id: str | None,
    reason: str | None,
    tool: str | None,
    change_class: str | None,
    everything: bool,
    limit: int,
    out: str | None,
    as_json: bool,
) -> int:
    """Find events that meet all conditions, over all sealed runs or some."""
    result = api.query(
        dataset,
        run_ids=run_ids,
        stage=stage,
        event_type=event_type,
        outcome=outcome,
        feature_id=feature_id,
        reason=reason,
        tool=tool,
        change_class=change_class,
        everything=everything,
        limit=limit,
        out=out,
    )
    edge.answer(result, lineage_words.events(result), as_json=as_json)
    return EXIT_DONE


@lineage.command()
@options.whole_dataset
@click.option("--out", metavar="FILE", help="Write the head to this file, for `merestone verify --head FILE`.")
@options.as_json
def head(dataset: str, out: str | None, as_json: bool) -> int:
    """Give the head of a dataset's record: kept in another place, it answers for every version and run until now.

    Print it, sign it, or store it under an object lock: somebody who may write to the store can take the newest run away with all its traces.
    """
    result = api.head(dataset, out=out)
    edge.answer(result, lineage_words.head(result, dataset), as_json=as_json)
    return EXIT_DONE


# --- gates -----------------------------------------------------------------------------------------------------------------------------


@lineage.command()
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
@click.option("--allow-empty", is_flag=True, help="Accept a store without runs.")
@click.option("--html", metavar="FILE", help="Write a page with charts; it needs no network.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML, a test case a run.")
@options.as_json
def scorecard(
    dataset: str,
    run_ids: Sequence[str],
    last: int,
    max_rejected: float | None,
    max_warned: float | None,
    allow_empty: bool,
    html: str | None,
    junit: str | None,
    as_json: bool,
) -> int:
    """Score runs against thresholds: exit 1 where one breaks them, which gates a merge.

    Shares are of the features that a run met, by worst outcome. Of a delivery that was refused before any feature could be named, all features
    count as rejected. Events that contradict each other break the gate in any case, and so do a store without runs and a version whose run is
    missing.
    """
    result = api.scorecard(
        dataset,
        run_ids=run_ids,
        last=last,
        max_rejected=max_rejected,
        max_warned=max_warned,
        allow_empty=allow_empty,
        html=html,
        junit=junit,
    )
    edge.answer(result, result.text, as_json=as_json)
    return EXIT_REFUSED if result.refused else EXIT_DONE


@lineage.command("check-complete")
@options.dataset
@_runs
@click.option("--last-step", is_flag=True, help="Check only the run that made the version, not those before it.")
@click.option("--allow-empty", is_flag=True, help="Accept a store without runs, and runs without events.")
@click.option("--allow-no-plan", is_flag=True, help="Accept events of runs that do not say their stages.")
@options.as_json
def check_complete(dataset: str, run_ids: Sequence[str], last_step: bool, allow_empty: bool, allow_no_plan: bool, as_json: bool) -> int:
    """Check that lineage accounts for every feature of a version: exit 1 with the missing ids where it does not.

    Each run has no gap in its order or its chain of stages. What was published is what was accepted or held, minus what was removed. What
    no recent run touched resolves to the run that made it. With --run only the chain of those runs is checked. Where there is nothing to
    judge, the gate fails.
    """
    result = api.check_complete(dataset, run_ids=run_ids, last_step=last_step, allow_empty=allow_empty, allow_no_plan=allow_no_plan)
    edge.answer(result, lineage_words.complete(result), as_json=as_json)
    return EXIT_REFUSED if result.refused else EXIT_DONE


@lineage.command("check-partitions")
@click.option(
    "--root", required=True, metavar="ROOT", help="The root of an event store, such as DATASET/_lineage; also one of another tool."
)
@click.option("--require-epsg-target", is_flag=True, help="Every target_crs= folder has to name a canonical EPSG code.")
@click.option("--allow-empty", is_flag=True, help="Accept a root without event files.")
@options.as_json
def check_partitions(root: str, require_epsg_target: bool, allow_empty: bool, as_json: bool) -> int:
    """Check the folders and files of an event store: exit 1 on a mixed or unknown CRS, an unknown schema version, an empty root."""
    result = api.check_partitions(root, require_epsg_target=require_epsg_target, allow_empty=allow_empty)
    edge.answer(result, lineage_words.problems(root, result.problems, "is in order"), as_json=as_json)
    return EXIT_REFUSED if result.refused else EXIT_DONE


@lineage.command("validate-schema")
@click.argument("file", metavar="FILE")
@options.as_json
def validate_schema(file: str, as_json: bool) -> int:
    """Check an event schema file (lineage_schema.yaml): exit 1 where it has faults."""
    result = api.validate_schema(file)
    edge.answer(result, lineage_words.problems(file, result.faults, "is a valid event schema", "fault"), as_json=as_json)
    return EXIT_REFUSED if result.refused else EXIT_DONE


# --- what changes an event store -------------------------------------------------------------------------------------------------------


@lineage.command()
@options.whole_dataset
@click.argument("file", metavar="FILE")
@click.option("--mapping", metavar="FILE", help="The mapping of a rejection log: every line becomes a REJECT.")
@click.option("--plan", metavar="A,B", help="The stages of the tool, in order, for the check of the chain.")
@options.as_json
def ingest(dataset: str, file: str, mapping: str | None, plan: str | None, as_json: bool) -> int:
    """Take in events of other tools: .ndjson, .jsonl, .parquet or .arrow, or a rejection log through a mapping.

    DATASET may be a folder that does not exist yet: it then holds events alone. Every line becomes an event or a row in quarantine; exit 1
    where there is one in quarantine. A file that was taken in before adds nothing.
    """
    result = api.ingest(dataset, file, mapping=mapping, plan=options.names(plan))
    edge.answer(result, lineage_words.ingested(result, file), as_json=as_json, report=not result.refused)
    return EXIT_REFUSED if result.refused else EXIT_DONE


@lineage.command()
@options.whole_dataset
@click.option("--window", metavar="PERIOD", help="How long lineage is kept, such as P6Y; by default that of the publication file.")
@click.option("--basis", metavar="TEXT", help="The legal basis of the window; by default that of the publication file.")
@click.option("--confirm", metavar="TOKEN", help="Delete what the dry run listed; TOKEN is what it printed for exactly this.")
@click.option("--hold", "what", metavar="WHAT", help="Place a legal hold instead: run=ID, feature=ID, date=DAY, date=DAY..DAY or all.")
@click.option("--release", "hold_id", metavar="ID", help="Release a legal hold instead.")
@click.option("--reason", metavar="TEXT", help="Why the hold is placed or released.")
@options.as_json
def retain(
    dataset: str,
    window: str | None,
    basis: str | None,
    confirm: str | None,
    what: str | None,
    hold_id: str | None,
    reason: str | None,
    as_json: bool,
) -> int:
    """Delete lineage older than its retention window. Dry run by default; pass the printed token to delete.

    Whole days of runs go. What live features need of them is carried on first, legal holds keep theirs, and a tombstone keeps counts and
    roots.
    """
    if what is not None and hold_id is not None:
        raise UsageError("one hold is placed or released at a time", field="what", hint="leave out «what» or «hold_id»")
    if what is not None or hold_id is not None:
        held = api.hold(dataset, what, reason=reason or "") if what is not None else api.release(dataset, str(hold_id), reason=reason or "")
        edge.answer(held, lineage_words.held(held), as_json=as_json, report=True)
        return EXIT_DONE
    result = api.retain(dataset, window=window, basis=basis, confirm=confirm)
    edge.answer(result, lineage_words.retained(result, dataset), as_json=as_json)
    return EXIT_DONE


# --- for others ------------------------------------------------------------------------------------------------------------------------


@lineage.command("iso19115")
@click.argument("dataset", metavar="DATASET[@N]", required=False)
@click.option("--run", "run_id", metavar="ID", help="The record of one run, also a refused one, in place of a version.")
@click.option(
    "--encoding",
    type=click.Choice(["gmd", "mdb"]),
    default="gmd",
    show_default=True,
    help="gmd is ISO 19139, mdb is ISO 19115-3.",
)
@click.option("--extend", "extends", metavar="FILE", help="Put the lineage into this metadata record, in the record's own encoding.")
@click.option("--out", metavar="FILE", help="Write the record to this file; by default it is printed.")
@click.option("--lint", "linted", metavar="FILE", help="Check a record instead: what its XML schemas let through. Exit 1 on faults.")
@options.as_json
def iso19115(
    dataset: str | None,
    run_id: str | None,
    encoding: Literal["gmd", "mdb"],
    extends: str | None,
    out: str | None,
    linted: str | None,
    as_json: bool,
) -> int:
    """Write the lineage of a version or a run as an ISO 19115 metadata record.

    The record is checked before it is written. XML with a DOCTYPE is never read.
    """
    if linted is not None:
        found = api.lint_iso19115(linted)
        edge.answer(found, lineage_words.problems(linted, found.problems, "is a valid record"), as_json=as_json)
        return EXIT_REFUSED if found.refused else EXIT_DONE
    if dataset is None:
        raise UsageError("the dataset is missing", field="dataset", hint="merestone lineage iso19115 --help")
    result = api.iso19115(dataset, run_id=run_id, encoding=encoding, extends=extends, out=out)
    edge.answer(result, lineage_words.iso_written(result) if out is not None else result.text.rstrip("\n"), as_json=as_json)
    return EXIT_DONE


@lineage.command()
@options.dataset
@click.option("--run", "run_id", metavar="ID", help=_RUN)
@click.option("--out", metavar="FILE", help="Write the events to this file, one a line; by default they are printed.")
@options.as_json
def openlineage(dataset: str, run_id: str | None, out: str | None, as_json: bool) -> int:
    """Give a run as OpenLineage events: START, then COMPLETE or FAIL."""
    result = api.openlineage(dataset, run_id=run_id, out=out)
    edge.answer(result, result.text.rstrip("\n") if out is None else f"{out}: run {result.run_id}", as_json=as_json)
    return EXIT_DONE


@lineage.command()
@options.dataset
@click.option("--run", "run_id", metavar="ID", help=_RUN)
@click.option("--out", metavar="FILE", help="Write the document to this file; by default it is printed.")
@options.as_json
def prov(dataset: str, run_id: str | None, out: str | None, as_json: bool) -> int:
    """Give a run as W3C PROV, in its JSON form."""
    result = api.prov(dataset, run_id=run_id, out=out)
    edge.answer(result, result.text.rstrip("\n") if out is None else f"{out}: run {result.run_id}", as_json=as_json)
    return EXIT_DONE


@lineage.command()
@options.dataset
@click.argument("feature_id", metavar="FEATURE")
@click.option("--run", "run_id", metavar="ID", help="A run; by default the newest one, up to the version, that met the feature.")
@click.option(
    "--out", metavar="FILE", help="Write the proof to this file, and the script that verifies it beside it; by default it is printed."
)
@options.as_json
def prove(dataset: str, feature_id: str, run_id: str | None, out: str | None, as_json: bool) -> int:
    """Prove that what is said of a feature is part of a sealed run, by Merkle inclusion proofs of its events.

    Whoever has the root of the run from elsewhere verifies the proof with a short script that needs no Merestone.
    """
    result = api.prove(dataset, feature_id, run_id=run_id, out=out)
    edge.answer(result, lineage_words.proved(result) if out is not None else result.text, as_json=as_json)
    return EXIT_DONE


@lineage.command()
@options.dataset
@click.option("--out", metavar="FILE", required=True, help="The ZIP file to write.")
@options.as_json
def evidence(dataset: str, out: str, as_json: bool) -> int:
    """Write all that stands behind a version into one ZIP file, with a script that verifies it.

    It holds the contract, the chain of manifests, run records, sealed run manifests, ISO records, the verdict and the roots.
    """
    result = api.evidence(dataset, out=out)
    edge.answer(result, lineage_words.evidence(result), as_json=as_json)
    return EXIT_DONE
