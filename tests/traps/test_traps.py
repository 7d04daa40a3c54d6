"""Twelve ways in which a delivery of parcels goes wrong, set as traps into 10,000 good ones: each is caught, on the right surface and field.

Not here: overlaps and gaps, which are traps of the topology.
"""

from __future__ import annotations

import json

import geopandas as gpd
import numpy as np
import pytest
import shapely
from pyproj import Transformer

from merestone.cli.main import root
from traps.parcels import PRECISION, good

SYSTEMS = (4326, 28992, 3301)  # degrees; metres; northing first
OTHER = {4326: 26986, 28992: 4326, 3301: 4326}
ROW = 5_000
WHOLE = slice(None)


@pytest.fixture
def check(tmp_path, capsys):
    """Checks a table against the good parcels' contract: (exit code, the object on standard output)."""

    def run(parcels, table=None, **options):
        delivery, contract = parcels.write(tmp_path, table, **options)
        capsys.readouterr()
        code = root.main(["check", str(delivery), "--contract", str(contract), "--json"], prog_name="merestone", standalone_mode=False)
        return code, json.loads(capsys.readouterr().out)

    return run


def moved(table, change, rows=WHOLE):
    """The table with the coordinates of some rows changed."""
    shapes = np.array(table.geometry)
    shapes[rows] = shapely.transform(shapes[rows], change)
    return table.set_geometry(gpd.GeoSeries(shapes, crs=table.crs))


def with_values(table, column, change, rows=WHOLE):
    values = table[column].to_numpy().copy()
    values[rows] = change(values[rows])
    return table.assign(**{column: values})


def swapped(xy):
    return xy[:, ::-1]


def into(epsg, other):
    there = Transformer.from_crs(epsg, other, always_xy=True)

    def change(xy):
        return np.round(np.column_stack(there.transform(*xy.T)), 8 if other == 4326 else 3)

    return change


def bow_tie(shape):
    """A parcel whose ring crosses itself, and where."""
    west, south, east, north = shape.bounds
    return shapely.Polygon([(west, south), (east, north), (east, south), (west, north)]), ((west + east) / 2, (south + north) / 2)


def only(found, surface, field, rule, severity="error"):
    """The one finding of an answer."""
    assert [(each["surface"], each["field"], each["rule"], each["severity"]) for each in found["findings"]] == [
        (surface, field, rule, severity)
    ]
    return found["findings"][0]


@pytest.mark.parametrize("epsg", [*SYSTEMS, 25832, 2193])
def test_good_parcels_pass_without_a_word(check, epsg):
    code, found = check(good(epsg))
    assert (code, found["findings"]) == (0, [])
    assert found["axes"]["geometry"]["decision"] == "ok"


@pytest.mark.parametrize("epsg", SYSTEMS)
def test_swapped_axes(check, epsg):
    parcels = good(epsg)
    code, found = check(parcels, moved(parcels.table, swapped))
    told = only(found, "crs", "geometry", "axis_order")
    assert (code, told["count"]) == (1, 10_000)
    assert "holds 0 of 10,000 rows as given, 10,000 with x and y exchanged" in told["observed"]
    assert found["axes"]["geometry"]["decision"] == "swapped"


@pytest.mark.parametrize("epsg", SYSTEMS)
def test_one_row_with_swapped_axes(check, epsg):
    parcels = good(epsg)
    code, found = check(parcels, moved(parcels.table, swapped, [ROW]))
    told = only(found, "crs", "geometry", "axis_order")
    assert (code, told["count"], told["features"][0]["row"]) == (1, 1, ROW + 1)
    assert told["features"][0]["id"] == parcels.table["parcel"].iloc[ROW]


@pytest.mark.parametrize("epsg", SYSTEMS)
@pytest.mark.parametrize("rows", [WHOLE, [ROW]], ids=["whole", "row"])
def test_degrees_for_metres_and_metres_for_degrees(check, epsg, rows):
    parcels = good(epsg)
    code, found = check(parcels, moved(parcels.table, into(epsg, OTHER[epsg]), rows))
    told = only(found, "crs", "geometry", "units" if rows is WHOLE else "row_units")
    assert (code, told["count"]) == (1, 10_000 if rows is WHOLE else 1)
    assert ("not degrees" if epsg == 4326 else "read as degrees") in told["observed"] or rows is not WHOLE
    assert rows is WHOLE or told["features"][0]["row"] == ROW + 1


