"""Fields that the contract calls derived with a measure, recomputed from the stored geometry: area and length.

Not here: whether a delivered measure was right; derived fields are never compared (`change`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyproj import CRS

from merestone.contract.contract import Contract, Field
from merestone.errors import UsageError
from merestone.geometry import kernel
from merestone.later import later
from merestone.normalise.values import arrow_type
from merestone.reference.ground import metres_per_unit
from merestone.reference.systems import horizontal, of_code
from merestone.reference.units import AREAS, LENGTHS, unit_of

if TYPE_CHECKING:
    import shapely
else:
    shapely = later("shapely")


def with_derived(batch: pa.RecordBatch, contract: Contract, geometry: str) -> pa.RecordBatch:
    """The batch with each field that has `derived: {measure: ...}` set to what its geometry measures; null where that is null.

    Args:
        batch: a pyarrow RecordBatch with the contract's fields and the stored geometry as WKB in the contract's CRS.
        contract: says what is derived, how and in which unit (without one: metres, square metres; planar: units of the CRS).
        geometry: the name of the geometry column.

    Raises:
        UsageError: the unit is not one of length or area.
    """
    derived = [field for field in contract.schema_fields if field.derived is not None and field.derived.measure is not None]
    if not derived:
        return batch
    shapes = kernel.shapes(batch.column(batch.schema.names.index(geometry)))
    crs = of_code(contract.crs_epsg)
    for field in derived:
        values = _measured(shapes, crs, field)
        place = batch.schema.names.index(field.name)
        batch = batch.set_column(place, batch.schema.field(place), _typed(values, field))
    return batch


def _measured(shapes: npt.NDArray[np.object_], crs: CRS, field: Field) -> npt.NDArray[np.float64]:
    """What each shape measures, in the field's unit; NaN for null."""
    derived = field.derived
    is_area = derived is not None and derived.measure == "area"
    if derived is not None and derived.method == "geodesic":
        metric = _geodesic(shapes, crs, is_area=is_area)
        unit = 1.0
    else:
        metric = shapely.area(shapes) if is_area else shapely.length(shapes)
        unit = 1.0 if horizontal(crs).is_geographic else metres_per_unit(crs)
    name = field.unit or (derived.unit if derived is not None else None)
    if name is None:
        return np.asarray(metric)
    unit_of_value = unit_of(name)
    size = None if unit_of_value is None else unit_of_value.area if is_area else unit_of_value.length
    if size is None:
        raise UsageError(
            f"{field.name}: {name!r} is not a unit of {'area' if is_area else 'length'}",
            field=field.name,
            hint=f"use one of {', '.join(AREAS if is_area else LENGTHS)}",
        )
    return np.asarray(metric * unit ** (2 if is_area else 1) / size)


def _geodesic(shapes: npt.NDArray[np.object_], crs: CRS, *, is_area: bool) -> npt.NDArray[np.float64]:
    """Metres or square metres on the ellipsoid (Karney 2013), a feature at a time: only candidates come here."""
    ellipsoid = crs.get_geod()
    if ellipsoid is None or not horizontal(crs).is_geographic:
        raise UsageError("a geodesic measure needs a geographic CRS", field="derived.method", hint="use method: planar")
    out = np.full(len(shapes), np.nan)
    for row, shape in enumerate(shapes):
        if shape is not None:
            out[row] = abs(ellipsoid.geometry_area_perimeter(shape)[0]) if is_area else ellipsoid.geometry_length(shape)
    return out


def _typed(values: npt.NDArray[np.float64], field: Field) -> pa.Array:
    floats = pa.array(values, mask=np.isnan(values))
    if field.type.kind == "integer":
        return pc.round(floats).cast(pa.int64())
    if field.type.kind == "decimal":
        return pc.round(floats, ndigits=field.type.scale).cast(arrow_type(field.type), safe=False)
    return floats
