"""The same content delivered again in another form: unchanged, and nothing written but the run record."""

from __future__ import annotations

import random
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import MultiPolygon, Point, Polygon, reverse

from estate import geoparquet, save

FIELDS = [
    {"name": "pid", "type": "string", "nullable": False},
    {"name": "name", "type": "string"},
    {"name": "rank", "type": "integer"},
    {"name": "height", "type": "number"},
    {"name": "built", "type": "date"},
]
FORMATS = ("gpkg", "geojson", "fgb", "parquet", "shp", "gml", "geojsonl")


def area(n, hole=True):
    shell = [(n, 0), (n + 0.9, 0), (n + 0.9, 0.9), (n, 0.9)]
    return Polygon(
        shell, [[(n + 0.1, 0.1), (n + 0.2, 0.1), (n + 0.2, 0.2)], [(n + 0.5, 0.5), (n + 0.6, 0.5), (n + 0.6, 0.6)]] if hole else []
    )


def rows():
    """Twenty features with text beyond ASCII, a null of each type, numbers that are whole and that are not."""
    out = [
        {
            "pid": f"p{n:02}",
            "name": ["a", "\u00e9", None, "\u0141\u00f3d\u017a", "x y"][n % 5],
            "rank": n or None,
            "height": n / 8 if n % 3 else None,
            "built": date(2000 + n, 1, 28) if n % 4 else None,
            "geometry": MultiPolygon([area(n), area(n + 30, hole=False)]),
        }
        for n in range(18)
    ]
    return [
        *out,
        {**out[0], "pid": "p18", "geometry": MultiPolygon([area(50)])},
        {**out[1], "pid": "p19", "geometry": MultiPolygon([area(52)])},
    ]


def made(estate, by="kdtree"):
    product = estate(FIELDS, geometry_type="multipolygon")
    if by == "kdtree":
        product.by_place(6)
    elif by == "column":
        product.by_column("name")
    return product


def nothing_written(product, source, rows_=20):
    """Publish; the answer is `unchanged`, and nothing is new below the destination but one run record."""
    before = product.everything()
    night = product.publish(source)
    assert (night.status, night.result.unchanged, night.result.delta.touched, night.result.files_written) == ("unchanged", rows_, 0, 0), (
        night.said
    )
    after = product.everything()
    new = sorted(after.keys() - before.keys())
    assert [name.split("/")[0] for name in new] == ["_runs"], new
    assert all(after[name] == check for name, check in before.items())
    return night


@pytest.fixture(scope="module")
def deliveries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    return {
        suffix: save(rows(), folder / f"d.{suffix}", **({"driver": "GeoJSONSeq"} if suffix == "geojsonl" else {})) for suffix in FORMATS
    }


@pytest.mark.parametrize("first", ["gpkg", "parquet", "geojson"])
def test_one_content_in_every_format(estate, deliveries, first):
    product = made(estate)
    assert product.publish(deliveries[first]).result.features == 20
    for suffix in FORMATS:
        nothing_written(product, deliveries[suffix])


@pytest.mark.parametrize("first", ["shp", "fgb", "gml"])
def test_every_format_publishes_the_same(estate, deliveries, first):
    """Rows and set digest are those of a publish from GeoPackage, whatever came first."""
    one, other = made(estate), made(estate)
    one.publish(deliveries["gpkg"])
    other.publish(deliveries[first])
    assert one.rows() == other.rows()
    assert one.partitions() == other.partitions()
    assert one.manifest().set_digest == other.manifest().set_digest


def shuffled(given):
    random.Random(4).shuffle(given)
    return given


def wound(given):
    return [{**row, "geometry": reverse(row["geometry"])} for row in given]


def spun(given):
    def turn(ring):
        at = list(ring.coords)[:-1]
        return at[2:] + at[:2]

    return [
        {
            **row,
            "geometry": MultiPolygon(
                [
                    Polygon(turn(part.exterior), [turn(each) for each in reversed(part.interiors)])
                    for part in reversed(row["geometry"].geoms)
                ]
            ),
        }
        for row in given
    ]


def single(given):
    return [{**row, "geometry": row["geometry"].geoms[0] if len(row["geometry"].geoms) == 1 else row["geometry"]} for row in given]


