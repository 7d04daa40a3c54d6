"""Digests a second against the textbook recipe; a diff of two files against pygeodiff and GeoPandas; and what the digests cost beside reading.

    python bench/fingerprint.py [--points 1000000] [--polygons 500000] [--files 200000]

All in one run on the same data. The textbook recipe walks over the rows of a GeoDataFrame: shapely `normalize(set_precision(geometry, grid))`,
a JSON row, blake2b. Tuned is the same recipe with shapely over whole columns and plain records. CPU time of one core (process time), the best of
three; the recipes run on a sample, since they are that slow. Two threads: wall time of the best of seven, each with half of the rows; it says
little on a machine that is busy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyogrio
import shapely

import merestone
from merestone.columnar import hashing
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid
from merestone.identity.digest import DigestField, Layout, digest_batch
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

try:
    import pygeodiff
except ImportError:  # no wheel for this machine: its lines say so
    pygeodiff = None

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


def best(work, clock=time.process_time, repeats=3):
    """Seconds, the best of a few, and what came out."""
    seconds, found = np.inf, None
    for _ in range(repeats):
        began = clock()
        found = work()
        seconds = min(seconds, clock() - began)
    return seconds, found


# ---- a diff of two files ----


def nights(n, noise):
    """Polygons of 8 vertices; an edit of 0.4 %; and the same content told otherwise: rings from another vertex, noise of 1e-9."""
    first = polygons(n, noise, 8)
    edited = np.sort(noise.choice(n, n // 250, replace=False))
    number = first.column("number").to_numpy().copy()
    number[edited] += 1
    second = first.set_column(1, "number", pa.array(number))
    rings = shapely.get_coordinates(shapely.from_wkb(first.column("geometry").to_numpy())).reshape(n, 9, 2)[:, :8]
    retold = shapely.polygons(np.roll(rings, 3, axis=1) + noise.uniform(-1e-9, 1e-9, rings.shape))
    return {
        "0.4 % edited": (first, second, len(edited)),
        "told otherwise": (first, first.set_column(7, "geometry", pa.array(shapely.to_wkb(retold))), 0),
    }


def save(table, path):
    """A GeoPackage, rows in their order."""
    pyogrio.write_dataframe(as_frame(table).set_crs(27700), path, layer="rows", driver="GPKG")


def read_batches(path):
    return list(open_source(SourceSpec(str(path))).batches())


def by_digest(one, other):
    """Read both as Arrow, digest, compare by key."""
    sides = []
    for path in (one, other):
        table = pa.Table.from_batches(read_batches(path))
        name = next(field.name for field in table.schema if pa.types.is_binary(field.type))
        sides.append(merestone.fingerprint_table(table, "id", geometry_column=name, grid=GRID, attributes=ATTRIBUTES))
    both = sides[0].join(sides[1], "id", right_suffix="_other", join_type="full outer")
    return both.num_rows - pc.sum(pc.fill_null(pc.equal(both.column("digest"), both.column("digest_other")), False)).as_py()


def by_pandas(one, other):
    """Read both as GeoDataFrames, put rows side by side, compare each column, and geometries vertex by vertex to the grid."""
    before, after = (gpd.read_file(path).set_index("id").sort_index() for path in (one, other))
    both = before.index.intersection(after.index)
    left, right = before.loc[both], after.loc[both]
    differs = ~left.geometry.geom_equals_exact(right.geometry, GRID / 2).to_numpy()
    for name in ATTRIBUTES:
        a, b = left[name], right[name]
        differs |= ((a != b) & ~(a.isna() & b.isna())).to_numpy()
    return int(differs.sum()) + len(before) + len(after) - 2 * len(both)


def by_geodiff(one, other, folder):
    out = folder / "changeset.bin"
    geodiff = pygeodiff.GeoDiff()
    geodiff.create_changeset(str(one), str(other), str(out))
    return geodiff.changes_count(str(out))


def diffs(n, noise, folder):
    print(f"\nA diff of two GeoPackages of {n:,} polygons of 8 vertices, from file to the number of changes (CPU time)")
    for label, (before, after, truth) in nights(n, noise).items():
        files = folder / "1.gpkg", folder / "2.gpkg"
        for table, path in zip((before, after), files, strict=True):
            path.unlink(missing_ok=True)
            save(table, path)
        print(f"  {label}; really changed: {truth:,}")
        base, found = best(lambda files=files: by_digest(*files), repeats=2)
        print(f"{'    Merestone, digests':38}{base:10.2f} s{found:12,} changes")
        rivals = {"GeoPandas, side by side": by_pandas}
        if pygeodiff is None:
            print("    pygeodiff: not measured, it is not installed here (pip install pygeodiff)")
        else:
            rivals["pygeodiff"] = lambda one, other: by_geodiff(one, other, folder)
        for name, rival in rivals.items():
            seconds, found = best(lambda rival=rival, files=files: rival(*files), repeats=1)
            print(f"{'    ' + name:38}{seconds:10.2f} s{found:12,} changes{seconds / base:8.1f} times as long")


# ---- beside reading ----


def beside_reading(table, path):
    """The digests of a publish against the reading of its GeoPackage."""
    save(table, path)
    reading, batches = best(lambda: read_batches(path))
    name = next(field.name for field in batches[0].schema if pa.types.is_binary(field.type))
    layout = Layout(tuple(DigestField(each) for each in ATTRIBUTES), Grid(2))
    digesting, _ = best(lambda: [digest_batch(each, layout, name) for each in batches])
    print(
        f"{'  ' + f'{len(table):,} rows':38}reading {reading:6.2f} s   digests {digesting:6.2f} s   {digesting / reading:6.2f} of reading"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--polygons", type=int, default=500_000)
    parser.add_argument("--files", type=int, default=200_000)
    options = parser.parse_args()
    noise = np.random.default_rng(1)
    workloads = [
        ("points, 6 attributes", points(options.points, noise)),
        ("polygons of 8 vertices, 6 attributes", polygons(options.polygons, noise, 8)),
        ("polygons of 40 vertices, 6 attributes", polygons(options.polygons // 4, noise, 40)),
    ]
    before = hashing.at_work, kernel.at_work
    print(f"{'':38}{'features/s':>12}{'x textbook':>12}")
    for label, table in workloads:
        frame = as_frame(table.slice(0, SAMPLE))
        base = rate(textbook, frame)
        better = rate(tuned, frame)
        print(f"{label}\n{'  textbook recipe':38}{base:12,.0f}{1:12.1f}\n{'  tuned':38}{better:12,.0f}{better / base:12.1f}")
        for name in ("compiled", "numpy"):
            if name == "numpy":  # the front doors answer on the other path from here on
                hashing.at_work, kernel.at_work = hashing.fallback, kernel.fallback
            elif "numpy" in (hashing.NAME, kernel.NAME):
                print("  the compiled extensions are not here")
                continue
            size = len(table) if name == "compiled" else min(len(table), 200_000)
            found = rate(digest, table.slice(0, size))
            print(f"{'  fingerprint_table, ' + name:38}{found:12,.0f}{found / base:12.1f}")
            if name == "compiled":
                one, two = (rate(each, table, time.perf_counter, repeats=7) for each in (digest, two_threads))
                print(f"{'  two threads (wall time)':38}{two:12,.0f}{two / one:11.2f}x one thread")
        hashing.at_work, kernel.at_work = before
    with tempfile.TemporaryDirectory(prefix="bench-fingerprint-") as name:
        folder = Path(name)
        diffs(options.files, noise, folder)
        print("\nDigests beside the reading of the same rows from a GeoPackage, as in a publish (CPU time)")
        for label, table in workloads:
            print(label)
            beside_reading(table.slice(0, options.files), folder / "read.gpkg")
            (folder / "read.gpkg").unlink()


if __name__ == "__main__":
    main()
