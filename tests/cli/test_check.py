"""What `check` writes beside its answer, and `diagnose`."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime

import geopandas as gpd
import pyarrow as pa
import pytest
import shapely

from estate import geoparquet, save
from merestone.geometry import kernel
from merestone.render.iso19115_lint import read_record
from merestone.scratch.spool import Spool
from merestone.source.geoparquet import GeoParquetSource

FIELDS = ({"name": "pid", "type": "string", "nullable": False}, {"name": "use", "type": "string"})


@pytest.fixture
def plots(estate, tmp_path):
    """Squares under a planar contract: one has another code, two overlap, one is a bow-tie."""
    made = estate(
        FIELDS,
        geometry_type="polygon",
        key=["pid"],
        topology_rule_set="planar",
        crs_epsg=28992,
        coordinate_precision=0,
        contract_version="v1.0.0-crs:EPSG:28992-res:1m",
        semantics={"use": {"enum": ["a", "b"]}},
    )
    made.settings["key"] = "pid"
    x, y = 155_000, 463_000
    rows = [{"pid": f"p{n}", "use": "a", "geometry": shapely.box(x + 10 * n, y, x + 10 * n + 10, y + 10)} for n in range(30)]
    made.good = save(rows, tmp_path / "good.gpkg", 28992)
    rows[3]["use"] = rows[29]["use"] = "z"
    rows[7]["geometry"] = shapely.box(x + 70, y, x + 81, y + 10)
    rows[20]["geometry"] = shapely.Polygon([(x + 200, y), (x + 210, y + 10), (x + 210, y), (x + 200, y + 10)])
    made.bad = save(rows, tmp_path / "bad.gpkg", 28992)
    made.write(made.good)
    made.contract = made.folder / "product.contract.yaml"
    made.contract.write_text(json.dumps({**json.loads(made.contract.read_text()), "key": ["pid"]}))
    return made


@pytest.mark.parametrize("name", ["errors.gpkg", "errors.geojson"])
def test_errors_are_a_layer_with_every_place(plots, merestone, tmp_path, name):
    ended = merestone("check", plots.bad, "--contract", plots.contract, "--errors", tmp_path / name, "--json")
    assert (ended.code, ended.doc["status"]) == (1, "fail")
    layer = gpd.read_file(tmp_path / name)
    assert layer.crs.to_epsg() == 28992
    seen = layer.groupby("rule")["feature"].apply(sorted).to_dict()
    assert seen == {"enum": ["p29", "p3"], "overlap": ["p7"], "validity": ["p20"]}
    bow = layer[layer["rule"] == "validity"].geometry.iloc[0]
    assert (bow.x, bow.y) == (155_205, 463_005)
    crossing = layer[layer["rule"] == "overlap"].geometry.iloc[0]
    assert 155_080 <= crossing.x <= 155_081
    assert set(layer["severity"]) == {"error"}
    assert layer["remedy"].str.len().min() > 10
    assert layer.set_index("feature").loc["p3", "row"] == 4


def test_a_layer_of_a_good_delivery_is_empty(plots, merestone, tmp_path):
    assert merestone("check", plots.good, "--contract", plots.contract, "--errors", tmp_path / "e.geojson").code == 0
    assert json.loads((tmp_path / "e.geojson").read_text())["features"] == []


def test_all_reports_come_of_one_check(plots, merestone, tmp_path):
    files = {name: tmp_path / f"out.{name}" for name in ("html", "xml", "sarif")}
    ended = merestone(
        "check",
        plots.bad,
        "--contract",
        plots.contract,
        "--html",
        files["html"],
        "--junit",
        files["xml"],
        "--sarif",
        files["sarif"],
        "--annotate",
        "--json",
    )
    assert ended.code == 1
    assert "p7" in files["html"].read_text()
    assert read_record(files["xml"].read_bytes(), "test")[0].get("failures") == str(len(ended.doc["findings"]))
    assert len(json.loads(files["sarif"].read_text())["runs"][0]["results"]) == len(ended.doc["findings"])
    assert ended.err.count("::error") == len(ended.doc["findings"])


def test_what_cannot_be_read_is_an_error_in_the_reports_too(plots, merestone, tmp_path):
    broken = tmp_path / "broken.gpkg"
    broken.write_bytes(b"SQLite format 3\0" + b"x" * 100)
    ended = merestone("check", broken, "--contract", plots.contract, "--junit", tmp_path / "j.xml", "--sarif", tmp_path / "s.sarif")
    assert ended.code == 3
    assert read_record((tmp_path / "j.xml").read_bytes(), "test")[0].get("errors") == "1"
    assert json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["invocations"][0]["executionSuccessful"] is False


def test_an_extension_that_is_no_layer_is_refused_before_anything_is_read(plots, merestone, tmp_path):
    ended = merestone("check", tmp_path / "none.gpkg", "--contract", plots.contract, "--errors", tmp_path / "e.csv", "--json")
    assert (ended.code, ended.doc["error"]["field"]) == (2, "errors")


def test_a_delivery_that_cannot_be_judged_row_by_row_has_its_findings_in_the_layer(plots, merestone, tmp_path):
    rows = gpd.read_file(plots.good).drop(columns="pid")
    rows.to_file(tmp_path / "keyless.gpkg")
    assert merestone("check", tmp_path / "keyless.gpkg", "--contract", plots.contract, "--errors", tmp_path / "e.gpkg").code == 1
    assert "missing" in set(gpd.read_file(tmp_path / "e.gpkg")["rule"])


def test_the_text_says_where_places_can_be_seen(plots, merestone, tmp_path):
    assert "--html FILE" in merestone("check", plots.bad, "--contract", plots.contract).out
    said = merestone("check", plots.bad, "--contract", plots.contract, "--html", tmp_path / "p.html").out
    assert "--html FILE" not in said
    assert f"written    {tmp_path / 'p.html'}" in said
    assert "--html FILE" not in merestone("check", plots.good, "--contract", plots.contract).out


def test_diagnose_stops_at_the_first_fault(plots, merestone):
    ended = merestone("diagnose", plots.bad, "--contract", plots.contract, "--json")
    assert (ended.code, ended.doc["status"], ended.doc["fault"]) == (1, "fail", "geometry")
    ended = merestone("diagnose", plots.bad, "--contract", plots.contract)
    assert "geometry     FAULT" in ended.out
    assert "not reached: semantics, idempotency, service" in ended.out
    ended = merestone("diagnose", plots.good, "--contract", plots.contract, "--json")
    assert (ended.code, ended.doc["status"], ended.doc["fault"]) == (0, "pass", None)


# --- the age of the data ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def sighted(estate, tmp_path):
    """Points that were seen on 1 March 2026, under a promise that they are at most a day old."""
    made = estate(
        ({"name": "pid", "type": "string", "nullable": False}, {"name": "seen", "type": "timestamp"}),
        geometry_type="point",
        key=["pid"],
        freshness_from="seen",
        freshness_sla_minutes=1440,
    )
    made.settings["key"] = "pid"

    def deliver(*seen):
        path = geoparquet(
            tmp_path / "seen.parquet",
            {
                "pid": pa.array([f"p{n}" for n in range(len(seen))]),
                "seen": pa.array(seen, pa.timestamp("us", "UTC")),
                "geometry": [shapely.Point(5, 52 + n / 100) for n in range(len(seen))],
            },
        )
        made.write(path)
        return made.folder / "product.yaml"

    return deliver


SEEN = datetime(2026, 3, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(("now", "code"), [("2026-03-02T06:00:00Z", 0), ("2026-03-02T08:00:00+02:00", 0), ("2026-03-02T06:01:00Z", 1)])
def test_the_age_of_the_data_is_judged_at_the_time_that_is_named(sighted, merestone, now, code):
    ended = merestone("check", sighted(SEEN, None), "--now", now, "--json")
    found = [
        (each["surface"], each["field"], each["rule"], each["severity"]) for each in ended.doc["findings"] if each["rule"] == "freshness"
    ]
    assert (ended.code, found) == (code, [("service", "seen", "freshness", "error")] * code)


def test_data_that_hold_no_time_are_not_taken_for_fresh(sighted, merestone):
    file = sighted(None, None)
    for command in (["check", file, "--now", "2026-03-02T06:00:00Z", "--json"], ["publish", file, "--json"]):
        ended = merestone(*command)
        assert (ended.code, [each["observed"] for each in ended.doc["findings"] if each["rule"] == "freshness"]) == (
            1,
            ["no row holds a time"],
        )


@pytest.mark.parametrize("now", ["yesterday", "2026-03-02T06:00:00", "2026-03-02"])
def test_a_time_without_a_zone_is_refused(sighted, merestone, now):
    ended = merestone("check", sighted(SEEN), "--now", now, "--json")
    assert (ended.code, ended.doc["error"]["field"]) == (2, "now")


def test_a_check_keeps_rows_only_where_they_are_looked_at_again(plots, merestone, tmp_path, monkeypatch):
    """Neither digests nor a copy of the delivery are made to find what is wrong with it; topology and places do need its rows."""
    document = json.loads(plots.contract.read_text())
    plain = tmp_path / "plain.yaml"
    plain.write_text(json.dumps({**document, "topology_rule_set": "none"}))
    written = []
    there = Spool.write

    def write(spool, batch):
        if "geometry" in batch.schema.names:  # not the keys, which are kept of every row
            written.append(batch.num_rows)
        there(spool, batch)

    monkeypatch.setattr(Spool, "write", write)
    monkeypatch.setattr(kernel, "digest", None)
    for args, rows in (((plain,), []), ((plain, "--errors", tmp_path / "e.gpkg"), [30]), ((plots.contract,), [30])):
        written.clear()
        ended = merestone("check", plots.bad, "--contract", *args, "--json")
        assert {"enum", "validity"} <= {each["rule"] for each in ended.doc["findings"]}
        assert (ended.code, written) == (1, rows)


def test_a_check_reads_again_for_rows_that_only_the_whole_gives_away(estate, merestone, tmp_path):
    """The first reading finds that some row has its axes swapped, the second which; what both find is told once."""
    made = estate(
        FIELDS,
        geometry_type="point",
        key=["pid"],
        crs_epsg=28992,
        coordinate_precision=0,
        semantics={"use": {"enum": ["a", "b"]}},
        contract_version="v1.0.0-crs:EPSG:28992-res:1m",
        extent=[100_000, 400_000, 200_000, 500_000],
    )
    rows = [{"pid": f"p{n}", "use": "a", "geometry": shapely.Point(155_000 + n, 463_000)} for n in range(50)]
    rows[7]["geometry"] = shapely.Point(463_000, 155_007)
    rows[9]["use"] = "z"
    delivered = save(rows, tmp_path / "one.gpkg", 28992)
    made.write(delivered)
    contract = made.folder / "product.contract.yaml"
    contract.write_text(json.dumps({**json.loads(contract.read_text()), "key": ["pid"]}))
    ended = merestone("check", delivered, "--contract", contract, "--json")
    seen = {each["rule"]: (each["count"], each["features"][0]["id"]) for each in ended.doc["findings"] if each["features"]}
    assert (seen["axis_order"], seen["enum"]) == ((1, "p7"), (1, "p9"))


@pytest.mark.parametrize("beside", [(), ("--errors", "e.gpkg"), ("--errors", "e.geojson"), ("--html", "page.html")])
def test_a_curve_among_other_rows_is_told_whatever_is_made_of_the_places(estate, merestone, tmp_path, beside):
    """GEOS builds no curves; what measures, draws or places the rows must not end over one of them."""
    fields = (*FIELDS, {"name": "area", "type": "number", "unit": "m2", "derived": {"measure": "area"}})
    made = estate(
        fields,
        geometry_type="polygon",
        key=["pid"],
        crs_epsg=28992,
        coordinate_precision=0,
        contract_version="v1.0.0-crs:EPSG:28992-res:1m",
    )
    x, y = 155_000.0, 463_000.0
    ring = struct.pack("<BII6d", 1, 8, 3, x, y, x + 5, y + 5, x, y)
    bow = shapely.Polygon([(x, y), (x + 10, y + 10), (x + 10, y), (x, y + 10)])
    shapes = [shapely.box(x, y, x + 10, y + 10), struct.pack("<BII", 1, 10, 1) + ring, bow, None]
    delivered = geoparquet(
        tmp_path / "curve.parquet", {"pid": ["a", "b", "c", "d"], "use": ["a"] * 4, "area": [100.0] * 4, "geometry": shapes}, epsg=28992
    )
    made.write(delivered)
    contract = made.folder / "product.contract.yaml"
    contract.write_text(json.dumps({**json.loads(contract.read_text()), "key": ["pid"]}))
    args = [beside[0], tmp_path / beside[1]] if beside else []
    ended = merestone("check", delivered, "--contract", contract, *args, "--json")
    seen = {each["rule"]: [sample["id"] for sample in each["features"]] for each in ended.doc["findings"]}
    assert (ended.code, seen) == (1, {"geometry_type": ["b"], "validity": ["c"], "null_geometry": ["d"]})
    published = merestone("publish", made.folder / "product.yaml", "--json")
    assert (published.code, {each["rule"] for each in published.doc["findings"]}) == (1, set(seen))


@pytest.mark.parametrize("command", ["check", "publish"])
def test_what_stands_twice_is_counted_to_the_last_row_and_shown_from_the_first(estate, merestone, tmp_path, monkeypatch, command):
    """However many keys and values repeat, over however many batches: a number that is told is the number of rows."""
    monkeypatch.setattr(GeoParquetSource.batches, "__defaults__", (700,))
    made = estate(
        (
            {"name": "pid", "type": "string", "nullable": False},
            {"name": "lot", "type": "integer", "unique": True},
            {"name": "deed", "type": "string", "unique": True},
        ),
        geometry_type="point",
        key=["pid"],
    )
    size = 6_000
    pids = [f"p{n * 7919 % 3_000:04d}" for n in range(size)]  # each twice, 3,000 rows apart, in no order
    lots = [n if n in (4, 5) else None if n % 3 == 0 else n % 1_500 for n in range(size)]
    deeds = ["same"] * size
    delivered = geoparquet(tmp_path / "twice.parquet", {"pid": pids, "lot": lots, "deed": deeds, "geometry": [shapely.Point(5, 52)] * size})
    made.write(delivered)
    contract = made.folder / "product.contract.yaml"
    contract.write_text(json.dumps({**json.loads(contract.read_text()), "key": ["pid"]}))
    ended = (
        merestone("check", delivered, "--contract", contract, "--json")
        if command == "check"
        else merestone("publish", made.folder / "product.yaml", "--json")
    )
    found = {(each["field"], each["rule"]): each for each in ended.doc["findings"] if each["rule"] in ("key_duplicate", "unique")}
    assert ended.code == 1
    key, lot, deed = found["pid", "key_duplicate"], found["lot", "unique"], found["deed", "unique"]
    assert (key["count"], key["observed"].split(",")[0]) == (size, "key p0000 twice (rows 1 and 3001)")
    assert key["observed"].endswith(" and 2,995 more")
    assert [each["row"] for each in key["features"][:4]] == [1, 3001, 2, 3002]
    groups: dict[int, list[int]] = {}
    for row, value in enumerate(lots, start=1):
        if value is not None:
            groups.setdefault(value, []).append(row)
    twice = [(value, rows) for value, rows in groups.items() if len(rows) > 1]
    first = [(pids[row - 1], row, str(value)) for value, rows in twice for row in rows][:20]
    assert lot["count"] == sum(len(rows) for _, rows in twice)
    assert [(each["id"], each["row"]) for each in lot["features"]] == [each[:2] for each in first]
    assert lot["observed"].startswith(f"{twice[0][0]} {len(twice[0][1])} times (rows ")
    assert lot["observed"].endswith(f" and {len(twice) - 5:,} more")
    assert (deed["count"], deed["observed"]) == (size, "same 6,000 times (rows 1, 2, 3, 4, 5 and 5,995 more)")
    assert [(each["id"], each["row"]) for each in deed["features"]] == [(pids[n], n + 1) for n in range(20)]
