"""How long a delivery of polygons takes through all surfaces but topology, and how many times that its peers take, in one run.

    python bench/gate.py [--rows 1000000] [--peer-rows 50000]

Every contestant is a process of its own that reads the same GeoParquet file and holds it to the same promises, as far as it knows them:
Merestone all of schema, CRS and axis order, geometry, freshness and semantics; pandera types, nulls, a code list, a pattern, uniqueness and
(by shapely) validity; geoassert CRS, geometry, bounds, nulls, uniqueness and a code list; geolint geometry, coordinates and attributes.
Wall and CPU time, the best of three, without the start of Python; peak memory of the process. A peer that is too slow for all rows gets the
first --peer-rows, and its time is scaled up (they are linear in rows); one that is not installed is left out, and the reason printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

USES = ["dwelling", "office", "shop", "barn"]
EXTENT = [10_000.0, 300_000.0, 280_000.0, 620_000.0]
LIMIT = 512  # MiB
PEERS = ("pandera", "geoassert", "geolint")


def write(folder, rows):
    """Buildings of ten vertices on a grid of millimetres in EPSG:28992, in row groups of 100,000."""
    noise = np.random.default_rng(4)
    path, writer, vertices = folder / "buildings.parquet", None, 10
    geo = {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Polygon"], "crs": json.loads(_crs())}},
    }
    for first in range(0, rows, 100_000):
        n = min(100_000, rows - first)
        number = np.arange(first, first + n)
        angle = np.linspace(0, 2 * np.pi, vertices, endpoint=False) + noise.random((n, vertices)) * 0.3
        radius = 5 + noise.random((n, vertices)) * 3
        middle = np.stack([20_000 + noise.random(n) * 250_000, 310_000 + noise.random(n) * 300_000], axis=-1)
        xy = np.round(middle[:, None, :] + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1), 3)
        shapes = shapely.polygons(xy)
        table = pa.table(
            {
                "id": pa.array(number),
                "code": pa.array([f"B{each:09d}" for each in number.tolist()]),
                "use": pa.array(np.array(USES)[number % 4]),
                "area": pa.array(np.round(shapely.area(shapes), 1)),
                "floors": pa.array(noise.integers(1, 12, n)),
                "built": pa.array(noise.integers(0, 20_000, n).astype(np.int32)).cast(pa.date32()),
                "geometry": pa.array(shapely.to_wkb(shapes)),
            }
        ).replace_schema_metadata({"geo": json.dumps(geo)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()
    return path


def _crs():
    from pyproj import CRS  # noqa: PLC0415 - only where the file is made

    return CRS.from_epsg(28992).to_json()


def contract(folder):
    """The promises."""
    path = folder / "contract.yaml"
    path.write_text(
        json.dumps(
            {
                "contract_version": "v1.0.0-crs:EPSG:28992-res:1m",
                "product_id": "6b1f0a0e-2f55-4c6a-9d0e-0a8a2f6f4a11",
                "crs_epsg": 28992,
                "axis_order": "lon_lat",
                "geometry_type": "polygon",
                "coordinate_precision": 3,
                "key": ["id"],
                "extent": EXTENT,
                "schema_fields": [
                    {"name": "id", "type": "integer", "nullable": False},
                    {"name": "code", "type": "string", "nullable": False, "unique": True, "pattern": "B[0-9]{9}"},
                    {"name": "use", "type": "string", "nullable": False},
                    {"name": "area", "type": "number", "nullable": False, "unit": "m2"},
                    {"name": "floors", "type": "integer", "nullable": False},
                    {"name": "built", "type": "date"},
                ],
                "semantics": {"use": {"enum": USES}, "area": {"null_means": "not measured"}},
                "freshness_from": "built",
                "freshness_sla_minutes": 100_000_000,
                "availability_target": 0.99,
                "product_owner_id": "steward@example.org",
            }
        ),
        encoding="utf-8",
    )
    return path


# --- contestants: each reads the file, checks it, and must find nothing ----------------------------------------------------------------


def merestone(path, agreed):
    from merestone.line.check import check, of_contract  # noqa: PLC0415 - each contestant brings its own imports
    from merestone.line.settings import CheckSettings  # noqa: PLC0415

    publication = of_contract(str(path), str(agreed))
    return lambda: [each.rule for each in check(publication, CheckSettings(str(path), str(agreed)))[0].findings]


def pandera(path, _agreed):
    import geopandas as gpd  # noqa: PLC0415
    import pandera.pandas as pdr  # noqa: PLC0415

    schema = pdr.DataFrameSchema(
        {
            "id": pdr.Column(int, unique=True),
            "code": pdr.Column(str, [pdr.Check.str_matches(r"^B[0-9]{9}$")], unique=True),
            "use": pdr.Column(str, pdr.Check.isin(USES)),
            "area": pdr.Column(float),
            "floors": pdr.Column(int),
        }
    )

    def run():
        table = gpd.read_parquet(path)
        schema.validate(table.drop(columns="geometry"), lazy=True)
        return [] if shapely.is_valid(np.asarray(table.geometry)).all() else ["validity"]

    return run


def geoassert(path, _agreed):
    import geoassert as peer  # noqa: PLC0415

    agreed = peer.Contract.model_validate(
        {
            "geometry": {"type": ["Polygon"], "crs": "EPSG:28992"},
            "bounds": {"within": {"bbox": EXTENT}},
            "attributes": {
                "id": {"nullable": False, "unique": True},
                "code": {"nullable": False, "unique": True},
                "use": {"nullable": False, "allowed_values": USES},
                "area": {"nullable": False, "min": 0},
            },
        }
    )
    return lambda: [each.check for each in peer.validate(path, agreed).failures]


def geolint(path, _agreed):
    from geolint.core.checks import (  # noqa: PLC0415
        check_coordinate_range,
        check_duplicate_vertices,
        check_id_uniqueness,
        check_null_attributes,
        check_sliver_and_zero_geometries,
    )
    from geolint.core.validation import load_dataset, validate_geometries  # noqa: PLC0415

    def run():
        table = load_dataset(path)
        validate_geometries(table)
        for each in (
            check_coordinate_range,
            check_duplicate_vertices,
            check_id_uniqueness,
            check_null_attributes,
            check_sliver_and_zero_geometries,
        ):
            each(table)
        return []

    return run


def measure(name, path, agreed):
    """Run in a process of its own: prints the best wall and CPU time of three, and the peak of memory in MiB."""
    run = globals()[name](Path(path), Path(agreed))
    best = []
    for _ in range(3 if name in ("merestone", "pandera") else 1):
        wall, cpu = time.perf_counter(), time.process_time()
        found = run()
        best.append((time.perf_counter() - wall, time.process_time() - cpu))
        if found:
            raise SystemExit(f"{name} finds {found} in good data")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    print(json.dumps({"wall": min(each[0] for each in best), "cpu": min(each[1] for each in best), "peak": peak}))


def contest(name, path, agreed):
    """The figures of one contestant."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name, str(path), str(agreed)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--rows", type=int, default=1_000_000)
    reader.add_argument("--peer-rows", type=int, default=50_000)
    reader.add_argument("--measure", nargs=3, metavar=("NAME", "FILE", "CONTRACT"))
    asked = reader.parse_args()
    if asked.measure:
        measure(*asked.measure)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, agreed = write(folder, asked.rows), contract(folder)
        (folder / "few").mkdir()
        few = write(folder / "few", min(asked.peer_rows, asked.rows))
        ours = contest("merestone", path, agreed)
        print(f"{asked.rows:,} polygons, all surfaces but topology")
        said = "held" if ours["peak"] < LIMIT else "EXCEEDED"
        print(f"merestone   {ours['wall']:8.2f} s   CPU {ours['cpu']:8.2f} s   peak {ours['peak']:6.0f} MiB (limit {LIMIT}: {said})")
        for peer in PEERS:
            if importlib.util.find_spec(peer) is None:
                print(f"{peer:<11} left out: not installed (pip install {peer})")
                continue
            scaled = peer in {"geolint", "geoassert"}
            theirs = contest(peer, few if scaled else path, agreed)
            times = asked.rows / min(asked.peer_rows, asked.rows) if scaled else 1.0
            wall, cpu = theirs["wall"] * times, theirs["cpu"] * times
            how = f"   scaled from {min(asked.peer_rows, asked.rows):,} rows" if scaled else ""
            ratios = f"{wall / ours['wall']:6.1f} times (CPU {cpu / ours['cpu']:.1f})"
            print(f"{peer:<11} {wall:8.2f} s   CPU {cpu:8.2f} s   peak {theirs['peak']:6.0f} MiB   {ratios}{how}")


if __name__ == "__main__":
    main()
