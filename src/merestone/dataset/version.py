"""A published dataset as its consumers meet it: its versions, and the rows of one version by box and columns.

Not here: which version is current (`current`), changes between versions (`feed`), SQL and VRT over the files (`views`).

A read proves what it reads (`proved`): an object that is missing, cut or altered is an error that names it, never a wrong or missing row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merestone.dataset.columns import Columns, columns_of, geo_of
from merestone.dataset.current import Current, current, read_manifest
from merestone.dataset.history import line, lines
from merestone.dataset.manifest import Box, DataFile, HistoryLine, Manifest
from merestone.dataset.pages import live_files
from merestone.dataset.proved import HINT, ProvedFile, opened
from merestone.dataset.rows import shaped
from merestone.errors import CorruptError, MerestoneError, MissingError, UsageError
from merestone.geometry import kernel
from merestone.given import known_names
from merestone.json_value import JsonObject
from merestone.results import notebook
from merestone.storage.place import shown_place
from merestone.storage.port import Store
from merestone.words import plural

if TYPE_CHECKING:
    import geopandas as gpd

_SIDES = ("xmin", "ymin", "xmax", "ymax")


class Dataset:
    """A published dataset. Each call sees what is current at that moment; a `Version` never changes."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __repr__(self) -> str:
        return f"<Dataset {shown_place(self.url)}>"

    @property
    def url(self) -> str:
        """Where the dataset is, as a URL."""
        return self.store.url

    def current(self) -> Current:
        """The pointer and the manifest that it names.

        Raises:
            UsageError: nothing was ever published here.
            CorruptError: the published state contradicts itself.
        """
        found = current(self.store)
        if found is None:
            raise UsageError(
                f"{shown_place(self.url)} holds no published dataset",
                field=shown_place(self.url),
                hint="check the path, or publish first: «publish(FILE)»",
            )
        return found

    def history(self) -> Iterator[HistoryLine]:
        """What the history says of all versions, newest first; no manifest but the current one is read. Raises as `current` does."""
        return lines(self.store, self.current())

    def versions(self) -> list[int]:
        """The numbers of all versions, oldest first. Gaps are legal."""
        return sorted(each.version for each in self.history())

    def manifest(self, version: int | None = None) -> Manifest:
        """The manifest of a version, the current one by default.

        Raises:
            UsageError: the version does not exist.
            CorruptError: it is missing or altered.
        """
        head = self.current()
        if version is None or version == head.manifest.version:
            return head.manifest
        found = line(self.store, head, version) if version > 0 else None
        if found is None:
            raise UsageError(
                f"{shown_place(self.url)} has no version {version}",
                field=str(version),
                hint=f"the newest is {head.manifest.version}; «log(DATASET)» lists them all",
            )
        return read_manifest(self.store, found.version, found.sha256)

    def version(self, version: int | None = None) -> Version:
        """A version to read from, the current one by default. Raises UsageError where there is none of that number."""
        return Version(self.store, self.manifest(version))

    def files(self, version: int | None = None) -> tuple[DataFile, ...]:
        """The live data files of a version; paths are relative to `url`."""
        return self.version(version).files

    def to_arrow(self, columns: Sequence[str] | None = None, bbox: Box | None = None, version: int | None = None) -> pa.Table:
        """See `Version.to_arrow`."""
        return self.version(version).to_arrow(columns=columns, bbox=bbox)

    def to_geodataframe(
        self,
        bbox: Box | None = None,
        version: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> gpd.GeoDataFrame:
        """See `Version.to_geodataframe`."""
        return self.version(version).to_geodataframe(columns=columns, bbox=bbox)

    def _repr_html_(self) -> str:
        """What is current, as a table in a notebook; reads the pointer and its manifest only.

        A dataset without a version, or a damaged one, shows what `current` says of it: a notebook prints an error for a mere name otherwise.
        """
        try:
            manifest = self.current().manifest
        except MerestoneError as fault:
            return notebook.facts("Dataset", {"url": self.url, "error": fault})
        return notebook.facts(f"Dataset {manifest.name}", {"url": self.url, **_facts(manifest)})


class Version:
    """One version of a dataset."""

    def __init__(self, store: Store, manifest: Manifest) -> None:
        self.store = store
        self.manifest = manifest
        self._columns: Columns | None = None
        self._written: dict[int, pa.Schema] = {}
        self._files: tuple[DataFile, ...] | None = None

    def __repr__(self) -> str:
        return (
            f"<Version {self.number} of {self.manifest.name}: {plural(self.manifest.features, 'feature')}, {shown_place(self.store.url)}>"
        )

    @property
    def number(self) -> int:
        """The number of the version."""
        return self.manifest.version

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The live data files, ordered by path; they are read from the pages once. Raises CorruptError where a page is damaged."""
        if self._files is None:
            self._files = live_files(self.store, self.manifest.files)
        return self._files

    def _repr_html_(self) -> str:
        """The version as a table in a notebook; reads nothing but the manifest that it has."""
        return notebook.facts(f"Version {self.number} of {self.manifest.name}", _facts(self.manifest))

    @property
    def columns(self) -> Columns:
        """What a reader sees. Reads one data file, for its `geo` metadata."""
        if self._columns is None:
            self._columns = columns_of(self.manifest, [self.file_schema(file) for file in self.newest_file()])
        return self._columns

    def file_schema(self, file: DataFile) -> pa.Schema:
        """The pyarrow schema of a data file; files that one version wrote have one schema, so one footer of each is read."""
        if file.version not in self._written:
            with opened(self.store, file) as parquet:
                self._written[file.version] = parquet.schema
        return self._written[file.version]

    def files_in(self, bbox: Box | None) -> list[DataFile]:
        """The data files that can hold features whose boxes meet `bbox` (x, y minimum then maximum, in the contract's CRS)."""
        if bbox is None:
            return list(self.files)
        return [file for file in self.files if file.bbox is not None and _meet(file.bbox, bbox)]

    def batches(self, columns: Sequence[str] | None = None, bbox: Box | None = None) -> Iterator[pa.RecordBatch]:
        """The rows as pyarrow.RecordBatch, file by file, row group by row group.

        Args:
            columns: names, in the order wanted; None for all.
            bbox: x, y minimum then maximum in the contract's CRS. Features whose box meets it come; features without a position do not.

        Raises:
            UsageError: a column that the version does not have, or no box.
            CorruptError: a file is missing, cut or altered.
        """
        if bbox is not None:
            bbox = check_box(bbox)
        schema = self.selected(columns)
        for file in self.files_in(bbox):
            yield from self._read(file, schema, bbox)

    def file_batches(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        """All rows of one data file as pyarrow.RecordBatch with all columns. Raises CorruptError as `batches` does."""
        return self._read(file, self.columns.schema, None)

    def to_arrow(self, columns: Sequence[str] | None = None, bbox: Box | None = None) -> pa.Table:
        """The rows as one pyarrow.Table: geometry as canonical WKB, in the CRS that the `geo` metadata name. Arguments as for `batches`."""
        return pa.Table.from_batches(self.batches(columns, bbox), self.selected(columns))

    def to_geodataframe(self, columns: Sequence[str] | None = None, bbox: Box | None = None) -> gpd.GeoDataFrame:
        """The rows as a GeoDataFrame in the contract's CRS; the geometry always comes. Arguments as for `batches`.

        Integers and booleans with nulls come in pandas' nullable types: an id beyond 2**53 keeps its last digits.

        Raises:
            MissingError: GeoPandas is not installed.
        """
        try:
            import geopandas  # noqa: PLC0415 - an extra: everything else works without it
            import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with it; its stubs are a package of their own
            from shapely import from_wkb  # noqa: PLC0415 - as above
        except ImportError as fault:
            raise MissingError("GeoPandas is not installed", field="geopandas", hint="pip install geopandas") from fault
        geometry = self.columns.geometry
        if columns is not None and geometry not in columns:
            columns = [*columns, geometry]
        table = self.to_arrow(columns, bbox)
        exact = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        nulls = [column.null_count > 0 for column in table.columns]
        parts = {
            field.name: table.column(n).to_pandas(types_mapper=exact.get if nulls[n] else None)
            for n, field in enumerate(table.schema)
            if field.name != geometry
        }
        frame = pd.DataFrame(parts, index=pd.RangeIndex(table.num_rows))
        shapes = from_wkb(table.column(geometry).to_numpy(zero_copy_only=False))
        frame.insert(table.schema.names.index(geometry), geometry, geopandas.GeoSeries(shapes, crs=self.columns.epsg))
        return geopandas.GeoDataFrame(frame, geometry=geometry)

    def newest_file(self) -> list[DataFile]:
        """One file of the newest version that wrote some, in a list; empty where the version has no files. Fields are only ever added: it has them all."""
        return [max(self.files, key=lambda file: (file.version, file.path))] if self.files else []

    def selected(self, columns: Sequence[str] | None) -> pa.Schema:
        """The schema of some columns, in the order wanted; None for all. Raises UsageError for one that the version does not have."""
        schema = self.columns.schema
        if columns is None:
            return schema
        columns = known_names(columns, "columns", schema.names, f"version {self.number} of {self.manifest.name}")
        metadata = schema.metadata if self.columns.geometry in columns else None
        return pa.schema([schema.field(name) for name in columns], metadata=metadata)

    def _read(self, file: DataFile, schema: pa.Schema, bbox: Box | None) -> Iterator[pa.RecordBatch]:
        with opened(self.store, file) as parquet:
            there = set(parquet.schema.names)
            wanted = [name for name in schema.names if name in there]
            cover, geometry = "", self.columns.geometry
            groups = list(range(parquet.metadata.num_row_groups))
            if bbox is not None:
                cover = _covering(parquet, file)
                groups = [n for n in groups if _group_meets(parquet.metadata.row_group(n), cover, bbox)]
                wanted = list(dict.fromkeys([*wanted, cover, geometry]))
            for table in parquet.groups(wanted, groups):
                met = table if bbox is None else _meeting(table, cover, geometry, bbox)
                yield from shaped(file, met, schema).to_batches()


def boxes(version: Version, file: DataFile) -> Iterator[tuple[pa.Table, npt.NDArray[np.float64]]]:
    """The key columns of one data file, with the box of each feature as (n, 4) x, y minimum then maximum, NaN where it has no position.

    Raises:
        CorruptError: as `batches`.
    """
    names = list(version.manifest.key["columns"])
    keys = pa.schema([version.columns.schema.field(each) for each in names])
    with opened(version.store, file) as parquet:
        geometry = version.columns.geometry
        for table in parquet.groups([*names, geometry]):
            bounds = kernel.scan(table.column(geometry).combine_chunks()).bounds
            yield pa.Table.from_batches(shaped(file, table.select(names), keys).to_batches(), keys), bounds


def _facts(manifest: Manifest) -> JsonObject:
    """What a notebook shows of a version."""
    return {
        "version": manifest.version,
        "published": manifest.time_utc,
        "contract": manifest.contract_version,
        "features": manifest.features,
        "key": manifest.key["columns"],
        "fields": [f"{each['name']} ({each['type']})" for each in manifest.contract["schema_fields"]],
        "files": manifest.files.count,
        "bytes": manifest.files.bytes,
        "bbox": manifest.files.bbox,
    }


def check_box(bbox: Sequence[float]) -> Box:
    """Four finite numbers, minimum before maximum.

    Raises:
        UsageError: they are not.
    """
    given: object = bbox  # whatever a caller gives
    try:
        box = () if isinstance(given, str | bytes) else tuple(float(each) for each in bbox)
    except (TypeError, ValueError):
        box = ()
    if len(box) != 4 or not np.isfinite(box).all() or box[0] > box[2] or box[1] > box[3]:
        raise UsageError(f"{bbox!r} is not a box", field="bbox", hint="give xmin, ymin, xmax, ymax in the CRS of the dataset")
    return box


def _meet(one: Box, other: Box) -> bool:
    return one[0] <= other[2] and one[2] >= other[0] and one[1] <= other[3] and one[3] >= other[1]


def _covering(parquet: ProvedFile, file: DataFile) -> str:
    """The name of the covering column of a data file (GeoParquet 1.1, `covering.bbox`)."""
    geo = geo_of(parquet.schema, file.path)
    try:
        return str(geo["columns"][geo["primary_column"]]["covering"]["bbox"]["xmin"][0])
    except (TypeError, KeyError, IndexError) as fault:
        raise CorruptError(f"{file.path} does not name its covering column: {fault!r}", field=file.path, hint=HINT) from fault


def _group_meets(group: pq.RowGroupMetaData, cover: str, bbox: Box) -> bool:
    """Whether a row group can hold a box that meets; without statistics it can."""
    found: JsonObject = {}
    for n in range(group.num_columns):
        column = group.column(n)
        if column.path_in_schema.startswith(cover + "."):
            found[column.path_in_schema[len(cover) + 1 :]] = column.statistics
    stats = [found.get(side) for side in _SIDES]
    if any(each is None or not each.has_min_max for each in stats):
        return not all(each is not None and each.num_values == 0 for each in stats)
    xmin, ymin, xmax, ymax = stats
    return _meet((xmin.min, ymin.min, xmax.max, ymax.max), bbox)  # type: ignore[union-attr]  # none is None: seen above


def _meeting(table: pa.Table, cover: str, geometry: str, bbox: Box) -> pa.Table:
    """The rows whose boxes meet; rows without a box do not. The covering column says which may, the geometry which do."""
    column = table.column(cover).combine_chunks()
    xmin, ymin, xmax, ymax = (column.field(side).cast(pa.float64()) for side in _SIDES)
    may = pc.and_kleene(
        pc.and_kleene(pc.less_equal(xmin, bbox[2]), pc.greater_equal(xmax, bbox[0])),
        pc.and_kleene(pc.less_equal(ymin, bbox[3]), pc.greater_equal(ymax, bbox[1])),
    )
    near = table.filter(pc.and_(pc.fill_null(may, fill_value=False), column.is_valid()))
    bounds = kernel.scan(near.column(geometry).combine_chunks()).bounds
    x, y = (bounds[:, 0] <= bbox[2]) & (bounds[:, 2] >= bbox[0]), (bounds[:, 1] <= bbox[3]) & (bounds[:, 3] >= bbox[1])
    return near.filter(pa.array(x & y))
