"""Tiny grid files for PROJ, made by tests."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np


def tiff_grid(path: Path, north: float = 1.0) -> Path:
    """A grid of shifts for Great Britain in PROJ's GeoTIFF form, `north` arc-seconds to the north everywhere; classic TIFF."""
    width = height = 12
    offsets = np.zeros((height, width, 2), dtype="<f4")
    offsets[:, :, 0] = north
    pixels = offsets.tobytes()
    described = "".join(
        f'<Item name="{name}" sample="{sample}"{role}>{text}</Item>'
        for sample, band in enumerate(("latitude_offset", "longitude_offset"))
        for name, role, text in (("DESCRIPTION", ' role="description"', band), ("UNITTYPE", ' role="unittype"', "arc-second"))
    )
    metadata = f'<GDALMetadata><Item name="TYPE">HORIZONTAL_OFFSET</Item>{described}</GDALMetadata>\0'.encode()
    doubles = {33550: (1.0, 1.0, 0.0), 33922: (0.0, 0.0, 0.0, -9.0, 61.0, 0.0)}
    keys = (1, 1, 0, 3, 1024, 0, 1, 2, 1025, 0, 1, 2, 2048, 0, 1, 4277)
    entries: list[tuple[int, int, int, bytes]] = [
        (256, 3, 1, struct.pack("<H", width)), (257, 3, 1, struct.pack("<H", height)), (258, 3, 2, struct.pack("<2H", 32, 32)),
        (259, 3, 1, struct.pack("<H", 1)), (262, 3, 1, struct.pack("<H", 1)), (273, 4, 1, b""), (277, 3, 1, struct.pack("<H", 2)),
        (278, 3, 1, struct.pack("<H", height)), (279, 4, 1, struct.pack("<I", len(pixels))), (284, 3, 1, struct.pack("<H", 1)),
        (338, 3, 1, struct.pack("<H", 0)), (339, 3, 2, struct.pack("<2H", 3, 3)),
        *((tag, 12, len(values), struct.pack(f"<{len(values)}d", *values)) for tag, values in doubles.items()),
        (34735, 3, len(keys), struct.pack(f"<{len(keys)}H", *keys)), (42112, 2, len(metadata), metadata),
    ]  # fmt: skip
    start = 8 + 2 + 12 * len(entries) + 4
    tail, table = b"", b""
    long = [(tag, value) for tag, _, _, value in entries if len(value) > 4]
    places = {}
    for tag, value in long:
        places[tag] = start + len(tail)
        tail += value + b"\0" * (len(value) % 2)
    data = start + len(tail)
    for tag, kind, count, value in entries:
        packed = struct.pack("<I", data) if tag == 273 else struct.pack("<I", places[tag]) if tag in places else value.ljust(4, b"\0")
        table += struct.pack("<HHI", tag, kind, count) + packed
    path.write_bytes(b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(entries)) + table + struct.pack("<I", 0) + tail + pixels)
    return path
