"""The NumPy path behind `kernel`, for machines without a C compiler: the same answers, slower.

Common geometries go through `flat` many rows at a time, the rest through `single` one by one.

Not here: the compiled path (`compiled`), the public functions and their documentation (`kernel`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from merestone.geometry import apart, flat, single
from merestone.geometry.form import (
    CANONICAL_UNREADABLE,
    NULL_KIND,
    RAW_GRID,
    UNREADABLE,
    UNREADABLE_KIND,
    WANTED,
    WRONG_TYPE,
    Column,
    Entry,
    Grid,
    Piece,
    Scan,
    Shape,
    empty_scan,
)

NAME = "numpy"
_DECIMALS = 16
_RINGED = (single.POLYGON, single.MULTIPOLYGON, single.TRIANGLE)
_EXACT = 2.0**53
_STRETCH = 1 << 20

Ints = npt.NDArray[np.int64]


# ---- values of a binary column ----


def _places(values: Any) -> tuple[npt.NDArray[np.uint8], Ints, Ints, Ints]:
    """The bytes of a binary column (padded, so that a word can be read at any place), starts, ends, and the rows that are not null."""
    _, offsets, data = values.buffers()
    n = len(values)
    wide = pa.types.is_large_binary(values.type)
    ends = np.zeros(n + 1, np.int64)
    if n:
        ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[values.offset : values.offset + n + 1].astype(np.int64)
    low, high = int(ends[0]), int(ends[-1])
    raw = np.zeros(high - low + 64, np.uint8)
    if high > low:
        raw[: high - low] = np.frombuffer(data, np.uint8)[low:high]
    rows = np.arange(n) if values.null_count == 0 else np.flatnonzero(np.asarray(values.is_valid()))
    return raw, ends[:-1] - low, ends[1:] - low, rows


def _value(raw: npt.NDArray[np.uint8], start: Ints, end: Ints, row: int) -> bytes:
    return raw[start[row] : end[row]].tobytes()


def _node(value: bytes | None) -> single.Node | None:
    if value is None:
        return None
    try:
        return single.read(value)[0]
    except single.UnreadableError:
        return None


def _binary(offsets: Ints, data: Any, mask: Any = None) -> Any:
    """A binary array; large only where 2 GiB are not enough."""
    large = offsets[-1] >= 2**31
    valid = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    starts = offsets if large else offsets.astype(np.int32)
    kind = pa.large_binary() if large else pa.binary()
    return pa.Array.from_buffers(kind, len(offsets) - 1, [valid, pa.py_buffer(starts), pa.py_buffer(data)])


class _Rows:
    """Values of rows, given group by group and in any order, put into the order of the column."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.rows: list[Ints] = []
        self.values: list[Any] = []

    def add(self, rows: Ints, offsets: Ints, data: Any) -> None:
        self.rows.append(rows)
        self.values.append(_binary(offsets, data))

    def add_each(self, rows: Sequence[int], values: list[bytes]) -> None:
        if values:
            self.rows.append(np.asarray(rows, np.int64))
            self.values.append(pa.array(values, pa.binary()))

    def array(self) -> Any:
        """One array; null where no value was given."""
        if not self.values:
            return pa.nulls(self.n, pa.binary())
        where = np.full(self.n, -1)
        where[np.concatenate(self.rows)] = np.arange(sum(map(len, self.rows)))
        if any(pa.types.is_large_binary(each.type) for each in self.values) or sum(each.nbytes for each in self.values) >= 2**31:
            self.values = [each.cast(pa.large_binary()) for each in self.values]
        given = pa.concat_arrays(self.values)
        if len(given) == self.n and (where == np.arange(self.n)).all():
            return given
        return given.take(pa.array(where, mask=where < 0))


def _each_flat(
    wkb: Any,
    common: Callable[[flat.Flat], None],
    other: Callable[[int, bytes], None],
) -> None:
    """Hand the rows of a column to `common` by the many, and what `flat` does not read to `other` one by one."""
    raw, start, end, rows = _places(wkb)
    for first, last in _stretches(end):
        here = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last)]
        left = np.zeros(last - first, np.bool_)
        left[here - first] = True
        for group in flat.parse(raw, start, end, here):
            if len(group.row):
                left[group.row - first] = False
                common(group)
        for row in (np.flatnonzero(left) + first).tolist():
            other(row, _value(raw, start, end, row))


