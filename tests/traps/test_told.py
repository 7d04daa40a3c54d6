"""What a person reads of a broken delivery at night: what is wrong, where, in how many rows, and what to do next.

Real parcels, broken in the ways in which deliveries really break; each is met by `check` and by `publish` over a version that stands.
"""

from __future__ import annotations

import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

from merestone.cli.main import root
from traps.parcels import good

EPSG = 28992
ROWS = 1_500  # enough that precision and units are judged
FEW = [7, 500, 1_200]


def rows_changed(column, value):
    def change(table):
        table.loc[FEW, column] = value
        return table

    return change


def mapped(change):
    """Every position through a function of its (n, 2) array."""

    def moved(table):
        return table.set_geometry(gpd.GeoSeries(shapely.transform(table.geometry.array, change), crs=table.crs))

    return moved


def into_degrees(table):
    return table.to_crs(4326).set_crs(EPSG, allow_override=True)


def moved_vertex(table):
    """One corner of one parcel pulled across the middle of its neighbour."""
    shapes = table.geometry.array
    one, other = next(
        pair
        for pair in shapely.STRtree(shapes).query(shapes, predicate="touches").T
        if shapely.length(shapely.intersection(*shapes[pair])) > 5
    )
    ring = shapely.get_coordinates(shapes[one].exterior)
    near = 1 + int(np.argmin(shapely.distance(shapely.points(ring[1:-1]), shapes[other])))
    ring[near] = shapely.get_coordinates(shapely.point_on_surface(shapes[other]))[0]
    table.loc[one, "geometry"] = shapely.Polygon(ring)
    return table


def bow_tie(table):
    west, south, east, north = table.geometry.iloc[7].bounds
    table.loc[7, "geometry"] = shapely.Polygon([(west, south), (east, north), (east, south), (west, north)])
    return table


def twice(table):
    return pd.concat([table, table.iloc[FEW]], ignore_index=True)


def comma(table):
    return table.assign(area=[f"{each:.2f}".replace(".", ",") for each in table.area])


def turned(table):
    return table.assign(edited=[f"{each:%d.%m.%Y}" for each in table.edited])


# name: the edit, further clauses; then what must be read: rule and field (what), a place (where), a number (how many), the remedy (next)
DELIVERIES = {
    "x and y swapped": (
        mapped(lambda xy: xy[:, ::-1]),
        {},
        ["crs.axis_order", "geometry", "x and y are swapped", "1,500", "Exchange x and y"],
    ),
    "degrees labelled metres": (
        into_degrees,
        {},
        ["crs.units", "geometry", "0 of 1,500 rows", "degrees", "State the CRS that the coordinates are in"],
    ),
    "decimals cut": (
        mapped(np.trunc),
        {},
        ["geometry.precision", "0 decimals", "ordinates", "expected 2 decimals", "Export full coordinates"],
    ),
    "one vertex moved": (
        moved_vertex,
        {"topology_rule_set": "planar", "topology_parameters": {"gap_width": 0.01}},
        ["geometry.overlap", "geometry", " share ", " m2", " is at ", "Cut one of each pair back"],
    ),
    "hectares": (lambda table: table.assign(area=table.area / 10_000), {}, ["semantics.unit", "area", "m2", "1,500", "Deliver m2"]),
    "a new value in three rows": (
        rows_changed("kind", "LEASE"),
        {},
        ["semantics.enum", "kind", "LEASE in 3 rows", "{7}", "{500}", "{1200}", "one of the agreed values, or add the value"],
    ),
    "a column renamed": (
        lambda table: table.rename(columns={"kind": "Kind_"}),
        {},
        ["schema.missing", "kind missing", "Kind_ not in the contract", "`columns: {Kind_: kind}`"],
    ),
    "the key renamed": (
        lambda table: table.rename(columns={"parcel": "PARCEL"}),
        {},
        ["schema.missing", "parcel missing", "`columns: {PARCEL: parcel}`"],
    ),
    "keys twice": (twice, {}, ["schema.key_duplicate", "parcel", "{7} twice (rows 8 and 1501)", "6 rows in all", "Correct the keys"]),
    "keys null": (
        rows_changed("parcel", None),
        {},
        ["schema.key_null", "parcel", "3 null keys (rows 8, 501 and 1201 of the file)", "Fill the key"],
    ),
    "another CRS by name only": (
        lambda table: table.set_crs(26986, allow_override=True),
        {},
        ["crs.crs_position", "1,500 of 1,500 rows lie far", "EPSG:26986", "State the CRS that the coordinates are in"],
    ),
    "a CRS of the same country": (
        lambda table: table.set_crs(28991, allow_override=True),
        {},
        ["crs.crs_position", "geometry", "1,500 of 1,500 rows lie in neither as EPSG:28991", "probably EPSG:28992"],
    ),
    "a CRS that nobody accepted": (
        lambda table: table.to_crs(28991),
        {},
        ["crs.crs_mismatch", "EPSG:28991", "EPSG:28992 is agreed", "`crs: {accept: [EPSG:28991]}`"],
    ),
    "no CRS": (
        lambda table: gpd.GeoDataFrame(table.drop(columns="geometry"), geometry=list(table.geometry)),
        {},
        ["crs.crs_missing", "EPSG:28992", "State the CRS"],
    ),
    "a bow tie": (bow_tie, {}, ["geometry.validity", "geometry", "{7} self-intersection at ", "Correct the geometry"]),
    "no geometry in three rows": (
        rows_changed("geometry", None),
        {},
        ["geometry.null_geometry", "{7} null", "{500} null", "3 rows in all", "Deliver the geometry"],
    ),
    "decimal commas": (comma, {}, ["schema.column_type", "area", "string where number is agreed", "Deliver the agreed type"]),
    "dates turned": (turned, {}, ["schema.type", "edited", " rows", "first in row", "expected date", "Deliver the agreed type"]),
}


