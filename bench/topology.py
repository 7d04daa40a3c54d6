"""Planar topology on 100,000 and on a million polygons, against a spatial-index overlap join, in one run: seconds and ratios.

    python bench/topology.py [--rows 1000000]

The rival is what one would write with GeoPandas or shapely alone: an STRtree over all polygons, a bulk query, and the pairs whose interiors
meet. It finds overlaps only; Merestone's rule finds gaps and borders that do not match as well. The polygons are parcels in blocks with
streets between them, with vertices between the corners, so that a good part of the borders has no neighbour.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import pyarrow as pa
import shapely

from merestone.gate.topology_planar import check_planar
from merestone.geometry import kernel
from merestone.geometry.form import Grid, Shape


def parcels(rows: int) -> np.ndarray:
    """Parcels of about 20 m, in blocks of 5 by 4 with streets of 10 m, corners moved by up to 3 m alike for all that share them."""
    side = int(np.ceil(np.sqrt(rows)))
    dice = np.random.default_rng(20)
    n = 2 * side + 1  # a vertex in the middle of each side
    move = dice.integers(-3000, 3001, (n, n, 2))
    i, j = (each.ravel()[:rows] for each in np.meshgrid(np.arange(side), np.arange(side), indexing="ij"))
    street = np.stack([i // 5, j // 4], axis=1) * 10_000
    ring = np.array([(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (1, 2), (0, 2), (0, 1), (0, 0)])
    a, b = 2 * i[:, None] + ring[:, 0], 2 * j[:, None] + ring[:, 1]
    xy = np.stack([a, b], axis=2) * 10_000 + move[a, b] + street[:, None, :]
    return shapely.polygons(shapely.linearrings(xy / 1000))


def ours(wkb: object) -> float:
    """Seconds of Merestone's rule."""
    clock = time.perf_counter()
    found = check_planar(wkb, 3, gap_width=1.0)
    spent = time.perf_counter() - clock
    if len(found.overlaps) or len(found.gaps) or len(found.mismatches):
        raise SystemExit("the good coverage has findings")
    return spent


def rival(wkb: object) -> float:
    """Seconds of a spatial-index join for overlaps; it starts from the same bytes."""
    clock = time.perf_counter()
    shapes = shapely.from_wkb(wkb.to_numpy(zero_copy_only=False))
    tree = shapely.STRtree(shapes)
    one, other = tree.query(shapes)
    keep = one < other
    one, other = one[keep], other[keep]
    meet = shapely.relate_pattern(shapes[one], shapes[other], "T********")
    if meet.any():
        raise SystemExit("the good coverage has overlaps")
    return time.perf_counter() - clock


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    most = options.parse_args().rows
    seconds = {}
    print("polygons    planar rule   overlap join   join / rule   peak memory of the rule")
    for rows in (most // 10, most):
        wkb = kernel.canonical(pa.array(shapely.to_wkb(parcels(rows)), pa.binary()), Grid(3), Shape("polygon", "xy"))[0].cast(pa.binary())
        seconds[rows] = ours(wkb)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        other = rival(wkb)
        print(f"{rows:>9,}   {seconds[rows]:>9.1f} s   {other:>10.1f} s   {other / seconds[rows]:>9.1f} x   {peak:>10,.0f} MiB")
    slope = np.log(seconds[most] / seconds[most // 10]) / np.log(10)
    print(f"slope from {most // 10:,} to {most:,}: {slope:.2f} (1 is linear)")


if __name__ == "__main__":
    main()
