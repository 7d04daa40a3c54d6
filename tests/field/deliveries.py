"""Deliveries as GeoPandas and the standard library read them, repaired ones, and the same content in another format.

Nothing of Merestone is used here: what it publishes is judged by what these functions read.
"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pyogrio
import shapely
from shapely.geometry import shape


def read(path: Path) -> gpd.GeoDataFrame:
    """A delivery, in row order. GeoJSON is read as JSON, so that no driver guesses types."""
    name = path.name
    if name.endswith((".geojson", ".geojson.gz")):
        with gzip.open(path, "rt", encoding="utf-8") if name.endswith(".gz") else path.open(encoding="utf-8") as file:
            features = json.load(file)["features"]
        return frame([each["properties"] for each in features], [each["geometry"] and shape(each["geometry"]) for each in features])
    if name.endswith(".parquet"):
        return gpd.read_parquet(path)
    pyogrio.set_gdal_config_options({"CPL_VSIL_GZIP_WRITE_PROPERTIES": "NO"})  # nothing is written beside the data
    found = gpd.read_file(f"/vsigzip/{path}" if name.endswith(".gz") else path)
    return found if found.crs is not None else found.set_crs("EPSG:4326")


def frame(rows, shapes, crs="EPSG:4326"):
    """Rows and shapes as a GeoDataFrame whose columns keep Python's own values."""
    table = pd.DataFrame.from_records(rows).astype(object)
    return gpd.GeoDataFrame(table.where(table.notna(), None), geometry=gpd.GeoSeries(shapes, crs=crs))


# --- repairs ---------------------------------------------------------------------------------------------------------------------------


def _one_of_a_kind(column):
    def repaired(path):
        found = read(path)
        return found[found[column].notna() & ~found[column].duplicated(keep=False)]

    return repaired


def _first_of_a_kind(column):
    def repaired(path):
        found = read(path)
        return found[~found[column].duplicated()]

    return repaired


def _flat_stations(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        stations = [json.loads(line) for line in file if line.strip()]
    rows, shapes = [], []
    for each in stations:
        operator, address, location = (each.get(part) or {} for part in ("operator", "address", "location"))
        rows.append(
            {
                **{name: each.get(name) for name in ("id", "ril100", "nr", "name", "weight")},
                "operator_id": operator.get("id"),
                "operator_name": operator.get("name"),
                **{name: address.get(name) for name in ("city", "zipcode", "street")},
            }
        )
        shapes.append(shapely.Point(location["longitude"], location["latitude"]) if location else None)
    return frame(rows, shapes)


def _settlements_with_shapes(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = pd.DataFrame(csv.DictReader(file))
    table["AREA"] = table["AREA"].astype(float)
    shapes = read(path.parents[1] / "2018-08-06" / "asustusyksus.topojson.gz").set_index("AKOOD").geometry
    table = table[table["AKOOD"].isin(shapes.index)].reset_index(drop=True)
    return gpd.GeoDataFrame(table, geometry=gpd.GeoSeries(shapes.loc[table["AKOOD"]].to_numpy(), crs="EPSG:4326"))


REPAIRS = {
    "unique ID": _first_of_a_kind("ID"),
    "unique PoleID": _one_of_a_kind("PoleID"),
    "unique ML": _one_of_a_kind("ML"),
    "flat stations": _flat_stations,
    "settlements with shapes": _settlements_with_shapes,
}


def delivery(night, data: Path, folder: Path, n: int):
    """The file to publish, and what GeoPandas reads of it."""
    path = data / night.path
    if night.repair is None:
        return path, read(path)
    repaired = REPAIRS[night.repair](path)
    target = folder / f"night{n}.geojson"
    write(repaired, target)
    return target, repaired


# --- other formats ---------------------------------------------------------------------------------------------------------------------


def write(table: gpd.GeoDataFrame, target: Path) -> None:
    """Write rows in the format of the file's name; coordinates keep all their digits."""
    if target.suffix == ".geojson":
        target.write_text(
            json.dumps(
                {
                    "type": "FeatureCollection",
                    "features": [
                        {"type": "Feature", "properties": properties, "geometry": None if one is None else shapely.geometry.mapping(one)}
                        for properties, one in zip(json_rows(table), table.geometry, strict=True)
                    ],
                },
                ensure_ascii=False,
            ),
            encoding="utf-8",
        )
        return
    plain = table.convert_dtypes()  # columns of Python's own values get types that a format can carry
    plain = gpd.GeoDataFrame(plain, geometry=table.geometry.name, crs=table.crs)
    if target.suffix == ".parquet":
        plain.to_parquet(target)
    else:
        plain.to_file(target)


def json_rows(table):
    """The attributes of each row as JSON can carry them."""
    plain = pd.DataFrame(table.drop(columns=table.geometry.name)).astype(object)
    plain = plain.where(plain.notna(), None)
    return [
        {name: value.isoformat() if isinstance(value, pd.Timestamp) else value for name, value in row.items()}
        for row in plain.to_dict("records")
    ]
