"""No false change: noise below a grid's resolution, copies at the grid's own precision, and one content told in many ways, on columns of many features.

At half steps a digest alone changes with noise; a published value then stays because it is within noise (tests/line/test_noise.py).

The long run, a million points and a hundred thousand polygons of each setting, is `make soak`.
"""

from __future__ import annotations

import decimal
import struct

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import shapely

from estate import save
from merestone import fingerprint_frame, fingerprint_table
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape
from merestone.identity.grid import range_limit
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

# decimals of the grid, largest ordinate
SETTINGS = [(7, 180.0), (9, 180.0), (3, 1e6), (2, 6.5e6), (5, 1e6), (0, 1e7), (-2, 1e7)]


pytestmark = pytest.mark.usefixtures("each_kernel")


def over(steps, decimals):
    """Whole steps of 10^-decimals as doubles, in one operation: the doubles nearest to the decimals."""
    return steps / 10.0**decimals if decimals >= 0 else steps * 10.0**-decimals


def sources(noise, precision, largest, shape):
    """Ordinates on the grid, and with up to three decimals more but off the half steps; and the noise that each must bear."""
    steps = np.round(noise.uniform(-largest, largest, shape) * 10.0**precision)
    grid = 10.0**-precision
    yield over(steps, precision), 0.49 * grid
    yield over(steps * 1000 + noise.choice([0, 499, 501, 250, 1, 999], shape), precision + 3), 0.2499 * grid / 1000
    for more in (1, 2, 3):
        parts = noise.integers(0, 10**more, shape)
        yield over(steps * 10**more + parts + (2 * parts == 10**more), precision + more), 0.2499 * grid / 1000


def shaken(noise, ordinates, amount):
    return ordinates + noise.uniform(-amount, amount, ordinates.shape)


def differing(one, other):
    return pc.sum(pc.not_equal(one, other)).as_py()


# ---- columns of WKB, put together from arrays: a million geometries are many for one object each ----


def joined(n, *parts):
    """WKB rows of one length: `parts` are bytes that every row has, or arrays (n, ...) of ordinates of which each row has its own."""
    rows = np.hstack(
        [
            np.tile(np.frombuffer(part, "u1"), (n, 1)) if isinstance(part, bytes) else np.ascontiguousarray(part).view("u1").reshape(n, -1)
            for part in parts
        ]
    )
    offsets = np.arange(n + 1, dtype=np.int64) * rows.shape[1]
    return pa.Array.from_buffers(pa.large_binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(rows)])


def head(kind, count, order="<"):
    return struct.pack(order + "BII", order == "<", kind, count)


def points(xyz, code=1001):
    """Points with Z; the code is that of ISO, or 0x80000001 in extended WKB."""
    return joined(len(xyz), struct.pack("<BI", 1, code), xyz)


def areas(vertices, *, roll=0, back=False, holes=slice(None), parts=slice(None), order="<"):
    """Two polygons in one, the first with two holes, of (n, 16, 2) vertices; rings from another vertex and the other way, holes and parts in another order."""

    def ring(first, last, by):
        cycle = np.roll(vertices[:, first:last], by, axis=1)[:, :: -1 if back else 1]
        return [struct.pack(order + "I", last - first + 1), np.concatenate([cycle, cycle[:, :1]], axis=1).astype(order + "f8")]

    inner = [ring(6, 9, -roll), ring(9, 12, roll)][holes]
    polygons = [[head(3, 3, order), *ring(0, 6, roll), *inner[0], *inner[1]], [head(3, 1, order), *ring(12, 16, 2 * roll)]][parts]
    return joined(len(vertices), head(6, 2, order), *polygons[0], *polygons[1])


def one_part(vertices, *, multi):
    cycle = vertices[:, [0, 1, 2, 3, 4, 5, 0]]
    return joined(len(vertices), head(6, 1) if multi else b"", head(3, 1), struct.pack("<I", 7), cycle)


