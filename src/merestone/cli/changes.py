"""The command that shows what changed between two versions of a dataset.

Not here: comparing files and replaying changes (`compare`), the changes themselves (`api.changes`), the map page (`render.map`).
"""

from __future__ import annotations

import click

from merestone.api import changes as stepping
from merestone.cli import edge, options, words
from merestone.errors import EXIT_DONE


@click.command()
@options.whole_dataset
@click.option(
    "--from",
    "from_version",
    type=click.IntRange(min=0),
    metavar="N",
    help="The older version, 0 for nothing; the one before --to by default, none where --to is the first.",
)
@click.option("--to", "to_version", type=click.IntRange(min=1), metavar="M", help="The newer version; the current one by default.")
@click.option("--html", metavar="FILE", help=options.HTML)
@click.option("--out", metavar="FILE", help=options.OUT_OF_CHANGES)
@options.bbox
@click.option("--polygon", metavar="FILE", help="Only features that meet the polygons of this file, in any CRS.")
@click.option("--where", metavar="CONDITIONS", help="Only features for which these hold: owner = 'Smith' and rank >= 3 and closed is null.")
@click.option("--keys", is_flag=True, help="List the keys of each class.")
@click.option("--attribution", metavar="TEXT", default="", help="Whose data this is, for the page.")
@options.as_json
def changes(
    dataset: str,
    from_version: int | None,
    to_version: int | None,
    html: str | None,
    out: str | None,
    bbox: tuple[float, float, float, float] | None,
    polygon: str | None,
    where: str | None,
    keys: bool,
    attribution: str,
    as_json: bool,
) -> int:
    """Show what changed between two versions; by default in the last step.

    Classes are added, changed, removed and moved (same content, other partition). Several steps are folded: a feature that comes back to
    what it was is left out. With --bbox, --polygon or --where the answer is that of somebody who sees only those features: what moves out
    of the filter is removed, what moves into it is added.
    """
    result = stepping.changes(
        dataset,
        from_version=from_version,
        to_version=to_version,
        bbox=bbox,
        polygon=polygon,
        where=where,
        keys=keys,
        html=html,
        out=out,
        attribution=attribution,
    )
    if result.notice is not None:
        edge.note(result.notice)
    edge.answer(result, words.changes(result, dataset), as_json=as_json)
    return EXIT_DONE
