"""The times of a FlatGeobuf as its features hold them: text, which GDAL reads to the millisecond and to the quarter of an hour.

Not here: reading rows (`vector`), the epoch in the header (`epochs`), what a time's text says (`cells`).
Layout: FlatGeobuf 3.0 (magic, header, index, features, each with its size before it), FlatBuffers internals (tables and their vtables).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import IO

from merestone.source.cells import Cells, Column, ColumnKind

_CHUNK = 1 << 22
_OVERLAP = 64
_ODD = re.compile(rb"\d{4}-\d\d-\d\d(?!T\d\d:\d\d:\d\d(?:\.\d{1,3})?(?:Z|[+-]\d\d:?(?:00|15|30|45))?(?![0-9:.+-])|T00:00:00(?![0-9:.+-]))")
"""A day that is not followed by a time of day as GDAL keeps it."""
_MAGIC, _SIZE = 8, 4
_COLUMNS, _COUNT, _NODE_SIZE = 7, 8, 9  # fields of the header
_PROPERTIES = 1  # field of a feature
_DATETIME = 13
_WIDTHS = {
    0: 1,
    1: 1,
    2: 1,
    3: 2,
    4: 2,
    5: 4,
    6: 4,
    7: 8,
    8: 8,
    9: 4,
    10: 8,
}  # of values by the type of their column; others say their length
_NODE = 40  # bytes of a node of the index


def kept_times(file: IO[bytes]) -> dict[str, Cells]:
    """The times that GDAL would change, by column: rows from 1 and texts.

    The features are looked through one by one only where the file holds such a time.
    """
    if not _has_odd_times(file):
        return {}
    file.seek(_MAGIC)
    header = file.read(int.from_bytes(file.read(_SIZE), "little"))
    root = _u32(header, 0)
    columns = [(_text(header, at, 0), _number(header, at, 1, 1, 0)) for at in _tables(header, root, _COLUMNS)]
    count, node = _number(header, root, _COUNT, 8, 0), _number(header, root, _NODE_SIZE, 2, 16)
    if node:
        file.seek(_index_bytes(count, node), 1)
    found = {name: Column(ColumnKind("datetime")) for name, kind in columns if kind == _DATETIME}
    row = 0
    while size := file.read(_SIZE):
        feature = file.read(int.from_bytes(size, "little"))
        row += 1
        for number, text in _texts(feature, [kind for _, kind in columns]):
            found[columns[number][0]].add(row, text)
    return {name: each.kept for name, each in found.items() if each.kept}


def _has_odd_times(file: IO[bytes]) -> bool:
    tail, found = b"", False
    while not found and (chunk := file.read(_CHUNK)):
        found = _ODD.search(tail + chunk, 0, len(tail) + len(chunk) - _OVERLAP) is not None
        tail = (tail + chunk)[-2 * _OVERLAP :]
    return found or _ODD.search(tail) is not None


def _index_bytes(count: int, node: int) -> int:
    """How long the packed Hilbert R-tree is."""
    level = nodes = count
    while level > 1:
        level = -(-level // node)
        nodes += level
    return nodes * _NODE if count else 0


def _texts(feature: bytes, kinds: list[int]) -> Iterator[tuple[int, str]]:
    """The times of a feature, with the numbers of their columns."""
    vector = _field(feature, _u32(feature, 0), _PROPERTIES)
    if not vector:
        return
    vector += _u32(feature, vector)
    at, end = vector + 4, vector + 4 + _u32(feature, vector)
    while at + 2 <= end:
        (number,) = struct.unpack_from("<H", feature, at)
        at += 2
        width = _WIDTHS.get(kinds[number])
        if width is None:
            width, at = _u32(feature, at), at + 4
            if kinds[number] == _DATETIME:
                yield number, feature[at : at + width].decode("utf-8", "replace")
        at += width


def _u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table lies, 0 where it is left out."""
    (back,) = struct.unpack_from("<i", data, table)
    (size,) = struct.unpack_from("<H", data, table - back)
    if size < 6 + 2 * number:
        return 0
    (offset,) = struct.unpack_from("<H", data, table - back + 4 + 2 * number)
    return table + offset if offset else 0


def _number(data: bytes, table: int, number: int, width: int, default: int) -> int:
    at = _field(data, table, number)
    return int.from_bytes(data[at : at + width], "little") if at else default


def _text(data: bytes, table: int, number: int) -> str:
    at = _field(data, table, number)
    at += _u32(data, at)
    return data[at + 4 : at + 4 + _u32(data, at)].decode("utf-8", "replace")


def _tables(data: bytes, table: int, number: int) -> list[int]:
    """Where the tables of a list lie."""
    at = _field(data, table, number)
    if not at:
        return []
    at += _u32(data, at)
    places = [at + 4 + 4 * each for each in range(_u32(data, at))]
    return [each + _u32(data, each) for each in places]
