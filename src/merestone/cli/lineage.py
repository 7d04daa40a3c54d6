"""The commands `lineage summary | why | validate-schema | check-partitions`.

Not here: the answers (`lineage.verdict`, `lineage.reading`), the evidence of change logs (`run.browse`).
"""

from __future__ import annotations

from pathlib import Path

import click

from merestone.audit import questions
from merestone.cli import edge, options, words
from merestone.cli.family import Family, Lazy
from merestone.errors import EXIT_DONE, EXIT_REFUSED, CorruptError, UsageError
from merestone.inspect import browse
from merestone.lineage.event.schema import validate_schema
from merestone.lineage.store.hygiene import check_partitions
from merestone.storage.open import open_store
from merestone.storage.place import local_path, parse_place
from merestone.words import plural, visible

COMMANDS = {
    "scorecard": Lazy(
        "merestone.cli.lineage_ask", "scorecard", "Score runs against thresholds: exit 1 where one breaks them, which gates a merge."
    ),
    "history": Lazy("merestone.cli.lineage_ask", "history", "Show every event of one feature, over all runs, oldest run first."),
    "rejects": Lazy("merestone.cli.lineage_ask", "rejects", "List what was rejected and why: by default in the run that made the version."),
    "runs": Lazy("merestone.cli.lineage_ask", "runs", "List the sealed runs of a dataset, newest first, refused ones too."),
    "query": Lazy("merestone.cli.lineage_ask", "query", "Find events that meet all conditions, over all sealed runs or some."),
    "check-complete": Lazy(
        "merestone.cli.lineage_ask",
        "check_complete",
        "Check that lineage tells the whole story of a version: exit 1 with the missing ids where it does not.",
    ),
    "ingest": Lazy(
        "merestone.cli.lineage_store",
        "ingest",
        "Take in events of other tools: .ndjson, .jsonl, .parquet or .arrow, or a rejection log through a mapping.",
    ),
    "retain": Lazy(
        "merestone.cli.lineage_store",
        "retain",
        "Let lineage expire that is older than its window: tells first, and deletes with the token that it gave.",
    ),
    "iso19115": Lazy(
        "merestone.cli.lineage_out", "iso19115_record", "Write the lineage of a version or a run as an ISO 19115 metadata record."
    ),
    "openlineage": Lazy("merestone.cli.lineage_out", "openlineage", "Tell a run as OpenLineage events: START, then COMPLETE or FAIL."),
    "prov": Lazy("merestone.cli.lineage_out", "prov", "Tell a run as W3C PROV, in its JSON form."),
    "prove": Lazy(
        "merestone.cli.lineage_out",
        "prove",
        "Prove that what is said of a feature is part of a sealed run: Merkle inclusion proofs of its events.",
    ),
    "evidence": Lazy(
        "merestone.cli.lineage_out", "evidence", "Write all that stands behind a version into one ZIP file, with a script that verifies it."
    ),
}


@click.group(cls=Family, lazy=COMMANDS)
def lineage() -> None:
    """Ask what happened to a run's features, and why."""


@lineage.command()
@options.dataset
@click.option("--run", "run_id", metavar="ID", help="A run, refused ones too; by default the one that made the version.")
@options.as_json
def summary(dataset: str, run_id: str | None, as_json: bool) -> int:
    """Give the verdict of a run: events and features that passed, were warned of or rejected, by stage and reason.

    Exit 6 where events contradict each other.
    """
    opened = browse.open_dataset(browse.parse_address(dataset).where)
    run, made = (run_id, None) if run_id is not None else browse.run_of(browse.version_at(dataset))
    value = {"name": questions.name_of(opened), "version": made, **browse.lineage_summary(opened.store, run)}
    edge.answer(value, words.run_summary(value), as_json=as_json)
    conflicts = value["deduplication"] is not None and value["deduplication"]["conflicts"]
    return CorruptError.exit_code if conflicts else EXIT_DONE


@lineage.command()
@options.whole_dataset
@click.argument("feature", metavar="FEATURE")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="At most so many runs, newest first.")
@click.option("--all", "everything", is_flag=True, help="Read every version and every run, however many there are.")
@options.as_json
def why(dataset: str, feature: str, limit: int, everything: bool, as_json: bool) -> int:
    """Say why a feature is as it is: the versions that touched it and the runs that met it.

    Of a dataset with many versions, only the newest 64 are read, and the one that made the feature; --all reads all.

    FEATURE is the key as messages write it: its text, or a JSON array where the key has several columns.
    """
    value = browse.why(browse.whole(dataset), feature, limit, everything=everything)
    edge.answer(value, words.reasons(value), as_json=as_json)
    return EXIT_DONE


@lineage.command("validate-schema")
@click.argument("file", metavar="FILE")
@options.as_json
def validate(file: str, as_json: bool) -> int:
    """Check an event schema file (lineage_schema.yaml): exit 1 where it has faults."""
    try:
        faults = validate_schema(Path(local_path(file, what="a schema file")).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(
            f"{file} cannot be read: {getattr(fault, 'strerror', None) or fault}", field=file, hint="check the path and its permissions"
        ) from fault
    text = "\n".join([f"{file} has {plural(len(faults), 'fault')}:", *(f"  {each}" for each in faults)])
    text = text if faults else f"{file} is a sound event schema"
    edge.answer({"status": "fail" if faults else "pass", "faults": faults}, text, as_json=as_json)
    return EXIT_REFUSED if faults else EXIT_DONE


@lineage.command("check-partitions")
@click.option(
    "--root", required=True, metavar="ROOT", help="The root of an event store, such as DATASET/_lineage; also one of another tool."
)
@click.option("--require-epsg-target", is_flag=True, help="Every target_crs= folder has to name a canonical EPSG code.")
@click.option("--allow-empty", is_flag=True, help="A root without event files is no problem.")
@options.as_json
def partitions(root: str, require_epsg_target: bool, allow_empty: bool, as_json: bool) -> int:
    """Check the folders and files of an event store: exit 1 on a mixed or unknown CRS, an unknown schema version, an empty root."""
    place = parse_place(root, field="--root")
    if place.is_local and not Path(place.path).is_dir():
        raise UsageError(f"{root} is no folder", field="--root", hint="name the event store: the folder _lineage of a dataset")
    problems = check_partitions(open_store(root, field="--root"), require_epsg_target=require_epsg_target, allow_empty=allow_empty)
    text = "\n".join([f"{root} has {plural(len(problems), 'problem')}:", *(f"  {visible(each)}" for each in problems)])
    text = text if problems else f"{root} is in order"
    edge.answer({"status": "fail" if problems else "pass", "problems": problems}, text, as_json=as_json)
    return EXIT_REFUSED if problems else EXIT_DONE
