"""Look at a published dataset: read it, list its files and versions, see how it stands, prove it.

Not here: changes between versions (`comparing`), its lineage (`lineage`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

from merestone.api.answers import Attempt, FilesResult, LogResult, ReadResult, StatusResult, VerifyResult
from merestone.api.places import AnyDataset, Path, keep_apart, whole
from merestone.audit.heads import missing, read_head
from merestone.audit.verify import verify as prove
from merestone.dataset import log as logs
from merestone.dataset import views
from merestone.dataset.manifest import Box
from merestone.dataset.version import Dataset, Version
from merestone.given import moment_of, names_of
from merestone.inspect import browse, extract, text_crs
from merestone.inspect.extract import RECORD_SEPARATOR
from merestone.line import environment
from merestone.results.progress import Watch, nobody

__all__ = [
    "RECORD_SEPARATOR",
    "collection",
    "files",
    "geojson",
    "log",
    "read",
    "said_of_sequence",
    "status",
    "verify",
    "version_of",
    "with_geometry",
]


def version_of(dataset: AnyDataset, version: int | None = None) -> Version:
    """The version that is named: by `version`, by `@N` in the text, or the current one.

    Raises:
        UsageError: no such version exists.
    """
    if version is None and not isinstance(dataset, Dataset):
        return browse.version_at(os.fspath(dataset))
    return whole(dataset).version(version)


def read(
    dataset: AnyDataset,
    *,
    out: Path,
    version: int | None = None,
    bbox: Box | None = None,
    columns: Sequence[str] | None = None,
) -> ReadResult:
    """Write the features of a version to a file. `open` gives them as Arrow or GeoPandas instead.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        out: the file: .parquet (GeoParquet), .gpkg, .geojson, .geojsons (text sequence) or .geojsonl.
        version: the version; by default the current one.
        bbox: only features whose box meets this one: xmin, ymin, xmax, ymax in the CRS of the dataset.
        columns: only these columns, in this order; the geometry always comes.

    Raises:
        UsageError: no such version or column exists, or the file has another ending.
        CorruptError: a data file is missing, cut or altered.

    Example:
        >>> merestone.read("parcels.yaml", out="parcels.gpkg").features
        3
    """
    keep_apart({"out": out}, [dataset])
    opened = version_of(dataset, version)
    names = None if columns is None else with_geometry(opened, columns)
    count = extract.version_file(opened, os.fspath(out), columns=names, bbox=bbox)
    return ReadResult(
        name=opened.manifest.name,
        version=opened.number,
        crs=f"EPSG:{opened.columns.epsg}",
        features=count,
        columns=tuple(names or opened.columns.schema.names),
        out=os.fspath(out),
        notice=text_crs.said(opened.columns.epsg, os.fspath(out)),
    )


def with_geometry(version: Version, columns: Sequence[str]) -> list[str]:
    """The names of columns, each once, with that of the geometry."""
    names = list(dict.fromkeys(names_of(columns, "columns")))
    return names if version.columns.geometry in names else [*names, version.columns.geometry]


def geojson(version: Version, *, bbox: Box | None = None, columns: Sequence[str] | None = None, in_wgs84: bool = False) -> Iterator[str]:
    """The features of a version as GeoJSON, one text each, in the CRS of the dataset, or in WGS 84 as a text sequence wants it.

    Raises:
        UsageError: a column that the version does not have, or the way to WGS 84 is not exact.
        CorruptError: a data file is missing, cut or altered.
    """
    names = list((columns and names_of(columns, "columns")) or version.columns.schema.names)
    batches = version.batches(names, bbox)
    if in_wgs84:
        batches = text_crs.in_wgs84(batches, [version.columns.geometry], version.columns.epsg)
    return extract.features(batches, version.columns.geometry, version.manifest.key["columns"], names)


def said_of_sequence(version: Version) -> str | None:
    """What a text sequence of the version transforms, in words; None where nothing."""
    return text_crs.said(version.columns.epsg)


def collection(version: Version, texts: Iterator[str]) -> Iterator[str]:
    """GeoJSON features as one FeatureCollection, in pieces of text."""
    return extract.collection(texts, version.columns.epsg, {"name": version.manifest.name, "version": version.number})


def files(dataset: AnyDataset, *, version: int | None = None, view: Literal["paths", "duckdb", "vrt"] = "paths") -> FilesResult:
    """List the live files of a version, or make a view of them for another tool.

    The folder of a dataset also holds the files of older versions: use this list, never a wildcard.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        version: the version; by default the current one.
        view: paths, the SQL of a view for DuckDB, or a VRT for GDAL and QGIS.

    Raises:
        UsageError: no such version exists.

    Example:
        >>> len(merestone.files("parcels.yaml").paths)
        1
    """
    opened = version_of(dataset, version)
    name, number, url = opened.manifest.name, opened.number, opened.store.url
    if view == "duckdb":
        return FilesResult(name, number, url, duckdb=views.duckdb_view(opened))
    if view == "vrt":
        return FilesResult(name, number, url, vrt=views.gdal_vrt(opened))
    return FilesResult(name, number, url, files=opened.files, paths=tuple(views.file_paths(opened)))


def log(dataset: AnyDataset) -> LogResult:
    """List the versions of a dataset, newest first.

    Raises:
        UsageError: nothing was ever published there.
        CorruptError: the chain of versions is broken.

    Example:
        >>> [each.version for each in merestone.log("parcels.yaml").versions]
        [2, 1]
    """
    opened = whole(dataset)
    return LogResult(opened.url, tuple(logs.log(opened)))


def status(dataset: AnyDataset, *, now: datetime | None = None) -> StatusResult:
    """Show how a dataset stands: freshness against its promise, runs that brought nothing, storage.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        now: the time at which freshness is judged, with a time zone; by default the time of the call.

    Raises:
        UsageError: nothing was ever published there.
        CorruptError: a manifest or a run record is damaged.

    Example:
        >>> merestone.status("parcels.yaml").fresh
        True
    """
    now = moment_of(now, "now")
    opened = whole(dataset)
    found = logs.status(opened)
    manifest = opened.current().manifest
    promised = int(manifest.contract["freshness_sla_minutes"])
    fresh = None
    if found.fresh_utc is not None:
        age = (now or environment.now()) - datetime.fromisoformat(found.fresh_utc)
        fresh = age <= timedelta(minutes=promised)
    return StatusResult(
        name=manifest.name,
        url=opened.url,
        version=found.version,
        time_utc=found.time_utc,
        features=found.features,
        contract_version=found.contract_version,
        fresh_utc=found.fresh_utc,
        sla_minutes=promised,
        fresh=fresh,
        since=tuple(
            Attempt(each.run_id, each.attempt, each.status, each.refused_by, each.started_utc, logs.why(each)) for each in found.since
        ),
        versions=found.versions,
        live_bytes=found.live_bytes,
        old_bytes=found.old_bytes,
        loose_bytes=found.loose_bytes,
        suppressed_share=found.suppressed_share,
        held=found.held,
    )


def verify(dataset: AnyDataset, *, head: Path | None = None, progress: Watch = nobody) -> VerifyResult:
    """Prove every object of a dataset against its manifests and its sealed lineage. It reads every object of every version.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        head: a head that was kept in another place (`lineage.head`): all that it names has to be there still.
        progress: called after each object, with how far it is.

    Raises:
        UsageError: nothing was ever published or sealed there.
        SourceError: the head cannot be read, or its digest is another.
        StoreError: the store cannot be reached.

    Example:
        >>> merestone.verify("parcels.yaml").status
        'whole'
    """
    opened = whole(dataset)
    kept = read_head(os.fspath(head)) if head is not None else None
    report = prove(opened.store, progress)
    damages = (*report.damages, *(missing(opened.store, kept) if kept is not None else ()))
    return VerifyResult(
        url=opened.url,
        status="damaged" if damages else "whole",
        versions=report.versions,
        objects=report.objects,
        bytes=report.bytes,
        rows=report.rows,
        damages=damages,
        orphans=report.orphans,
    )
