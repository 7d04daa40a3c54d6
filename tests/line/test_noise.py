"""No false change through publish: jitter of a fiftieth of a grid step on any source, in the contract's CRS and in another; and no creeping."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from pyproj import CRS, Transformer

from estate import geoparquet

PID = {"name": "pid", "type": "integer", "nullable": False}
N = 600
# CRS of the source and of the contract, decimals of the contract, and a contract's grid in units of the source
ROUTES = [
    (4326, 4326, 7, 1e-7),
    (25832, 25832, 3, 1e-3),
    (27700, 27700, 2, 1e-2),
    (4326, 25832, 3, 1e-3 / 111_320),
    (25832, 4326, 7, 111_320e-7 / 2),
    (25833, 25832, 2, 1e-2),
    (4326, 3857, 0, 1 / 111_320 / 2),
]
# Where an ordinate lies between two grid lines of the contract: anywhere, beside the half, at the half, on the line.
BETWEEN = (None, 0.49, 0.5, 0.0)
DECIMALS = (None, 0, 2)  # of the source, beyond a grid's; None: all that a double holds
TYPES = ("point", "multilinestring", "multipolygon")


def shapes(kind, noise, n, route, between, decimals):
    """Vertices (n, v, 2) in the source's units: some a step or half of one apart, so that noise decides whether they meet on the grid."""
    source, target, precision, step = route
    centre = np.stack(
        [noise.uniform(4e5, 6e5, n), noise.uniform(3e5, 5e5, n) if target == 27700 else noise.uniform(5.5e6, 5.7e6, n)], axis=1
    )
    if target not in (27700, 25832):
        centre = np.stack(Transformer.from_crs(25832, target, always_xy=True).transform(*centre.T), axis=1)
    grid = 10.0**-precision
    if kind == "point":
        offsets = np.zeros((n, 1, 2))
    elif kind == "multilinestring":
        offsets = np.cumsum(noise.choice([0.5, 1.0, 0.9, 3.0, 1000.0], (n, 9, 2)), axis=1)
    else:
        angle = np.arange(8) * np.pi / 4
        offsets = noise.choice([40.0, 900.0], (n, 1, 1)) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        offsets[:, 1] = offsets[:, 0] + np.stack(
            [np.zeros(n), noise.choice([0.6, 1.0] if between is decimals is None else [2.3], n)], axis=1
        )
    out = centre[:, None, :] + offsets * grid
    if between is not None:
        out = (np.floor(out / grid) + between) * grid
    if source != target:
        flat = Transformer.from_crs(target, source, always_xy=True).transform(*out.reshape(-1, 2).T)
        out = np.stack(flat, axis=1).reshape(out.shape)
    return out if decimals is None else np.round(out, round(-np.log10(step)) + decimals)


def told(kind, vertices, turn):
    """The geometries, told in one of several ways."""
    if kind == "point":
        return shapely.points(vertices[:, 0])
    if kind == "multilinestring":
        lines = shapely.linestrings(vertices)
        return shapely.multilinestrings(lines.reshape(-1, 1)) if turn % 2 else lines
    rings = np.roll(vertices, turn, axis=1)
    return shapely.polygons(rings[:, ::-1] if turn % 2 else rings)


