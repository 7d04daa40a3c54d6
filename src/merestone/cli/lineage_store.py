"""The commands `lineage ingest | retain`: what changes an event store.

Not here: how they do it (`audit.ingest`, `audit.retain`).
"""

from __future__ import annotations

from dataclasses import asdict

import click

from merestone.audit import ingest as ingesting
from merestone.audit import retain as retaining
from merestone.cli import edge, lineage_words, options
from merestone.errors import EXIT_DONE, EXIT_REFUSED, UsageError


@click.command()
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
    found = ingesting.ingest(dataset, file, mapping=mapping, plan=options.names(plan))
    value = {
        "status": "quarantined" if found.quarantined else "done",
        "lines": found.lines,
        "events": found.events,
        "quarantined": found.quarantined,
        "runs": found.runs,
        "known": found.known,
        "quarantine": found.quarantine,
        "samples": found.samples,
    }
    edge.answer(value, lineage_words.ingested(value, file), as_json=as_json)
    return EXIT_REFUSED if found.quarantined else EXIT_DONE


@click.command()
@options.whole_dataset
@click.option("--window", metavar="PERIOD", help="How long lineage is kept, such as P6Y; by default that of the publication file.")
@click.option("--basis", metavar="TEXT", help="The legal basis of the window; by default that of the publication file.")
@click.option("--confirm", metavar="TOKEN", help="Do it; TOKEN is what the dry run gave for exactly this.")
@click.option("--hold", metavar="WHAT", help="Place a legal hold instead: run=ID, feature=ID, date=DAY, date=DAY..DAY or all.")
@click.option("--release", metavar="ID", help="Release a legal hold instead.")
@click.option("--reason", metavar="TEXT", help="Why the hold is placed or released.")
@options.as_json
def retain(
    dataset: str,
    window: str | None,
    basis: str | None,
    confirm: str | None,
    hold: str | None,
    release: str | None,
    reason: str | None,
    as_json: bool,
) -> int:
    """Let lineage expire that is older than its window: tells first, and deletes with the token that it gave.

    Whole days of runs go. What live features need of them is carried on first, holds keep theirs, and a tombstone keeps counts and roots.
    """
    if hold is not None or release is not None:
        return _hold(dataset, hold, release, reason, as_json=as_json)
    found = retaining.retain(dataset, window, basis, confirm)
    edge.answer(asdict(found), lineage_words.retained(asdict(found), dataset), as_json=as_json)
    return EXIT_DONE


def _hold(dataset: str, hold: str | None, release: str | None, reason: str | None, *, as_json: bool) -> int:
    if (hold is None) == (release is None) or not (reason or "").strip():
        raise UsageError(
            "a hold is placed or released, and for a reason",
            field="--reason",
            hint="--hold WHAT --reason TEXT, or --release ID --reason TEXT",
        )
    made = retaining.hold(dataset, hold, str(reason)) if hold is not None else retaining.release(dataset, str(release), str(reason))
    edge.answer(
        {"status": "released" if made.released else "held", "hold": made.to_json()}, lineage_words.held(made.to_json()), as_json=as_json
    )
    return EXIT_DONE