BACKWARDS = slice(None, None, -1)
TOLD = [
    {"roll": 2},
    {"roll": 1, "back": True},
    {"holes": BACKWARDS},
    {"parts": BACKWARDS},
    {"roll": 3, "back": True, "holes": BACKWARDS, "parts": BACKWARDS},
]


# ---- geometry alone ----


def digests(wkb, precision):
    return kernel.digest([], wkb, Grid(precision), Shape(), len(wkb))


def changed_points(seed, n, precision, largest):
    noise = np.random.default_rng(seed)
    for xyz, amount in sources(noise, precision, largest, (n, 3)):
        yield differing(digests(points(xyz), precision), digests(points(shaken(noise, xyz, amount), 0x80000001), precision))


def changed_polygons(seed, n, precision, largest):
    noise = np.random.default_rng(seed)
    for vertices, amount in sources(noise, precision, largest, (n, 16, 2)):
        base = digests(areas(vertices), precision)
        assert len(pc.unique(base)) == n
        for told in TOLD:
            yield differing(base, digests(areas(shaken(noise, vertices, amount), **told), precision))
        single, multi = one_part(vertices, multi=False), one_part(shaken(noise, vertices, amount), multi=True)
        yield differing(digests(single, precision), digests(multi, precision))


@pytest.mark.parametrize(("precision", "largest"), SETTINGS)
def test_noise_changes_nothing(precision, largest):
    assert precision <= range_limit(largest)
    assert set(changed_points(1, 5000, precision, largest)) == {0}
    assert set(changed_polygons(2, 300, precision, largest)) == {0}


@pytest.mark.soak
@pytest.mark.parametrize(("precision", "largest"), SETTINGS)
def test_noise_changes_nothing_in_a_million(precision, largest):
    assert set(changed_points(3, 1_000_000, precision, largest)) == {0}
    assert set(changed_polygons(4, 100_000, precision, largest)) == {0}


# ---- copies at the grid's own precision ----


def exact_halves(noise, precision, n):
    """Ordinates of all sorts: any, on the grid, decimal halves as doubles, and their neighbours; a step below 1, so that text has decimals."""
    steps = np.round(noise.uniform(-180, 180, n) * 10.0**precision)
    halves = (steps + 0.5) / 10.0**precision
    away = np.nextafter(halves, noise.choice([-np.inf, np.inf], n))
    one_more = (10 * steps + noise.integers(0, 10, n)) / 10.0 ** (precision + 1)
    return np.concatenate([noise.uniform(-180, 180, n), steps / 10.0**precision, halves, away, one_more])


@pytest.mark.parametrize("precision", [0, 1, 2, 3, 5, 7, 9])
@pytest.mark.parametrize("write", [lambda x, p: float(f"{x:.{p}f}"), lambda x, p: float(round(x, p))], ids=["printf", "round"])
def test_a_copy_at_the_grids_own_precision_has_the_same_digest(precision, write):
    ordinates = exact_halves(np.random.default_rng(precision), precision, 2000)
    copied = np.array([write(x, precision) for x in ordinates.tolist()])
    assert (copied != ordinates).any()
    pairs = [np.stack([each, each[::-1]], axis=1) for each in (ordinates, copied)]
    one, other = (pa.array(shapely.to_wkb(shapely.points(each)), pa.binary()) for each in pairs)
    assert differing(digests(one, precision), digests(other, precision)) == 0
    lines = [pa.array(shapely.to_wkb(shapely.linestrings(each.reshape(-1, 5, 2))), pa.binary()) for each in pairs]
    assert differing(*(digests(each, precision) for each in lines)) == 0


def test_a_copy_rounded_in_two_steps_has_not():
    """So the test above can fail: NumPy multiplies and rounds the product, which takes one more decimal the other way now and then."""
    ordinates = exact_halves(np.random.default_rng(3), 7, 5000)
    one, other = (pa.array(shapely.to_wkb(shapely.points(each, each)), pa.binary()) for each in (ordinates, np.round(ordinates, 7)))
    assert differing(digests(one, 7), digests(other, 7)) > 0


