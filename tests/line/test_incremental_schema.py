"""Another contract over a filled dataset: what follows from the last one carries its files forward, what does not is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from shapely import LineString, Point, get_coordinates

from estate import Estate, digest, geoparquet, read_file
from merestone import check, publish, rollback
from merestone.errors import MerestoneError, StampError, UsageError

CASES = Path(__file__).parents[1] / "cases"
PID = {"name": "pid", "type": "string", "nullable": False}
NAME = {"name": "name", "type": "string"}
PHONE = {"name": "phone", "type": "string"}
REMARK = {"name": "remark", "type": "string"}


# --- S11: agreed -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [3, 1, 0], ids=["last", "between", "first"])
def test_s11_a_nullable_field_is_agreed(estate, place):
    product = estate([PID, NAME, REMARK], geometry_type="polygon").agreed().by_column("pid")
    product.publish(CASES / "S11/prev.gpkg")
    first = product.bytes_of()
    product.stamp("v1.1.0")
    product.terms["schema_fields"].insert(place, PHONE)
    night = product.publish(CASES / "S11/agreed.gpkg")
    assert (night.keys("changed"), night.result.delta.touched, night.result.unchanged) == (["b"], 1, 2), night.said
    assert night.result.delta.reprocessed == 0
    assert night.log["b"]["fields"] == ["phone"]
    rows = product.rows()
    assert (rows["a"]["phone"], rows["c"]["phone"]) == (None, None)
    assert rows["b"]["phone"]
    second = product.bytes_of()
    carried = first.keys() & second.keys()
    assert len(carried) == 2
    assert all(first[path] == second[path] for path in carried)
    assert "phone" not in read_file(product.url / min(carried)).schema.names
    assert product.table().schema.names[: len(product.terms["schema_fields"])] == [each["name"] for each in product.terms["schema_fields"]]
    frame = product.dataset.to_geodataframe()
    assert sorted(frame.columns) == sorted(["pid", "name", "phone", "remark", "geometry"])
    # The old version reads as it was.
    assert "phone" not in product.table(1).schema.names
    assert product.publish(CASES / "S11/agreed.gpkg").status == "unchanged"


def points(path, **columns):
    rows = len(next(iter(columns.values())))
    return geoparquet(
        path, {**{name: pa.array(values) for name, values in columns.items()}, "geometry": [Point(n, n) for n in range(rows)]}
    )


def two(estate, **clauses):
    return estate([PID, NAME], geometry_type="point", **clauses).agreed()


def test_a_new_contract_over_the_same_rows_is_a_version_with_the_same_files(estate, tmp_path):
    product = two(estate)
    source = points(tmp_path / "1.parquet", pid=["a", "b"], name=["x", "y"])
    product.publish(source)
    first = product.bytes_of()
    product.stamp("v1.0.1")
    product.terms["description"] = "other words"
    night = product.publish(source)
    assert night.result.delta.touched + night.result.delta.reprocessed == 0, night.said
    assert product.manifest().contract_version.startswith("v1.0.1")
    assert product.bytes_of() == first
    assert product.publish(source).status == "unchanged"


def test_all_rows_are_judged_again_under_a_new_stamp(estate, tmp_path):
    product = two(estate)
    source = points(tmp_path / "1.parquet", pid=["a", "b"], name=["x", "y"])
    product.publish(source)
    product.stamp("v1.1.0")
    product.terms["semantics"] = {"name": {"enum": ["x"]}}
    night = product.publish(source)
    assert (night.status, night.result.refused_by, product.version) == ("refused", "contract", 1), night.said
    assert "b" in night.heard


def test_a_finer_grid_rewrites_all_as_reprocessed(estate, tmp_path):
    product = estate([PID], geometry_type="point", precision=5).agreed()
    fine = geoparquet(tmp_path / "1.parquet", {"pid": pa.array(["a", "b"]), "geometry": [Point(1.12345678, 0), Point(2.5, 0)]})
    product.publish(fine)
    product.stamp("v1.1.0")
    product.terms["coordinate_precision"] = 7
    night = product.publish(fine)
    assert (night.status, night.result.delta.touched) == ("published", 0), night.said
    assert night.result.delta.reprocessed >= 1
    assert get_coordinates(product.shapes()["a"])[0, 0] == 1.1234568
    fresh = estate([PID], geometry_type="point", precision=7)
    fresh.publish(fine)
    assert product.rows() == fresh.rows()
    assert product.publish(fine).status == "unchanged"


@pytest.mark.parametrize("edit", [False, True])
def test_a_column_that_is_declared_volatile_later(estate, tmp_path, edit):
    """The way out that the guard points to: every guid is new, so the contract calls it volatile, and no row is called changed for it."""

    def night(number, *names):
        return points(tmp_path / f"{number}.parquet", pid=["a", "b"], name=list(names), guid=[f"{number}a", f"{number}b"])

    product = estate([PID, NAME, {"name": "guid", "type": "string"}], geometry_type="point")
    product.publish(night(1, "x", "y"))
    stopped = product.publish(night(2, "x", "y"))
    assert stopped.result.refused_by == "guard"
    assert "declare it `volatile` in the contract" in stopped.said
    product.stamp("v1.1.0")
    product.terms["schema_fields"][2]["volatile"] = True
    product.agreed()
    told = product.publish(night(3, "x", "z" if edit else "y"))
    assert told.status == "published", told.said
    assert told.keys("changed") == (["b"] if edit else [])
    assert told.result.delta.touched == edit
    again = product.publish(night(4, "x", "z" if edit else "y"))
    assert again.status == "unchanged", again.said
    fresh = estate([PID, NAME, {"name": "guid", "type": "string", "volatile": True}], geometry_type="point")
    fresh.publish(night(4, "x", "z" if edit else "y"))
    assert product.manifest().set_digest == fresh.manifest().set_digest


@pytest.mark.parametrize("first", [None, {"measure": "length", "unit": "km"}])
def test_a_measure_that_is_agreed_later_is_there_for_every_row(estate, tmp_path, first):
    lines = geoparquet(
        tmp_path / "1.parquet", {"pid": pa.array(["a", "b"]), "geometry": [LineString([(0, n), (1000, n)]) for n in range(2)]}, epsg=25832
    )
    measure = {"name": "length", "type": "number", "unit": "m", "derived": {"measure": "length", "unit": "m"}}
    product = estate([PID] if first is None else [PID, measure | {"derived": first}], geometry_type="linestring", epsg=25832, precision=3)
    product.publish(lines)
    product.stamp("v1.1.0")
    product.terms["schema_fields"] = [PID, measure]
    told = product.publish(lines)
    assert (told.status, told.result.delta.touched) == ("published", 0), told.said
    assert {row["length"] for row in product.rows().values()} == {1000.0}


# --- what does not follow --------------------------------------------------------------------------------------------------------------


def stays(product, before, source, match, kind=UsageError):
    """The run could not start: the message says why, and no byte of any version is other than it was."""
    with pytest.raises(kind, match=match) as told:
        product.publish(source)
    assert told.value.hint
    after = product.everything()
    assert all(after[name] == check for name, check in before.items())
    assert product.version == 1


def test_the_same_stamp_with_another_body_is_refused(estate, tmp_path):
    product = two(estate)
    source = points(tmp_path / "1.parquet", pid=["a", "b"], name=["x", "y"])
    product.publish(source)
    before = product.everything()
    product.terms["schema_fields"].append({**PHONE})
    stays(product, before, source, "same number", StampError)


def test_words_alone_need_a_new_stamp_too(estate, tmp_path):
    product = two(estate)
    source = points(tmp_path / "1.parquet", pid=["a", "b"], name=["x", "y"])
    product.publish(source)
    before = product.everything()
    product.terms["description"] = "other words"
    stays(product, before, source, "same number", StampError)


@pytest.fixture(scope="module")
def told_of(tmp_path_factory):
    """Three stamps, of which the last was rolled back, in a history of chunks; what each next stamp and body is told, nothing written."""
    folder = tmp_path_factory.mktemp("stamps")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("merestone.writer.history.RECENT", 2)  # v1 and v2 lie in a chunk
        product = Estate(folder, [PID, NAME], geometry_type="point").agreed()
        source = points(folder / "1.parquet", pid=["a", "b"], name=["x", "y"])
        for stamp, words in (("v1.1.0", "one"), ("v1.2.0", "two"), ("v1.3.0", "three")):
            product.stamp(stamp)
            product.terms["description"] = words
            product.publish(source)
        rollback(str(folder / "product.yaml"), to=2, reason="too early")
    assert [len(product.manifest().history.chunks), product.version] == [1, 4]

    def told(stamp, words, resolution="1m"):
        product.terms |= {"contract_version": f"{stamp}-crs:EPSG:4326-res:{resolution}", "description": words}
        product.write(source)
        said = []
        for door in (publish, check):
            try:
                door(str(product.folder / "product.yaml"), **({"dry_run": True} if door is publish else {}))
            except MerestoneError as fault:
                said.append((fault.kind, fault.exit_code, fault.message, fault.hint))
            else:
                said.append(None)
        assert said[0] == said[1]  # both doors know the same
        return said[0]

    return told


@pytest.mark.parametrize(
    ("stamp", "words", "resolution", "why", "next_step"),
    [
        ("v1.1.0", "other", "1m", "v1 was published under", "above v1.2.0"),  # the first of them: two versions back, in a chunk
        ("v1.2.0", "other", "1m", "v4 was published under", "above v1.2.0"),  # the current one
        ("v1.3.0", "other", "1m", "v3 was published under", "above v1.3.0"),  # one that a roll-back took back keeps its body
        ("v1.3.0", "three", "100cm", "v3 was published under", "above v1.3.0"),  # a resolution is no part of the number
        ("v1.1.0", "one", "1m", "v1.1.0-crs:EPSG:4326-res:1m is lower than v1.2.0", "rollback(DATASET, to=1)"),
        ("v1.1.9", "new", "1m", "v1.1.9-crs:EPSG:4326-res:1m is lower than v1.2.0", "above v1.2.0"),
    ],
)
def test_a_stamp_has_one_body_in_all_of_history_and_none_is_lower_than_the_current(told_of, stamp, words, resolution, why, next_step):
    kind, code, message, hint = told_of(stamp, words, resolution)
    assert (kind, code) == ("stamp", 5)
    assert why in message
    assert next_step in hint


@pytest.mark.parametrize(("stamp", "words"), [("v1.2.0", "two"), ("v1.3.0", "three"), ("v1.2.1", "new"), ("v1.4.0", "new")])
def test_after_a_roll_back_the_stamp_that_came_back_and_any_higher_one_may_follow(told_of, stamp, words):
    assert told_of(stamp, words) is None


def test_a_contract_that_stays_costs_no_look_at_the_history(estate, tmp_path, monkeypatch):
    product = two(estate)
    product.publish(points(tmp_path / "1.parquet", pid=["a", "b"], name=["x", "y"]))
    monkeypatch.setattr("merestone.line.publish.lines", lambda *_: iter(lambda: pytest.fail("read"), None))
    assert product.publish(points(tmp_path / "2.parquet", pid=["a", "b"], name=["x", "z"])).status == "published"


def test_another_way_to_write_one_contract_is_no_other_contract(estate, tmp_path):
    product = two(estate)
    source = points(tmp_path / "1.parquet", pid=["a", "b"], name=["x", "y"])
    product.publish(source)
    product.terms = dict(reversed(product.terms.items()))
    product.terms["schema_fields"] = [
        {**each, "unit": "none", "nullable": each.get("nullable", True)} for each in product.terms["schema_fields"]
    ]
    assert product.publish(source).status == "unchanged"


def test_another_major_is_refused(estate, tmp_path):
    product = two(estate)
    source = points(tmp_path / "1.parquet", pid=["a", "b"], name=["x", "y"])
    product.publish(source)
    before = product.everything()
    product.stamp("v2.0.0")
    stays(product, before, source, "another MAJOR")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coordinate_precision": 5}, "precision"),
        ({"geometry_type": "multipoint"}, "geometry_type"),
        ({"schema_fields": [PID]}, "name"),
        ({"schema_fields": [PID, {"name": "name", "type": "integer"}]}, "name"),
        ({"geometry": {"dimensions": "xyz"}}, "dimensions"),
        ({"geometry": {"name": "shape"}}, "shape"),
        ({"contract_version": "v1.1.0-crs:EPSG:25832-res:1m", "crs_epsg": 25832, "coordinate_precision": 3}, "crs"),
    ],
)
def test_a_major_change_under_a_minor_stamp_is_refused(estate, tmp_path, change, words):
    """Files that are carried forward could not be read together with new ones, or would mean something else."""
    product = two(estate)
    source = points(tmp_path / "1.parquet", pid=["a", "b"], name=["1", "2"])
    product.publish(source)
    before = product.everything()
    product.stamp("v1.1.0")
    product.terms |= change
    product.settings["extra_columns"] = "warn"
    stays(product, before, source, f"(?i){words}")


@pytest.mark.parametrize("key", [["pid", "name"], "name", ["name", "pid"]])
def test_another_key_is_refused(estate, tmp_path, key):
    product = two(estate)
    source = points(tmp_path / "1.parquet", pid=["a", "b"], name=["x", "y"])
    product.publish(source)
    before = product.everything()
    product.settings["key"] = key
    stays(product, before, source, "the key is")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("none", {"by": "kdtree"}),
        ({"by": "kdtree"}, "none"),
        ({"by": "column", "column": "name"}, {"by": "column", "column": "pid"}),
        ({"by": "column", "column": "name"}, {"by": "kdtree"}),
    ],
)
def test_another_partition_scheme_is_refused(estate, tmp_path, first, second):
    product = two(estate)
    source = points(tmp_path / "1.parquet", pid=["a", "b"], name=["x", "y"])
    product.settings["partition"] = first
    product.publish(source)
    before = product.everything()
    product.settings["partition"] = second
    stays(product, before, source, "partition")


def test_another_size_of_leaves_does_not_redraw_the_tree(estate, tmp_path):
    product = two(estate).by_place(2)
    source = points(tmp_path / "1.parquet", pid=list("abcdefgh"), name=list("xyxyxyxy"))
    product.publish(source)
    tree, homes = product.tree(), product.partitions()
    product.by_place(100)
    product.publish(points(tmp_path / "2.parquet", pid=list("abcdefgh"), name=list("xyxyxyxz")))
    assert product.tree() == tree
    assert product.partitions() == homes


def test_another_size_of_files_rewrites_nothing_by_itself(estate, tmp_path):
    product = two(estate).by_place(2)
    source = points(tmp_path / "1.parquet", pid=list("abcdefgh"), name=list("xyxyxyxy"))
    product.publish(source)
    before = product.everything()
    product.settings["files"] = {"target_rows": 1, "row_group_rows": 1}
    assert product.publish(source).status == "unchanged"
    assert {name: digest(product.url / name) for name in before} == before
