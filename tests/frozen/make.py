"""Writes the datasets of this folder anew, as the Merestone at hand would write them: python tests/frozen/make.py OUT

What is committed under `v1/` was written once and stays: later versions must read it for ever. Run this for a new format only, into a new folder.
`parcels`: polygons in kd-tree cells, with a suppressed, a held and a rejected row. `roads`: lines with Z, partitioned by a column that is
not in the contract, with a reversed, a rekeyed and a moved one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyproj import CRS

from merestone.line.publish import PublishSettings, publish
from merestone.publication.reader import read_publication, with_source

COMMON = """
product_id: {uuid}
crs_epsg: 25832
axis_order: lon_lat
coordinate_precision: 2
freshness_sla_minutes: 1440
availability_target: 0.99
product_owner_id: steward@example.org
"""
PARCELS = (
    "contract_version: v1.0.0-crs:EPSG:25832-res:1m"
    + COMMON.format(uuid="0a4d8a34-9f7e-4d2c-8f60-6a6a6f0f5a01")
    + """
name: parcels
key: pid
geometry_type: multipolygon
schema_fields:
  - {name: pid, type: string, nullable: false}
  - {name: owner, type: string}
  - {name: area_m2, type: number, derived: {measure: area, unit: m2}}
  - {name: valued, type: "decimal(10,2)"}
  - {name: seen, type: timestamp}
  - {name: tags, type: list<string>}
"""
)
ROADS = (
    "contract_version: v1.0.0-crs:EPSG:25832-res:1m"
    + COMMON.format(uuid="0a4d8a34-9f7e-4d2c-8f60-6a6a6f0f5a02")
    + """
name: roads
key: rid
geometry_type: linestring
geometry: {dimensions: xyz, z_precision: 1}
schema_fields:
  - {name: rid, type: integer, nullable: false}
  - {name: name, type: string, nullable: false}
  - {name: lanes, type: integer}
  - {name: guid, type: string, volatile: true}
"""
)
PUBLICATIONS = {
    "parcels": "partition: {by: kdtree, target_rows: 20}\nrejects: {max_fraction: 0.1}\nguard: {max_changed_fraction: 0.5}\n",
    "roads": "partition: {by: column, column: district}\nguard: {max_changed_fraction: 0.5}\n",
}
GEO = {
    "version": "1.1.0",
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": [], "crs": CRS.from_epsg(25832).to_json_dict()}},
}


def parcels(night: int) -> pa.Table:
    """Sixty squares; on night 2 some are edited, moved, wobbled, broken, gone and new; night 3 mends the broken one and takes an edit back."""
    rows = []
    for n in range(60):
        x, y = 500_000 + 50 * (n % 10), 6_200_000 + 50 * (n // 10)
        shape, owner, valued = shapely.box(x, y, x + 40.125, y + 30), f"owner {n % 7}", f"{1000 + n}.50"
        if night >= 2:
            if n == 3 and night == 2:
                owner = "Å new owner"
            if n == 4:
                shape = shapely.box(x + 2, y, x + 42, y + 30)
            if n == 5:  # noise at a rounding edge: suppressed
                shape = shapely.box(x, y, x + 40.12545, y + 30)
            if n == 6 and night == 2:  # a bow-tie: rejected, held
                shape = shapely.Polygon([(x, y), (x + 40, y + 30), (x + 40, y), (x, y + 30)])
            if n == 7:
                continue
        rows.append((f"p{n:03d}", owner, valued, "2024-05-01T08:00:00Z", [f"t{n % 3}"] if n % 4 else None, shape))
    if night >= 2:
        rows.append(("p900", "new", None, None, [], shapely.box(500_700, 6_200_000, 500_740, 6_200_030)))
    pid, owner, valued, seen, tags, shapes = zip(*rows, strict=True)
    return pa.table(
        {
            "pid": pa.array(pid),
            "owner": pa.array(owner),
            "valued": pa.array(valued).cast(pa.decimal128(10, 2)),
            "seen": pa.array(seen).cast(pa.timestamp("ms", "UTC")),
            "tags": pa.array(tags, pa.list_(pa.string())),
            "geometry": pa.array([shapely.to_wkb(each) for each in shapes], pa.binary()),
        }
    )


def roads(night: int) -> pa.Table:
    """Forty lines in three districts; on night 2 one turns round, one changes its number, one its district, on night 3 it goes back."""
    rows = []
    for n in range(40):
        x, y = 500_000 + 100 * n, 6_200_000
        points, rid, name, district = [(x, y, 1.0), (x + 50, y + 20, 2.5), (x + 90, y, 3.0)], n + 1, f"road {n}", "NES"[n % 3]
        if night >= 2:
            if n == 10:
                points.reverse()
            if n == 11:
                rid = 911
            if n == 12:
                points[1] = (x + 50, y + 20, 2.7)
            if n == 13:
                name = "renamed"
        if n == 14 and night == 2:
            district = "N" if district != "N" else "S"
        rows.append((rid, name, 2 if n % 5 else None, f"guid-{night}-{n}", district, shapely.LineString(points)))
    rid, name, lanes, guid, district, shapes = zip(*rows, strict=True)
    return pa.table(
        {
            "rid": pa.array(rid),
            "name": pa.array(name),
            "lanes": pa.array(lanes),
            "guid": pa.array(guid),
            "district": pa.array(district),
            "geometry": pa.array([shapely.to_wkb(each, output_dimension=3) for each in shapes], pa.binary()),
        }
    )


def main(out: str) -> None:
    """Publish three nights of both."""
    folder = Path(out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name, make, contract in (("parcels", parcels, PARCELS), ("roads", roads, ROADS)):
        (folder / f"{name}.contract.yaml").write_text(contract)
        (folder / f"{name}.yaml").write_text(
            f"name: {name}\ncontract: {name}.contract.yaml\nsource: {name}-1.parquet\ndestination: ./{name}\n{PUBLICATIONS[name]}"
        )
        for night in (1, 2, 3):
            source = folder / f"{name}-{night}.parquet"
            pq.write_table(make(night).replace_schema_metadata({"geo": json.dumps(GEO)}), source)
            result = publish(with_source(read_publication(str(folder / f"{name}.yaml")), str(source)), PublishSettings())
            print(name, night, result.status, result.version, result.delta, f"held {result.held}, rejected {result.rejected}")  # noqa: T201 - a script


if __name__ == "__main__":
    main(sys.argv[1])