# ---- attributes, and the table around them ----

ATTRIBUTES = ["name", "rank", "share", "open", "day", "at", "price", "tags"]


def table(noise, n, geometry):
    """Every type that a driver may tell otherwise, a tenth of the values null."""

    def holes(values, kind=None):
        return pa.array(values, kind, mask=noise.random(n) < 0.1)

    return pa.table(
        {
            "id": pa.array(np.arange(n)),
            "name": holes([f"Stra\u00dfe \u00e9 {k}" for k in range(n)]),
            "rank": holes(noise.integers(-(2**53) + 1, 2**53, n)),
            "share": holes(noise.choice([0.0, 1.0, 0.1, 2.5, -7.0], n)),
            "open": holes(noise.random(n) < 0.5),
            "day": holes(noise.integers(0, 20_000, n).astype(np.int32), pa.int32()).cast(pa.date32()),
            "at": holes(noise.integers(0, 2**40, n) * 1000).cast(pa.timestamp("us", "UTC")),
            "price": holes([decimal.Decimal(int(each)).scaleb(-2) for each in noise.integers(-9999, 9999, n)], pa.decimal128(9, 2)),
            "tags": holes([[f"t{each}", None] for each in noise.integers(0, 9, n)], pa.list_(pa.string())),
            "geometry": geometry,
        }
    )


def told_otherwise(given, geometry):
    """The same rows in another order of columns, with integers made floats by their nulls, other widths, units, zones and encodings."""
    columns = {name: given.column(name) for name in reversed(given.schema.names)}
    decomposed = pc.utf8_normalize(columns["name"], form="NFD")
    there = pc.is_valid(columns["rank"])
    floats = pc.if_else(there, columns["rank"].cast(pa.float64()), float("nan"))  # what pandas makes of an integer column with a null
    zero = pc.if_else(pc.equal(columns["share"], 0.0), -0.0, columns["share"])
    columns |= {
        "name": decomposed.dictionary_encode(),
        "rank": floats,
        "share": zero,
        "day": columns["day"].cast(pa.date64()),
        "at": columns["at"].cast(pa.timestamp("ns", "Asia/Tokyo")),
        "price": columns["price"].cast(pa.decimal128(30, 2)),
        "tags": columns["tags"].cast(pa.large_list(pa.large_string())),
        "geometry": geometry.cast(pa.binary()),
        "empty": pa.nulls(given.num_rows),
    }
    return pa.table(columns)


def changed_rows(seed, n, precision, largest, order="<"):
    noise = np.random.default_rng(seed)
    vertices, amount = next(sources(noise, precision, largest, (n, 16, 2)))
    rows = table(noise, n, areas(vertices))
    other = told_otherwise(rows, areas(shaken(noise, vertices, amount), **TOLD[-1], order=order))
    grid = 10.0**-precision
    one = fingerprint_table(rows, "id", grid=grid, attributes=ATTRIBUTES)
    two = fingerprint_table(other, "id", grid=grid, attributes=[*ATTRIBUTES[::-1], "empty"])
    assert len(set(one.column("digest").to_pylist())) == n
    return differing(one.column("digest"), two.column("digest"))


def test_rows_told_otherwise_have_one_digest():
    assert changed_rows(7, 1000, 7, 180.0) == 0
    assert changed_rows(7, 300, 7, 180.0, order=">") == 0


@pytest.mark.soak
@pytest.mark.parametrize(("precision", "largest"), SETTINGS)
def test_a_hundred_thousand_rows_told_otherwise_have_one_digest(precision, largest):
    assert changed_rows(8, 100_000, precision, largest) == 0


