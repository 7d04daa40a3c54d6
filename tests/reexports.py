"""Copies of a delivery at a contract's own precision, as common tools write them."""

from __future__ import annotations

import json

import numpy as np
import shapely
from shapely.geometry import mapping


def by_gdal(frame, path, precision):
    """GDAL's GeoJSON, written with COORDINATE_PRECISION."""
    frame.to_file(path, driver="GeoJSON", engine="pyogrio", COORDINATE_PRECISION=str(precision), RFC7946="NO")


def by_text(write):
    """GeoJSON whose numbers are written one by one; `write` gives the text of a number."""

    def written(frame, path, precision):
        features = [
            {"type": "Feature", "properties": properties, "geometry": {**shape, "coordinates": "@"}}
            for properties, shape in zip(frame.drop(columns="geometry").to_dict("records"), map(mapping, frame.geometry), strict=True)
        ]
        texts = (_numbers(mapping(each)["coordinates"], lambda x: write(x, precision)) for each in frame.geometry)
        crs = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{frame.crs.to_epsg()}"}}
        lines = [json.dumps(feature).replace('"@"', text) for feature, text in zip(features, texts, strict=True)]
        path.write_text(f'{{"type": "FeatureCollection", "crs": {json.dumps(crs)}, "features": [\n' + ",\n".join(lines) + "\n]}\n")

    return written


def _numbers(coordinates, write):
    if isinstance(coordinates[0], float):
        return f"[{', '.join(write(each) for each in coordinates)}]"
    return f"[{', '.join(_numbers(each, write) for each in coordinates)}]"


WRITERS = {
    "GDAL": by_gdal,
    "round": by_text(lambda x, precision: repr(round(x, precision))),
    "printf": by_text(lambda x, precision: "%.*f" % (precision, x)),  # noqa: UP031 - it is this tool that is meant
}


def broken_by_rounding(shapes, precision):
    """Shapes that are valid as delivered and not on the grid: GDAL repairs them as it writes, which makes another shape."""
    rounded = shapely.transform(shapes, lambda xy: np.round(xy, precision))
    return shapely.is_valid(shapes) & ~shapely.is_valid(rounded)
