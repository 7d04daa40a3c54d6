"""Which file a path means: its format by name and by its first bytes, unpacked from .gz or .zip where GDAL should not do it.

The format is settled here and not by GDAL, which tries every driver it has: a text file called parcels.gpkg may otherwise be opened
as a virtual dataset that reaches for other files.
Not here: reading (`vector`, `shapefile`, `geoparquet`).
"""

from __future__ import annotations

import gzip
import shutil
import weakref
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, cast

from merestone.errors import MerestoneError, SourceError, UsageError
from merestone.source.json_lines import is_sequence
from merestone.source.port import SourceSpec
from merestone.source.unpack import check_length, discard, scratch_folder, unpack
from merestone.source.xml_check import check_xml
from merestone.storage.place import local_path

_FORMATS = {
    ".gpkg": "GPKG", ".shp": "ESRI Shapefile", ".dbf": "ESRI Shapefile", ".fgb": "FlatGeobuf", ".gml": "GML", ".kml": "KML",
    ".geojson": "GeoJSON", ".json": "GeoJSON", ".topojson": "TopoJSON", ".geojsonl": "GeoJSONSeq", ".geojsons": "GeoJSONSeq",
    ".ndjson": "GeoJSONSeq", ".jsonl": "GeoJSONSeq", ".ndgeojson": "GeoJSONSeq", ".gdb": "OpenFileGDB", ".parquet": "Parquet",
    ".geoparquet": "Parquet", ".pq": "Parquet",
}  # fmt: skip
_LATER = {".csv", ".tsv", ".txt"}
_MAGIC = {"GPKG": b"SQLite format 3\0", "FlatGeobuf": b"fgb", "ESRI Shapefile": b""}
_UNPACKED = {"GPKG", "ESRI Shapefile", "Parquet", "GML"}  # read at random places, by more than one reader, or with files beside it
_SHAPEFILE_PARTS = {".shp", ".shx", ".dbf", ".prj", ".cpg"}


def named_as_delivery(path: str) -> bool:
    """Whether a file's name is that of a delivery, and of nothing else."""
    return Path(path).suffix.lower() in {*_FORMATS, *_LATER, ".zip", ".gz"} - {".json"}


def files_beside(path: str) -> list[Path]:
    """The files that exist beside a delivery's and belong to it: parts of a shapefile, logs of a database, a schema."""
    file = Path(path)
    last = file.suffix.lower()
    if last in {".shp", ".dbf"}:
        return sorted(each for each in file.parent.glob("*") if each.stem == file.stem and each.suffix.lower() in _SHAPEFILE_PARTS)
    endings = {".gpkg": ("-wal", "-shm", "-journal"), ".gml": (".xsd", ".gfs")}.get(last, ())
    beside = [Path(f"{path}{ending}") if ending.startswith("-") else file.with_suffix(ending) for ending in endings]
    return [each for each in beside if each.exists()]


@dataclass(frozen=True, slots=True)
class Located:
    """A delivery's file: `path` on disk for our own readers, `gdal` for GDAL; `stem` is its name without suffixes.

    `shown` is what messages name. `scratch`, where something was unpacked, lives as long as the reader does (`keep`).
    """

    format: str
    path: Path
    gdal: str
    shown: str
    stem: str
    scratch: Path | None = None

    def keep(self, owner: object) -> None:
        """Remove what was unpacked when `owner`, the reader, is gone."""
        if self.scratch is not None:
            weakref.finalize(owner, shutil.rmtree, self.scratch, True)  # True: ignore errors