def deliver(path, geometry, epsg):
    wkb = shapely.to_wkb(geometry).tolist()
    return geoparquet(path, {"pid": pa.array(range(len(wkb))), "name": pa.array(["x"] * len(wkb)), "geometry": wkb}, epsg=epsg)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_noise_publishes_no_change(estate, tmp_path, route, kind):
    source, target, precision, step = route
    noise = np.random.default_rng([source, target, precision])
    product = estate([PID, {"name": "name", "type": "string"}], epsg=target, precision=precision, geometry_type=kind).by_place(150)
    product.settings["crs"] = {"accept": [f"EPSG:{source}"]}
    dresses = [(between, decimals) for between in BETWEEN for decimals in DECIMALS]
    vertices = np.concatenate([shapes(kind, noise, N // len(dresses), route, *dress) for dress in dresses])
    first = product.publish(deliver(tmp_path / "0.parquet", told(kind, vertices, 0), source))
    assert (first.status, first.result.delta.added, first.result.rejected) == ("published", N, 0), first.said
    before, where = product.rows(), product.partitions()
    suppressed, version = 0, product.version
    for night in range(1, 4):
        shaken = vertices + noise.uniform(-step / 50, step / 50, vertices.shape)
        result = product.publish(deliver(tmp_path / f"{night}.parquet", told(kind, shaken, night), source)).result
        assert result.delta.touched == 0, (night, result.delta)
        assert result.unchanged + result.delta.suppressed == N
        suppressed += result.delta.suppressed
        assert (result.status, product.version) == ("unchanged", version)
        assert product.rows() == before
        assert product.partitions() == where
    assert suppressed >= 50, "the noise was meant to cross half steps, or nothing is proved"


# ---- the grids of Z and M, dimensions that are not kept, lines without a direction ----


def lines(noise, n, dimensions):
    """Vertices (n, 4, 2 + Z + M) on whole metres."""
    out = np.floor(noise.uniform(100, 900, (n, 4, dimensions)))
    out[..., 0] += 500_000
    out[..., 1] += 5_600_000
    return out


def wkb_lines(vertices):
    """WKB of lines; a fourth ordinate is M."""
    n, count, d = vertices.shape
    head = np.frombuffer(np.array([1], "u1").tobytes() + np.array([2 + 1000 * (d >= 3) + 2000 * (d == 4), count], "<u4").tobytes(), "u1")
    body = np.ascontiguousarray(vertices, "<f8").view("u1").reshape(n, -1)
    return [bytes(row) for row in np.hstack([np.tile(head, (n, 1)), body])]


def publish_twice(product, folder, first, second):
    """The second night's result, each feature a line."""
    for number, vertices in enumerate((first, second)):
        wkb = wkb_lines(vertices)
        columns = {"pid": pa.array(range(len(wkb))), "name": pa.array(["x"] * len(wkb)), "geometry": wkb}
        night = product.publish(geoparquet(folder / f"{number}.parquet", columns, epsg=25832))
        assert night.status in ("published", "unchanged"), night.said
    return night.result


GRIDS = [(3, 0, 1), (0, 3, 2), (2, 2, 0)]  # decimals of x and y, of Z, of M


@pytest.mark.parametrize("grids", GRIDS, ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_each_axis_has_its_own_measure_of_noise(estate, tmp_path, grids, axis):
    """An ordinate just below the half step of its own grid is noise on either side of it; a step of its own grid is a change, however coarse the others are."""
    xy, z, m = grids
    step = 10.0 ** -(xy, xy, z, m)[axis]
    clause = {"dimensions": "xyzm", "z_precision": z, "m_precision": m}
    fields = [PID, {"name": "name", "type": "string"}]
    noise = np.random.default_rng(axis)
    base = lines(noise, 50, 4)
    low, high = base.copy(), base.copy()
    low[:, 1, axis] += 0.49 * step
    high[:, 1, axis] += 0.53 * step
    quiet = estate(fields, epsg=25832, precision=xy, geometry_type="linestring", geometry=clause)
    result = publish_twice(quiet, tmp_path, low, high)
    assert (result.delta.touched, result.delta.suppressed) == (0, 50)
    edited = base.copy()
    edited[:5, 2, axis] += step
    loud = estate(fields, epsg=25832, precision=xy, geometry_type="linestring", geometry=clause)
    result = publish_twice(loud, tmp_path, base, edited)
    assert (result.delta.changed, result.unchanged) == (5, 45)


def test_noise_is_seen_as_such_where_z_is_not_kept(estate, tmp_path):
    product = estate([PID, {"name": "name", "type": "string"}], epsg=25832, precision=3, geometry_type="linestring")
    base = lines(np.random.default_rng(1), 50, 3)
    low, high = base.copy(), base.copy()
    low[:, 1, 0] += 0.00049
    high[:, 1, :] += [0.00053, 0.0, 7.0]
    result = publish_twice(product, tmp_path, low, high)
    assert (result.delta.touched, result.delta.suppressed) == (0, 50)


def test_noise_is_seen_as_such_where_direction_does_not_count(estate, tmp_path):
    product = estate(
        [PID, {"name": "name", "type": "string"}], epsg=25832, precision=3, geometry_type="linestring", geometry={"direction": "irrelevant"}
    )
    base = lines(np.random.default_rng(1), 50, 2)
    low, high = base.copy(), base[:, ::-1].copy()
    low[:, 1, 0] += 0.00049
    high[:, 2, 0] += 0.00053
    result = publish_twice(product, tmp_path, low, high)
    assert (result.delta.touched, result.delta.suppressed) == (0, 50)


# ---- noise cannot creep ----

FIELDS = [PID, {"name": "name", "type": "string"}, {"name": "share", "type": "number", "decimals": 2}]
# CRS of the source, and what a step of the contract's grid of 1 mm is in its units
FROM = {25832: 0.001, 25833: 0.001, 4326: 1e-3 / 111_320}


@pytest.mark.parametrize("others", ["edited", "as they were"])
@pytest.mark.parametrize("epsg", FROM)
@pytest.mark.parametrize("what", ["geometry", "door", "share", "geometry and name"])
def test_four_nights_never_leave_the_published_value_behind(estate, tmp_path, what, epsg, others):
    """0.49, 0.51, 1.0, 1.49 steps away, each with another edit elsewhere: what is published lies within 1/2 + noise of what is delivered."""
    door = {"name": "door", "type": "geometry", "crs_epsg": 25832, "coordinate_precision": 3}
    product = estate([*FIELDS, door], epsg=25832, precision=3, geometry_type="point")
    product.settings |= {"guard": {"max_changed_fraction": 1.0}, "crs": {"accept": [f"EPSG:{epsg}"]}}
    back = Transformer.from_crs(25832, epsg, always_xy=True)
    east, north = 500_000 + 10.0 * np.arange(8), np.full(8, 5_600_000.0)
    for night, steps in enumerate([0.0, 0.49, 0.51, 1.0, 1.49, 1.0, 0.49]):
        x, share, name = east.copy(), np.full(8, 0.25), ["x"] * 8
        if what.startswith("geometry"):
            x[:4] += steps * 0.001
        if what == "geometry and name":
            name[:4] = [f"night {night}"] * 4
        if what == "share":
            share[:4] += steps * 0.01
        doors = east + (np.arange(8) < 4) * (steps * 0.001 if what == "door" else 0)
        if others == "edited":
            name[7] = f"night {night}"
        wkb = shapely.to_wkb(shapely.points(*back.transform(x, north))).tolist()
        columns = {"pid": pa.array(range(8)), "name": pa.array(name), "share": pa.array(share), "geometry": wkb}
        columns["door"] = shapely.to_wkb(shapely.points(*back.transform(doors, north))).tolist()
        both = {name: {"encoding": "WKB", "geometry_types": [], "crs": CRS.from_epsg(epsg).to_json_dict()} for name in ("geometry", "door")}
        geo = {"version": "1.1.0", "primary_column": "geometry", "columns": both}
        columns["door"] = pa.array(columns["door"], pa.binary())
        result = product.publish(geoparquet(tmp_path / f"{night}.parquet", columns, geo=geo))
        assert result.status in ("published", "unchanged"), result.said
        rows = product.dataset.to_geodataframe().sort_values("pid")
        published = {
            "geometry": (shapely.get_x(rows.geometry.to_numpy()), x, 0.001),
            "door": (shapely.get_x(shapely.from_wkb(rows["door"].to_numpy())), doors, 0.001),
            "share": (rows["share"].to_numpy(), share, 0.01),
        }
        for column, (there, delivered, step) in published.items():
            lag = np.abs(there - delivered).max() / step
            assert lag <= 0.5 + 0.05 + 0.011, (night, steps, column, lag)
        assert rows["name"].tolist() == name