def test_a_frame_that_pandas_has_been_through():
    noise = np.random.default_rng(9)
    vertices, amount = next(sources(noise, 7, 180.0, (500, 16, 2)))
    rows = table(noise, 500, areas(vertices))
    plain = ["name", "rank", "share", "open"]
    told = areas(shaken(noise, vertices, amount), roll=2).to_numpy(zero_copy_only=False)
    frame = gpd.GeoDataFrame(rows.select(["id", *plain]).to_pandas(), geometry=shapely.from_wkb(told))
    expected = fingerprint_table(rows, "id", grid=1e-7, attributes=plain)
    said = {
        str(key): each.hex() for key, each in zip(expected.column("id").to_pylist(), expected.column("digest").to_pylist(), strict=True)
    }
    assert fingerprint_frame(frame, "id", grid=1e-7, attributes=plain) == said


# ---- through files ----

FORMATS = ("gpkg", "geojson", "geojsonl", "fgb", "parquet", "shp", "gml")


def plots(noise, n):
    """Ordinates for `areas` that make valid ones, on a grid of 1e-7: shapefiles know holes and parts by where they lie."""
    centre = np.stack([noise.uniform(-170, 170, n), noise.uniform(-80, 80, n)], axis=1)[:, None, :]

    def ring(vertices, radius, east):
        angle = np.arange(vertices) * 2 * np.pi / vertices + noise.uniform(0, 0.3, (n, vertices))
        return centre + [east, 0.0] + radius * np.stack([np.cos(angle), np.sin(angle)], axis=2)

    rings = [ring(6, 0.01, 0.0), ring(3, 0.001, -0.003), ring(3, 0.001, 0.003), ring(4, 0.01, 0.03)]
    return np.round(np.concatenate(rings, axis=1), 7)


def through(path, frame):
    """The digests, by key, of what the line's reader of the format brings."""
    # By default the writer takes 7 decimals, and then a last digit after four zeros for an error of rounding: -126.7000009 becomes -126.7.
    save(frame.to_dict("records"), path, **({"driver": "GeoJSONSeq", "coordinate_precision": 12} if path.suffix == ".geojsonl" else {}))
    source = open_source(SourceSpec(str(path)))
    read = pa.Table.from_batches(list(source.batches()))
    found = fingerprint_table(read, "id", geometry_column=source.delivery.geometry.name, grid=1e-7, attributes=["name", "rank", "share"])
    return dict(zip(found.column("id").to_pylist(), found.column("digest").to_pylist(), strict=True))


def changed_files(folder, seed, n):
    noise = np.random.default_rng(seed)
    vertices = plots(noise, n)
    rows = table(noise, n, areas(vertices)).select(["id", "name", "rank", "share", "geometry"])
    rows = rows.set_column(2, "rank", pc.bit_wise_and(rows.column("rank"), 0xFFFF))
    expected = fingerprint_table(rows, "id", grid=1e-7, attributes=["name", "rank", "share"])
    expected = dict(zip(expected.column("id").to_pylist(), expected.column("digest").to_pylist(), strict=True))
    for suffix in FORMATS:
        frame = rows.drop_columns("geometry").to_pandas()
        told = areas(shaken(noise, vertices, 0.4e-7), **TOLD[len(suffix) % len(TOLD)])
        frame["geometry"] = shapely.from_wkb(told.to_numpy(zero_copy_only=False))
        found = through(folder / f"d.{suffix}", frame)
        assert found.keys() == expected.keys(), suffix
        yield suffix, sum(found[key] != expected[key] for key in expected)


def test_no_format_changes_anything(tmp_path):
    assert dict(changed_files(tmp_path, 10, 200)) == dict.fromkeys(FORMATS, 0)


@pytest.mark.soak
def test_no_format_changes_anything_in_a_hundred_thousand(tmp_path):
    assert dict(changed_files(tmp_path, 11, 100_000)) == dict.fromkeys(FORMATS, 0)
