"""The command `init`.

Not here: what the drafts say (`run.init`).
"""

from __future__ import annotations

import click

from merestone.cli import edge, options
from merestone.draft.init import init as draft
from merestone.errors import EXIT_DONE
from merestone.words import visible


@click.command()
@options.drafted
@click.option("--out", metavar="DIR", help="The folder of the drafts; by default the current one.")
@options.as_json
def init(
    source: str, layer: str | None, crs: str | None, key: list[str], previous: str | None, owner: str | None, out: str | None, as_json: bool
) -> int:
    """Draft a contract and a publication file from a delivery.

    Guesses are marked `# confirm` in the drafts; `merestone contract lint` counts them. Both publish at once.
    """
    drafts = draft(source, layer=layer, crs=crs, key=key, previous=previous, owner=owner, out=out)
    value = {
        "status": "done",
        "contract": str(drafts.contract),
        "publication": str(drafts.publication),
        "notes": list(drafts.notes),
        "next": drafts.next,
    }
    drafted = [f"drafted {edge.as_typed(str(drafts.contract))}", f"        {edge.as_typed(str(drafts.publication))}"]
    text = "\n".join([*drafted, *(f"  {visible(each)}" for each in drafts.notes), f"  next: {drafts.next}"])
    edge.answer(value, text, as_json=as_json)
    return EXIT_DONE
