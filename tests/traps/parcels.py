"""Real parcels without a fault, in the reference system that a test asks for, with the contract that they keep.

Not here: where they come from and what makes them good (`make_parcels`), breaking them (`test_traps`).

The shapes are those of Cambridge, Massachusetts. In 4326 they lie where they are; for another system the town is put down, unturned and
unscaled, at a place where that system is used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow.parquet as pq
import shapely
from pyproj import Transformer

PLACES = {28992: (155_000, 463_000), 25832: (570_000, 6_220_000), 2193: (1_749_000, 5_428_000), 3301: (659_000, 6_474_000)}
"""Where the town lies: Amersfoort, Jutland, Wellington, Tartu. 2193 and 3301 have northing first."""
PRECISION = {4326: 8}
EXTENT = {4326: (-71.2, 42.3, -71.0, 42.45)}


@dataclass(frozen=True)
class Good:
    """Parcels of one reference system: the table (column `geometry` last, x before y) and the contract as plain values."""

    epsg: int
    table: gpd.GeoDataFrame
    contract: dict

    def write(self, folder: Path, table: gpd.GeoDataFrame | None = None, *, rows: slice = slice(None), **clauses):
        """A delivery and a contract in a folder: (path, path). `table`: in place of the good one; `clauses`: in place of the contract's."""
        delivery, contract = folder / "parcels.parquet", folder / "contract.yaml"
        (self.table if table is None else table).iloc[rows].to_parquet(delivery)
        contract.write_text(json.dumps({**self.contract, **clauses}), encoding="utf-8")
        return delivery, contract


@cache
def good(epsg: int) -> Good:
    """10,000 parcels. The table is shared: copy it before breaking it."""
    stored = pq.read_table(Path(__file__).with_name("parcels.parquet"))
    steps = np.column_stack([np.asarray(stored.column(name).combine_chunks().values) for name in ("dx", "dy")])
    metres = np.cumsum(steps.astype(np.int64), axis=0) / 100
    if epsg == 4326:
        x, y = Transformer.from_crs(26986, 4326, always_xy=True).transform(*metres.T)
        moved = np.round(np.column_stack([x, y]), PRECISION[4326])
    else:
        middle = np.round((metres.min(axis=0) + metres.max(axis=0)) / 2)
        moved = np.round(metres - middle + PLACES[epsg], 2)
    rings = stored.column("rings").combine_chunks()
    table = gpd.GeoDataFrame(
        {
            "parcel": stored.column("parcel").to_pylist(),
            "kind": stored.column("kind").to_pylist(),
            "area": np.round(shapely.area(_polygons(metres, rings)), 2),
            "edited": stored.column("edited").to_pylist(),
        },
        geometry=gpd.GeoSeries(_polygons(moved, rings), crs=epsg),
    )
    return Good(epsg, table, _contract(epsg))


def _polygons(xy, rings):
    """Shapes from vertices; `rings` says, per shape, how many vertices each of its rings has."""
    sizes = np.asarray(rings.values)
    lines = shapely.linearrings(xy, indices=np.repeat(np.arange(len(sizes)), sizes))
    return shapely.polygons(lines, indices=np.repeat(np.arange(len(rings)), np.asarray(rings.value_lengths())))


def _contract(epsg: int) -> dict:
    precision = PRECISION.get(epsg, 2)
    return {
        "contract_version": f"v1.0.0-crs:EPSG:{epsg}-res:1m",
        "product_id": "6b1f0a0e-2f55-4c6a-9d0e-0a8a2f6f4a11",
        "name": "parcels",
        "crs_epsg": epsg,
        "axis_order": "lon_lat",
        "geometry_type": "polygon",
        "coordinate_precision": precision,
        "schema_fields": [
            {"name": "parcel", "type": "string", "nullable": False, "unique": True, "pattern": "[0-9]+[A-Z]?-[0-9A-Z./-]+"},
            {"name": "kind", "type": "string", "nullable": False},
            {"name": "area", "type": "number", "nullable": False, "unit": "m2"},
            {"name": "edited", "type": "date", "nullable": False},
        ],
        "key": ["parcel"],
        "semantics": {"kind": {"enum": ["FEE", "TAX"], "meaning": "fee simple, or a lot for taxes only"}},
        "freshness_sla_minutes": 1440,
        "availability_target": 0.99,
        "product_owner_id": "steward@example.org",
        **({"extent": list(EXTENT[epsg])} if epsg in EXTENT else {}),
    }