@pytest.mark.parametrize("epsg", SYSTEMS)
def test_two_decimals_fewer_than_promised(check, epsg):
    parcels, decimals = good(epsg), PRECISION.get(epsg, 2)
    coarse = moved(parcels.table, lambda xy: np.round(xy, decimals - 2))
    coarse = coarse[shapely.is_valid(np.array(coarse.geometry))]
    code, found = check(parcels, coarse)
    told = next(each for each in found["findings"] if each["rule"] == "precision")
    assert (code, told["surface"], told["field"], told["severity"]) == (1, "geometry", "geometry", "error")
    assert f"have {decimals - 2} decimals or fewer" in told["observed"]
    assert told["expected"] == f"{decimals} decimals"


@pytest.mark.parametrize("epsg", SYSTEMS)
@pytest.mark.parametrize("rows", [WHOLE, [ROW]], ids=["whole", "row"])
def test_hectares_for_square_metres(check, epsg, rows):
    parcels = good(epsg)
    code, found = check(parcels, with_values(parcels.table, "area", lambda area: np.round(area / 10_000, 6), rows))
    told = only(found, "semantics", "area", "unit" if rows is WHOLE else "row_unit")
    assert (code, told["count"], told["expected"]) == (1, 10_000 if rows is WHOLE else 1, "area in m2")
    assert "ha" in told["observed"].replace(":", " ").split()
    assert rows is WHOLE or told["features"][0]["row"] == ROW + 1


@pytest.mark.parametrize("epsg", SYSTEMS)
@pytest.mark.parametrize("rows", [WHOLE, [ROW]], ids=["whole", "row"])
def test_a_new_value_in_a_code_list(check, epsg, rows):
    parcels = good(epsg)
    code, found = check(parcels, with_values(parcels.table, "kind", lambda _: "LEASE", rows))
    told = only(found, "semantics", "kind", "enum")
    assert (code, told["count"]) == (1, 10_000 if rows is WHOLE else 1)
    assert "LEASE" in told["observed"]


@pytest.mark.parametrize("epsg", SYSTEMS)
def test_a_column_dropped(check, epsg):
    parcels = good(epsg)
    code, found = check(parcels, parcels.table.drop(columns="kind"))
    assert (code, only(found, "schema", "kind", "missing")["observed"]) == (1, "kind missing")


@pytest.mark.parametrize("epsg", SYSTEMS)
def test_one_key_twice(check, epsg):
    parcels = good(epsg)
    first = parcels.table["parcel"].iloc[0]
    code, found = check(parcels, with_values(parcels.table, "parcel", lambda _: first, [ROW]))
    told = only(found, "schema", "parcel", "key_duplicate")
    assert (code, told["count"], [each["row"] for each in told["features"]]) == (1, 2, [1, ROW + 1])


@pytest.mark.parametrize("epsg", SYSTEMS)
def test_one_value_twice_where_each_is_promised_once(check, epsg):
    parcels = good(epsg)
    table = parcels.table.assign(lot=parcels.table["parcel"])
    fields = [*parcels.contract["schema_fields"], {"name": "lot", "type": "string", "unique": True}]
    assert check(parcels, table, schema_fields=fields)[0] == 0
    code, found = check(parcels, with_values(table, "lot", lambda _: table["lot"].iloc[0], [ROW]), schema_fields=fields)
    told = only(found, "schema", "lot", "unique")
    assert (code, told["count"], [each["row"] for each in told["features"]]) == (1, 2, [1, ROW + 1])


@pytest.mark.parametrize("epsg", SYSTEMS)
def test_a_sound_file_in_another_reference_system(check, epsg):
    parcels = good(epsg)
    code, found = check(parcels, moved(parcels.table, into(epsg, OTHER[epsg])).set_crs(OTHER[epsg], allow_override=True))
    told = only(found, "crs", "crs", "crs_mismatch")
    assert code == 1
    assert told["expected"].startswith(f"EPSG:{epsg}")
    assert told["observed"].startswith(f"EPSG:{OTHER[epsg]} ")
    assert told["observed"].endswith(f"where EPSG:{epsg} is agreed")


@pytest.mark.parametrize("epsg", SYSTEMS)
def test_a_bow_tie(check, epsg):
    parcels = good(epsg)
    shapes = np.array(parcels.table.geometry)
    shapes[ROW], (x, y) = bow_tie(shapes[ROW])
    code, found = check(parcels, parcels.table.set_geometry(gpd.GeoSeries(shapes, crs=epsg)))
    told = only(found, "geometry", "geometry", "validity")
    assert (code, told["count"], told["features"][0]["row"]) == (1, 1, ROW + 1)
    words, _, place = told["features"][0]["observed"].partition(" at ")
    assert words == "self-intersection"
    assert [float(each) for each in place.split(", ")] == pytest.approx([x, y], abs=10.0 ** -PRECISION.get(epsg, 2))
