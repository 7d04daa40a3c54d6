"""Epochs of coordinates and reference systems that a file states in more than one place: each is read, and a contradiction is told."""

from __future__ import annotations

import gzip
import json
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pyproj
import pytest
import shapely

from merestone.source import epochs
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

DYNAMIC = pyproj.CRS.from_epsg(9000)  # ITRF2014
WKT = DYNAMIC.to_wkt("WKT2_2019")
ROWS = pa.table({"code": ["a"], "geometry": pa.array([shapely.Point(1, 2).wkb])})


def geometry_of(path):
    return open_source(SourceSpec(str(path))).delivery.geometry


def written(path, driver, crs="EPSG:9000"):
    pyogrio.write_arrow(ROWS, path, driver=driver, geometry_name="geometry", geometry_type="Point", crs=crs)
    return path


def parquet(path, **entry):
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "geometry_types": [], **entry}}}
    pq.write_table(ROWS.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return path


@pytest.mark.parametrize(("stated", "epoch"), [(2021.5, 2021.5), (2010, 2010.0), (None, None), ("unknown", None)])
def test_a_geopackage_states_the_epoch_beside_its_system(tmp_path, stated, epoch):
    path = written(tmp_path / "a.gpkg", "GPKG")
    assert geometry_of(path).epoch is None
    with sqlite3.connect(path) as database:
        database.execute("alter table gpkg_spatial_ref_sys add column epoch double")
        database.execute("update gpkg_spatial_ref_sys set epoch = 1999 where srs_id <> 9000")
        database.execute("update gpkg_spatial_ref_sys set epoch = ? where srs_id = 9000", (stated,))
    database.close()
    assert geometry_of(path).epoch == epoch


def test_a_flatgeobuf_states_the_epoch_around_its_system(tmp_path):
    path = written(tmp_path / "a.fgb", "FlatGeobuf", f"COORDINATEMETADATA[{WKT},EPOCH[2021.5]]")
    packed = tmp_path / "b.fgb.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert geometry_of(path).epoch == geometry_of(packed).epoch == 2021.5
    assert geometry_of(written(tmp_path / "c.fgb", "FlatGeobuf")).epoch is None


@pytest.mark.parametrize(
    ("entry", "epoch"),
    [
        ({"crs": {"type": "CoordinateMetadata", "crs": DYNAMIC.to_json_dict(), "coordinateEpoch": 2021.5}}, 2021.5),
        ({"crs": {"type": "CoordinateMetadata", "crs": DYNAMIC.to_json_dict()}, "epoch": 2020}, 2020.0),
        ({"crs": {"type": "CoordinateMetadata", "crs": DYNAMIC.to_json_dict(), "coordinateEpoch": 2020}, "epoch": 2020}, 2020.0),
        ({"crs": f"COORDINATEMETADATA[{WKT},EPOCH[2021.5]]"}, 2021.5),
        ({"crs": f"COORDINATEMETADATA[{WKT}]"}, None),
    ],
)
def test_parquet_metadata_state_the_epoch_around_their_system_too(tmp_path, entry, epoch):
    geometry = geometry_of(parquet(tmp_path / "a.parquet", **entry))
    assert pyproj.CRS(geometry.crs).equals(DYNAMIC)
    assert geometry.epoch == epoch


def test_two_epochs_of_one_column_are_none(tmp_path):
    both = {"crs": {"type": "CoordinateMetadata", "crs": DYNAMIC.to_json_dict(), "coordinateEpoch": 2021.5}, "epoch": 2019}
    geometry = geometry_of(parquet(tmp_path / "a.parquet", **both))
    assert (geometry.crs, geometry.epoch, geometry.note) == (None, None, "crs of epoch 2021.5 beside epoch 2019 in the geo metadata")


@pytest.mark.parametrize("text", ["EPSG:9000", WKT, None, {"type": "GeographicCRS"}, "COORDINATEMETADATA"])
def test_a_system_alone_stays_as_it_is(text):
    assert epochs.apart(text) == (text, None)


class Wkb(pa.ExtensionType):
    """What makes pyarrow write Parquet's own GEOMETRY and GEOGRAPHY types."""

    def __init__(self, described):
        self.described = described
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self):
        return json.dumps(self.described).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _, raw):
        return cls(json.loads(raw or b"{}"))


def typed(path, described, **columns):
    """Parquet whose columns `geometry` and `other` have a type of their own, beside `geo` metadata with these entries."""
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": columns}
    made = pa.ExtensionArray.from_storage(Wkb(described), ROWS["geometry"].combine_chunks())
    rows = pa.table({"geometry": made, "other": made})
    pq.write_table(rows.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return path


WGS84 = pyproj.CRS.from_epsg(4326).to_json_dict()
DUTCH = pyproj.CRS.from_epsg(28992).to_json_dict()
PLAIN = {"encoding": "WKB", "geometry_types": []}


@pytest.mark.parametrize(
    ("described", "entry", "words"),
    [
        (
            {"crs": "EPSG:4267"},
            {"crs": DUTCH},
            "Amersfoort / RD New, planar edges, the Parquet type of the column says NAD27, planar edges",
        ),
        ({"crs": "EPSG:4267"}, {}, "the Parquet type of the column says NAD27, planar edges"),
        (
            {"crs": "EPSG:28992", "edges": "spherical"},
            {"crs": DUTCH},
            "RD New, planar edges, the Parquet type of the column says Amersfoort",
        ),
        ({"crs": "EPSG:28992"}, {"crs": DUTCH}, None),
        ({"crs": "EPSG:4326"}, {}, None),
        ({"crs": "OGC:CRS84"}, {"crs": WGS84}, None),
        ({}, {"crs": DUTCH}, None),
    ],
)
def test_metadata_and_type_that_contradict_each_other_are_told(tmp_path, described, entry, words):
    path = typed(tmp_path / "a.parquet", described, geometry={**PLAIN, **entry})
    found = [each for each in open_source(SourceSpec(str(path))).delivery.findings if each.rule == "crs_mismatch"]
    assert [each.field for each in found] == ([] if words is None else ["geometry"])
    assert words is None or (words in found[0].observed and found[0].severity == "error")


def test_a_geometry_by_its_type_is_one_where_the_metadata_leave_it_out(tmp_path):
    path = typed(tmp_path / "a.parquet", {"crs": "EPSG:28992"}, geometry={**PLAIN, "crs": DUTCH})
    (other,) = open_source(SourceSpec(str(path))).delivery.other_geometries
    assert (other.name, other.crs) == ("other", "EPSG:28992")
