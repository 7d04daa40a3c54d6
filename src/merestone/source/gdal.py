"""How GDAL is called: nothing written beside the source, nothing fetched, and what it says caught and kept.

GDAL keeps its options per process, and its warnings arrive as Python warnings, which are caught per process too. So each call of GDAL stands by
itself (`_call`): one thread at a time, with the options of its own delivery, which are taken back when it returns.
Not here: what a format's columns mean (`vector`, `shapefile`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyogrio

from merestone.errors import SourceError
from merestone.heard import heard
from merestone.json_value import JsonObject
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.source.buffers import fault_of
from merestone.source.located import Located

# What keeps each driver from writing beside the source, from the network, and from guessing types out of text.
_OPTIONS: dict[str, dict[str, str]] = {
    "GPKG": {"IMMUTABLE": "YES"},
    "GeoJSON": {"DATE_AS_STRING": "YES"},
    "GeoJSONSeq": {"DATE_AS_STRING": "YES"},
}
_CONFIG = {
    "CPL_VSIL_GZIP_WRITE_PROPERTIES": "NO",  # no .gz.properties beside the source
    "GDAL_PAM_ENABLED": "NO",  # no .aux.xml
    "GML_SKIP_RESOLVE_ELEMS": "ALL",  # no xlinks followed
    "GML_DOWNLOAD_SCHEMA": "NO",
    "GML_DOWNLOAD_WFS_SCHEMA": "NO",
    "OGR_GEOJSON_MAX_OBJ_SIZE": "0",  # a feature may be larger than 200 MB
}
# What makes drivers with their own way to Arrow read feature by feature, as all others do
_ROW_BY_ROW = {"OGR_FLATGEOBUF_STREAM_BASE_IMPL": "YES", "OGR_GPKG_STREAM_BASE_IMPL": "YES"}
_NONE: Mapping[str, str] = MappingProxyType({})
# Said about things that are not used: feature ids of GeoJSON, and the geometry type in the description
_SILENT = ("driver ESRIJSON does not support open option", "Several features with id", "Measured (M) geometry types are not supported")
_NATIVE_TIMES = {"GPKG", "OpenFileGDB"}  # the others keep each value's own zone only as text
FAULTS = (
    pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, pyogrio.errors.FeatureError, pyogrio.errors.CRSError,
    pa.ArrowException, OSError, UnicodeDecodeError,
)  # fmt: skip


class Gdal:
    """One file as GDAL sees it, and what GDAL has said about it so far."""

    def __init__(self, found: Located) -> None:
        self.found = found
        self._said: set[str] = set()
        self._reported: set[str] = set()

    def layers(self) -> list[str]:
        """The names of its layers, in file order."""
        with self._errors(), self._call():
            return [str(name) for name, _ in pyogrio.list_layers(self.found.gdal)]

    def count(self, layer: str | None) -> int | None:
        """The number of rows that the file states, None where it states none."""
        with self._errors(), self._call():
            count = int(pyogrio.read_info(self.found.gdal, layer=layer)["features"])
        return count if count >= 0 else None

    def batches(self, layer: str | None, batch_rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The record batches of a layer, their buffers proven.

        Where a driver's own way to Arrow gives buffers that do not hold together, GDAL reads from that batch on feature by feature.

        Raises:
            SourceError: the layer breaks off, or both ways give such buffers.
        """
        rows = 0
        for row_by_row in (False, True):
            skipped = 0
            fault: str | None = None
            options = _ROW_BY_ROW if row_by_row else {}
            with self.stream(layer, batch_rows, columns, options=options) as (_, reader):
                places = geometry_places(reader.schema)
                for batch in self._read(reader, options):
                    if skipped < rows:
                        skipped += batch.num_rows
                        continue
                    fault = fault_of(batch, reader.schema, places)
                    if fault is not None:
                        break
                    rows = skipped = rows + batch.num_rows
                    yield batch
            if fault is None:
                return
        raise SourceError(
            f"{self.found.shown}: the {self.found.format} reader fails after row {rows}: {fault}",
            field=self.found.shown,
            hint="export it in another format, such as GeoPackage or GeoParquet",
        )

    @contextmanager
    def stream(
        self, layer: str | None, batch_rows: int, columns: list[str] | None = None, *, options: Mapping[str, str] = _NONE
    ) -> Iterator[tuple[JsonObject, Any]]:
        """GDAL's description of a layer and its Arrow reader, for its schema; `batches` gives the rows. `options` hold for opening and closing it."""
        opened = pyogrio.open_arrow(
            self.found.gdal,
            layer=layer,
            columns=columns,
            use_pyarrow=True,
            batch_size=batch_rows,
            return_fids=self.found.format == "GPKG",
            datetime_as_string=self.found.format not in _NATIVE_TIMES,
            **_OPTIONS.get(self.found.format, {}),
        )
        with self._errors(), self._call(options):
            entered = opened.__enter__()
        try:
            yield entered
        finally:
            with self._call(options):
                opened.__exit__(None, None, None)

    def _read(self, reader: pa.RecordBatchReader, options: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """The record batches of a reader, with GDAL's errors turned into ours."""
        rows = 0
        stream = iter(reader)
        while True:
            try:
                with self._call(options):
                    batch = next(stream, None)
            except FAULTS as fault:
                raise SourceError(
                    f"{self.found.shown} breaks off after row {rows}: {_first_line(fault)}",
                    field=self.found.shown,
                    hint="copy or export it again",
                ) from fault
            if batch is None:
                return
            rows += batch.num_rows
            yield batch

    def spoken(self) -> tuple[Finding, ...]:
        """What GDAL has warned about and was not reported before, once per wording."""
        said, self._said = self._said, set()
        fresh = sorted(said - self._reported)
        self._reported |= said
        return tuple(catalogue.DRIVER.finding("", format=self.found.format, said=each) for each in fresh)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FAULTS as fault:
            raise SourceError(
                f"{self.found.shown} is truncated or not {self.found.format}: {_first_line(fault)}",
                field=self.found.shown,
                hint="copy or export it again",
            ) from fault

    @contextmanager
    def _call(self, options: Mapping[str, str] = _NONE) -> Iterator[None]:
        """One call of GDAL, beside no other of ours: with our options and these, and with what it warns of kept."""
        with heard() as said_now, _configured({**_CONFIG, **options}):
            yield
        for each in said_now:
            said = str(each.message)
            if not said.startswith(_SILENT):
                self._said.add(said)


@contextmanager
def _configured(options: Mapping[str, str]) -> Iterator[None]:
    """Options of GDAL that hold within; afterwards each is what it was before. To be entered by one thread at a time."""
    before = {name: pyogrio.get_gdal_config_option(name) for name in options}
    pyogrio.set_gdal_config_options(dict(options))
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options(before)


def geometry_places(schema: pa.Schema) -> list[int]:
    """Where the geometry columns stand in a schema of GDAL's: the last ones, whatever the attributes are called; the layer's own first."""
    at = len(schema)
    while at > 0 and (schema.field(at - 1).metadata or {}).get(b"ARROW:extension:name", b"").startswith((b"geoarrow", b"ogc")):
        at -= 1
    return list(range(at, len(schema)))


def _first_line(fault: BaseException) -> str:
    """What GDAL says, without the call of SQLite that it was in, and each part once."""
    said = re.sub(r"sqlite3_\w+\(.*\) failed: ", "", str(fault).split("\n", 1)[0])
    return "; ".join(dict.fromkeys(said.split("; ")))[:300]
