"""The command `diff`.

Not here: the comparison (`run.diff`), the map page (`report.map`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from merestone.cli import edge, options
from merestone.compare.diff import compared
from merestone.compare.terms import ComparisonSettings
from merestone.errors import EXIT_DONE, EXIT_REFUSED
from merestone.inspect import extract
from merestone.inspect.output import check_outputs, written_whole
from merestone.render import jsonout, text
from merestone.render.map import page


@click.command()
@click.argument("older", metavar="A")
@click.argument("newer", metavar="B")
@click.option("--key", metavar="COLUMNS", help="The column that names a feature, or several with commas; found by default.")
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
@click.option("--html", metavar="FILE", help="Write a page with a map of before and after; it needs no network.")
@click.option(
    "--out", metavar="FILE", help="Write every change with its rows before and after: .parquet, .geojsons (text sequence), .geojsonl."
)
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
    Without a contract the key and the grid are found in the data, and what was assumed is said. B is brought into the CRS of A.
    Rows that cannot be compared (their key is null or not unique, a value cannot be read) are named and counted, and the others compared.
    Exit 1 where any row was not compared, or the two cannot be compared at all: a CRS that is not known, no key.
    """
    check_outputs({"--html": html, "--out": out}, [older, newer, contract])
    if out is not None:
        extract.check_changes_path(out)
    settings = ComparisonSettings(options.names(key), contract, precision, options.names(ignore), layer, with_keys=keys)
    with compared(older, newer, settings) as found:
        result = found.result
        value: dict[str, Any] = {
            "status": "refused" if result.refused else "compared",
            "before": result.before,
            "after": result.after,
            **jsonout.diff(result),
            "not_compared": {"before": result.not_compared[0], "after": result.not_compared[1]},
            "notes": list(result.notes),
            "html": None,
            "out": None,
        }
        if not result.refused:
            value |= {"html": html, "out": out}
            if out is not None:
                found.write(out)
            drawn = found.page() if html is not None else None
            if html is not None and drawn is not None:
                shown = page(drawn)
                with written_whole(html, "--html") as place:
                    Path(place).write_text(shown, encoding="utf-8")
    written = "".join(f"\n  written    {each}" for each in (value["html"], value["out"]) if each is not None)
    edge.answer(value, text.diff(result) + written, as_json=as_json)
    return EXIT_DONE if result.complete else EXIT_REFUSED
