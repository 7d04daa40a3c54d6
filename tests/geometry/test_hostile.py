"""Damaged WKB by the thousand: the kernels agree with each other and with the reference, and neither crashes, hangs nor skips a row.

The long run is `make soak`; the short one is part of every test run.
"""

from __future__ import annotations

import math
import random
import struct
import time

import numpy as np
import pyarrow as pa
import pytest

from identity import reference
from identity.wkb_strategies import MEMBERS, to_bytes
from kernels import PATHS, on
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape

VALUES = [0.0, -0.0, 1.0, 2.0, -1.0, 0.005, 1.0049999, 123456.785, math.nan, math.inf, 1e300, 2.0**50, 5e-324]
COUNTS = [0, 1, 2, 3, 4, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF]
GRIDS = [Grid(2), Grid(7), Grid(-1), Grid(0, 3, 1)]
SHAPES = [
    Shape(),
    Shape("polygon", "xy"),
    Shape("multipolygon", "xyz"),
    Shape("linestring", "xym", "irrelevant"),
    Shape("multi", "xyzm"),
    Shape("geometrycollection"),
]


def tree(noise, kind, z, m, depth):
    def vertex():
        return tuple(noise.choice(VALUES) if noise.random() < 0.8 else noise.uniform(-999, 999) for _ in range(2 + z + m))

    def run():
        vertices = [vertex() for _ in range(noise.randrange(6))]
        return vertices + vertices[:1] if noise.random() < 0.5 else vertices

    if kind == 1:
        return kind, z, m, [vertex()] if noise.random() < 0.9 else []
    if kind in {2, 8}:
        return kind, z, m, run()
    if kind in {3, 17}:
        return kind, z, m, [run() for _ in range(noise.randrange(4))]
    members = []
    for _ in range(noise.randrange(4) if depth else 0):
        dims = (noise.random() < 0.5, noise.random() < 0.5) if kind == 7 else (z, m)
        members.append(tree(noise, noise.choice(MEMBERS[kind]), *dims, depth - 1))
    return kind, z, m, members


def damaged(noise):
    """A WKB value that may have been changed, cut, lengthened or given other counts."""
    kind = noise.choice([1, 2, 3, 3, 4, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 15, 16, 17])
    made = tree(noise, kind, noise.random() < 0.4, noise.random() < 0.3, 3)
    data = bytearray(to_bytes(made, order=noise.choice("<<>"), ewkb=noise.random() < 0.3, srid=noise.choice([None, 4326])))
    for _ in range(noise.choice([0, 1, 1, 2, 5])):
        at, how = noise.randrange(len(data) + 1), noise.randrange(6)
        if how == 0 and at < len(data):
            data[at] = noise.randrange(256)
        elif how == 1 and at < len(data):
            data[at] ^= 1 << noise.randrange(8)
        elif how == 2:
            del data[at:]
        elif how == 3:
            data[at:at] = noise.randbytes(noise.randrange(9))
        elif how == 4 and at + 4 <= len(data):
            data[at : at + 4] = struct.pack(noise.choice("<>") + "I", noise.choice(COUNTS))
        elif how == 5 and len(data) > 9:
            data[5:9] = struct.pack("<I", noise.choice(COUNTS))
    return bytes(data)


def compare(rows, seed):
    noise = random.Random(seed)
    values = [None if noise.random() < 0.02 else damaged(noise) for _ in range(rows)]
    column = pa.array(values, pa.binary())
    grid, shape = noise.choice(GRIDS), noise.choice(SHAPES)
    answers = {}
    for name in PATHS:
        with on(name):
            seen = kernel.scan(column)
            stored, flags = kernel.canonical(column, grid, shape)
            xy = kernel.coordinates(column)
            answers[name] = {
                "digest": kernel.digest([], column, grid, shape, rows),
                "stored": stored,
                "flags": flags.tolist(),
                "scan": [getattr(seen, each).tolist() for each in ("kind", "has_z", "has_m", "empty", "parts", "vertices", "flags")],
                "bounds": np.nan_to_num(seen.bounds, nan=-7.0).tolist(),
                "xy": xy.view(np.int64).tolist(),
                "moved": kernel.with_coordinates(column, np.zeros(xy.shape)),
                "valid": kernel.valid(column).tolist(),
                "measures": [np.nan_to_num(each, nan=-7.0).tolist() for each in kernel.measures(column)],
            }
    first = answers[PATHS[0]]
    for other in answers.values():
        for key, answer in first.items():
            assert answer == other[key], (seed, key)
    rules = reference.Rules(reference.Grids(grid.precision, grid.z, grid.m), shape.keep_z, shape.keep_m, shape.either_way)
    for value, digest, stored, flags, kind in zip(
        values,
        first["digest"].to_pylist(),
        first["stored"].to_pylist(),
        first["flags"],
        first["scan"][0],
        strict=True,
    ):
        assert digest == reference.digest(value, {}, rules), (seed, value)
        expected = (None, 0) if value is None else reference.stored(value, shape.type, rules)
        assert (stored, flags) == expected, (seed, value)
        assert (kind == 0) == (value is None)
        assert (kind == 255) == (flags == kernel.CANONICAL_UNREADABLE)


def test_damaged_bytes():
    for seed in range(4):
        compare(500, seed)


@pytest.mark.soak
def test_a_million_damaged_values():
    began = time.monotonic()
    for seed in range(100, 600):
        compare(2000, seed)
    assert time.monotonic() - began < 3600


def test_values_that_ask_for_much_work(each_kernel):
    """Large and degenerate values take time in proportion to their size (or, where pairs are compared, to a bounded effort)."""
    n = 20_000 if each_kernel == "compiled" else 2_000
    same = struct.pack("<BIII", 1, 3, 1, n) + struct.pack("<dd", 1.0, 1.0) * n
    circle = [(math.cos(6.283 * i / n), math.sin(6.283 * i / n)) for i in range(n)]
    periodic = [(float(i % 2), float(i // 2 % 2)) for i in range(n)]  # ties everywhere, rotations that differ late
    late = [*periodic[:-1], (0.0, 3.0)]
    points = [(1, False, False, [(1.0, 1.0)])] * n
    nested = struct.pack("<BII", 1, 7, 1) * 32 + struct.pack("<BI", 1, 7) + struct.pack("<I", 0)
    empties = struct.pack("<BII", 1, 7, n) + struct.pack("<BII", 1, 7, 0) * n
    rings = [to_bytes((3, False, False, [ring])) for ring in (circle, periodic, late)]
    values = [same, *rings, to_bytes((4, False, False, points)), nested, empties]
    column = pa.array(values, pa.binary())
    moved = pa.array(values[1:] + values[:1], pa.binary())
    began = time.process_time()
    kernel.canonical(column, Grid(3), Shape())
    kernel.digest([], column, Grid(3), Shape(), len(values))
    kernel.scan(column)
    kernel.valid(column)
    kernel.measures(column)
    if each_kernel == "compiled":  # the other path compares without a bound, and says so
        kernel.within(column, column, 0.5)
        kernel.within(column, moved, 5.0)
        kernel.largest_move(column, moved)
    assert time.process_time() - began < 30
