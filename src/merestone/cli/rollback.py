"""The command that goes back to an older version.

Not here: the commands that look at a dataset (`dataset`), the roll-back itself (`api.publishing`).
"""

from __future__ import annotations

import click

from merestone.api import places, publishing
from merestone.cli import edge, options, progress, words
from merestone.errors import EXIT_DONE


@click.command()
@options.whole_dataset
@click.option("--to", "to", type=click.IntRange(min=1), required=True, metavar="N", help="The version whose content comes back.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; the manifest keeps it for good.")
@click.option(
    "--wrong",
    multiple=True,
    metavar="KEY|CONDITIONS",
    help="A feature whose content is wrong, or conditions such as \"owner = 'Smith'\" for all of them; may be given several times.",
)
@options.as_json
def rollback(dataset: str, to: int, reason: str, wrong: tuple[str, ...], as_json: bool) -> int:
    """Go back to an older version, as a new version with a reason.

    Nothing is deleted. The change that is taken back is remembered feature by feature: a publish stops at a guard when it brings back more than
    half of it (`guard.max_withdrawn_fraction`), or with --wrong when it brings back any of the features named.
    """
    with edge.names_current(lambda: places.current_version(dataset)), progress.shown() as watch:
        result = publishing.rollback(dataset, to=to, reason=reason, wrong=wrong, progress=watch)
    for notice in result.notices:
        edge.note(f"note: {notice}")
    edge.answer(result, words.rolled_back(result, dataset), as_json=as_json, report=True)
    return EXIT_DONE
