"""The public datasets as products: how each is published, and what its versions are known to hold.

A night names a delivery below `data/`. `repair` says what was done to it beforehand (`deliveries.REPAIRS`), where the publisher's own bytes
have no usable key or no format that is read; such a night shows how a change is judged, and the untouched delivery how it is refused.
`says` are counts that were found by others before Merestone was written; the judgement of each run is made anew in GeoPandas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Night:
    """A delivery and how it has to end.

    `refused` are the rules that have to be named, `words` what has to stand in their findings; `guard` a mass change, which waits for a
    person's word.
    """

    path: str
    repair: str | None = None
    refused: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    guard: bool = False
    says: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Product:
    """How a dataset is published: what differs from the draft that `merestone init` makes of `draft` (with `previous`)."""

    name: str
    licence: str
    nights: tuple[Night, ...]
    key: str
    draft: int = 0
    previous: int | None = None
    clauses: Mapping[str, Any] = field(default_factory=dict)
    volatile: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    formats: tuple[str, ...] = ()  # in which GeoPandas writes the last delivery anew

    def __str__(self) -> str:
        return self.name


CAMBRIDGE = "City of Cambridge GIS, PDDL 1.0"

PRODUCTS = (
    Product(
        "cam_centerlines",
        CAMBRIDGE,
        key="ID",
        draft=4,
        previous=2,
        settings={"extra_columns": "warn"},
        nights=(
            Night("cam_centerlines/2019-04-02/TRANS_Centerlines.geojson.gz"),
            Night("cam_centerlines/2019-06-11/TRANS_Centerlines.geojson.gz", refused=("key_duplicate",)),
            Night("cam_centerlines/2026-03-03/TRANS_Centerlines.geojson.gz", guard=True),
            Night("cam_centerlines/2026-06-01/TRANS_Centerlines.geojson", refused=("key_null",), words=("null",)),
            Night("cam_centerlines/2026-07-07/TRANS_Centerlines.geojson"),
            Night("cam_centerlines/2026-08-17/TRANS_Centerlines.geojson", says={"added": 0, "changed": 2, "removed": 0}),
        ),
        formats=("gpkg", "fgb"),
    ),
    Product(
        "cam_centerlines 2019, one of two equal IDs left out",
        CAMBRIDGE,
        key="ID",
        volatile=("GlobalID",),
        nights=(
            Night("cam_centerlines/2019-04-02/TRANS_Centerlines.geojson.gz"),
            Night(
                "cam_centerlines/2019-06-11/TRANS_Centerlines.geojson.gz",
                repair="unique ID",
                guard=True,
                says={"added": 15, "removed": 14, "changed": 2611},
            ),
        ),
    ),
    Product(
        "cam_streetlights",
        CAMBRIDGE,
        key="PoleID",
        draft=2,
        nights=(
            Night("cam_streetlights/2015-04-13/INFRA_StreetLights.geojson.gz", refused=("key_duplicate",)),
            Night("cam_streetlights/2017-07-31/INFRA_StreetLights.geojson.gz", refused=("key_duplicate",)),
            Night("cam_streetlights/2023-03-15/INFRA_StreetLights.geojson.gz"),
        ),
        formats=("fgb",),
    ),
    Product(
        "cam_streetlights, only poles whose PoleID is one of a kind",
        CAMBRIDGE,
        key="PoleID",
        settings={"extra_columns": "warn"},
        nights=(
            Night("cam_streetlights/2015-04-13/INFRA_StreetLights.geojson.gz", repair="unique PoleID"),
            Night(
                "cam_streetlights/2017-07-31/INFRA_StreetLights.geojson.gz", repair="unique PoleID", says={"attributes": 64, "geometry": 0}
            ),
            Night("cam_streetlights/2023-03-15/INFRA_StreetLights.geojson.gz", repair="unique PoleID", guard=True),
        ),
    ),
    Product(
        "at_gemeinden",
        "Statistik Austria, CC BY 4.0; Geoland, CC BY 3.0",
        key="iso",
        settings={"rejects": {"max_fraction": 0.01}},
        nights=(
            Night("at_gemeinden/2016/gemeinden_999_geo.geojson"),
            Night("at_gemeinden/2017/gemeinden_999_geo.geojson", says={"added": 21, "removed": 21, "rekeyed": 21, "changed": 0}),
            Night("at_gemeinden/2021/gemeinden_999_geo.geojson", guard=True, says={"added": 31, "removed": 11}),  # 29 new, 2 invalid before
        ),
        formats=("gpkg", "fgb"),
    ),
    Product(
        "fr_communes62",
        "IGN Admin Express, Licence Ouverte",
        key="code",
        clauses={"coordinate_precision": 5, "geometry": {"max_vertex_loss": 0.9}},
        settings={"rejects": {"max_fraction": 0.01}},
        nights=(
            # Each time the outlines are generalised anew; no attribute changes but three names in 2018.
            Night("fr_communes62/2016-10-28/communes-62-pas-de-calais.geojson"),
            Night("fr_communes62/2017-02-06/communes-62-pas-de-calais.geojson", guard=True, says={"attributes": 0}),
            Night("fr_communes62/2017-09-05/communes-62-pas-de-calais.geojson", guard=True, says={"attributes": 0}),
            Night("fr_communes62/2018-08-01/communes-62-pas-de-calais.geojson", guard=True, says={"removed": 2, "attributes": 3}),
        ),
        formats=("gpkg", "parquet"),
    ),
    Product(
        "ee_ehak municipalities",
        "Estonian Land Board, 2017",
        key="OKOOD",
        settings={"rejects": {"max_fraction": 0.1}},
        nights=(
            Night("ee_ehak/2017-10-03/omavalitsus.geojson"),
            Night(
                "ee_ehak/2017-11-16/omavalitsus.geojson", guard=True, says={"added": 51, "removed": 182}
            ),  # of 52 and 186: 1 and 4 are invalid
        ),
    ),
    Product(
        "ee_ehak settlements",
        "Estonian Land Board, 2018",
        key="AKOOD",
        settings={"rejects": {"max_fraction": 0.01}, "partition": {"by": "column", "column": "MKOOD"}},
        nights=(
            Night("ee_ehak/2018-08-06/asustusyksus.topojson.gz"),
            Night("ee_ehak/2018-09-30/asustusyksus.topojson.gz", says={"added": 0, "removed": 0, "changed": 2}),
        ),
        formats=("gpkg",),
    ),
    Product(
        "ee_ehak settlements 2017, with the shapes of 2018",
        "Estonian Land Board, 2017 and 2018",
        key="AKOOD",
        drop=("OKOOD", "ONIMI", "MKOOD", "MNIMI"),
        volatile=("AREA",),
        settings={"rejects": {"max_fraction": 0.01}, "partition": {"by": "column", "column": "MKOOD"}, "extra_columns": "warn"},
        nights=(
            Night("ee_ehak/2017-10-25/asustusyksus.csv", repair="settlements with shapes"),
            Night("ee_ehak/2017-11-16/asustusyksus.csv", repair="settlements with shapes", says={"changed": 0}),
        ),
    ),
    Product(
        "geonames_cities5000",
        "GeoNames, CC BY 4.0",
        key="geonameid",
        nights=(
            Night("geonames_cities5000/v1.6.0/cities5000.parquet"),
            Night("geonames_cities5000/v2.0.0/cities5000.parquet", says={"added": 10, "removed": 2, "changed": 581, "geometry": 154}),
            Night("geonames_cities5000/v3.0.2/cities5000.parquet", guard=True, says={"added": 16377, "removed": 181, "changed": 19388}),
        ),
    ),
    Product(
        "db_stations",
        "Deutsche Bahn, CC BY 4.0",
        key="id",
        volatile=("weight",),  # a rank among all stations, which its steward does not call content
        draft=1,
        previous=0,
        nights=(
            Night("db_stations/v4.2.1/stations.fgb"),
            Night("db_stations/v5.0.2/stations.fgb", says={"added": 1, "removed": 0, "changed": 0}),
        ),
        formats=("gpkg", "geojson"),
    ),
    Product(
        "db_stations, flattened here",
        "Deutsche Bahn, CC BY 4.0",
        key="id",
        volatile=("weight",),  # a rank among all stations, which its steward does not call content
        draft=2,
        previous=1,
        clauses={"geometry": {"nullable": True}, "coordinate_precision": 6},
        nights=(
            Night("db_stations/v3.0.0/data.ndjson.gz", repair="flat stations"),
            Night("db_stations/v4.2.1/data.ndjson.gz", repair="flat stations", says={"added": 35, "removed": 16, "geometry": 326}),
            Night("db_stations/v5.0.2/data.ndjson.gz", repair="flat stations", says={"added": 1, "removed": 0}),
        ),
    ),
    Product(
        "ne_lowres countries, by name",
        "Natural Earth, public domain",
        key="name",
        settings={"rejects": {"max_fraction": 0.01}},
        nights=(
            Night("ne_lowres/1-gp0.3.0/naturalearth_lowres.shp"),
            Night("ne_lowres/2-gp0.7.0/naturalearth_lowres.shp", guard=True),
            Night("ne_lowres/3-gp0.12.2/naturalearth_lowres.shp", guard=True),
        ),
    ),
    Product(
        "ne_lowres cities",
        "Natural Earth, public domain",
        key="name",
        nights=(
            Night("ne_lowres/1-gp0.3.0/naturalearth_cities.shp"),
            Night("ne_lowres/2-gp0.7.0/naturalearth_cities.shp"),
            Night("ne_lowres/3-gp0.12.2/naturalearth_cities.shp", guard=True),
        ),
    ),
    Product(
        "nz_topo",
        "LINZ, CC BY 4.0",
        key="t50_fid",
        nights=(
            Night("nz_topo/r1-2019-06-11/nz-pa-points-topo-150k.gpkg"),
            Night("nz_topo/r2-2019-06-20/nz-pa-points-topo-150k.gpkg", says={"added": 0, "removed": 0, "changed": 5, "moved": 0}),
        ),
        formats=("geojson", "parquet"),
    ),
    Product(
        "osm_community",
        "OpenStreetMap community index, ISC",
        key="id",
        settings={"extra_columns": "warn", "rejects": {"max_fraction": 0.05}},
        nights=(
            Night("osm_community/1-v5.9.3/completeFeatureCollection.geojson"),
            Night("osm_community/2-v5.10.0/completeFeatureCollection.geojson", says={"added": 2, "removed": 10, "changed": 27}),
        ),
    ),
    Product(
        "cam_parcels, only lots whose ML is one of a kind",
        CAMBRIDGE,
        key="ML",
        draft=0,
        drop=("id", "FCODE", "GlobalID", "Approved"),
        settings={"extra_columns": "warn", "rejects": {"max_fraction": 0.01}},
        nights=(
            # The grid of the export moves from year to year, by more than the contract's: every outline changes.
            Night("cam_parcels/FY2013/ASSESSING_ParcelsFY2013.topojson", repair="unique ML"),
            Night("cam_parcels/FY2014/ASSESSING_ParcelsFY2014.topojson", repair="unique ML", guard=True),
        ),
    ),
)

NO_KEY = (
    # path below data/, the column that should have been the key, what is wrong with it
    ("cam_hydrants/2018-07-02/INFRA_Hydrants.geojson.gz", "HYDRANT_ID", {"key_null"}),
    *(
        (f"cam_hydrants/{each}", "HYDRANT_ID", {"key_null", "key_duplicate"})
        for each in (
            "2018-12-20/INFRA_Hydrants.geojson.gz",
            "2026-04-07/INFRA_Hydrants.gdb",
            "2026-04-07/INFRA_Hydrants.geojson",
            "2026-07-07/INFRA_Hydrants.gdb",
            "2026-07-07/INFRA_Hydrants.geojson",
        )
    ),
    ("cam_parcels/FY2013/ASSESSING_ParcelsFY2013.topojson", "ML", {"key_null", "key_duplicate"}),
    ("cam_parcels/FY2014/ASSESSING_ParcelsFY2014.topojson", "ML", {"key_null", "key_duplicate"}),
    *((f"ne_lowres/{each}/naturalearth_lowres.shp", "iso_a3", {"key_duplicate"}) for each in ("1-gp0.3.0", "2-gp0.7.0")),
)

NOT_READ = (
    # path below data/, exit code, words of the message
    *(
        (f"si_rpe/{each}", 2, "CSV is not read in this version")
        for each in (
            "2020-04-12/NA.csv",
            "2020-04-12/PO.csv.gz",
            "2020-05-05/NA.csv",
            "2022-07-07/PO.csv.gz",
            "2024-02-18/NA.csv",
            "2024-02-18/PO.csv.gz",
            "2024-02-21/NA.csv",
            "2024-02-21/PO.csv.gz",
        )
    ),
    *(
        (f"ourairports_navaids/{each}/navaids.csv.gz", 2, "CSV is not read in this version")
        for each in ("2021-11-02", "2025-03-02", "2026-06-18", "2026-07-30")
    ),
    *((f"ee_ehak/{each}/asustusyksus.csv", 2, "CSV is not read in this version") for each in ("2017-10-25", "2017-11-16")),
    *((f"db_stations/{each}/data.ndjson.gz", 3, "it is not a Feature") for each in ("v3.0.0", "v4.2.1", "v5.0.2")),
)

TWINS = (
    # one file, the same content in another format by the same publisher, key, fields left out, columns of the second by name in the first
    ("no_kommuner/2020/Kommuner-medium.gpkg", "no_kommuner/2020/Kommuner-medium.geojson", "kommunenummer", (), {}),
    ("no_kommuner/2024/Kommuner-M.geojson", "no_kommuner/2024/Kommuner-M.gpkg", "id", (), {}),
    ("nl_addresses/pygeoapi/dutch_addresses_28992.gpkg", "nl_addresses/pygeoapi/dutch_addresses_shape_28992.zip", "id", (), {}),
    # A shapefile keeps no time of day, so the time stamp is left out.
    (
        "nz_topo/waca/nz-waca-adjustments.gpkg",
        "nz_topo/waca/nz_waca_adjustments.shp",
        "id",
        ("date_adjusted",),
        {"survey_ref": "survey_reference", "adjusted_n": "adjusted_nodes"},
    ),
)
