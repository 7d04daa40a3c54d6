"""The commands about a published dataset: read, files, log, status, rollback, verify.

Not here: `changes` (a module of its own), reading and proving (`dataset`, `publish`).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import click

from merestone.audit.verify import verify as prove
from merestone.cli import edge, options, words
from merestone.dataset import log as logs
from merestone.dataset import views
from merestone.dataset.version import Version
from merestone.errors import EXIT_DONE, CorruptError
from merestone.inspect import browse, extract, text_crs
from merestone.inspect.output import check_outputs
from merestone.line.rollback import roll_back

PREVIEW = 10
"""How many features a terminal shows."""


@click.command()
@options.dataset
@click.option("--bbox", metavar="X,Y,X,Y", help="Only features whose box meets this one; in the CRS of the dataset, minimum first.")
@click.option("--columns", metavar="A,B", help="Only these columns, in this order; the geometry always comes.")
@click.option("--out", metavar="FILE", help="Write .parquet (GeoParquet), .gpkg, .geojson, .geojsons (text sequence) or .geojsonl.")
@options.as_json
def read(dataset: str, bbox: str | None, columns: str | None, out: str | None, as_json: bool) -> int:
    """Read features of a version, or write them to a file.

    Without --out a terminal shows the first features as a table, while a pipe gets all of them as a GeoJSON text sequence (RFC 8142), or
    with --json as one GeoJSON FeatureCollection. With --out, --json tells what was written. Coordinates are in the CRS of the dataset, but for
    text sequences, which are in WGS 84; where the way there is not exact, they are refused.
    """
    check_outputs({"--out": out}, [dataset])
    version = browse.version_at(dataset)
    box = options.box(bbox)
    names = _names(columns, version.columns.geometry)
    about = {"name": version.manifest.name, "version": version.number, "crs": f"EPSG:{version.columns.epsg}"}
    if out is not None:
        count = extract.version_file(version, out, columns=names, bbox=box)
        _tell_transformed(version.columns.epsg, out)
        edge.answer(
            {**about, "features": count, "columns": names or version.columns.schema.names, "out": out},
            words.written(about, count, out),
            as_json=as_json,
        )
        return EXIT_DONE
    chosen = names or version.columns.schema.names
    batches = version.batches(names, box)
    if not as_json and sys.stdout.isatty():
        features = None if box else version.manifest.features
        if names is None:  # what identifies and what is seen come first: not all columns fit
            first = [*version.manifest.key["columns"], version.columns.geometry]
            batches = version.batches([*first, *(each for each in chosen if each not in first)], box)
        edge.answer({}, words.preview(about, _first(batches), version.columns.geometry, features, dataset), as_json=False)
        return EXIT_DONE
    _stream(version, chosen, batches, about, as_json=as_json)
    return EXIT_DONE


def _stream(version: Version, names: list[str], batches: Iterator[Any], about: dict[str, Any], *, as_json: bool) -> None:
    geometry, epsg = version.columns.geometry, version.columns.epsg
    batches = batches if as_json else text_crs.in_wgs84(batches, [geometry], epsg)
    texts = extract.features(batches, geometry, version.manifest.key["columns"], names)
    if not as_json:
        _tell_transformed(epsg)
    if as_json:
        members = {"name": about["name"], "version": about["version"]}
        with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as whole:
            # One object or one error: what turns out damaged on the way must not leave half a collection behind.
            whole.writelines(extract.collection(texts, version.columns.epsg, members))
            whole.seek(0)
            shutil.copyfileobj(whole, sys.stdout)
    else:
        sys.stdout.writelines(f"{extract.RECORD_SEPARATOR}{each}\n" for each in texts)
    sys.stdout.flush()


def _tell_transformed(epsg: int, path: str | None = None) -> None:
    said = text_crs.said(epsg, path)
    if said is not None:
        click.echo(said, err=True)


def _first(batches: Iterator[Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in batches:
        rows += batch.slice(0, PREVIEW - len(rows)).to_pylist()
        if len(rows) == PREVIEW:
            break
    return rows


def _names(text: str | None, geometry: str) -> list[str] | None:
    if text is None:
        return None
    names = list(dict.fromkeys(each.strip() for each in text.split(",")))
    return names if geometry in names else [*names, geometry]


@click.command()
@options.dataset
@click.option(
    "--as",
    "form",
    type=click.Choice(["paths", "duckdb", "vrt"]),
    default="paths",
    show_default=True,
    help="Paths, SQL of a view for DuckDB, or a VRT for GDAL and QGIS.",
)
@options.as_json
def files(dataset: str, form: str, as_json: bool) -> int:
    """List the live files of a version, or a view of them for DuckDB or GDAL.

    A dataset's folder also holds the files of older versions: use what this prints, never a wildcard.
    """
    version = browse.version_at(dataset)
    value: dict[str, Any] = {"name": version.manifest.name, "version": version.number, "url": version.store.url}
    if form == "paths":
        shown = "\n".join(views.file_paths(version))
        value["files"] = [each.to_json() for each in version.files]
    else:
        shown = views.duckdb_view(version) if form == "duckdb" else views.gdal_vrt(version)
        value[form] = shown
    edge.answer(value, shown.rstrip("\n"), as_json=as_json)
    return EXIT_DONE


@click.command("log")
@options.whole_dataset
@options.as_json
def log(dataset: str, as_json: bool) -> int:
    """List the versions of a dataset, newest first."""
    opened = browse.whole(dataset)
    entries = [each.to_json() for each in logs.log(opened)]
    edge.answer({"url": opened.url, "versions": entries}, words.log(entries), as_json=as_json)
    return EXIT_DONE


@click.command()
@options.whole_dataset
@options.as_json
def status(dataset: str, as_json: bool) -> int:
    """Show how a dataset stands: freshness, refused runs, storage."""
    opened = browse.whole(dataset)
    value = {"name": opened.current().manifest.name, "url": opened.url, **logs.status(opened).to_json()}
    edge.answer(value, words.status(value), as_json=as_json)
    return EXIT_DONE


@click.command()
@options.whole_dataset
@click.option("--to", "to", type=click.IntRange(min=1), required=True, metavar="N", help="The version whose content comes back.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; kept for good in the manifest.")
@options.as_json
def rollback(dataset: str, to: int, reason: str, as_json: bool) -> int:
    """Go back to an older version, as a new version with a reason.

    Nothing is deleted. Publishing one of the deliveries again that were taken back trips a guard.
    """
    opened = browse.whole(dataset)
    with edge.tells_current(browse.current_version(opened.store), lambda: browse.current_version(opened.store)):
        done = roll_back(opened, to=to, reason=reason)
    made = done.committed.manifest
    delta = {name: made.counts.get(name, 0) for name in ("added", "changed", "removed", "moved", "reversed", "rekeyed")}
    value = {
        "status": "rolled_back",
        "name": made.name,
        "version": made.version,
        "to": to,
        "reason": reason,
        "features": made.features,
        "delta": delta,
        "run_id": made.run_id,
        "withdrawn": list(done.withdrawn),
    }
    for notice in done.notices:
        edge.note(f"note: {notice}")
    edge.answer(value, words.rolled_back(value, dataset), as_json=as_json)
    return EXIT_DONE


@click.command()
@options.whole_dataset
@options.as_json
def verify(dataset: str, as_json: bool) -> int:
    """Prove every file of a dataset against its manifests.

    Reads every object of every version. Exit 6 where something is damaged; all damages are named.
    """
    opened = browse.whole(dataset)
    report = prove(opened.store)
    value = {"url": opened.url, **report.to_json()}
    edge.answer(value, words.verified(value, dataset), as_json=as_json)
    return EXIT_DONE if report.whole else CorruptError.exit_code
