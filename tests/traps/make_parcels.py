"""Makes `parcels.parquet`, 10,000 real parcels without a fault, from an export of the assessors of Cambridge, Massachusetts.

Not here: moving them to other reference systems and breaking them (`parcels`, `test_traps`).

    python tests/traps/make_parcels.py ASSESSING_ParcelsFY2014.topojson

What the export has and good parcels must not: rows without a shape or with an invalid one, map-lot numbers that stand twice or are
placeholders, shapes that overlap their neighbour, meet it with other vertices or leave a gap narrower than 0.9 m beside it. Such rows
are left out, nothing is bent. What is filled in: an empty POLY_TYPE is FEE, an empty EditDate the first day of the fiscal year.
"""

from __future__ import annotations

import sys
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

ROWS = 10_000
GAPS = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # metres: GEOS finds some gaps only when it looks for about their width
FISCAL_YEAR = np.datetime64("2013-07-01")


def good(table: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """The first rows without a fault, in metres (EPSG:26986), coordinates on whole centimetres."""
    table = table[(table.geom_type == "Polygon") & ~table.geometry.is_empty]
    number = table["ML"]
    table = table[number.notna() & number.str.fullmatch(r"[0-9]+[A-Z]?-[0-9A-Z./-]+") & ~number.duplicated(keep=False)]
    table = table.to_crs(26986)
    # The export lies on cells of 0.8 by 0.6 m, so that whole centimetres keep every shape apart.
    shapes = shapely.transform(table.geometry.to_numpy(), lambda xy: np.round(xy, 2))
    table = table.set_geometry(gpd.GeoSeries(shapes, index=table.index, crs=26986))
    table = table[shapely.is_valid(table.geometry.to_numpy())]
    table = table.sort_values("ML")
    while True:
        chosen = table.iloc[:ROWS]
        bad = np.zeros(len(chosen), dtype=bool)
        for width in GAPS:
            bad |= ~shapely.is_empty(shapely.coverage_invalid_edges(chosen.geometry.to_numpy(), gap_width=width))
        if not bad.any():
            return chosen
        # Of each pair one is enough: leave out the smaller ones first, look again.
        area = np.where(bad, chosen.geometry.area, np.inf)
        table = table.drop(chosen.index[np.argsort(area)[: max(1, int(bad.sum()) // 4)]])


def main(source: str) -> None:
    """Read the export, keep what is good, write it beside this script."""
    table = good(gpd.read_file(source).set_crs(4326, allow_override=True))
    if len(table) < ROWS:
        raise SystemExit(f"only {len(table)} parcels are good")
    rings, owner = shapely.get_rings(table.geometry.to_numpy(), return_index=True)
    size = shapely.get_num_coordinates(rings)
    centimetres = np.round(shapely.get_coordinates(rings) * 100).astype(np.int64)
    # Shapes as steps from vertex to vertex, over all parcels: a fifth of what WKB takes.
    steps = np.diff(centimetres, axis=0, prepend=np.zeros((1, 2), np.int64)).astype(np.int32)
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, weights=size))]).astype(np.int32)
    pq.write_table(
        pa.table(
            {
                "parcel": pa.array(table["ML"].tolist(), pa.string()),
                "kind": pa.array(table["POLY_TYPE"].fillna("FEE").tolist(), pa.string()),
                "edited": pa.array(table["EditDate"].fillna(FISCAL_YEAR).to_numpy().astype("datetime64[D]")),
                "rings": pa.ListArray.from_arrays(
                    np.concatenate([[0], np.cumsum(np.bincount(owner))]).astype(np.int32), size.astype(np.int32)
                ),
                "dx": pa.ListArray.from_arrays(first, steps[:, 0]),
                "dy": pa.ListArray.from_arrays(first, steps[:, 1]),
            }
        ),
        Path(__file__).with_name("parcels.parquet"),
        compression="zstd",
        compression_level=19,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