def locate(spec: SourceSpec) -> Located:
    """Find the file and settle its format.

    Raises:
        SourceError: the file does not exist, or it is not what its name says, or not of a format that is read.
        UsageError: the path is not one of this machine, or the format belongs to a later version.
    """
    path = Path(local_path(spec.path, field="source", what="a delivery"))
    if not path.exists():
        raise _nowhere(spec.path)
    if path.is_file() and not path.stat().st_size:
        raise SourceError(
            f"{spec.path} is empty (0 bytes)",
            field=spec.path,
            hint="see whether the export broke off or still goes on, then export or copy it again",
        )
    found: Located | None = None
    try:
        found = _locate(path, spec)
        _check_content(found)
        if found.format == "GeoJSON":
            with open_bytes(found) as file:
                found = replace(found, format="GeoJSONSeq") if is_sequence(file) else found
    except (
        OSError,
        zipfile.BadZipFile,
        EOFError,
        zlib.error,
        RuntimeError,
    ) as fault:  # RuntimeError: encrypted, or packed in an unknown way
        discard(found.scratch if found is not None else None)
        if str(fault) == "File is not a zip file":  # the table of its contents stands at the end
            raise SourceError(f"{spec.path} is truncated or not a zip file", field=spec.path, hint="copy or export it again") from fault
        raise SourceError(f"{spec.path} cannot be read: {fault}", field=spec.path, hint="copy or export it again") from fault
    except MerestoneError:
        discard(found.scratch if found is not None else None)
        raise
    return found


def _nowhere(path: str) -> SourceError:
    """The error for a path where nothing is."""
    if path.endswith("/-"):
        return SourceError(
            "standard input cannot be a delivery: formats are recognised by the file",
            field="source",
            hint="write it to a file, then name the file",
        )
    return SourceError(f"{path} does not exist", field="source", hint="check the path: «source», or source.path in a publication file")


def _locate(path: Path, spec: SourceSpec) -> Located:
    suffixes = [each.lower() for each in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last == ".zip":
        return _in_zip(path, spec)
    if last == ".gz":
        kind = _format(suffixes[-2] if len(suffixes) > 1 else "", spec.path)
        stem = Path(path.stem).stem
        if kind in _UNPACKED:
            scratch = scratch_folder()
            target = scratch / path.stem
            try:
                with gzip.open(path) as packed:
                    unpack(packed, target, path, spec.path)
            except BaseException:
                discard(scratch)
                raise
            return Located(kind, target, str(target), spec.path, stem, scratch)
        with gzip.open(path) as packed:
            check_length(packed, path, spec.path)
        return Located(kind, path, f"/vsigzip/{path}", spec.path, stem)
    if path.is_dir() and last != ".gdb":
        raise SourceError(f"{spec.path} is a folder", field="source", hint="name one file (or a .gdb folder)")
    if _format(last, spec.path) == "GML":
        return _apart(path, spec)
    return Located(_format(last, spec.path), path, str(path), spec.path, path.stem)


def _apart(path: Path, spec: SourceSpec) -> Located:
    """A GML file under another path: GDAL writes its .gfs beside the path it is given, and trusts a stale one that it finds there."""
    scratch = scratch_folder()
    target = scratch / path.name
    try:
        target.symlink_to(path.absolute())
    except OSError:  # no links on this file system
        shutil.copyfile(path, target)
    schema = path.with_suffix(".xsd")
    if schema.is_file():
        shutil.copyfile(schema, scratch / schema.name)
    return Located("GML", target, str(target), spec.path, path.stem, scratch)


def _format(suffix: str, shown: str) -> str:
    if suffix in _LATER:
        raise UsageError(
            f"{shown}: CSV is not read in this version",
            field="source",
            hint="deliver GeoParquet, GeoPackage or GeoJSON; to "
            "convert it: ogr2ogr OUT.gpkg IN.csv -a_srs EPSG:CODE -oo X_POSSIBLE_NAMES=X -oo Y_POSSIBLE_NAMES=Y -oo AUTODETECT_TYPE=YES",
        )
    if suffix not in _FORMATS:
        raise SourceError(
            f"{shown}: no format that is read has the suffix {suffix or '(none)'!r}",
            field="source",
            hint=f"deliver one of: {', '.join(sorted(_FORMATS))} (also as .gz or .zip)",
        )
    return _FORMATS[suffix]


def _in_zip(path: Path, spec: SourceSpec) -> Located:
    with zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if not name.startswith("__MACOSX/")]
        candidates: dict[str, str] = {}
        for name in members:
            parts = PurePosixPath(name).parts
            geodatabase = next((at for at, part in enumerate(parts) if part.lower().endswith(".gdb")), None)
            if geodatabase is not None:
                candidates["/".join(parts[: geodatabase + 1])] = "OpenFileGDB"
            elif PurePosixPath(name).suffix.lower() in _FORMATS.keys() - {".dbf"}:
                candidates[name] = _FORMATS[PurePosixPath(name).suffix.lower()]
        if not candidates and any(name.lower().endswith(".gdbtable") for name in members):
            return Located("OpenFileGDB", path, f"/vsizip/{path}", spec.path, path.stem)
        member = _choose(candidates, spec)
        shown, stem = f"{spec.path}/{member}", PurePosixPath(member).stem
        if candidates[member] not in _UNPACKED:
            if candidates[member] != "OpenFileGDB":
                with archive.open(member) as packed:
                    check_length(packed, path, shown)
            return Located(candidates[member], path, f"/vsizip/{{{path}}}/{member}", shown, stem)
        wanted = [member]
        if candidates[member] == "ESRI Shapefile":
            base = member[: -len(".shp")].lower()
            wanted = [
                name for name in members if name[: -len(".shp")].lower() == base and PurePosixPath(name).suffix.lower() in _SHAPEFILE_PARTS
            ]
        if candidates[member] == "GPKG":  # its logs are part of it
            wanted += [name for name in members if name in {f"{member}-wal", f"{member}-journal"}]
        scratch = scratch_folder()
        try:
            for name in wanted:
                target = scratch / (stem + PurePosixPath(name).suffix.lower())  # never the member's own path: it may point anywhere
                with archive.open(name) as packed:
                    unpack(packed, target, path, shown)
        except BaseException:
            discard(scratch)
            raise
    target = scratch / (stem + PurePosixPath(member).suffix.lower())
    return Located(candidates[member], target, str(target), shown, stem, scratch)