def _stretches(end: Ints) -> list[tuple[int, int]]:
    """Rows of about a mebibyte at a time: what is worked on then stays in the processor's cache."""
    if not len(end):
        return []
    edges = np.searchsorted(end, np.arange(0, int(end[-1]), _STRETCH), side="right").tolist()
    edges = sorted({0, *edges, len(end)})
    return list(pairwise(edges))


# ---- geometry ----


def scan(wkb: Any) -> Scan:
    """See `kernel.scan`."""
    out = empty_scan(len(wkb))
    ends = _places(wkb)[2]

    def common(group: flat.Flat) -> None:
        flat.look(group, out, ends)

    def other(row: int, value: bytes) -> None:
        try:
            node, trailing = single.read(value)
        except single.UnreadableError:
            out.kind[row], out.flags[row] = UNREADABLE_KIND, UNREADABLE
            return
        seen = single.look(node, trailing=trailing)
        out.kind[row], out.has_z[row], out.has_m[row] = node.type, node.z, node.m
        out.empty[row], out.parts[row], out.vertices[row], out.flags[row] = seen.vertices == 0, seen.parts, seen.vertices, seen.flags
        out.bounds[row] = seen.bounds

    out.kind[:] = NULL_KIND
    _each_flat(wkb, common, other)
    return out


def decimals(wkb: Any, bounds: tuple[float, float, float, float] | None) -> npt.NDArray[np.int64]:
    """See `kernel.decimals`."""
    xy = _positions(wkb, closing=False)
    if bounds is not None:
        x, y = xy.T
        xy = xy[(x >= bounds[0]) & (y >= bounds[1]) & (x <= bounds[2]) & (y <= bounds[3])]
    counts = np.zeros((2, _DECIMALS + 1), np.int64)
    for axis in (0, 1):
        left = xy[:, axis][np.isfinite(xy[:, axis])]
        for d in range(_DECIMALS):
            with np.errstate(over="ignore", invalid="ignore"):
                exact = np.rint(left * 10.0**d) / 10.0**d == left
            counts[axis, d] = exact.sum()
            left = left[~exact]
        counts[axis, _DECIMALS] = len(left)
    return counts


