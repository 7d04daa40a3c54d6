"""CRS: identified by parameters, agreed or not, and one recorded operation."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyproj
import pytest
import shapely

from contracts import contract
from merestone.contract.contract import Field, FieldType
from merestone.contract.stamp import Stamp
from merestone.errors import MissingError
from merestone.normalise.crs import (
    Operation,
    apply_operation,
    check_crs,
    choose_operation,
    differences,
    identify,
    largest_ordinate,
    no_transform_faults,
    operation_for,
    transform_steps,
)
from merestone.publication.publication import CrsRule
from merestone.results.finding import PASS, REJECT, WARN, Finding
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

CASES = Path(__file__).parents[1] / "cases"
FALLBACK = CrsRule(missing_grids="fallback")


def agreed(epsg: int, **clauses):
    return contract(crs_epsg=epsg, contract_version=Stamp.parse(f"v1.0.0-crs:EPSG:{epsg}-res:1m"), **clauses)


def delivery(name: str):
    return open_source(SourceSpec(str(CASES / name))).delivery


def observed(name: str, epsg: int) -> list[tuple[str, str, str]]:
    return [(each.rule, each.expected, each.observed) for each in check_crs(agreed(epsg), delivery(name))]


def wkb(shapes):
    return pa.array([None if shape is None else shapely.to_wkb(shape) for shape in shapes], pa.binary())


def chosen(*args, **options) -> Operation:
    operation = choose_operation(*args, **options)
    assert isinstance(operation, Operation)
    return operation


@pytest.mark.parametrize(
    "text",
    [
        "EPSG:28992", "urn:ogc:def:crs:EPSG::28992", "http://www.opengis.net/def/crs/EPSG/0/28992", "http://www.opengis.net/gml/srs/epsg.xml#28992",
        *(pyproj.CRS(28992).to_wkt(dialect) for dialect in ("WKT2_2019", "WKT2_2015", "WKT1_GDAL", "WKT1_ESRI")),
        pyproj.CRS(28992).to_json(),
    ],
)  # fmt: skip
def test_one_crs_in_every_spelling(text):
    assert identify(text).code == "EPSG:28992"


@pytest.mark.parametrize(
    "text", ["OGC:CRS84", "urn:ogc:def:crs:OGC:1.3:CRS84", "http://www.opengis.net/def/crs/OGC/1.3/CRS84", "EPSG:4326"]
)
def test_crs84_and_4326_are_one_in_x_y_order(text):
    assert identify(text).code == "EPSG:4326"


@pytest.mark.parametrize("text", ["junk", "", "EPSG:999999"])
def test_what_cannot_be_read_has_no_code(text):
    assert identify(text).code is None
    assert "cannot be read" in identify(text).reason


def test_codes_without_authority_are_found_by_parameters_and_never_those_of_units():
    assert identify((CASES / "C04/esri.prj").read_text()).code == "EPSG:3059"
    assert identify((CASES / "C04/custom.prj").read_text()).code is None
    assert identify((CASES / "C04/twin.prj").read_text()).code != "EPSG:3059"


def test_a_code_with_the_parameters_of_another_crs_is_not_believed():
    lie = pyproj.CRS(3059).to_wkt("WKT2_2019").replace("-6000000", "0")
    assert 'ID["EPSG",3059]' in lie
    assert identify(lie).code != "EPSG:3059"


def test_esri_names_of_many_grids_are_identified():
    codes = [25832, 27700, 28992, 31287, 3059, 3794, 2154, 32618, 4258, 4283, 6668, 4269, 3035, 2193, 3301]
    assert [identify(pyproj.CRS(code).to_wkt("WKT1_ESRI")).code for code in codes] == [f"EPSG:{code}" for code in codes]


def test_differences_are_told_in_the_agreed_unit():
    assert differences((CASES / "C04/twin.prj").read_text(), "EPSG:3059") == ["false northing 0 instead of -6000000"]
    assert differences("EPSG:25832", "EPSG:25833") == ["longitude of natural origin 9 instead of 15"]
    assert differences("EPSG:4258", "EPSG:25833") == ["a Geographic 2D CRS instead of a Projected CRS"]
    assert differences("EPSG:25833", "EPSG:25833") == []


def test_no_crs_is_named_with_its_reason():
    assert observed("C01/noprj.shp", 4326) == [("crs_missing", "EPSG:4326 is agreed", "CRS missing (no .prj)")]
    assert observed("C01/srs0.gpkg", 4326) == [("crs_missing", "EPSG:4326 is agreed", "CRS undefined (srs_id 0)")]
    assert observed("C01/plain.geojson", 4326) == []


@pytest.mark.parametrize("name", ["absent", "crs84", "epsg4326"])
def test_three_ways_to_say_wgs84(name):
    assert observed(f"C03/{name}.parquet", 4326) == []
    column = delivery(f"C03/{name}.parquet").geometry
    assert column is not None
    operation = operation_for(agreed(4326), column, CrsRule())
    assert isinstance(operation, Operation)
    assert operation.is_identity


def test_esri_twin_and_site_grid():
    assert observed("C04/esri.shp", 3059) == []
    ((rule, expected, words),) = observed("C04/twin.shp", 3059)
    assert (rule, expected) == ("crs_mismatch", "EPSG:3059 is agreed")
    assert "false northing 0 instead of -6000000" in words
    ((rule, _, words),) = observed("C04/custom.shp", 3059)
    assert "CRS could not be identified" in words
    for unit in ("9001", "9102", "9122", "8901"):
        assert unit not in words


def test_compound_against_plain():
    ((_, _, words),) = observed("C06/compound.parquet", 25833)
    assert words == "EPSG:25833+7837 (DHHN2016 height) where EPSG:25833 is agreed"
    ((_, _, words),) = observed("C06/has_code.parquet", 27700)
    assert words.startswith("EPSG:7405 (")
    assert observed("C06/has_code.parquet", 7405) == []


def test_another_crs_with_a_code_is_transformed_and_no_fault():
    assert observed("C09/points.gpkg", 4258) == []
    column = delivery("C01/plain.geojson").geometry
    assert column is not None
    three = replace(delivery("C01/plain.geojson"), geometry=replace(column, crs="EPSG:4979"))
    assert check_crs(agreed(4326), three) == ()  # the same name, with heights


def test_a_second_geometry_answers_for_its_own_crs():
    entrance = Field("entrance", FieldType("geometry"), crs_epsg=4326)
    both = agreed(25832, schema_fields=(Field("pid", FieldType("string")), entrance))
    found = delivery("Q02/curr.parquet")
    assert check_crs(both, found) == ()
    (other,) = found.other_geometries
    operation = operation_for(both, other, CrsRule(), field=entrance)
    assert isinstance(operation, Operation)
    assert operation.is_identity
    lost = replace(found, other_geometries=(replace(other, crs=None, note="crs null"),))
    assert [(each.field, each.rule) for each in check_crs(both, lost)] == [("entrance", "crs_missing")]


def test_a_missing_grid_stops_the_run_and_names_file_and_accuracy():
    with pytest.raises(MissingError) as fault:
        choose_operation("EPSG:27700", 4258, CrsRule(), 1.0)
    assert fault.value.exit_code == 8
    assert "missing grid uk_os_OSTN15_NTv2_OSGBtoETRS.tif" in fault.value.message
    assert "accuracy unknown (ballpark) where 1.0 m is required" in fault.value.message


def test_where_worse_is_allowed_the_required_accuracy_still_holds():
    refused = choose_operation("EPSG:27700", 4258, FALLBACK, 1.0)
    assert isinstance(refused, Finding)
    assert refused.severity == "error"
    assert "accuracy unknown (ballpark) where 1.0 m is required" in refused.observed
    assert "uk_os_OSTN15_NTv2_OSGBtoETRS.tif" in refused.observed
    allowed = chosen("EPSG:27700", 4258, FALLBACK)
    assert (allowed.accuracy_m, allowed.strategy_index) == (None, 2)
    assert allowed.missing_grids == ("uk_os_OSTN15_NTv2_OSGBtoETRS.tif",)
    steps = transform_steps(allowed, np.zeros(2, bool), 2)
    assert steps.verdict.tolist() == [WARN, WARN]
    assert steps.accuracy_m is None
    assert "accuracy unknown" in steps.reason[0].as_py()
    named = choose_operation("EPSG:27700", 4258, replace(FALLBACK, strategies=("best", "grid")))
    assert isinstance(named, Finding)


def test_an_operation_of_known_accuracy_stands_in_for_a_missing_grid():
    operation = chosen("EPSG:31287", 25833, FALLBACK)
    assert operation.strategy_index == 1
    assert operation.accuracy_m is not None
    assert operation.accuracy_m > 0.1


def tiff_grid(path: Path) -> None:
    """A grid of shifts for Great Britain in PROJ's GeoTIFF form: 1 arc-second north everywhere, in 64-bit-free classic TIFF."""
    width = height = 12
    offsets = np.zeros((height, width, 2), dtype="<f4")
    offsets[:, :, 0] = 1.0
    pixels = offsets.tobytes()
    described = "".join(
        f'<Item name="{name}" sample="{sample}"{role}>{text}</Item>'
        for sample, band in enumerate(("latitude_offset", "longitude_offset"))
        for name, role, text in (("DESCRIPTION", ' role="description"', band), ("UNITTYPE", ' role="unittype"', "arc-second"))
    )
    metadata = f'<GDALMetadata><Item name="TYPE">HORIZONTAL_OFFSET</Item>{described}</GDALMetadata>\0'.encode()
    doubles = {33550: (1.0, 1.0, 0.0), 33922: (0.0, 0.0, 0.0, -9.0, 61.0, 0.0)}
    keys = (1, 1, 0, 3, 1024, 0, 1, 2, 1025, 0, 1, 2, 2048, 0, 1, 4277)
    entries: list[tuple[int, int, int, bytes]] = [
        (256, 3, 1, struct.pack("<H", width)), (257, 3, 1, struct.pack("<H", height)), (258, 3, 2, struct.pack("<2H", 32, 32)),
        (259, 3, 1, struct.pack("<H", 1)), (262, 3, 1, struct.pack("<H", 1)), (273, 4, 1, b""), (277, 3, 1, struct.pack("<H", 2)),
        (278, 3, 1, struct.pack("<H", height)), (279, 4, 1, struct.pack("<I", len(pixels))), (284, 3, 1, struct.pack("<H", 1)),
        (338, 3, 1, struct.pack("<H", 0)), (339, 3, 2, struct.pack("<2H", 3, 3)),
        *((tag, 12, len(values), struct.pack(f"<{len(values)}d", *values)) for tag, values in doubles.items()),
        (34735, 3, len(keys), struct.pack(f"<{len(keys)}H", *keys)), (42112, 2, len(metadata), metadata),
    ]  # fmt: skip
    start = 8 + 2 + 12 * len(entries) + 4
    tail, table = b"", b""
    long = [(tag, value) for tag, _, _, value in entries if len(value) > 4]
    places = {}
    for tag, value in long:
        places[tag] = start + len(tail)
        tail += value + b"\0" * (len(value) % 2)
    data = start + len(tail)
    for tag, kind, count, value in entries:
        packed = struct.pack("<I", data) if tag == 273 else struct.pack("<I", places[tag]) if tag in places else value.ljust(4, b"\0")
        table += struct.pack("<HHI", tag, kind, count) + packed
    path.write_bytes(b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(entries)) + table + struct.pack("<I", 0) + tail + pixels)