def _choose(candidates: dict[str, str], spec: SourceSpec) -> str:
    if len(candidates) == 1:
        return next(iter(candidates))
    names = {PurePosixPath(member).stem: member for member in candidates}
    if spec.layer is not None and spec.layer in names:
        return names[spec.layer]
    if not candidates:
        raise SourceError(f"{spec.path} holds no file of a format that is read", field="source", hint="zip a GeoPackage or a shapefile")
    raise SourceError(
        f"{spec.path} holds several files: {', '.join(sorted(names))}",
        field="source.layer",
        hint="name one of them: «layer», or source.layer in a publication file",
    )


def _check_content(found: Located) -> None:
    """Refuse a file whose first bytes are not those of its format, before GDAL takes it for something else."""
    if found.format == "OpenFileGDB":
        return
    with open_bytes(found) as file:
        if found.format in {"GML", "KML"}:
            if "VRTDataSource" in check_xml(file, found.shown):
                raise _foreign(found)
            return
        head = file.read(512)
    if found.format == "GPKG" and head.startswith(_MAGIC["GPKG"]):
        _check_length(found, head)
    if found.format in {"GeoJSON", "GeoJSONSeq", "TopoJSON"}:
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\x1e \t\r\n")
        if not text.startswith(b"{"):
            raise _foreign(found)
    elif not head.startswith(_MAGIC.get(found.format, b"")):
        raise _foreign(found)


def _check_length(found: Located, head: bytes) -> None:
    """Refuse an SQLite file that is shorter than its header says (file format of SQLite, section 1.3: page size, size in pages)."""
    page, pages = int.from_bytes(head[16:18]), int.from_bytes(head[28:32])
    whole = (65_536 if page == 1 else page) * pages
    size = found.path.stat().st_size
    if head[24:28] == head[92:96] and size < whole:  # else the number of pages was not kept
        raise SourceError(f"{found.shown} is truncated: {size} of {whole} bytes", field=found.shown, hint="copy or export it again")


def _foreign(found: Located) -> SourceError:
    return SourceError(
        f"{found.shown} is truncated or not {found.format}", field=found.shown, hint="check that the file is what its name says"
    )


def open_bytes(found: Located) -> IO[bytes]:
    """The uncompressed bytes of the file that GDAL will read."""
    if found.gdal.startswith("/vsigzip/"):
        return cast("IO[bytes]", gzip.open(found.path))
    if found.gdal.startswith("/vsizip/"):
        member = found.gdal.partition("}/")[2]
        with zipfile.ZipFile(found.path) as archive:
            return archive.open(member)
    return found.path.open("rb")