def measures(wkb: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """See `kernel.measures`."""
    with np.errstate(all="ignore"):  # NaN and infinity are findings elsewhere; here they are no measure
        shapes = built(wkb)
        return np.asarray(shapely.area(shapes)), np.asarray(shapely.length(shapes))


def valid(wkb: Any) -> npt.NDArray[np.bool_]:
    """See `kernel.valid`."""
    with np.errstate(all="ignore"):
        return np.asarray(shapely.is_valid(built(wkb)))


def built(wkb: Any) -> npt.NDArray[np.object_]:
    """See `kernel.shapes`."""
    values = wkb.to_numpy(zero_copy_only=False)
    try:
        return np.asarray(shapely.from_wkb(values, on_invalid="ignore"))
    except (
        NotImplementedError
    ):  # a curve stops shapely for the whole column: the others are built, and a curve is None as the kernel promises
        flags = canonical(wkb, RAW_GRID, Shape())[1]
        return np.asarray(shapely.from_wkb(np.where(flags & (CANONICAL_UNREADABLE | WRONG_TYPE), None, values), on_invalid="ignore"))


def encode(wkb: Any, grid: Grid, shape: Shape) -> Any:
    """See `kernel.encode`."""
    out = _Rows(len(wkb))
    rows: list[int] = []
    values: list[bytes] = []

    def common(group: flat.Flat) -> None:
        form = flat.canonical(group, grid, shape)
        data, offsets = flat.encoded(form)
        out.add(form.row, offsets, data)

    def other(row: int, value: bytes) -> None:
        rows.append(row)
        values.append(single.encode(value, grid, shape))

    _each_flat(wkb, common, other)
    out.add_each(rows, values)
    return out.array()


def canonical(wkb: Any, grid: Grid, shape: Shape) -> tuple[Any, npt.NDArray[np.uint8]]:
    """See `kernel.canonical`."""
    out, flags = _Rows(len(wkb)), np.zeros(len(wkb), np.uint8)
    rows: list[int] = []
    values: list[bytes] = []

    def common(group: flat.Flat) -> None:
        form = flat.canonical(group, grid, shape)
        data, offsets, found = flat.stored(form, grid, WANTED[shape.type])
        flags[form.row] = found
        out.add(form.row, offsets, data)

    def other(row: int, value: bytes) -> None:
        stored, found = single.canonical(value, grid, shape)
        flags[row] = found
        rows.append(row)
        values.append(stored)

    _each_flat(wkb, common, other)
    out.add_each(rows, values)
    return out.array(), flags


def coordinates(wkb: Any) -> npt.NDArray[np.float64]:
    """See `kernel.coordinates`."""
    return _positions(wkb, closing=True)


def _positions(wkb: Any, *, closing: bool) -> npt.NDArray[np.float64]:
    """The vertices of all rows, with or without the last of each ring, which repeats its first; (n, 2)."""
    found: list[tuple[Ints, npt.NDArray[np.float64]]] = []  # row of each vertex, position

    def common(group: flat.Flat) -> None:
        of_run = group.part_row[group.run_part]
        rows, xy = np.repeat(group.row[of_run], group.run_size), flat.vertices(group)[:2].T
        if not closing:
            rings = np.isin(group.kind[of_run], _RINGED) & (group.run_size > 1)
            last = (np.cumsum(group.run_size) - 1)[rings]
            rows, xy = np.delete(rows, last), np.delete(xy, last, axis=0)
        found.append((rows, xy))

    def other(row: int, value: bytes) -> None:
        node = _node(value)
        xy = [
            vertex[:2]
            for leaf, _ in (node.leaves() if node else ())
            for run in leaf.runs
            for vertex in (run[:-1] if not closing and leaf.type in _RINGED and len(run) > 1 else run)
        ]
        found.append((np.full(len(xy), row), np.array(xy, np.float64).reshape(-1, 2)))

    _each_flat(wkb, common, other)
    if not found:
        return np.zeros((0, 2))
    order = np.argsort(np.concatenate([rows for rows, _ in found]), kind="stable")
    return np.concatenate([xy for _, xy in found])[order]


def with_coordinates(wkb: Any, xy: npt.NDArray[np.float64]) -> Any:
    """See `kernel.with_coordinates`."""
    values: list[bytes | None] = []
    at = 0
    positions = [tuple(each) for each in xy.tolist()]
    for value in wkb.to_pylist():
        node = _node(value)
        if node is not None:
            for leaf, _ in node.leaves():
                for place, run in enumerate(leaf.runs):
                    leaf.runs[place] = [positions[at + k] + vertex[2:] for k, vertex in enumerate(run)]
                    at += len(run)
        values.append(value if node is None else single.write(node))
    return pa.array(values, pa.binary())


def largest_move(before: Any, after: Any) -> npt.NDArray[np.float64]:
    """See `kernel.largest_move`."""
    out = np.full(len(before), np.nan)
    for row, pair in enumerate(zip(before.to_pylist(), after.to_pylist(), strict=True)):
        one, other = map(_node, pair)
        if one is not None and other is not None:
            out[row] = apart.size_of_change(*(apart.outline(each, keep_z=False, keep_m=False) for each in (one, other)))
    return out


def within(delivered: Any, published: Any, limits: tuple[float, float, float], shape: Shape) -> npt.NDArray[np.bool_]:
    """See `kernel.within`."""
    near = apart.Near((limits[0], limits[0], limits[1], limits[2]), shape.either_way)
    out = np.zeros(len(delivered), np.bool_)
    for row, pair in enumerate(zip(delivered.to_pylist(), published.to_pylist(), strict=True)):
        one, other = map(_node, pair)
        if one is not None and other is not None:
            a, b = (apart.outline(each, keep_z=shape.keep_z, keep_m=shape.keep_m) for each in (one, other))
            out[row] = apart.is_near(a, b, near)
        else:
            out[row] = pair == (None, None)
    return out


def hilbert(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    bounds: tuple[float, float, float, float],
    order: int,
) -> npt.NDArray[np.uint64]:
    """See `kernel.hilbert`."""
    nowhere = np.isnan(x) | np.isnan(y)
    cx, cy = _cells(x, bounds[0], bounds[2], order), _cells(y, bounds[1], bounds[3], order)
    index = np.zeros(len(x), np.uint64)
    for level in range(order - 1, -1, -1):
        side = np.uint64(1 << level)
        right, top = (cx & side) != 0, (cy & side) != 0
        index += side * side * ((np.uint64(3) * right.astype(np.uint64)) ^ top.astype(np.uint64))
        last = side - np.uint64(1)
        cx, cy = cx & last, cy & last
        flip = right & ~top
        cx, cy = np.where(flip, last - cx, cx), np.where(flip, last - cy, cy)
        cx, cy = np.where(top, cx, cy), np.where(top, cy, cx)
    return np.where(nowhere, np.uint64(2**64 - 1), index)


def _cells(values: npt.NDArray[np.float64], low: float, high: float, order: int) -> npt.NDArray[np.uint64]:
    cells = 2.0**order
    with np.errstate(invalid="ignore", over="ignore"):
        at = np.floor((values - low) / (high - low) * cells) if high > low else np.zeros(len(values))
    inside: npt.NDArray[np.float64] = np.clip(np.nan_to_num(at, nan=0.0, posinf=cells, neginf=0.0), 0, cells - 1)
    return inside.astype(np.uint64)


# ---- attributes and digest ----


def digest(columns: Sequence[Column], geometry: Any, grid: Grid, shape: Shape, n: int) -> Any:
    """See `kernel.digest`."""
    section = pa.scalar(b"\x00", pa.binary()) if geometry is None else _section(encode(geometry, grid, shape))
    payload = pc.binary_join_element_wise(section, *_fields(columns, n), _NOTHING) if n else pa.array([], pa.binary())
    return _hashed(payload, 16)


_NOTHING = pa.scalar(b"", pa.binary())


def _section(encoded: Any) -> Any:
    """The geometry section: 00 for null, 01 and G, or the unreadable bytes, which bring their 02 along."""
    if len(encoded) == 0:
        return encoded.cast(pa.binary())
    readable = pc.not_equal(pc.binary_slice(encoded, 0, 1), pa.scalar(b"\x02", encoded.type))
    intro = pc.if_else(pc.fill_null(readable, True), b"\x01", b"").cast(pa.binary())
    return pc.fill_null(pc.binary_join_element_wise(intro, encoded.cast(pa.binary()), _NOTHING), b"\x00")


def _hashed(values: Any, size: int) -> Any:
    raw, start, end, rows = _places(values)
    view = memoryview(raw.data)
    digests = np.zeros((len(values), size), np.uint8)
    bounds = zip(start[rows].tolist(), end[rows].tolist(), strict=True)
    found = b"".join([hashlib.blake2b(view[low:high], digest_size=size).digest() for low, high in bounds])
    digests[rows] = np.frombuffer(found, np.uint8).reshape(-1, size)
    mask = None if values.null_count == 0 else pa.py_buffer(np.packbits(np.asarray(values.is_valid()), bitorder="little"))
    return pa.Array.from_buffers(pa.binary(size), len(values), [mask, pa.py_buffer(digests)])


def blake2b16(values: Any) -> Any:
    """See `kernel.blake2b16`."""
    return _hashed(values, 16)


def joined(pieces: Sequence[Piece], n: int) -> Any:
    """See `kernel.joined`."""
    laid = [pa.scalar(each, pa.binary()) if isinstance(each, bytes) else _written(each) for each in pieces]
    if not n:
        return pa.array([], pa.binary())
    if all(isinstance(each, pa.Scalar) for each in laid):
        return pa.repeat(pa.scalar(b"".join(each.as_py() for each in laid), pa.binary()), n)
    return pc.binary_join_element_wise(*laid, _NOTHING, null_handling="replace", null_replacement=b"")


def hashed(pieces: Sequence[Piece], n: int, size: int) -> npt.NDArray[np.uint8]:
    """See `kernel.hashed`."""
    found = _hashed(joined(pieces, n), size)
    return np.frombuffer(found.buffers()[1], np.uint8).reshape(n, size) if n else np.empty((0, size), np.uint8)


def _written(piece: Piece) -> Any:
    """A piece that differs by row, as binary; null where it writes nothing."""
    array = piece.array if isinstance(piece, Entry) else piece
    if isinstance(array, pa.DictionaryArray):
        if len(array.dictionary) > len(array):
            return _written(Entry(piece.name, _dense(array)) if isinstance(piece, Entry) else _dense(array))
        values = _written(Entry(piece.name, array.dictionary) if isinstance(piece, Entry) else array.dictionary)
        return pc.cast(pa.DictionaryArray.from_arrays(array.indices, values), pa.binary())
    if not isinstance(piece, Entry):
        return pc.cast(array, pa.binary())
    text = pc.cast(_text(array), pa.binary())
    length = pc.cast(pc.cast(pc.binary_length(text), pa.string()), pa.binary())
    return pc.binary_join_element_wise(piece.name + b":", length, b":", text, b",", _NOTHING)


def _dense(array: Any) -> Any:
    return pc.cast(array, array.dictionary.type)


def _text(array: Any) -> Any:
    """The values of an entry as text."""
    if not pa.types.is_fixed_size_binary(array.type):
        return array if pa.types.is_binary(array.type) else pc.cast(array, pa.string())
    width = array.type.byte_width
    data = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    digits = np.frombuffer(data.tobytes().hex().encode(), np.uint8)
    offsets = np.arange(len(array) + 1, dtype=np.int32) * (2 * width)
    mask = None if array.null_count == 0 else array.is_valid().buffers()[1]
    return pa.Array.from_buffers(pa.string(), len(array), [mask, pa.py_buffer(offsets), pa.py_buffer(digits)])


def attributes(columns: Sequence[Column], n: int) -> Any:
    """See `kernel.attributes`."""
    return pc.binary_join_element_wise(*_fields(columns, n), _NOTHING) if n else pa.array([], pa.binary())


def elements(column: Column) -> Any:
    """See `kernel.elements`."""
    value = _valued(column, b"")
    return pc.fill_null(value, b"\x00")


def _fields(columns: Sequence[Column], n: int) -> list[Any]:
    """The attribute section in pieces to be joined row by row: the count, then each field, empty where it has no value."""
    fields = [_valued(each, len(each.name).to_bytes(4, "little") + each.name) for each in columns]
    count = np.zeros(n, np.uint32)
    for each in fields:
        count += np.asarray(each.is_valid()) if each.null_count else True
    return [_fixed(count.astype("<u4").view(np.uint8).reshape(n, 4)), *(pc.fill_null(each, b"") for each in fields)]


def _fixed(rows: npt.NDArray[np.uint8], valid: npt.NDArray[np.bool_] | None = None) -> Any:
    """Rows of one width as a binary array."""
    n, width = len(rows), rows.shape[1]
    return _binary(np.arange(n + 1, dtype=np.int64) * width, np.ascontiguousarray(rows), None if valid is None or valid.all() else ~valid)


def _valued(column: Column, intro: bytes) -> Any:
    """`intro`, tag, length and value of each row as a binary array, null where there is no value."""
    array, kind, tag = column.array, column.array.type, column.tag.encode()
    valid = np.asarray(array.is_valid()) if array.null_count else None
    if column.elements is not None:
        return _variable(_list_values(column), intro + tag)
    if pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        return _variable(array.cast(pa.binary()), intro + tag)
    if pa.types.is_floating(kind):
        return _floats(np.asarray(array.fill_null(0)).astype(np.float64), valid, intro, tag)
    if pa.types.is_uint64(kind) and len(array) and (pc.max(array).as_py() or 0) >= 2**63:
        values = np.asarray(array.fill_null(0))
        large = values >= np.uint64(2**63)
        rows = np.zeros((len(array), 16), np.uint8)
        rows[:, :8] = values.astype("<u8").view(np.uint8).reshape(-1, 8)
        wide, narrow = _rows(intro + tag, rows), _rows(intro + tag, rows[:, :8])
        return _masked(pc.if_else(pa.array(large), _fixed(wide), _fixed(narrow)), valid)
    return _fixed(_rows(intro + tag, _plain(column)), valid)


def _plain(column: Column) -> npt.NDArray[np.uint8]:
    """The value bytes of a type of one width, (n, width)."""
    array, kind, n = column.array, column.array.type, len(column.array)
    if pa.types.is_boolean(kind):
        return np.asarray(array.fill_null(False)).astype(np.uint8).reshape(n, 1)
    if pa.types.is_date32(kind):
        return np.asarray(array.cast(pa.int32()).fill_null(0)).astype("<i4").view(np.uint8).reshape(n, 4)
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal128(kind):
        width = 16 if pa.types.is_decimal128(kind) else kind.byte_width
        raw = np.frombuffer(array.buffers()[1] or b"", np.uint8)[array.offset * width : (array.offset + n) * width].reshape(n, width)
        if not pa.types.is_decimal128(kind):
            return raw
        return np.concatenate([np.full((n, 1), kind.scale & 0xFF, np.uint8), raw], axis=1)
    return np.asarray(array.fill_null(0)).astype("<i8").view(np.uint8).reshape(n, 8)


def _rows(intro: bytes, values: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Each value with intro and its length in front."""
    head = np.frombuffer(intro + values.shape[1].to_bytes(4, "little"), np.uint8)
    out = np.empty((len(values), len(head) + values.shape[1]), np.uint8)
    out[:, : len(head)] = head
    out[:, len(head) :] = values
    return out


def _floats(values: npt.NDArray[np.float64], valid: Any, intro: bytes, tag: bytes) -> Any:
    """Floats; whole ones below 2^53 are integers, and NaN is no value."""
    whole = (np.abs(values) < _EXACT) & (values == np.rint(values))
    bits = np.where(whole, np.where(whole, values, 0).astype(np.int64), values.view(np.int64))
    rows = _rows(intro + tag, bits.astype("<i8").view(np.uint8).reshape(-1, 8))
    rows[whole, len(intro)] = ord("i")
    number = ~np.isnan(values)
    return _fixed(rows, number if valid is None else number & valid)


def _variable(values: Any, intro: bytes) -> Any:
    if len(values) == 0:
        return pa.array([], pa.binary())
    sizes = np.asarray(pc.binary_length(values).fill_null(0)).astype("<u4").view(np.uint8).reshape(-1, 4)
    head = np.empty((len(values), len(intro) + 4), np.uint8)
    head[:, : len(intro)] = np.frombuffer(intro, np.uint8)
    head[:, len(intro) :] = sizes
    return pc.binary_join_element_wise(_fixed(head), values, _NOTHING)


def _list_values(column: Column) -> Any:
    """The count of each list and its elements, which stand encoded one after the other."""
    starts = np.asarray(column.array.offsets).astype(np.int64)
    raw, begin, end, _ = _places(column.elements)
    edges = np.append(begin, end[-1] if len(end) else 0)[starts] if len(column.array) else starts
    whole = _binary(edges - edges[0], raw[edges[0] : edges[-1]].copy()) if len(column.array) else pa.array([], pa.binary())
    counts = _fixed(np.diff(starts).astype("<u4").view(np.uint8).reshape(-1, 4))
    joined = pc.binary_join_element_wise(counts, whole.cast(pa.binary()), _NOTHING) if len(column.array) else whole
    return _masked(joined, np.asarray(column.array.is_valid()) if column.array.null_count else None)


def _masked(values: Any, valid: npt.NDArray[np.bool_] | None) -> Any:
    return values if valid is None else pc.if_else(pa.array(valid), values, pa.scalar(None, values.type))
