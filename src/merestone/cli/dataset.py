"""The commands about a published dataset: read, files, log, status, verify.

Not here: what makes versions (`publish`, `rollback`), changes between them (`compare`), reading and proving (`api.datasets`).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, Literal

import click

from merestone.api import datasets
from merestone.cli import edge, options, progress, words
from merestone.errors import EXIT_DONE, CorruptError
from merestone.json_value import JsonObject

PREVIEW = 10
"""How many features a terminal shows."""


@click.command()
@options.dataset
@options.bbox
@click.option("--columns", metavar="A,B", help="Only these columns, in this order; the geometry always comes.")
@click.option("--out", metavar="FILE", help="Write .parquet (GeoParquet), .gpkg, .geojson, .geojsons (text sequence) or .geojsonl.")
@options.as_json
def read(dataset: str, bbox: tuple[float, float, float, float] | None, columns: str | None, out: str | None, as_json: bool) -> int:
    """Read features of a version, or write them to a file.

    Without --out a terminal shows the first features as a table, while a pipe gets all of them as a GeoJSON text sequence (RFC 8142), or
    with --json as one GeoJSON FeatureCollection. With --out, --json says what was written. Coordinates are in the CRS of the dataset, but for
    text sequences, which are in WGS 84; where the way there is not exact, they are refused.
    """
    names = options.names(columns) or None
    if out is not None:
        result = datasets.read(dataset, out=out, bbox=bbox, columns=names)
        if result.notice is not None:
            edge.note(result.notice)
        edge.answer(result, words.written(result), as_json=as_json, report=True)
        return EXIT_DONE
    version = datasets.version_of(dataset)
    chosen = None if names is None else datasets.with_geometry(version, names)
    if not as_json and sys.stdout.isatty():
        geometry = version.columns.geometry
        if chosen is None:  # what identifies and what is seen come first: not all columns fit
            first = [*version.manifest.key["columns"], geometry]
            chosen = [*first, *(each for each in version.columns.schema.names if each not in first)]
        features = None if bbox else version.manifest.features
        head = f"{version.manifest.name} v{version.number}"
        shown = words.preview(head, f"EPSG:{version.columns.epsg}", _first(version.batches(chosen, bbox)), geometry, features, dataset)
        edge.answer(None, shown, as_json=False)
        return EXIT_DONE
    texts = datasets.geojson(version, bbox=bbox, columns=chosen, in_wgs84=not as_json)
    if as_json:
        with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as whole:
            # One object or one error: what turns out damaged on the way must not leave half a collection behind.
            whole.writelines(datasets.collection(version, texts))
            whole.seek(0)
            shutil.copyfileobj(whole, sys.stdout)
    else:
        sys.stdout.writelines(f"{datasets.RECORD_SEPARATOR}{each}\n" for each in texts)
        if (notice := datasets.said_of_sequence(version)) is not None:
            edge.note(notice)
    sys.stdout.flush()
    return EXIT_DONE


def _first(batches: Iterator[Any]) -> list[JsonObject]:
    rows: list[JsonObject] = []
    for batch in batches:
        rows += batch.slice(0, PREVIEW - len(rows)).to_pylist()
        if len(rows) == PREVIEW:
            break
    return rows


@click.command()
@options.dataset
@click.option(
    "--as",
    "view",
    type=click.Choice(["paths", "duckdb", "vrt"]),
    default="paths",
    show_default=True,
    help="Paths, SQL of a view for DuckDB, or a VRT for GDAL and QGIS.",
)
@options.as_json
def files(dataset: str, view: Literal["paths", "duckdb", "vrt"], as_json: bool) -> int:
    """List the live files of a version, or make a view of them for DuckDB or GDAL.

    The folder of a dataset also holds the files of older versions: use what this prints, never a wildcard.
    """
    result = datasets.files(dataset, view=view)
    edge.answer(result, (result.duckdb or result.vrt or "\n".join(result.paths)).rstrip("\n"), as_json=as_json)
    return EXIT_DONE


@click.command("log")
@options.whole_dataset
@options.as_json
def log(dataset: str, as_json: bool) -> int:
    """List the versions of a dataset, newest first."""
    result = datasets.log(dataset)
    edge.answer(result, words.log(result), as_json=as_json)
    return EXIT_DONE


@click.command()
@options.whole_dataset
@options.as_json
def status(dataset: str, as_json: bool) -> int:
    """Show how a dataset stands: freshness against its promise, refused runs, storage."""
    result = datasets.status(dataset)
    edge.answer(result, words.status(result), as_json=as_json)
    return EXIT_DONE


@click.command()
@options.whole_dataset
@click.option(
    "--head", metavar="FILE", help="A head that was kept in another place (`merestone lineage head`): all that it names has to be there."
)
@options.as_json
def verify(dataset: str, head: str | None, as_json: bool) -> int:
    """Prove every file of a dataset against its manifests.

    Reads every object of every version. Exit 6 where something is damaged; all damages are named.
    """
    with progress.shown() as watch:
        result = datasets.verify(dataset, head=head, progress=watch)
    edge.answer(result, words.verified(result, dataset), as_json=as_json, report=result.whole)
    return EXIT_DONE if result.whole else CorruptError.exit_code
