"""A filter as a person asks for it, and the change between two versions as its consumer sees it.

Not here: what a filter is and how a feed is rewritten at its edge (`dataset.filter`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from merestone.contract.body import from_body
from merestone.dataset import feed
from merestone.dataset.feed import Changes
from merestone.dataset.filter import Filter, check, filtered, parse_where
from merestone.dataset.manifest import Box
from merestone.dataset.version import Dataset, Version
from merestone.errors import UsageError
from merestone.inspect import show
from merestone.later import later
from merestone.normalise.transform import apply_operation
from merestone.publication.publication import CrsRule
from merestone.reference.operation import Wanted, choose_operation
from merestone.results.finding import Finding
from merestone.results.result import DiffResult
from merestone.source.grids import GridFolders
from merestone.source.open import open_unjudged
from merestone.source.port import SourceSpec
from merestone.storage.place import local_path

if TYPE_CHECKING:
    import shapely
else:
    shapely = later("shapely")


def filter_of(version: Version, *, bbox: Box | None = None, polygon: str | None = None, where: str | None = None) -> Filter:
    """The filter, checked against a version.

    Args:
        version: whose columns and CRS count.
        bbox: x, y minimum then maximum, in the dataset's CRS.
        polygon: a file with the area, in any format and CRS that can be delivered; all its polygons together are the area.
        where: conditions, see `dataset.filter`.

    Raises:
        UsageError: a condition or file that does not fit the version.
        SourceError: the file cannot be read.
        MissingError: a PROJ grid is missing.
    """
    contract = from_body(version.manifest.contract)
    wanted = Filter(bbox, None if polygon is None else _area(polygon, version.columns.epsg), () if where is None else parse_where(where))
    uncompared = {
        each.name for each in contract.schema_fields if not each.compared and (each.derived is None or each.derived.measure is None)
    }
    check(wanted, version.columns.schema, uncompared)
    return wanted


def _area(path: str, epsg: int) -> Any:
    source = open_unjudged(SourceSpec(local_path(path, field="polygon", what="an area")))
    column = source.delivery.geometry
    if column is None:
        raise UsageError(f"{path} has no geometry", field="polygon", hint="name a file with the polygons of the area")
    parts = [batch.column(column.name) for batch in source.batches()]
    wkb = pa.concat_arrays(parts) if parts else pa.array([], pa.binary())
    operation = choose_operation(column.crs or f"EPSG:{epsg}", epsg, CrsRule(), GridFolders.of(None), Wanted(epoch=column.epoch))
    if isinstance(operation, Finding):
        raise UsageError(f"{path}: {operation.observed}", field="polygon", hint=f"give the area in EPSG:{epsg}")
    moved, failed = apply_operation(wkb, operation)
    shapes = shapely.from_wkb(moved.to_numpy(zero_copy_only=False))
    shapes = shapes[~shapely.is_missing(shapes) & ~shapely.is_empty(shapes)]
    bad = ~np.isin(shapely.get_type_id(shapes), (3, 6)) | ~shapely.is_valid(shapes)
    if failed.any() or not len(shapes) or bad.any():
        raise UsageError(
            f"{path} does not hold an area: {'it has no polygon' if not len(shapes) else 'a shape is not a valid polygon'}",
            field="polygon",
            hint="name a file with valid polygons",
        )
    return shapely.union_all(shapes)


def changes(
    dataset: Dataset,
    from_version: int | None,
    to_version: int | None,
    wanted: Filter,
    *,
    with_keys: bool = False,
) -> tuple[Changes, DiffResult]:
    """What leads from one version to another for one who sees only the wanted features, with its rows, and its summary.

    Raises:
        UsageError, CorruptError: as `feed.changes`.
    """
    clock = time.perf_counter()
    whole = feed.changes(dataset, from_version, to_version, with_rows=True)
    target = dataset.version(whole.to_version)
    change = filtered(whole, wanted, target.columns.geometry)
    there = sum(int(wanted.matches(batch, target.columns.geometry).sum()) for batch in target.batches(bbox=wanted.reach))
    present = int(np.asarray(change.touched.has.combine_chunks()).astype(bool).sum())
    result = show.difference(dataset, change, with_keys=with_keys)
    return change, replace(result, unchanged=there - present, seconds=time.perf_counter() - clock)
