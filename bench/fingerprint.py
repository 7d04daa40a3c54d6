"""Digests a second, and how many times the textbook recipe that is, in one run on the same data.

    python bench/fingerprint.py [--points 1000000] [--polygons 500000]

The textbook recipe walks over the rows of a GeoDataFrame: shapely `normalize(set_precision(geometry, grid))`, a JSON row, blake2b. Tuned is
the same recipe with shapely over whole columns and plain records. CPU time of one core (process time), the best of three; the recipes run
on a sample, since they are that slow. Two threads: wall time, each with half of the rows; it says little on a machine that is busy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

import geopandas as gpd
import numpy as np
import pyarrow as pa
import shapely

import merestone
from merestone.geometry import kernel

GRID = 1e-2
ATTRIBUTES = ["number", "street", "postcode", "class", "updated", "height"]
SAMPLE = 20_000


def attributes(n, noise):
    """Six columns of an address register."""
    return {
        "id": pa.array(noise.permutation(n)),
        "number": pa.array(noise.integers(1, 300, n).astype(np.int32)),
        "street": pa.array([f"street {i % 50_000}" for i in range(n)]),
        "postcode": pa.array([f"AB{i % 99} {i % 9}XY" for i in range(n)]),
        "class": pa.array(["R", "C", "X", "L"] * (n // 4) + ["R"] * (n % 4)),
        "updated": pa.array(noise.integers(15_000, 20_000, n).astype(np.int32)).cast(pa.date32()),
        "height": pa.array(np.round(noise.random(n) * 100, 2)),
    }


def points(n, noise):
    """Address points in metres with centimetres."""
    xy = np.round(noise.random((n, 2)) * 6e5, 2)
    return pa.table({**attributes(n, noise), "geometry": pa.array(shapely.to_wkb(shapely.points(xy)))})


def polygons(n, noise, vertices):
    """Outlines of so many vertices each."""
    angle = np.linspace(0, 2 * np.pi, vertices, endpoint=False) + noise.random((n, vertices)) * 0.1
    radius = 10 + noise.random((n, vertices)) * 5
    xy = noise.random((n, 1, 2)) * 6e5 + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return pa.table({**attributes(n, noise), "geometry": pa.array(shapely.to_wkb(shapely.polygons(np.round(xy, 2))))})


def textbook(frame):
    """The recipe as it is written down everywhere: one feature after the other."""
    out = {}
    for _, row in frame.iterrows():
        geometry = shapely.normalize(shapely.set_precision(row["geometry"], GRID))
        text = json.dumps({name: row[name] for name in ATTRIBUTES}, sort_keys=True, default=str)
        out[row["id"]] = hashlib.blake2b(shapely.to_wkb(geometry) + text.encode(), digest_size=16).hexdigest()
    return out


def tuned(frame):
    """The same with shapely over whole columns."""
    wkb = shapely.to_wkb(shapely.normalize(shapely.set_precision(frame.geometry.array, GRID)))
    rows = frame[ATTRIBUTES].to_dict("records")
    return [
        hashlib.blake2b(one + json.dumps(row, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()
        for one, row in zip(wkb, rows, strict=True)
    ]


def as_frame(table):
    """A GeoDataFrame, as one has it after reading a file."""
    geometry = shapely.from_wkb(np.asarray(table.column("geometry").to_pylist(), dtype=object))
    return gpd.GeoDataFrame(table.drop_columns("geometry").to_pandas(), geometry=geometry)


def digest(table):
    return merestone.fingerprint_table(table, "id", geometry_column="geometry", grid=GRID, attributes=ATTRIBUTES)


def rate(work, rows, clock=time.process_time, repeats=3):
    """Rows a second, the best of a few."""
    best = np.inf
    for _ in range(repeats):
        began = clock()
        work(rows)
        best = min(best, clock() - began)
    return len(rows) / best


def two_threads(table):
    half = table.num_rows // 2
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(digest, (table.slice(0, half), table.slice(half))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--polygons", type=int, default=500_000)
    options = parser.parse_args()
    noise = np.random.default_rng(1)
    workloads = [
        ("points, 6 attributes", points(options.points, noise)),
        ("polygons of 8 vertices, 6 attributes", polygons(options.polygons, noise, 8)),
        ("polygons of 40 vertices, 6 attributes", polygons(options.polygons // 4, noise, 40)),
    ]
    print(f"{'':38}{'features/s':>12}{'x textbook':>12}")
    for label, table in workloads:
        frame = as_frame(table.slice(0, SAMPLE))
        base = rate(textbook, frame)
        better = rate(tuned, frame)
        print(f"{label}\n{'  textbook recipe':38}{base:12,.0f}{1:12.1f}\n{'  tuned':38}{better:12,.0f}{better / base:12.1f}")
        for name in kernel.available():
            kernel.use(name)
            size = len(table) if name == "compiled" else min(len(table), 200_000)
            found = rate(digest, table.slice(0, size))
            print(f"{'  fingerprint_table, ' + name:38}{found:12,.0f}{found / base:12.1f}")
            if name == "compiled":
                one, two = rate(digest, table, time.perf_counter), rate(two_threads, table, time.perf_counter)
                print(f"{'  two threads (wall time)':38}{two:12,.0f}{two / one:11.2f}x one thread")
        kernel.use(kernel.available()[0])


if __name__ == "__main__":
    main()
