"""Native geometry encodings of GeoParquet 1.1 (point, linestring, ... as nested coordinates) as WKB.

The bytes are laid out from the offsets as they stand, and no geometry is built. A line of one position or an open ring comes to the gate, and is
named there.
Not here: the `geo` metadata (`geo_metadata`), reading rows (`geoparquet`).
Layout: GeoArrow 0.2, "Native encoding"; ISO 19125-1 WKB: byte order, type (plus 1000 for z, 2000 for m), count, parts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.source.columns import plain_type

# The WKB type of the whole, how deep its lists are, and below each list the type of its parts (0: parts without a head, as rings and vertices are)
_KINDS: dict[str, tuple[int, tuple[int, ...]]] = {
    "point": (1, ()),
    "linestring": (2, (0,)),
    "polygon": (3, (0, 0)),
    "multipoint": (4, (1,)),
    "multilinestring": (5, (2, 0)),
    "multipolygon": (6, (3, 0, 0)),
}
_DIMENSIONS = {("x", "y"): 0, ("x", "y", "z"): 1000, ("x", "y", "m"): 2000, ("x", "y", "z", "m"): 3000}
_HEAD, _COUNT = 5, 4  # bytes: byte order and type; the number of parts
ENCODINGS = frozenset(_KINDS)


def is_wkb(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type may hold WKB."""
    kind = plain_type(kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def can_read(encoding: str, kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type is a native encoding that `to_wkb` reads: separate x, y and perhaps z and m, in double precision."""
    if encoding not in _KINDS:
        return False
    for _ in _KINDS[encoding][1]:
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            return False
        kind = kind.value_type
    if not pa.types.is_struct(kind):
        return False
    fields = [kind.field(at) for at in range(kind.num_fields)]
    return tuple(each.name for each in fields) in _DIMENSIONS and all(each.type == pa.float64() for each in fields)


def broken_row(encoding: str, array: pa.Array) -> int | None:
    """The first row (from 0) that is not null and has a part, a position or a number within it that is; None where none has."""
    rows = np.flatnonzero(np.asarray(array.is_valid()))
    nested = array.drop_null()
    for _ in _KINDS[encoding][1]:
        starts = np.asarray(nested.offsets)
        rows = np.repeat(rows, np.diff(starts))
        nested = nested.values.slice(starts[0], starts[-1] - starts[0])
        if nested.null_count:
            return int(rows[np.flatnonzero(np.asarray(nested.is_null()))[0]])
    numbers = [nested.field(at) for at in range(nested.type.num_fields)]
    missing = [np.flatnonzero(np.asarray(each.is_null())) for each in numbers if each.null_count]
    return int(rows[min(each[0] for each in missing)]) if missing else None


def to_wkb(encoding: str, array: pa.Array) -> pa.Array:
    """Nested coordinates as a pyarrow binary array of ISO WKB; null stays null, an empty list is an empty geometry, NaN an empty point."""
    kind, parts = _KINDS[encoding]
    nested = array.drop_null()
    lists = []  # offsets of each level into the next, from 0
    for _ in parts:
        starts = np.asarray(nested.offsets).astype(np.int64)
        nested = nested.values.slice(starts[0], starts[-1] - starts[0])
        lists.append(starts - starts[0])
    names = tuple(nested.type.field(at).name for at in range(nested.type.num_fields))
    numbers = np.column_stack([np.asarray(nested.field(at)) for at in range(len(names))]).astype("<f8", copy=False)
    types = np.array([kind, *parts]) + _DIMENSIONS[names]
    is_headed = [True, *(bool(each) for each in parts)]
    heads = [_HEAD * headed + _COUNT * (level < len(lists)) for level, headed in enumerate(is_headed)]
    places = _places(lists, heads, numbers.shape[1] * 8, len(numbers))
    ends = places[0]
    data = np.zeros(int(ends[-1]), np.uint8)
    is_number = np.ones(len(data), np.bool_)
    for level, (headed, size) in enumerate(zip(is_headed, heads, strict=True)):
        if not size:
            continue
        at = places[level][:-1]
        is_number[at[:, None] + np.arange(size)] = False
        if headed:
            data[at] = 1
            data[at[:, None] + np.arange(1, _HEAD)] = np.frombuffer(int(types[level]).to_bytes(4, "little"), np.uint8)
        if level < len(lists):
            counts = np.diff(lists[level]).astype("<u4")
            data[at[:, None] + np.arange(size - _COUNT, size)] = counts.view(np.uint8).reshape(-1, _COUNT)
    data[is_number] = np.ascontiguousarray(numbers).view(np.uint8).ravel()
    valid = np.asarray(array.is_valid())
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(_spread(valid, np.diff(ends)), out=offsets[1:])
    mask = pa.array(valid).buffers()[1] if array.null_count else None
    made = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(array), [mask, pa.py_buffer(offsets), pa.py_buffer(data)])
    return made.cast(pa.binary())


def _spread(valid: npt.NDArray[np.bool_], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sizes of the rows that are valid, 0 for the others."""
    out = np.zeros(len(valid), np.int64)
    out[valid] = sizes
    return out


def _places(lists: list[npt.NDArray[np.int64]], heads: list[int], unit: int, leaves: int) -> list[npt.NDArray[np.int64]]:
    """For each level, from the whole to the position: where each of its elements begins, and where the last one ends.

    What stands before an element: the heads of all elements above and at its own level that have begun, and all below that are whole.
    """
    counts = [len(each) - 1 for each in lists] + [leaves]
    out = []
    for level in range(len(heads)):
        before = np.arange(counts[level] + 1, dtype=np.int64)
        place = np.zeros(counts[level] + 1, np.int64)
        for below in range(level, len(heads)):
            place += before * heads[below]
            before = lists[below][before] if below < len(lists) else before
        place += before * unit
        begun = np.arange(counts[level], dtype=np.int64)
        for above in range(level - 1, -1, -1):
            begun = np.searchsorted(lists[above], begun, side="right") - 1
            place[:-1] += (begun + 1) * heads[above]
        out.append(place)
    return out