@pytest.fixture
def call(capsys):
    def run(*arguments):
        capsys.readouterr()
        code = root.main([str(each) for each in arguments], prog_name="merestone", standalone_mode=False)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out + err

    return run


# Deliveries in another CRS that the publication accepts by name: only then is it asked where their positions lie
ACCEPTED = {"another CRS by name only": "EPSG:26986", "a CRS of the same country": "EPSG:28991"}


def saved(folder, table, name):
    """As a GeoPackage, always under the same layer."""
    path = folder / f"{name}.gpkg"
    table.to_file(path, layer="parcels", use_arrow=True)
    return path


@pytest.fixture
def standing(call, tmp_path):
    """A version that stands, and a function that breaks its delivery."""

    def make(change, clauses, accepted=None):
        parcels = good(EPSG)
        table = parcels.table.iloc[:ROWS].reset_index(drop=True)
        (tmp_path / "parcels.contract.yaml").write_text(json.dumps({**parcels.contract, **clauses}), encoding="utf-8")
        settings = {"contract": "parcels.contract.yaml", "source": "good.gpkg", "destination": "./published"}
        if accepted:
            settings["crs"] = {"accept": accepted}
        (tmp_path / "parcels.yaml").write_text(json.dumps(settings), encoding="utf-8")
        saved(tmp_path, table, "good")
        code, said = call("publish", tmp_path / "parcels.yaml")
        assert code == 0, said
        return tmp_path / "parcels.yaml", saved(tmp_path, change(table.copy()), "bad"), table

    return make


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
@pytest.mark.parametrize("name", DELIVERIES)
def test_a_refusal_tells_what_where_how_many_and_what_to_do_next(name, standing, call):
    change, clauses, words = DELIVERIES[name]
    file, bad, table = standing(change, clauses, [ACCEPTED[name]] if name in ACCEPTED else None)
    keys = {f"{{{row}}}": table.parcel[row] for row in FEW}
    for command in ("check", "publish"):
        code, said = call(command, file, "--source", bad)
        assert code == 1, said
        for word in words:
            for mark, key in keys.items():
                word = word.replace(mark, key)  # noqa: PLW2901 - the word as it reads with the keys of these rows
            assert word in said, f"{command} does not say {word!r}:\n{said}"
        told = [line.strip() for line in said.splitlines()]
        findings = sum(line.startswith(("schema.", "crs.", "geometry.", "semantics.")) for line in told)
        assert sum(line.startswith("expected ") for line in told) == findings
        assert sum(line.startswith("next: ") for line in told) == findings, "a finding without a remedy"
        assert "(0 rows)" not in said
        assert len(set(told)) == len(told), "a line stands there twice"


def test_half_of_the_rows_stop_at_a_guard_that_tells_how_many_are_missing(standing, call):
    file, bad, _ = standing(lambda table: table.iloc[::2], {})
    code, said = call("publish", file, "--source", bad)
    assert code == 1
    for word in (
        "guard.changed",
        "50 % changed",
        "750 published features are missing from the delivery",
        "750 removed; 750 unchanged",
        "merestone diff ",
        "if not meant: correct the delivery; v1 stays",
        "if meant: repeat with --confirm",
    ):
        assert word in said, said


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_delivery_that_was_cut_tells_how_much_of_it_is_there(share, standing, call):
    file, bad, _ = standing(lambda table: table, {})
    whole = bad.read_bytes()
    bad.write_bytes(whole[: int(len(whole) * share)])
    code, said = call("publish", file, "--source", bad)
    assert code == 3
    assert ("is empty (0 bytes)" if not share else f"is truncated: {int(len(whole) * share)} of {len(whole)} bytes") in said
    assert "copy it again" in said or "export it again" in said
