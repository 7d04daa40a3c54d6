"""The command `changes`.

Not here: folding change logs (`dataset.feed`), the map page (`report.map`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from merestone.cli import edge, options, words
from merestone.compare import step
from merestone.errors import EXIT_DONE
from merestone.inspect import browse, extract, filtered, show, text_crs
from merestone.inspect.output import check_outputs, written_whole
from merestone.render import jsonout, text
from merestone.render.map import page


@click.command()
@options.whole_dataset
@click.option(
    "--from", "start", type=click.IntRange(min=0), metavar="N", help="The older version, 0 for nothing; the one before --to by default."
)
@click.option("--to", "end", type=click.IntRange(min=1), metavar="M", help="The newer version; the current one by default.")
@click.option("--html", metavar="FILE", help="Write a page with a map of before and after; it needs no network.")
@click.option(
    "--out", metavar="FILE", help="Write every change with its rows before and after: .parquet, .geojsons (text sequence), .geojsonl."
)
@click.option("--bbox", metavar="X,Y,X,Y", help="Only features whose box meets this one; in the CRS of the dataset, minimum first.")
@click.option("--polygon", metavar="FILE", help="Only features that meet the polygons of this file, in any CRS.")
@click.option("--where", metavar="CONDITIONS", help="Only features for which these hold: owner = 'Smith' and rank >= 3 and closed is null.")
@click.option("--keys", is_flag=True, help="List the keys of each class.")
@click.option("--attribution", metavar="TEXT", default="", help="Whose data this is, for the page.")
@options.as_json
def changes(
    dataset: str,
    start: int | None,
    end: int | None,
    html: str | None,
    out: str | None,
    bbox: str | None,
    polygon: str | None,
    where: str | None,
    keys: bool,
    attribution: str,
    as_json: bool,
) -> int:
    """Show what changed between two versions; by default in the last step.

    Classes are added, changed, removed and moved (same content, other partition). Several steps are folded: a feature that comes back to
    what it was is not told. With --bbox, --polygon or --where the feed is that of one who sees only those features: what moves out of the
    filter is removed, what moves into it is added.
    """
    check_outputs({"--html": html, "--out": out}, [dataset, polygon])
    opened = browse.whole(dataset)
    wanted = filtered.filter_of(opened.version(end), bbox=options.box(bbox), polygon=polygon, where=where)
    if wanted:
        change, result = filtered.changes(opened, start, end, wanted, with_keys=keys)
    else:
        change, result = show.changes(opened, start, end, with_rows=out is not None, with_keys=keys)
    value: dict[str, Any] = {
        "name": opened.manifest(change.to_version).name,
        "from": change.from_version,
        "to": change.to_version,
        **jsonout.diff(result),
        "html": html,
        "out": out,
    }
    if out is not None:
        # What a filter left out cannot be replayed onto a copy of the whole.
        extract.changes_file(opened.version(change.to_version), change, out, None if wanted else step.about(opened, change))
        said = text_crs.said(opened.version(change.to_version).columns.epsg, out)
        if said is not None:
            click.echo(said, err=True)
    if html is not None:
        shown = page(show.change_map(opened, change, attribution))
        with written_whole(html, "--html") as place:
            Path(place).write_text(shown, encoding="utf-8")
    edge.answer(value, text.diff(result) + words.after_changes(dataset, html, out, change), as_json=as_json)
    return EXIT_DONE
