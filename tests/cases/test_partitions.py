"""Cases T07 and T08: where features are kept, and what happens when they move."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import Point

from estate import digest, geoparquet, save

CASES = Path(__file__).parent
KEY = {"name": "pid", "type": "string", "nullable": False}
DISTRICT = {"name": "district", "type": "string"}
V = {"name": "v", "type": "integer"}


# --- T07 -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [True, False])
def test_t07_values_that_are_not_made_for_paths(estate, inside):
    product = estate([KEY, DISTRICT, V] if inside else [KEY, V]).by_column("district").as_cases_run()
    product.publish(CASES / "T07/v1.parquet")
    before = product.everything()
    night = product.publish(CASES / "T07/v2.parquet")
    assert (night.keys("changed"), night.result.delta.touched, night.result.unchanged) == (["k01"], 1, 34)
    delivered = {row["pid"]: row["district"] for row in pq.ParquetFile(CASES / "T07/v1.parquet").read().to_pylist()}
    delivered["k14"] = delivered["k13"]  # two spellings of one name
    if inside:
        assert {key: row["district"] for key, row in product.rows().items()} == delivered
    values, homes = product.values(), product.partitions()
    assert {key: values[home] for key, home in homes.items()} == delivered
    folders = {home.lower() for home in homes.values()}
    assert len(folders) == len(set(delivered.values()))
    for path in product.bytes_of():
        assert (product.url / path).resolve().is_relative_to(product.url.resolve())
        assert all(len(os.fsencode(part)) <= 255 and part not in ("", ".", "..") for part in path.split("/"))
    assert not list(product.folder.parent.rglob("up*"))
    assert all(digest(product.url / path) == before[path] for path in product.bytes_of() if path in before)
    assert len(product.bytes_of().keys() - before.keys()) == 1


def test_t07_more_values_that_differ_by_little(estate, tmp_path):
    values = [
        "x" * 300,
        "x" * 299 + "y",
        "X" * 300,
        "%~",
        "%",
        "%25",
        "%2525",
        "a",
        "A",
        "a ",
        " a",
        "a.",
        ".a",
        "NUL",
        "nul",
        "nul.txt",
        "aux",
        "\u00c6",
        "\u00e6",
        "ss",
        "\u00df",
        "cell=root",
        "district=a",
        "_a",
        "-",
        "\x7f",
        "\u202e",
        "data",
        "__HIVE_DEFAULT_PARTITION__ ",
    ]
    product = estate([KEY, DISTRICT]).by_column("district").as_cases_run()
    columns = {
        "pid": pa.array([f"k{n}" for n in range(len(values))]),
        "district": pa.array(values),
        "geometry": [Point(n, n) for n in range(len(values))],
    }
    product.publish(geoparquet(tmp_path / "1.parquet", columns))
    assert {row["district"] for row in product.rows().values()} == set(values)
    assert len({home.lower() for home in product.partitions().values()}) == len(values)
    assert product.publish(tmp_path / "1.parquet").status == "unchanged"


def test_t07_a_value_keeps_its_folder_when_its_twin_comes_and_goes(estate, tmp_path):
    """`A` beside `a` is named otherwise; it must stay so when `a` is gone, or one value would have two folders."""

    def night(name, **where):
        return save([{"pid": key, "district": home, "geometry": Point(0, 0)} for key, home in where.items()], tmp_path / f"{name}.parquet")

    product = estate([KEY, DISTRICT], geometry_type="point").by_column("district").agreed()
    product.publish(night("1", x="a", y="A"))
    homes = product.partitions()
    product.publish(night("2", y="A", z="b"))
    assert product.partitions()["y"] == homes["y"]
    product.publish(night("3", x="a", y="A", w="A"))
    assert len({home.lower() for home in product.partitions().values()}) == 2
    assert product.partitions()["w"] == product.partitions()["y"]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.5, 2.5]),
        pa.array([["a"], ["b"]]),
        pa.array([b"a", b"b"]),
        pa.array([{"a": 1}, {"a": 2}]),
    ],
)
def test_t07_a_column_that_cannot_be_a_partition_is_refused(estate, tmp_path, values):
    product = estate([KEY]).by_column("district")
    night = product.publish(
        geoparquet(tmp_path / "1.parquet", {"pid": pa.array(["a", "b"]), "district": values, "geometry": [Point(0, 0), Point(1, 1)]})
    )
    assert (night.status, night.result.refused_by, product.version) == ("refused", "contract", None)
    assert "district" in night.said


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1, 2]), pa.array([1.0, 2.0])),
        (pa.array([1, 2]), pa.array([1, 2], pa.int8())),
        (pa.array([True, False]), pa.array([True, False])),
        (pa.array([0, None], pa.date32()), pa.array([0, None], pa.date32())),
    ],
)
def test_t07_a_partition_of_any_exact_type_in_the_contract(estate, tmp_path, one, other):
    kind = {"int64": "integer", "bool": "boolean"}.get(str(one.type), "date")
    product = estate([KEY, {"name": "district", "type": kind}]).by_column("district")
    columns = {"pid": pa.array(["a", "b"]), "geometry": [Point(0, 0), Point(1, 1)]}
    product.publish(geoparquet(tmp_path / "1.parquet", {**columns, "district": one}))
    assert product.publish(geoparquet(tmp_path / "2.parquet", {**columns, "district": other})).status == "unchanged"
    assert len(set(product.partitions().values())) == 2


# --- T08 -------------------------------------------------------------------------------------------------------------------------------


def t08(estate, *, inside):
    return estate([KEY, DISTRICT, V] if inside else [KEY, V], geometry_type="polygon").by_column("district").as_cases_run()


@pytest.mark.parametrize("inside", [True, False])
def test_t08_a_feature_moves_to_another_partition(estate, inside):
    product = t08(estate, inside=inside)
    product.publish(CASES / "T08/v1.geojson")
    first = product.bytes_of()
    night = product.publish(CASES / "T08/v2.geojson")
    assert night.keys("changed") == (["m2"] if inside else [])
    assert night.keys("moved") == ([] if inside else ["m2"])
    assert night.result.delta.touched == 1
    homes = product.partitions()
    assert sorted(homes) == ["m1", "m2", "m3", "m4", "m5"]
    assert homes["m2"] == homes["m3"] == "district=south"
    second = product.bytes_of()
    carried = {path for path in second if path in first}
    assert {file.partition for file in product.files() if file.path in carried} == {"district=west"}
    assert all(second[path] == first[path] for path in carried)
    assert {file.partition for file in product.files() if file.path not in carried} == {"district=north", "district=south"}
    events = [event for event in product.lineage() if event["stage"] == "publish"]
    assert [(event["feature_id"], event["from_partition"], event["to_partition"]) for event in events] == [
        ("m2", "district=north", "district=south")
    ]

    product.publish(CASES / "T08/v3.geojson")
    assert {file.partition for file in product.files()} == {"district=south", "district=west"}
    assert len(product.partitions()) == 5
    read = product.dataset.to_arrow(columns=["pid"]).column("pid").to_pylist()
    assert sorted(read) == ["m1", "m2", "m3", "m4", "m5"]
    # The old versions are what they were.
    assert product.partitions(1)["m2"] == "district=north"
    assert {path: digest(product.url / path) for path in first} == first


def test_t08_there_and_back_again(estate):
    product = t08(estate, inside=False)
    product.publish(CASES / "T08/v1.geojson")
    start = product.manifest().set_digest, product.partitions()
    for name in ("v2", "v3", "v2", "v1"):
        product.publish(CASES / f"T08/{name}.geojson")
        assert product.publish(CASES / f"T08/{name}.geojson").status == "unchanged"
    assert (product.manifest().set_digest, product.partitions()) == start


def test_t08_an_edit_and_a_move_at_once_is_a_change(estate, tmp_path):
    product = t08(estate, inside=False)
    product.publish(CASES / "T08/v1.geojson")
    doc = json.loads((CASES / "T08/v1.geojson").read_text())
    doc["features"][0]["properties"].update(district="south", v=9)
    doc["features"][3]["properties"]["district"] = None
    (tmp_path / "2.geojson").write_text(json.dumps(doc))
    night = product.publish(tmp_path / "2.geojson")
    assert (night.keys("changed"), night.keys("moved")) == (["m1"], ["m4"])
    assert product.partitions()["m1"] == "district=south"
    assert product.values()[product.partitions()["m4"]] is None
    assert len(product.partitions()) == 5


def test_t08_everything_moves(estate, tmp_path):
    product = t08(estate, inside=False)
    product.publish(CASES / "T08/v1.geojson")
    doc = json.loads((CASES / "T08/v1.geojson").read_text())
    for feature in doc["features"]:
        feature["properties"]["district"] = "all"
    (tmp_path / "2.geojson").write_text(json.dumps(doc))
    night = product.publish(tmp_path / "2.geojson")
    assert len(night.keys("moved")) == 5
    assert set(product.partitions().values()) == {"district=all"}
    assert night.result.files_carried == 0
