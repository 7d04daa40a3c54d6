"""The commands `diff` and `apply`.

Not here: changes between versions (`changes`), how sides are compared and changes replayed (`api.comparing`), the map page (`render.map`).
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from merestone.api import comparing, places
from merestone.cli import edge, next_steps, options, progress
from merestone.errors import EXIT_DONE, EXIT_REFUSED
from merestone.render import text


@click.command()
@click.argument("older", metavar="A")
@click.argument("newer", metavar="B")
@click.option("--key", metavar="COLUMNS", help="The column that identifies a feature, or several with commas; found by default.")
@click.option("--contract", metavar="FILE", help="Compare under a contract: its types, grid, key, and what it calls volatile.")
@click.option(
    "--precision",
    type=click.IntRange(min=0, max=15),
    metavar="N",
    help="Decimals of the coordinates that count, in units of the CRS; measured by default.",
)
@click.option("--ignore", metavar="COLUMNS", help="Columns that do not count, with commas.")
@click.option("--layer", metavar="NAME", help="The layer, for files that have several.")
@click.option("--keys", is_flag=True, help="List the keys of each class.")
@click.option("--html", metavar="FILE", help=options.HTML)
@click.option("--out", metavar="FILE", help=options.OUT_OF_CHANGES)
@options.as_json
def diff(
    older: str,
    newer: str,
    key: str | None,
    contract: str | None,
    precision: int | None,
    ignore: str | None,
    layer: str | None,
    keys: bool,
    html: str | None,
    out: str | None,
    as_json: bool,
) -> int:
    """Compare two files or dataset versions; publish nothing.

    A and B are files in any format that can be delivered, or versions of a dataset (parcels.yaml@1, folder@2), mixed as you like.
    Without a contract the key and the grid are found in the data, and the answer says what was assumed. B is brought into the CRS of A.
    Rows that cannot be compared (their key is null or not unique, a value cannot be read) are named and counted, and the others compared.
    Exit 1 where any row was not compared, or the two cannot be compared at all: no row with a key of its own, a CRS that nobody knows.
    Exit 2 where no column joins the two; name the key then (--key).
    """
    with progress.shown() as watch:
        result = comparing.diff(
            older,
            newer,
            key=options.names(key),
            contract=contract,
            precision=precision,
            ignore=options.names(ignore),
            layer=layer,
            keys=keys,
            html=html,
            out=out,
            progress=watch,
        )
    written = "".join(f"\n  written    {each}" for each in (result.html, result.out) if each is not None)
    edge.answer(result, text.diff(result) + written, as_json=as_json)
    return EXIT_DONE if result.complete else EXIT_REFUSED


@click.command()
@click.argument("dataset", metavar="DATASET|FEED")
@click.option(
    "--from",
    "from_version",
    type=click.IntRange(min=0),
    metavar="A",
    help="The version that the copy holds, 0 for nothing; the one before --to by default.",
)
@click.option("--to", "to_version", type=click.IntRange(min=1), metavar="B", help="The version to arrive at; the current one by default.")
@click.option(
    "--onto",
    required=True,
    metavar="TARGET",
    help="The copy: a file (.parquet, .gpkg, .geojson, .geojsons, .geojsonl) or a dataset's folder.",
)
@options.as_json
def apply(dataset: str, from_version: int | None, to_version: int | None, onto: str, as_json: bool) -> int:
    """Replay changes onto a copy, and prove that it arrived.

    The changes come from a dataset, or from a FEED that `merestone changes DATASET --out FILE.parquet` wrote. The copy must hold exactly
    version A, whatever its format and row order: the digest of all its features decides (exit 1 where it differs). It is replaced at once,
    and only when the new one reads back as exactly version B. With --from 0 a copy is made where there is none.
    """
    # A copy that is a file is replaced at once, or stays; of a dataset, one wants to know which version is current.
    named = edge.names_current(lambda: places.current_version(onto)) if Path(onto).is_dir() else nullcontext()
    with named, progress.shown() as watch:
        result = comparing.apply(dataset, onto=onto, from_version=from_version, to_version=to_version, progress=watch)
    edge.answer(result, "\n".join([text.apply(result), *next_steps.apply(result)]), as_json=as_json, report=not result.refused)
    return EXIT_REFUSED if result.refused else EXIT_DONE
