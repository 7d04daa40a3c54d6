"""Planar topology on 100,000 and on a million polygons, against a spatial-index overlap join, and on a night of 0.4 % change, in one run.

    python bench/topology.py [--rows 1000000] [--night 100000]

Times are processor seconds, since only those compare on a machine that has other work; the rule and the join run on one core.

The rival is what one would write with GeoPandas or shapely alone: an STRtree over all polygons, a bulk query, and the pairs whose interiors
meet. It finds overlaps only; Merestone's rule finds gaps and borders that do not match as well. The polygons are parcels in blocks with
streets between them, with vertices between the corners, so that a good part of the borders has no neighbour.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import geopandas
import numpy as np
import pyarrow as pa
import shapely

from merestone.gate.topology_planar import check_planar
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape
from merestone.inspect.browse import publication_at
from merestone.line import publish as line


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
    clock = time.process_time()
    found = check_planar(wkb, 3, gap_width=1.0)
    spent = time.process_time() - clock
    if len(found.overlaps) or len(found.gaps) or len(found.mismatches):
        raise SystemExit("the good coverage has findings")
    return spent


def rival(wkb: object) -> float:
    """Seconds of a spatial-index join for overlaps; it starts from the same bytes."""
    clock = time.process_time()
    shapes = shapely.from_wkb(wkb.to_numpy(zero_copy_only=False))
    tree = shapely.STRtree(shapes)
    one, other = tree.query(shapes)
    keep = one < other
    one, other = one[keep], other[keep]
    meet = shapely.relate_pattern(shapes[one], shapes[other], "T********")
    if meet.any():
        raise SystemExit("the good coverage has overlaps")
    return time.process_time() - clock


def nights(rows: int) -> None:
    """Publish parcels under a planar contract, then nights of 0.4 % change, and print what judging the topology took."""
    spent: list[float] = []
    judge = line.judge_version

    def timed(*arguments: object) -> object:
        clock = time.process_time()
        try:
            return judge(*arguments)
        finally:
            spent.append(time.process_time() - clock)

    line.judge_version = timed
    shapes = parcels(rows)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "contract.yaml").write_text(
            json.dumps(
                {
                    "contract_version": "v1.0.0-crs:EPSG:28992-res:1m",
                    "product_id": "3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10",
                    "name": "parcels",
                    "crs_epsg": 28992,
                    "axis_order": "lon_lat",
                    "geometry_type": "polygon",
                    "coordinate_precision": 3,
                    "key": ["pid"],
                    "schema_fields": [{"name": "pid", "type": "integer", "nullable": False}, {"name": "owner", "type": "string"}],
                    "freshness_sla_minutes": 1440,
                    "availability_target": 0.99,
                    "product_owner_id": "steward@example.org",
                    "extent": [-1e6, -1e6, 1e6, 1e6],
                    "topology_rule_set": "planar",
                    "topology_parameters": {"gap_width": 1.0},
                }
            )
        )
        (place / "parcels.yaml").write_text(json.dumps({"contract": "contract.yaml", "source": "parcels.parquet", "destination": "out"}))
        owner = np.full(rows, "a", dtype=object)
        changed = np.sort(np.random.default_rng(4).choice(rows, rows // 250, replace=False))
        for words, change in (
            ("first publish, all features", None),
            ("0.4 % with another owner", "owner"),
            ("0.4 % with a shape of their own", "inside"),
            ("0.4 % that change the outline", "outline"),
        ):
            shapes, owner = _changed(shapes, owner, changed, change)
            geopandas.GeoDataFrame({"pid": np.arange(rows), "owner": owner}, geometry=shapes, crs=28992).to_parquet(
                place / "parcels.parquet"
            )
            result = line.publish(publication_at(str(place / "parcels.yaml")), line.PublishSettings())
            if result.status != "published":
                raise SystemExit(f"{words}: {result.status} {result.findings}")
            print(f"{words:<34} {spent[-1]:>7.2f} s   {spent[-1] / spent[0]:>6.1%} of the full check   {result.delta.changed:>7,} changed")


def _changed(shapes: np.ndarray, owner: np.ndarray, rows: np.ndarray, change: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Another owner for some parcels; or the vertex in the middle of a border that two of them share moved; or one on the outline of a street."""
    if change is None:
        return shapes, owner
    owner, shapes = owner.copy(), shapes.copy()
    if change == "owner":
        owner[rows] = "b"
        return shapes, owner
    side = int(np.ceil(np.sqrt(len(shapes))))
    # The middle of the border to the next parcel in a block (vertex 5, which is vertex 1 of that one), or of the front to a street.
    across = (rows % side % 4 != 3) & (rows % side + 1 < side) & (rows + 1 < len(shapes))
    chosen = rows[across] if change == "inside" else rows[(rows % side % 4 == 3) & (rows % side + 1 < side)]
    chosen = chosen[np.diff(chosen, prepend=-2) > 1]
    for vertex, members in ((5, chosen), (1, chosen + 1)) if change == "inside" else ((5, chosen),):
        ring = shapely.get_coordinates(shapes[members]).reshape(len(members), 9, 2)
        ring[:, vertex, 1] -= 0.5
        shapes[members] = shapely.polygons(ring)
    return shapes, owner


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--night", type=int, default=100_000)
    given = options.parse_args()
    most = given.rows
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
    nights(given.night)


if __name__ == "__main__":
    main()
