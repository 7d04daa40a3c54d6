"""The command `publish`.

Not here: the line that it runs (`api.publishing`), its words (`render.text`, `next_steps`).
"""

from __future__ import annotations

import shlex

import click

from merestone.api import places, publishing
from merestone.cli import edge, next_steps, options, progress
from merestone.errors import EXIT_DONE, EXIT_REFUSED
from merestone.render import text


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--source", metavar="PATH", help="The delivery, in place of the one that the file names.")
@click.option(
    "--confirm", metavar="TOKEN", help="Publish what a guard stopped, with the token that it printed; it holds once, for seven days."
)
@click.option("--run-id", metavar="ID", help="A name for the run (letters, digits, . _ -); by default it is derived from the delivery.")
@click.option("--dry-run", is_flag=True, help="Find out what would be published; write nothing.")
@options.later("--release")
@options.later("--pin", "a publication file names its contract's file")
@options.later("--register")
@options.as_json
def publish(file: str, source: str | None, confirm: str | None, run_id: str | None, dry_run: bool, as_json: bool) -> int:
    """Publish a delivery; only what changed is written.

    FILE is a publication file. The delivery is refused where it breaks its contract (exit 1), and stopped where a guard finds the change
    too large (exit 1, with a token to confirm it). The old version stays current until the new one is whole.
    """
    given = [("--source", source), ("--run-id", run_id)]
    again = shlex.join(["merestone", "publish", file, *(word for option, value in given if value is not None for word in (option, value))])
    with edge.names_current(lambda: places.current_version_of(file)), progress.shown() as watch:
        result = publishing.publish(file, source=source, confirm=confirm, run_id=run_id, dry_run=dry_run, progress=watch)
    if as_json:
        for notice in result.notices:
            edge.note(f"note: {notice}")
    look = next_steps.look_at(file, source, result.current) if result.refused_by == "guard" else ""
    steps = next_steps.publish(result, file, again, look, confirm)
    edge.answer(result, "\n".join([text.publish(result), *steps]), as_json=as_json, report=not result.refused)
    return EXIT_REFUSED if result.refused else EXIT_DONE
