"""The command `init`.

Not here: what the drafts say (`api.drafting`).
"""

from __future__ import annotations

import click

from merestone.api import drafting
from merestone.cli import edge, options, words
from merestone.errors import EXIT_DONE


@click.command()
@options.drafted
@click.option("--out", metavar="DIR", help="The folder of the drafts; by default the current one.")
@options.as_json
def init(
    source: str, layer: str | None, crs: str | None, key: list[str], previous: str | None, owner: str | None, out: str | None, as_json: bool
) -> int:
    """Draft a contract and a publication file from a delivery.

    Guesses are marked `# confirm` in the drafts; `merestone contract lint` counts them. Both publish at once, with one exception: where
    positions fit both ways round (as longitude and latitude of Europe do), a person has to state the `extent` first, and `next` says so.
    """
    made = drafting.draft(source, layer=layer, crs=crs, key=key, previous=previous, owner=owner, out=out)
    edge.answer(made, words.drafted(made, compared=previous is not None), as_json=as_json)
    return EXIT_DONE
