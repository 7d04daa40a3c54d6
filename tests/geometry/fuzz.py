"""A fuzz target for the compiled extensions, with the NumPy path as oracle: whatever the bytes, both answer alike and neither crashes.

    python tests/geometry/fuzz.py [SECONDS] [SEED]

`one_input` takes bytes, as libFuzzer's entry does, and draws all else from them. Here they come from damaged geometries, damaged once more;
`make sanitize` runs it on extensions that stop at the first bad access.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from geometry.test_hostile import damaged
from kernels import PATHS, on
from merestone.columnar import hashing
from merestone.columnar.hashed_values import HashedColumn, JoinedText
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape

TYPES = ("point", "polygon", "multipolygon", "linestring", "geometrycollection", "geometry", "multi", "any")
DIMENSIONS = ("xy", "xyz", "xym", "xyzm", "as_is")


def answers(values, grid, shape, order):
    """What one path says to every question, in a form that can be compared."""
    column, other = pa.array(values, pa.binary()), pa.array(values[1:] + values[:1], pa.binary())
    seen = kernel.scan(column)
    stored, flags = kernel.canonical(column, grid, shape)
    attributes = [HashedColumn(b"a", "x", column), HashedColumn(b"n", "f", pa.array([len(value or b"") / 3 for value in values]))]
    xy = kernel.coordinates(column)
    with np.errstate(invalid="ignore"):
        moved = xy + 1
    said = {
        "scan": [getattr(seen, each).tolist() for each in ("kind", "has_z", "has_m", "empty", "parts", "vertices", "flags")],
        "bounds": (np.nan_to_num(seen.bounds, nan=-7.0) + 0.0).tolist(),  # the sign of a zero is no promise
        "stored": stored.to_pylist(),
        "flags": flags.tolist(),
        "encoded": kernel.encode(column, grid, shape).to_pylist(),
        "digest": kernel.digest(attributes, column, grid, shape, len(values)).to_pylist(),
        "decimals": kernel.decimals(column).tolist(),
        "xy": xy.view(np.int64).tolist(),
        "moved": kernel.with_coordinates(column, moved).to_pylist(),
        "within": kernel.within(column, stored, 0.55 * 10.0**-grid.precision, shape=shape).tolist(),
        "other": kernel.within(column, other, 5.0, shape=shape).tolist(),
        "joined": hashing.joined([b"k", JoinedText(b"v", column), column], len(values)).to_pylist(),
        "hashed": hashing.hashed([JoinedText(b"v", column)], len(values), 32).tolist(),
        "elements": hashing.elements(attributes[0]).to_pylist(),
    }
    if len(xy):
        said["hilbert"] = kernel.hilbert(xy[:, 0], xy[:, 1], (-1.0, -1.0, 1e6, 1e6), order).tolist()
    return said


def one_input(data: bytes) -> None:
    """Ask both paths the same; the first byte counts the values, the others draw grid, shape and where each value ends."""
    draw = random.Random(data[:8])
    values = []
    ends = sorted(draw.randrange(len(data) + 1) for _ in range(draw.randrange(1, 6)))
    for begin, end in zip([0, *ends], [*ends, len(data)], strict=True):
        values.append(None if draw.random() < 0.05 else data[begin:end])
    grid = Grid(draw.randrange(-4, 16), draw.choice([None, 0, 3]), draw.choice([None, 2, 18]))
    shape = Shape(draw.choice(TYPES), draw.choice(DIMENSIONS), draw.choice(["significant", "irrelevant"]))
    agree(values, grid, shape, draw.randrange(1, 32))


def agree(values, grid, shape, order):
    """Both paths say the same to every question."""
    said = []
    for path in PATHS:
        with on(path):
            said.append(answers(values, grid, shape, order))
    for question, answer in said[0].items():
        for other in said[1:]:  # NaN differs from itself: what is compared is its text
            assert repr(answer) == repr(other[question]), (question, values, grid, shape)


def main(seconds: float = 60.0, seed: int = 0) -> int:
    """Draw inputs until the time is up; the number of them."""
    noise, began, count = random.Random(seed), time.monotonic(), 0
    while time.monotonic() - began < seconds:
        parts = [damaged(noise) for _ in range(noise.randrange(1, 6))]
        data = bytearray(b"".join(parts))
        for _ in range(noise.choice([0, 0, 1, 3])):
            if data:
                data[noise.randrange(len(data))] = noise.randrange(256)
        if noise.random() < 0.7:  # values that end where they were made to end
            shape = Shape(noise.choice(TYPES), noise.choice(DIMENSIONS), noise.choice(["significant", "irrelevant"]))
            agree([*parts, None], Grid(noise.randrange(-4, 16)), shape, 16)
        one_input(bytes(data))
        count += 1
    return count


if __name__ == "__main__":
    sys.stdout.write(f"{main(*(kind(each) for kind, each in zip((float, int), sys.argv[1:], strict=False)))} inputs; both paths agree\n")