def decomposed(given):
    return [{**row, "name": row["name"] and row["name"].replace("\u00e9", "e\u0301")} for row in given]


def columns_backwards(given):
    return [{name: row[name] for name in ("built", "geometry", "height", "rank", "pid", "name")} for row in given]


@pytest.mark.parametrize("dress", [shuffled, wound, spun, single, decomposed, columns_backwards])
@pytest.mark.parametrize("by", ["none", "column", "kdtree"])
def test_one_content_in_every_dress(estate, deliveries, tmp_path, dress, by):
    product = made(estate, by)
    product.publish(deliveries["parquet"])
    nothing_written(product, save(dress(rows()), tmp_path / "again.parquet"))
    if dress in (wound, shuffled):
        nothing_written(product, save(dress(rows()), tmp_path / "again.gpkg"))


@pytest.mark.parametrize(
    "change",
    [
        {"name": pa.large_string()},
        {"name": pa.dictionary(pa.int8(), pa.string())},
        {"pid": pa.string_view()},
        {"rank": pa.int8()},
        {"rank": pa.float64()},
        {"height": pa.float32()},
        {"built": pa.date64()},
    ],
    ids=str,
)
def test_one_content_in_every_arrow_type(estate, deliveries, tmp_path, change):
    product = made(estate)
    product.publish(deliveries["parquet"])
    table = pq.ParquetFile(deliveries["parquet"]).read()
    for name, kind in change.items():
        place = table.schema.get_field_index(name)
        column = table.column(place)
        cast = column.cast(kind)
        table = table.set_column(place, pa.field(name, cast.type), cast)
    pq.write_table(table, tmp_path / "again.parquet", row_group_size=7)
    nothing_written(product, tmp_path / "again.parquet")


def test_one_content_in_row_groups_and_pieces(estate, deliveries, tmp_path):
    product = made(estate)
    product.publish(deliveries["parquet"])
    table = pq.ParquetFile(deliveries["parquet"]).read()
    for number, options in enumerate(
        ({"row_group_size": 1}, {"compression": "gzip"}, {"data_page_version": "2.0"}, {"use_dictionary": False})
    ):
        pq.write_table(table, tmp_path / f"{number}.parquet", **options)
        nothing_written(product, tmp_path / f"{number}.parquet")


def test_again_and_again_with_a_volatile_column(estate, tmp_path):
    product = estate([*FIELDS[:1], {"name": "guid", "type": "string", "volatile": True}], geometry_type="point").agreed()

    def night(number, east=0.0):
        at = [Point(0 + east, 0), Point(1, 1)]
        return geoparquet(
            tmp_path / f"{number}.parquet", {"pid": pa.array(["a", "b"]), "guid": pa.array([f"{number}a", f"{number}b"]), "geometry": at}
        )

    product.publish(night(1))
    nothing_written(product, night(2), 2)
    assert {row["guid"] for row in product.rows().values()} == {"1a", "1b"}
    told = product.publish(night(3, east=1.0))
    assert told.keys("changed") == ["a"]
    assert {row["guid"] for row in product.rows().values()} == {"3a", "1b"}
    nothing_written(product, night(4, east=1.0), 2)


def test_a_dry_run_writes_nothing_at_all(estate, deliveries, tmp_path):
    product = made(estate)
    planned = product.publish(deliveries["gpkg"], dry_run=True)
    assert (planned.status, planned.result.version, planned.result.delta.added) == ("planned", None, 20)
    assert not product.url.exists() or not product.everything()
    done = product.publish(deliveries["gpkg"])
    assert done.result.files_written == planned.result.files_written
    before = product.everything()
    assert product.publish(deliveries["gpkg"], dry_run=True).result.delta.touched == 0
    edited = rows()
    edited[0]["name"] = "new"
    source = save(edited, tmp_path / "2.gpkg")
    planned = product.publish(source, dry_run=True)
    assert (planned.status, planned.result.version, planned.result.delta.changed) == ("planned", 1, 1)
    assert product.everything() == before
    done = product.publish(source)
    assert (planned.result.files_written, planned.result.files_carried) == (done.result.files_written, done.result.files_carried)
    assert planned.result.delta == done.result.delta