def test_with_the_grid_in_its_folder_the_best_operation_is_used(tmp_path):
    tiff_grid(tmp_path / "uk_os_OSTN15_NTv2_OSGBtoETRS.tif")
    before = pyproj.datadir.get_data_dir()
    try:
        operation = chosen("EPSG:27700", 4258, CrsRule(grids=str(tmp_path)), 1.0)
        assert operation.accuracy_m == pytest.approx(0.03)
        assert (operation.strategy_index, operation.missing_grids) == (0, ())
        assert operation.grids == ("uk_os_OSTN15_NTv2_OSGBtoETRS.tif",)
        moved, failed = apply_operation(wkb([shapely.Point(400_000, 300_000)]), operation)
        plain, _ = apply_operation(wkb([shapely.Point(400_000, 300_000)]), replace(chosen("EPSG:27700", 4277, CrsRule())))
        shift = shapely.get_coordinates(shapely.from_wkb(moved.to_pylist())) - shapely.get_coordinates(shapely.from_wkb(plain.to_pylist()))
        assert shift[0] * 3600 == pytest.approx([0.0, 1.0], abs=1e-6)
        assert not failed.any()
    finally:
        pyproj.datadir.set_data_dir(before)


def test_the_pole_has_no_value_in_web_mercator_and_keeps_its_feature():
    source = open_source(SourceSpec(str(CASES / "G08/polar.geojson")))
    (batch,) = source.batches()
    column = source.delivery.geometry
    assert column is not None
    operation = operation_for(agreed(3857, coordinate_precision=2), column, CrsRule())
    assert isinstance(operation, Operation)
    given = batch[column.name]
    moved, failed = apply_operation(given, operation)
    assert (len(moved), failed.tolist()) == (3, [True, True, False])
    (fault,) = no_transform_faults(operation, failed, given, "geometry")
    assert fault.rows.tolist() == [0, 1]
    assert set(fault.observed.to_pylist()) == {"EPSG:3857 has no value at latitude -90 or 90"}
    steps = transform_steps(operation, failed, 3)
    assert steps.verdict.tolist() == [REJECT, REJECT, PASS]
    assert (steps.stage, steps.event_type, steps.source_crs, steps.target_crs) == ("crs_normalize", "TRANSFORM", "EPSG:4326", "EPSG:3857")
    assert steps.strategy_index == 0
    assert no_transform_faults(operation, np.zeros(3, bool), given, "geometry") == []


