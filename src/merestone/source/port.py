"""What a delivery looks like to the line: its description, its Arrow batches, and the errors of reading it.

Not here: the contract (this room knows none), casts and transforms (`normalise`), any one file format (`vector`, `geoparquet`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.errors import SourceError
from merestone.results.finding import Finding, Sample
from merestone.rules import catalogue

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Which delivery to read, and what is asserted about it where the file says nothing.

    `crs` and `encoding` assert what is missing; `geometry` names the column where a file has several; `feature_id` is the name of a column
    that is made of the ids which GeoJSON gives its features beside their properties. Paths are absolute.
    """

    path: str
    layer: str | None = None
    crs: str | None = None
    encoding: str | None = None
    geometry: str | None = None
    feature_id: str | None = None


@dataclass(frozen=True, slots=True)
class GeometryColumn:
    """One geometry column of a delivery.

    `crs` is PROJJSON or WKT text as the file gives it, None where the file gives none; `note` says how it was found or why it is
    missing ("srs_id 0", "no .prj", "GeoParquet default", "asserted"). `edges` is "planar" or "spherical". `epoch` in decimal years.
    `bbox`: how far the data reach by what the file says, NaN where it is not a box, None where the file says nothing.
    `coded`: the file itself states what code its CRS has; a Shapefile's .prj states parameters only, whatever a driver makes of them.
    """

    name: str
    crs: str | None
    note: str = ""
    asserted: bool = False
    edges: str = "planar"
    epoch: float | None = None
    coded: bool = True
    bbox: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Misfits:
    """Cells of one column that hold no value of its type: null in the batches, since what a driver would make of them was never delivered.

    name: the column as delivered. rows: int64, from 1, ascending. observed: a pyarrow string array, the values as they stand in the file.
    expected: what a value would be.
    """

    name: str
    rows: npt.NDArray[np.int64]
    observed: pa.Array
    expected: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """The description of a delivery, known before a row is read.

    `schema` is the Arrow schema of the batches: attribute columns under their delivered names (NFC), geometry columns as pa.binary()
    holding ISO or extended WKB, x before y after the driver's own mapping. `geometry` is the primary one, None for a table without.
    `fid_column` names the column that only repeats the driver's row number, if the driver offers one; it is not in `schema` unless the
    format stores it as a real column (GeoPackage primary keys are offered as a column under their own name).
    `findings` are seen while opening (guessed encoding, names cut at ten characters, fields filled to their width).
    `misfits` are cells that are not values of their column.
    """

    path: str
    driver: str
    layer: str | None
    schema: pa.Schema
    geometry: GeometryColumn | None
    other_geometries: tuple[GeometryColumn, ...] = ()
    rows: int | None = None
    encoding: str | None = None
    fid_column: str | None = None
    utc_columns: frozenset[str] = frozenset()  # timestamps whose zone the format fixes as UTC (GeoPackage DATETIME)
    padded_text: bool = False  # the format pads text with blanks (DBF)
    findings: tuple[Finding, ...] = ()
    misfits: tuple[Misfits, ...] = ()


class UnreadableValueError(SourceError):
    """One value of a file that can be read otherwise: the delivery is at fault, so a contract may refuse it, with this finding.

    Args:
        path: the file, for the message.
        name: the column as delivered.
        row: the number of the record in the file, from 1.
        rule: `encoding` (bytes that are not text in the encoding) or `type` (text that is not a value of the column's type).
        expected: what the value should be.
        observed: what is the matter with it.
        remedy: the next step.
    """

    def __init__(self, path: str, name: str, row: int, rule: str, expected: str, observed: str, remedy: str) -> None:
        super().__init__(f"{path}: field {name}, record {row}: {observed}", field=name, hint=remedy)
        of = catalogue.ENCODING if rule == "encoding" else catalogue.UNREADABLE
        self.finding = of.finding(
            name, case="unreadable", features=(Sample(None, row),), expected=expected, row=row, what=observed, remedy=remedy
        )
        self._given = (path, name, row, rule, expected, observed, remedy)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Survive the way back from a worker process."""
        return type(self), self._given


class Source(Protocol):
    """A delivery that can be read more than once; rows keep their order, counted from 1 across batches."""

    @property
    def delivery(self) -> Delivery:
        """What is known before reading."""
        ...

    def batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows as pyarrow.RecordBatch of `delivery.schema`.

        Raises:
            SourceError: the file breaks off.
            UnreadableValueError: text cannot be decoded, or is not a value of its column; names file, field, record and bytes.
        """
        ...

    def late_findings(self) -> tuple[Finding, ...]:
        """Warnings that only a full read could show (values that fill the DBF width exactly)."""
        ...


@dataclass(frozen=True, slots=True)
class Band:
    """A band of a raster: its description, the type of its pixels as NumPy calls it, the value that means no data, factors of its overviews."""

    name: str | None
    type: str
    nodata: float | None
    overviews: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Raster:
    """A raster file as it describes itself.

    `crs` is WKT or None. `transform` is (a, b, c, d, e, f) with x = a * column + b * row + c and y = d * column + e * row + f, at the corner
    of a pixel, in units of the CRS; None where the file states no place.
    """

    path: str
    driver: str
    crs: str | None
    width: int
    height: int
    transform: tuple[float, float, float, float, float, float] | None
    bands: tuple[Band, ...]
