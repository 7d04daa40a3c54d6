"""Values that a contract derives from the geometry: areas and lengths, recomputed from what is stored.

Not here: comparing them (they are never compared), the geometry itself (`snap`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely
from pyproj import CRS, Geod

from merestone.contract.document import Contract, Derived
from merestone.normalise.values import arrow_type

_SQUARE_METRES = {None: 1.0, "m2": 1.0, "ha": 10_000.0, "km2": 1_000_000.0, "a": 100.0}
_METRES = {None: 1.0, "m": 1.0, "km": 1_000.0, "cm": 0.01, "mm": 0.001}


def with_derived(batch: Any, contract: Contract, geometry: str) -> Any:
    """The batch with every derived field filled from its geometry column (WKB in the contract's CRS); null where there is none.

    Planar measures are those of the CRS plane in its own unit, taken as metres; geodesic ones are on the CRS's ellipsoid.
    """
    fields = [each for each in contract.schema_fields if each.derived is not None and each.derived.measure is not None]
    if not fields:
        return batch
    shapes = shapely.from_wkb(batch.column(geometry).to_numpy(zero_copy_only=False), on_invalid="ignore")
    for field in fields:
        clause = field.derived
        if clause is None:
            continue
        values = _measure(shapes, clause, contract.crs_epsg)
        place = batch.schema.names.index(field.name)
        array = pa.array(values, mask=np.isnan(values)).cast(arrow_type(field.type), safe=False)
        batch = batch.set_column(place, batch.schema.field(place), array)
    return batch


def _measure(shapes: npt.NDArray[np.object_], clause: Derived, epsg: int) -> npt.NDArray[np.float64]:
    scale = (_SQUARE_METRES if clause.measure == "area" else _METRES)[clause.unit]
    if clause.method == "planar":
        values = shapely.area(shapes) if clause.measure == "area" else shapely.length(shapes)
    else:
        geod = CRS.from_epsg(epsg).get_geod() or Geod(ellps="WGS84")
        values = np.array([np.nan if each is None else _geodesic(geod, each, clause.measure) for each in shapes])
    out: npt.NDArray[np.float64] = np.asarray(values, np.float64) / scale
    return out


def _geodesic(geod: Geod, shape: Any, measure: str | None) -> float:
    if measure == "area":
        return abs(float(geod.geometry_area_perimeter(shape)[0]))
    return float(geod.geometry_length(shape))