def test_rows_without_vertices_and_numbers_that_are_none_stay():
    operation = chosen("EPSG:4326", 25833, CrsRule())
    broken = bytearray(shapely.to_wkb(shapely.Point(14.0, 52.0)))
    broken[5:13] = struct.pack("<d", np.nan)
    given = pa.array([None, shapely.to_wkb(shapely.Point()), bytes(broken), shapely.to_wkb(shapely.Point(15.0, 52.0, 7.5))], pa.binary())
    moved, failed = apply_operation(given, operation)
    assert failed.tolist() == [False] * 4
    assert moved[0].as_py() is None
    assert shapely.from_wkb(moved[1].as_py()).is_empty
    assert struct.unpack("<d", moved[2].as_py()[13:21])[0] == 52.0
    last = shapely.from_wkb(moved[3].as_py())
    assert (round(last.x, 3), last.z) == (500_000.0, 7.5)


def test_a_delivery_in_y_x_order_is_swapped_and_the_swap_recorded():
    same = chosen("EPSG:4326", 4326, CrsRule(), swap=True)
    assert (same.is_identity, same.to_json()["swap"]) == (False, True)
    moved, _ = apply_operation(wkb([shapely.LineString([(52, 14), (53, 15)])]), same)
    assert shapely.from_wkb(moved[0].as_py()) == shapely.LineString([(14, 52), (15, 53)])
    other = chosen("EPSG:4326", 25833, CrsRule(), swap=True)
    straight = chosen("EPSG:4326", 25833, CrsRule())
    one, _ = apply_operation(wkb([shapely.Point(52, 14)]), other)
    two, _ = apply_operation(wkb([shapely.Point(14, 52)]), straight)
    assert one == two


def test_the_record_says_what_decides_the_numbers():
    record = chosen("EPSG:25832", 25833, CrsRule()).to_json()
    assert record["pipeline"].startswith("proj=pipeline")
    assert (record["source"], record["target"], record["accuracy_m"]) == ("EPSG:25832", "EPSG:25833", 0.0)
    assert record["proj"] == pyproj.proj_version_str
    assert record["database"]
    assert not pyproj.network.is_network_enabled()


def test_threads_give_the_same_numbers():
    operation = chosen("EPSG:4326", 25833, CrsRule())
    given = wkb(shapely.points(np.linspace(12, 15, 2000), np.linspace(50, 54, 2000)))
    expected, _ = apply_operation(given, operation)
    with ThreadPoolExecutor(4) as pool:
        assert all(moved == expected for moved, _ in pool.map(lambda _: apply_operation(given, operation), range(12)))


def test_largest_ordinates():
    assert largest_ordinate("EPSG:4326") == 180.0
    assert 9e6 < largest_ordinate("EPSG:25833") < 1e7
    assert largest_ordinate("EPSG:28992") < 1e6
