"""The commands `lineage ingest | retain`: what changes an event store.

Not here: how they do it (`run.ingest`, `run.retain`).
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from merestone.cli import edge, lineage_words, options
from merestone.errors import EXIT_DONE, EXIT_REFUSED
from merestone.run import ingest as ingesting


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
    stages: Sequence[str] = [each.strip() for each in plan.split(",")] if plan else ()
    found = ingesting.ingest(dataset, file, mapping=mapping, plan=stages)
    value = {
        "status": "quarantined" if found.quarantined else "done", "lines": found.lines, "events": found.events, "quarantined": found.quarantined,
        "runs": found.runs, "known": found.known, "quarantine": found.quarantine, "samples": found.samples,
    }
    edge.answer(value, lineage_words.ingested(value, file), as_json=as_json)
    return EXIT_REFUSED if found.quarantined else EXIT_DONE
