"""Native geometry encodings of GeoParquet 1.1 (point, linestring, ... as nested coordinates) as WKB.

Not here: the `geo` metadata (`geoparquet`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from merestone.source.columns import plain_type

_KINDS = {
    "point": (shapely.GeometryType.POINT, 0),
    "linestring": (shapely.GeometryType.LINESTRING, 1),
    "polygon": (shapely.GeometryType.POLYGON, 2),
    "multipoint": (shapely.GeometryType.MULTIPOINT, 1),
    "multilinestring": (shapely.GeometryType.MULTILINESTRING, 2),
    "multipolygon": (shapely.GeometryType.MULTIPOLYGON, 3),
}
ENCODINGS = frozenset(_KINDS)


def is_wkb(kind: Any) -> bool:
    """Whether a column of this Arrow type may hold WKB."""
    kind = plain_type(kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def can_read(encoding: str, kind: Any) -> bool:
    """Whether a column of this Arrow type is a native encoding that `to_wkb` reads: separate x, y and perhaps z, no m."""
    if encoding not in _KINDS:
        return False
    for _ in range(_KINDS[encoding][1]):
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            return False
        kind = kind.value_type
    return pa.types.is_struct(kind) and [kind.field(at).name for at in range(kind.num_fields)] in (["x", "y"], ["x", "y", "z"])


def to_wkb(encoding: str, array: pa.Array) -> Any:
    """Nested coordinates as a pyarrow binary array of ISO WKB; null stays null."""
    geometry_type, depth = _KINDS[encoding]
    held = array.drop_null()
    offsets = []
    nested = held
    for _ in range(depth):
        starts = np.asarray(nested.offsets)
        nested = nested.values.slice(starts[0], starts[-1] - starts[0])
        offsets.append(starts - starts[0])
    xy = np.column_stack([np.asarray(nested.field(at)) for at in range(nested.type.num_fields)])
    shapes = shapely.from_ragged_array(geometry_type, np.ascontiguousarray(xy), tuple(reversed(offsets)) or None)
    out = np.full(len(array), None, dtype=object)
    out[np.asarray(array.is_valid())] = shapely.to_wkb(shapes, flavor="iso")
    return pa.array(out, pa.binary())
