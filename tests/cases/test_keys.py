"""Cases K and N04: what may be a key, and what a key means; T07 and T08 stand in test_partitions."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

import merestone
from estate import geoparquet, save
from merestone.inspect import browse
from merestone.lineage.store import reading

CASES = Path(__file__).parent
POINT = {"geometry_type": "point"}


def refused(night, product, version=None):
    """Nothing was published, and what was stays."""
    assert (night.status, night.result.refused_by) == ("refused", "contract"), night.said
    assert product.version == version == night.result.version
    assert night.result.files_written == 0


def points(path, keys, **columns):
    """One point a key, as GeoParquet; the keys are an Arrow array."""
    there = {"pid": keys, **columns, "geometry": [Point(n, n) for n in range(len(keys))]}
    return geoparquet(path, there)


# --- K01 -------------------------------------------------------------------------------------------------------------------------------


def k01(estate):
    return estate(
        [{"name": "pid", "type": "integer", "nullable": False, "unique": True}, {"name": "n", "type": "integer"}], geometry_type="polygon"
    )


def test_k01_null_and_duplicate_keys_in_one_report(estate):
    product = k01(estate)
    night = product.publish(CASES / "K01/features.geojson")
    refused(night, product)
    for words in ("pid", "2 null keys (rows 2 and 5 of the file)", "key 7 twice (rows 3 and 6)"):
        assert words in night.said
    assert not (product.url / "data").exists()
    assert not list(product.url.glob("_manifests/*"))


@pytest.mark.parametrize(
    "extra",
    [
        pa.array([1, 2, 1]),
        pa.array([1, None, 3]),
        pa.array([1.0, 1.0, None]),
        pa.array([2**53 + 1, 2**53 + 1, 5]),
    ],
)
def test_k01_a_bad_night_leaves_the_last_version(estate, tmp_path, extra):
    product = estate([{"name": "pid", "type": "integer", "nullable": False}], **POINT).as_cases_run()
    product.publish(points(tmp_path / "1.parquet", pa.array([1, 2, 3])))
    before = {name: sum_ for name, sum_ in product.everything().items() if not name.startswith("_runs")}
    night = product.publish(points(tmp_path / "2.parquet", extra))
    refused(night, product, 1)
    after = product.everything()
    assert all(after[name] == sum_ for name, sum_ in before.items())
    assert not [name for name in after if name.startswith("data/") and name not in before]


def test_k01_keys_one_digit_apart_beyond_2_53_are_two(estate, tmp_path):
    product = estate([{"name": "pid", "type": "integer", "nullable": False}], **POINT).as_cases_run()
    product.publish(points(tmp_path / "1.parquet", pa.array([2**53, 2**53 + 1, 2**63 - 1])))
    assert set(product.rows()) == {2**53, 2**53 + 1, 2**63 - 1}
    night = product.publish(points(tmp_path / "2.parquet", pa.array([2**53, 2**53 + 2, 2**63 - 1])))
    assert (night.keys("added"), night.keys("removed")) == ([str(2**53 + 2)], [str(2**53 + 1)])


@pytest.mark.parametrize(
    ("parts", "bad"),
    [
        ((["a", "a"], [1, 1]), "twice"),
        ((["a", None], [1, 1]), "null"),
        ((["a", "a"], [1, 2]), None),
        ((["a", "a\0"], [1, 1]), "empty, blank or with a NUL"),
        ((["a", "ab"], ["bc", "c"]), None),
        ((["", "b"], ["c", "d"]), "empty, blank or with a NUL"),
        ((["a", "b"], [" \t", "d"]), "empty, blank or with a NUL"),
        ((["a\n", "a"], ["b", "\nb"]), None),
    ],
)
def test_k01_keys_of_several_columns(estate, tmp_path, parts, bad):
    columns = {"one": pa.array(parts[0]), "two": pa.array(parts[1])}
    kinds = [{"name": name, "type": "string" if pa.types.is_string(array.type) else "integer"} for name, array in columns.items()]
    product = estate(kinds, key=["one", "two"], **POINT)
    night = product.publish(geoparquet(tmp_path / "1.parquet", {**columns, "geometry": [Point(0, 0), Point(1, 1)]}))
    if bad:
        refused(night, product)
        assert bad in night.said
    else:
        assert set(product.rows()) == set(zip(*parts, strict=True))
        assert product.publish(tmp_path / "1.parquet").status == "unchanged"


# --- K03 -------------------------------------------------------------------------------------------------------------------------------


def k03(estate):
    return estate([{"name": "pid", "type": "string", "nullable": False, "pattern": "^[0-9]{4}$"}], geometry_type="polygon").as_cases_run()


def test_k03_numbers_where_text_is_agreed(estate):
    product = k03(estate)
    product.publish(CASES / "K03/prev.geojson")
    night = product.publish(CASES / "K03/numbers.geojson")
    refused(night, product, 1)
    assert "pid" in night.said
    assert "integer where string is agreed" in night.said
    assert night.result.delta.touched == 0


def test_k03_text_without_its_zeros(estate):
    product = k03(estate)
    product.publish(CASES / "K03/prev.geojson")
    before = set(product.rows())
    night = product.publish(CASES / "K03/short_text.geojson")
    refused(night, product, 1)
    for words in ("pid", "401", "402", "^[0-9]{4}$"):
        assert words in night.heard
    assert set(product.rows()) == before


def test_k03_leading_zeros_live(estate, tmp_path):
    product = estate([{"name": "pid", "type": "string", "nullable": False}], **POINT)
    for suffix in ("gpkg", "geojson", "fgb", "shp", "parquet"):
        source = save([{"pid": pid, "geometry": Point(n, n)} for n, pid in enumerate(("007", "7", "07"))], tmp_path / f"d.{suffix}")
        night = product.publish(source)
        assert night.status in ("published", "unchanged"), night.said
        assert (set(product.rows()), product.version) == ({"007", "7", "07"}, 1), suffix


# --- K05 -------------------------------------------------------------------------------------------------------------------------------


def k05(estate):
    return estate([{"name": "pid", "type": "string", "nullable": False, "unique": True}], geometry_type="polygon")


def test_k05_keys_that_differ_in_blanks_or_case(estate):
    product = k05(estate).as_cases_run()
    product.publish(CASES / "K05/prev.geojson")
    night = product.publish(CASES / "K05/curr.geojson")
    assert night.status == "published", night.said
    assert night.keys("removed") == ["AB-1", "AB-2"]
    assert night.keys("added") == ["AB-1 ", "ab-2"]
    assert night.result.unchanged == 1
    assert "'AB-1' / 'AB-1 '" in night.said
    assert "'AB-2' / 'ab-2'" in night.said


def test_k05_twins_in_one_delivery(estate):
    product = k05(estate)
    night = product.publish(CASES / "K05/twins.geojson")
    assert night.status == "published", night.said
    assert {"AB-9", "AB-9 "} <= set(product.rows())
    assert night.result.features == night.result.delivered == 3
    assert "'AB-9' / 'AB-9 '" in night.said


def test_k05_one_key_in_two_spellings_is_a_duplicate(estate, tmp_path):
    product = k05(estate)
    product.terms["geometry_type"] = "point"
    night = product.publish(points(tmp_path / "1.parquet", pa.array(["\u00e9", "e\u0301"])))
    refused(night, product)
    assert "twice (rows 1 and 2)" in night.said


# --- K07 -------------------------------------------------------------------------------------------------------------------------------


def k07(estate):
    return estate([{"name": "name", "type": "string"}], key="fid", geometry_type="polygon")


def test_k07_identifiers_handed_out_anew(estate):
    product = k07(estate)
    product.publish(CASES / "K07/prev.gpkg")
    night = product.publish(CASES / "K07/curr.gpkg")
    assert (night.status, night.result.refused_by, product.version) == ("refused", "guard", 1), night.said
    for words in ("100 %", "fid", "found again under other keys"):
        assert words in night.said
    token = night.result.confirm
    assert token in night.said

    assert product.publish(CASES / "K07/curr.gpkg", confirm="0000-0000").status == "refused"
    night = product.publish(CASES / "K07/curr.gpkg", confirm=token)
    assert (night.status, product.version) == ("published", 2), night.said
    confirmed = product.manifest().delivery["confirmations"]
    assert confirmed[0]["token"] == token
    assert confirmed[0]["by"]
    assert product.records()[-1]["confirmations"] == confirmed


def test_k07_a_token_is_for_one_delivery_against_one_version_once(estate, tmp_path):
    product = k07(estate)
    product.publish(CASES / "K07/prev.gpkg")
    token = product.publish(CASES / "K07/curr.gpkg").result.confirm
    other = save(
        [{"fid": n, "name": f"other {n}", "geometry": Point(n, n).buffer(0.4, 1)} for n in range(1, 101)], tmp_path / "other.parquet"
    )
    assert product.publish(other, confirm=token).status == "refused"
    assert product.publish(CASES / "K07/curr.gpkg", confirm=token).status == "published"
    assert product.publish(CASES / "K07/prev.gpkg").result.refused_by == "guard"
    assert product.publish(CASES / "K07/prev.gpkg", confirm=token).status == "refused"
    assert product.version == 2


# --- the next inputs of this kind ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("integer", pa.array([-(2**63), -1, 0, 2**63 - 1])),
        ("string", pa.array(["x ", " x", "\x01", "a\nb", "a\u202e", "\U0001f3e0", "None", "nan"])),
        ("date", pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)])),
        ("boolean", pa.array([True, False])),
        ("timestamp", pa.array([0, 1, -1], pa.timestamp("us", "UTC"))),
    ],
)
def test_any_exact_type_is_a_key(estate, tmp_path, kind, values):
    product = estate([{"name": "pid", "type": kind, "nullable": False}], **POINT)
    assert product.publish(points(tmp_path / "1.parquet", values)).status == "published"
    assert set(product.rows()) == set(values.to_pylist())
    assert len(product.log()) == len(values)
    assert product.publish(tmp_path / "1.parquet").status == "unchanged"
    backwards = pq.read_table(tmp_path / "1.parquet", partitioning=None)
    pq.write_table(backwards.take(pa.array(range(len(values)))[::-1]), tmp_path / "2.parquet")
    assert product.publish(tmp_path / "2.parquet").status == "unchanged"


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        ("number", pa.array([1.0, 2.0]), "key"),
        ("integer", pa.array([12.0, 12.5]), "12.5"),
    ],
)
def test_a_float_is_no_key(estate, tmp_path, kind, values, words):
    product = estate([{"name": "pid", "type": kind, "nullable": False}], **POINT)
    night = product.publish(points(tmp_path / "1.parquet", values))
    refused(night, product)
    assert words in night.heard


def test_integers_stored_as_floats_are_the_integers(estate, tmp_path):
    product = estate([{"name": "pid", "type": "integer", "nullable": False}], **POINT)
    product.publish(points(tmp_path / "1.parquet", pa.array([12, 13])))
    assert product.publish(points(tmp_path / "2.parquet", pa.array([12.0, 13.0]))).status == "unchanged"
    assert set(product.rows()) == {12, 13}


@pytest.mark.parametrize("values", [pa.array(["1", "2", "3"]), pa.array([1.5, 2.5, 3.5])])
def test_a_key_outside_the_contract_keeps_its_type(estate, tmp_path, values):
    """Nothing but the last version says what such a key is: another type is another key rule, refused before anything is written."""
    product = estate([{"name": "v", "type": "integer"}], **POINT).as_cases_run()
    v = pa.array([1, 1, 1])
    product.publish(points(tmp_path / "1.parquet", pa.array([1, 2, 3]), v=v))
    assert set(product.rows()) == {1, 2, 3}
    assert product.publish(points(tmp_path / "2.parquet", pa.array([1, 2, 3], pa.int32()), v=v)).status == "unchanged"
    night = product.publish(points(tmp_path / "3.parquet", values, v=v))
    refused(night, product, 1)
    assert "pid" in night.said
    assert set(product.rows()) == {1, 2, 3}


def test_no_key_column_in_the_delivery(estate, tmp_path):
    product = estate([{"name": "pid", "type": "string", "nullable": False}], **POINT)
    night = product.publish(save([{"id": "a", "geometry": Point(0, 0)}], tmp_path / "1.gpkg"))
    refused(night, product)
    assert "pid missing" in night.said


# --- keys that name nothing, and keys with control characters --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "geojson", "gpkg"])
@pytest.mark.parametrize("text", ["", " ", "\u00a0", "\t\n"])
def test_a_text_that_names_nothing_is_no_key(estate, tmp_path, text, suffix):
    path = tmp_path / f"1.{suffix}"
    save([{"pid": each, "geometry": Point(at, at)} for at, each in enumerate(["x", text, "y"])], path)
    product = estate([{"name": "pid", "type": "string"}], **POINT)
    night = product.publish(path)
    refused(night, product)
    assert "1 key is empty, blank or with a NUL (row 2 of the file)" in night.said


@pytest.mark.parametrize("text", ["a\0b", "\0"])
def test_a_key_with_a_nul_is_refused(estate, tmp_path, text):
    product = estate([{"name": "pid", "type": "string"}], **POINT)
    night = product.publish(points(tmp_path / "1.parquet", pa.array(["x", text, "y"])))
    refused(night, product)
    assert "1 key is empty, blank or with a NUL (row 2 of the file)" in night.said


def test_a_key_with_control_characters_is_found_by_its_own_text(estate, tmp_path):
    own = ["a\nb", "a\\u000ab", "\x1b[31m", "c\\d"]
    product = estate([{"name": "pid", "type": "string"}], **POINT)
    assert product.publish(points(tmp_path / "1.parquet", pa.array(own))).status == "published"
    store = product.dataset.store
    ids = {text: reading.id_of(store, text) for text in own}
    assert ids == {"a\nb": "a\\u000ab", "a\\u000ab": "a\\u005cu000ab", "\x1b[31m": "\\u001b[31m", "c\\d": "c\\d"}
    for text, known_as in ids.items():
        assert {event["feature_id"] for event in reading.plain(reading.history(store, known_as))} == {known_as}
        found = browse.why(product.dataset, text)
        assert (found["present"], len(found["versions"]), len(found["runs"])) == (True, 1, 1)
    assert {event["feature_id"] for event in product.lineage()} == set(ids.values())


# --- N04 -------------------------------------------------------------------------------------------------------------------------------


def test_n04_the_code_is_drafted_as_the_key_and_both_exports_publish(tmp_path):
    """A counter's values always come back; what it points at does not. Without the older export the code comes first, too."""
    old, new = CASES / "N04/old.gpkg", CASES / "N04/new.gpkg"
    assert merestone.draft(new, out=tmp_path / "alone").notes[0].startswith("key: code, ")
    made = merestone.draft(new, previous=old, owner="steward@example.org", out=tmp_path / "draft")
    said = "\n".join(made.notes)
    assert "not the key: id, " in said
    assert "volatile: id, counts the rows of the file" in said
    contract = Path(made.contract)
    stated = re.search(r"^# (extent: .*?) #", contract.read_text(encoding="utf-8"), re.MULTILINE)
    contract.write_text(f"{contract.read_text(encoding='utf-8')}{stated[1]}\n", encoding="utf-8")
    assert merestone.publish(made.publication, source=old).features == 400
    night = merestone.publish(made.publication, source=new)
    assert (night.status, night.delta.added, night.delta.removed, night.delta.changed) == ("published", 0, 13, 0)


def test_n04_under_the_wrong_key_nobody_is_told_to_call_the_code_volatile(estate):
    fields = [{"name": name, "type": kind} for name, kind in (("id", "integer"), ("code", "string"), ("name", "string"))]
    product = estate(fields, key="id", epsg=28992, precision=3, geometry_type="point", extent=[0, 0, 6000, 1000])
    product.publish(CASES / "N04/old.gpkg")
    night = product.publish(CASES / "N04/new.gpkg")
    assert night.result.refused_by == "guard", night.said
    assert "id looks like a row number" in night.said
    assert "volatile" not in night.said
