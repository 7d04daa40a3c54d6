"""Every file of the folder is drafted from and checked, or refused in words; and what the folder's README calls odd is told.

Not here: what the versions differ in (`test_real_versions`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from field.test_real_versions import every_file

pytestmark = pytest.mark.field


@dataclass(frozen=True)
class Odd:
    """An oddity, where it shows, and the words that have to tell it.

    `drafted` are words of `contract infer` (what it notes, refuses or drafts); `found` are rules, with field and count where they matter,
    of `check` against the contract drafted from `against` (the file itself where that is empty), with `terms` added to it.
    """

    what: str
    path: str
    options: tuple[str, ...] = ()
    drafted: tuple[str, ...] = ()
    found: tuple[tuple[str, ...], ...] = ()
    against: str = ""
    terms: str = ""
    previous: str = ""


HYDRANTS, PARCELS = "cam_hydrants/{}/INFRA_Hydrants.geojson", "cam_parcels/FY{0}/ASSESSING_ParcelsFY{0}.topojson"
LINES, LIGHTS = "cam_centerlines/{}/TRANS_Centerlines.geojson", "cam_streetlights/{}/INFRA_StreetLights.geojson.gz"
COMMUNES, COUNTRIES = "fr_communes62/{}/communes-62-pas-de-calais.geojson", "ne_lowres/{}/naturalearth_lowres.shp"
FIXTURES, CENSUS = "format_fixtures/", "au_census/2016/census2016_sdhca_ot_short.gpkg"
CSV = ("CSV is not read in this version",)

ODD = (
    Odd("ID has a duplicate", LINES.format("2019-06-11") + ".gz", drafted=("not the key: ID, 2 rows share",)),
    Odd("one null ID and one empty geometry", LINES.format("2026-06-01"), drafted=("ID, null in 1 of 2,644 rows", "1 with an empty one")),
    Odd(
        "GlobalID is regenerated in every export",
        LINES.format("2026-08-17"),
        previous=LINES.format("2026-07-07"),
        drafted=(
            "name: GlobalID, type: string, nullable: true, volatile: true}  # confirm: made anew in each export: differs for 2,643 of 2,643 features",
        ),
    ),
    Odd("null and duplicate keys", HYDRANTS.format("2026-04-07"), drafted=("HYDRANT_ID, null in 27 of 1,953 rows and 14 rows share",)),
    Odd(
        "types flip: text to milliseconds",
        HYDRANTS.format("2026-07-07"),
        against=HYDRANTS.format("2026-04-07"),
        found=(("column_type", "INSTALLDATE"), ("column_type", "LAST_DATE_TESTED"), ("extra", "SWEEPER_HYDRANT")),
    ),
    Odd(
        "the twin turns text into times",
        HYDRANTS.format("2026-04-07").replace("geojson", "gdb"),
        against=HYDRANTS.format("2026-04-07"),
        found=(("column_type", "INSTALLDATE"), ("column_type", "created_date")),
    ),
    Odd("duplicate keys", LIGHTS.format("2015-04-13"), drafted=("PoleID (169 rows share",)),
    Odd("duplicate keys, later repaired", LIGHTS.format("2023-03-15"), drafted=("key: PoleID, unique and never null",)),
    Odd(
        "no CRS; 25 invalid rings",
        PARCELS.format(2013),
        drafted=("states no CRS (TopoJSON states none)", "25 of 13,159 rows would be rejected: collapse: row 502 "),
        found=(("crs_missing",),),
    ),
    Odd(
        "37 invalid rings, two of fewer than three positions, ML no key",
        PARCELS.format(2014),
        ("--key", "ML"),
        drafted=(
            "ML is not a clean key: null in 1 of 13,116 rows and 93 rows share",
            "39 of 13,116 rows would be rejected",
        ),
    ),
    *(Odd("CSV with easting and northing", f"si_rpe/{each}", drafted=CSV) for each in ("2020-04-12/NA.csv", "2024-02-21/PO.csv.gz")),
    Odd(
        "7 invalid, zero-padded codes",
        "ee_ehak/2017-10-03/omavalitsus.geojson",
        drafted=("7 of 213 rows would be rejected", "name: OKOOD, type: string"),
        found=(("validity", "geometry", "7"),),
    ),
    Odd("4 invalid", "ee_ehak/2017-11-16/omavalitsus.geojson", found=(("validity", "geometry", "4"),)),
    Odd("5 invalid, no CRS", "ee_ehak/2018-08-06/asustusyksus.topojson.gz", drafted=("5 of 4,711 rows", "states no CRS")),
    Odd("a table without geometry", "ee_ehak/2017-10-25/asustusyksus.csv", drafted=CSV),
    Odd("27 invalid", "no_kommuner/2020/Kommuner-medium.geojson", found=(("validity", "geometry", "27"),)),
    Odd(
        "33 invalid; the twin promotes to MultiPolygon",
        "no_kommuner/2024/Kommuner-M.gpkg",
        drafted=("geometry_type: multipolygon",),
        found=(("validity", "geometry", "33"),),
    ),
    Odd(
        "the key changes its type, columns their names",
        "no_kommuner/2024/Kommuner-M.gpkg",
        against="no_kommuner/2020/Kommuner-medium.gpkg",
        found=(("column_type", "kommunenummer"), ("missing", "navn"), ("extra", "kommunenavn")),
    ),
    Odd("2 invalid", "at_gemeinden/2017/gemeinden_999_geo.geojson", found=(("validity", "geometry", "2"),)),
    Odd(
        "Vienna is stored twice",
        "at_gemeinden/2021/gemeinden_999_geo.geojson",
        terms="topology_rule_set: planar",
        found=(("overlap", "geometry", "23"),),
    ),
    Odd(
        "14 decimals become 6",
        COMMUNES.format("2017-09-05"),
        against=COMMUNES.format("2016-10-28"),
        found=(("precision", "geometry", "26588"), ("validity", "geometry", "1")),
    ),
    Odd("a second pair of coordinates, nulls, a pole", "ourairports_navaids/2026-07-30/navaids.csv.gz", drafted=CSV),
    Odd("a list column", "geonames_cities5000/v1.6.0/cities5000.parquet", drafted=('name: alternatenames, type: "list<string>"',)),
    Odd("nested objects", "db_stations/v3.0.0/data.ndjson.gz", drafted=("it is not a Feature",)),
    Odd(
        "weight changes on 5,370 rows, and is content: half of the values are there twice, and many were there before",
        "db_stations/v5.0.2/stations.fgb",
        previous="db_stations/v4.2.1/stations.fgb",
        drafted=("name: weight, type: number, nullable: true}\n",),
    ),
    Odd(
        "iso_a3 is -99 several times",
        COUNTRIES.format("1-gp0.3.0"),
        ("--key", "iso_a3"),
        drafted=("iso_a3 is not a clean key: 3 rows share",),
    ),
    Odd(
        "a country across the antimeridian; seven decimals would break another, eight do not",
        COUNTRIES.format("2-gp0.7.0"),
        drafted=("on 7 decimals 1 of 177 rows would break, on 8 none",),
        found=(("antimeridian", "geometry", "1"),),
    ),
    Odd(
        "names cut to 10 characters",
        "nz_topo/waca/nz_waca_adjustments.shp",
        against="nz_topo/waca/nz-waca-adjustments.gpkg",
        found=(("missing", "survey_reference"), ("extra", "survey_ref"), ("name_cut",)),
    ),
    Odd("points with heights", "nz_topo/3d/points-3d.gpkg", drafted=("dimensions: xyz,",)),
    Odd("lists", "osm_community/1-v5.9.3/completeFeatureCollection.geojson", drafted=('name: aliases, type: "list<string>"',)),
    Odd(
        "three columns more",
        "osm_community/2-v5.10.0/completeFeatureCollection.geojson",
        against="osm_community/1-v5.9.3/completeFeatureCollection.geojson",
        found=(("extra", "osm"), ("extra", "ISO3166-2"), ("extra", "name")),
    ),
    Odd("35 files in one", "nl_bgt/otterlo-2020-08/otterlo.zip", drafted=("holds several files", "bgt_wegdeel")),
    Odd(
        "arcs, and lokaalID is no key",
        "nl_bgt/otterlo-2020-08/otterlo.zip",
        ("--layer", "bgt_wegdeel"),
        drafted=("not the key: lokaalID, 1,664 rows share", "2,444 of 2,444 rows would be rejected: geometry_type", "curvepolygon"),
    ),
    Odd(
        "some buildings are label points",
        "nl_bgt/otterlo-2020-08/otterlo.zip",
        ("--layer", "bgt_pand", "--crs", "EPSG:28992"),
        drafted=("2 geometries in 9 rows", "not the key: lokaalID, 789 rows share"),
    ),
    Odd("11 layers", "nl_bgt/top10nl-1.2/TOP10NL_1_2_sample.gml", drafted=("has 11 layers", "Wegdeel")),
    Odd("4 layers in one file", "es_catastro/2017/address.gml", drafted=("has 4 layers: Address, ThoroughfareName",)),
    Odd("a layer without geometry", "es_catastro/2017/address.gml", ("--layer", "AdminUnitName"), drafted=("has no geometry column",)),
    Odd("zoning without CRS", "es_catastro/2017/zoning.gml", drafted=("states no CRS for geometry",)),
    Odd(
        "zoning with 7 invalid and a second geometry",
        "es_catastro/2017/zoning.gml",
        ("--crs", "EPSG:32628"),
        drafted=("7 of 235 rows would be rejected: validity", "name: referencePoint, type: geometry"),
    ),
    Odd("an empty file", "es_catastro/2017/empty.gml", drafted=("holds no features and no layers",)),
    Odd("the layer has to be named", CENSUS, drafted=("has 16 layers", "--layer")),
    Odd("null geometries, 784 columns", CENSUS, ("--layer", "census2016_sdhca_ot_gccsa_short"), drafted=("geometry: 2 rows without",)),
    Odd("no key", "lpis_a/dk/Marker_2026.zip", drafted=("can be the key", "Marknr")),
    Odd(
        "no key but the row number", "lpis_a/nl/brpgewaspercelen_definitief_2023.gpkg", drafted=("id is the row number (FID) of the file",)
    ),
    Odd("Z and M", FIXTURES + "pyogrio/line_zm.gpkg", drafted=("dimensions: xyzm,",)),
    Odd("heights in farm parcels", "lpis_a/us_ca_scm/i15_crop_mapping_2023_provisional_20241127.gdb.zip", drafted=("dimensions: xyz,",)),
    Odd("no CRS", FIXTURES + "flatgeobuf/countries_nocrs.fgb", drafted=("states no CRS (none in the file)",), found=(("crs_missing",),)),
    Odd("no geometry", FIXTURES + "geoparquet-misc/random_nogeom.parquet", drafted=("has no geometry column",)),
    Odd(
        "metadata names a column that is not there",
        FIXTURES + "geoparquet-misc/random_nocrs.parquet",
        drafted=("names 'geometry', which is not a column",),
    ),
    Odd("no rows", FIXTURES + "flatgeobuf/empty.fgb", drafted=("has no rows",)),
    Odd("no attributes", FIXTURES + "flatgeobuf/heterogeneous.fgb", drafted=("has no attribute columns",)),
    Odd(
        "no attributes but a CRS of its own",
        FIXTURES + "geoarrow-example-crs/example-crs_vermont-custom.parquet",
        drafted=("has no attribute columns",),
    ),
    Odd(
        "a count that is not known",
        FIXTURES + "flatgeobuf/unknown_feature_count.fgb",
        drafted=("key: quadkey, unique and never null in 1 row",),
    ),
    *(
        Odd("curves", f"{FIXTURES}pyogrio/{name}.gpkg", drafted=("geometry_type: row 1", kind), found=(("geometry_type", "geometry", "1"),))
        for name, kind in (("curve", "compoundcurve"), ("curvepolygon", "curvepolygon"), ("multisurface", "multisurface"))
    ),
    *(
        Odd("old GeoParquet metadata", f"{FIXTURES}geoparquet-versions/test_data_v{each}.parquet", drafted=("key: col_str",))
        for each in ("0.1.0", "0.4.0", "1.0.0-beta.1", "1.0.0")
    ),
    Odd("metres that are called degrees", FIXTURES + "flatgeobuf/poly00.fgb", found=(("crs_position", "geometry", "10"),)),
    Odd(
        "a column of bytes beside no geometry",
        FIXTURES + "flatgeobuf/binary_wkb.fgb",
        drafted=("name: wkb, type: binary", "1 rows without"),
    ),
    Odd("nulls", FIXTURES + "geoparquet-spec/data-point-encoding_wkb.parquet", drafted=("geometry: 1 rows without, 1 with an empty one",)),
)


@dataclass
class Told:
    """What the two commands said of a file."""

    code: int
    words: str
    findings: list[dict] = field(default_factory=list)


@pytest.fixture
def told(merestone, tmp_path):
    """Drafts a contract and checks the file against it, or against one drafted from another."""

    def run(path, options=(), *, against=None, terms="", previous=None):
        contract = tmp_path / "drafted.yaml"
        before = ("--previous", previous) if previous else ()
        drafted = merestone("contract", "infer", against or path, *options, *before, "--out", contract)
        assert drafted.code in (0, 1, 2, 3), drafted.err
        if drafted.code:
            assert "next: " in drafted.err, drafted.err
            assert not contract.exists()
            return Told(drafted.code, drafted.err)
        contract.write_text(f"{contract.read_text(encoding='utf-8')}\n{terms}\n", encoding="utf-8")
        layer = options[options.index("--layer") :][:2] if "--layer" in options else ()
        checked = merestone("check", path, "--contract", contract, *layer, "--json")
        assert checked.code in (0, 1), f"{path}: {checked.out}{checked.err}"
        assert checked.doc["status"] == ("fail" if checked.code else "pass")
        assert all(each["remedy"] or each["severity"] == "warning" for each in checked.doc["findings"])
        return Told(0, drafted.err + contract.read_text(encoding="utf-8"), checked.doc["findings"])

    return run


def test_every_file_is_drafted_and_checked_or_refused_in_words(data, told, tmp_path):
    before = set(data.rglob("*"))
    checked = refused = 0
    for path in every_file(data):
        (tmp_path / "drafted.yaml").unlink(missing_ok=True)
        ended = told(path)
        checked += ended.code == 0
        refused += ended.code != 0
        assert ended.code == 0 or path.name in ended.words, ended.words
    assert checked > 70
    assert refused > 80
    assert set(data.rglob("*")) == before, "nothing is written beside the data"


@pytest.mark.parametrize("odd", ODD, ids=[f"{each.path.split('/')[0]}: {each.what}" for each in ODD])
def test_what_is_odd_is_told(odd, data, told):
    ended = told(
        data / odd.path,
        odd.options,
        against=data / odd.against if odd.against else None,
        terms=odd.terms,
        previous=data / odd.previous if odd.previous else None,
    )
    for words in odd.drafted:
        assert words in ended.words, ended.words
    found = {(each["rule"], each["field"], str(each["count"])) for each in ended.findings}
    for wanted in odd.found:
        assert any(wanted == each[: len(wanted)] for each in found), found


def test_every_data_set_of_the_readme_has_its_oddities_told(data):
    listed = set(re.findall(r"^\| (\w+) \|", (data / "README.md").read_text(encoding="utf-8"), re.MULTILINE)) - {"dataset"}
    twins = {"nl_addresses"}  # the same content in another transformation: nothing is odd in one of the files by itself
    assert {each.path.split("/")[0] for each in ODD} == listed - twins
