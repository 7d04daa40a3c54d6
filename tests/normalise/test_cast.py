"""Casting deliveries: names, extra and missing columns, types that cannot be, values that do not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from ruamel.yaml import YAML

from contracts import contract
from merestone.contract.contract import Derived, Field, FieldType
from merestone.normalise.cast import PARTITION_COLUMN, CastPlan, cast_batch, holding, plan_cast, untypable_findings
from merestone.source.open import open_source
from merestone.source.port import Delivery, GeometryColumn, SourceSpec

CASES = Path(__file__).parents[1] / "cases"
TEXT, INTEGER, NUMBER = FieldType("string"), FieldType("integer"), FieldType("number")
TAGS = FieldType("list", members=(("item", TEXT),))
ATTR = FieldType("struct", members=(("k", INTEGER), ("u", TEXT)))


def agreed(*fields, **clauses):
    return contract(schema_fields=tuple(Field(name, kind) for name, kind in fields), **clauses)


def table(columns: dict, **clauses) -> tuple[Delivery, pa.RecordBatch]:
    batch = pa.record_batch({**columns, "geom": pa.array([None] * len(next(iter(columns.values()))), pa.binary())})
    return Delivery("a", "Parquet", None, batch.schema, GeometryColumn("geom", "EPSG:4326"), **clauses), batch


def plan(agreement, delivery, *, columns=None, key=("pid",), partition=None, extra="refuse") -> CastPlan:
    return plan_cast(agreement, delivery, columns or {}, key, partition, extra)


def seen(made: CastPlan, *batches) -> CastPlan:
    """The plan with the findings on columns that can never be cast, once its rows are seen."""
    fields = frozenset().union(*(holding(batch, made) for batch in batches))
    return replace(made, findings=(*made.findings, *untypable_findings(made, fields)))


def case(name: str, *fields, **spec):
    """The plan of one delivery with what its rows add to the findings, all rows cast, and the faults with rows counted through the delivery."""
    source = open_source(SourceSpec(str(CASES / name), **spec))
    made = plan(agreed(*fields), source.delivery)
    batches = list(source.batches())
    made = seen(made, *batches)
    pairs = [cast_batch(batch, made) for batch in batches]
    return made, pa.Table.from_batches([batch for batch, _ in pairs]), [fault for _, faults in pairs for fault in faults]


def yaml_of(text: str) -> dict:
    return YAML(typ="safe").load(text)


def said(made: CastPlan) -> list[tuple[str, str, str]]:
    return [(each.rule, each.field, each.observed) for each in made.findings]


def test_an_integer_where_a_string_is_agreed_refuses_before_any_comparison():
    made, _, faults = case("K03/numbers.geojson", ("pid", TEXT))
    assert said(made) == [("column_type", "pid", "pid: integer where string is agreed")]
    assert [each.severity for each in made.findings] == ["error"]
    assert faults == []  # told once, not once a row
    assert case("K03/prev.geojson", ("pid", TEXT))[0].findings == ()


def test_a_timestamp_without_a_zone_is_no_instant():
    made, _, _ = case("F11/naive.parquet", ("pid", TEXT), ("surveyed", FieldType("timestamp")))
    (fault,) = made.findings
    assert (fault.rule, fault.field) == ("column_type", "surveyed")
    assert "no time zone" in fault.observed


def test_one_instant_in_any_unit_zone_and_format_is_one_value():
    fields = (("pid", TEXT), ("surveyed", FieldType("timestamp")))
    parquet = [case(f"F11/{name}.parquet", *fields)[1]["surveyed"].to_pylist() for name in ("prev", "curr")]
    assert parquet[0] == parquet[1]
    _, found, faults = case("F11/curr.gpkg", *fields)
    assert found.schema.field("surveyed").type == pa.timestamp("us", "UTC")
    assert len(set(found["surveyed"].to_pylist()[:4])) == 1
    assert faults == []


def test_the_fid_of_a_geopackage_is_no_extra_column_until_somebody_wants_it():
    made, found, _ = case("F09/curr.gpkg", ("pid", TEXT), ("floors", INTEGER), ("meter_no", INTEGER))
    assert made.findings == ()
    assert found.column_names == ["pid", "floors", "meter_no", "geometry"]
    assert found["meter_no"].to_pylist()[2:] == [9007199254740993, 9007199254740993, 9007199254740995]
    source = open_source(SourceSpec(str(CASES / "K07/curr.gpkg")))
    keyed = plan(agreed(("name", TEXT)), source.delivery, key=("fid",))
    assert keyed.findings == ()
    batch, _ = cast_batch(next(iter(source.batches())), keyed)
    assert batch.schema.names == ["fid", "name", "geometry"]
    assert batch["fid"].to_pylist()[:3] == [1, 2, 3]


def test_extra_and_missing_columns_are_named_all_at_once():
    fields = (("pid", TEXT), ("name", TEXT), ("remark", TEXT))
    assert ("extra", "phone", "phone not in the contract") in said(case("S11/extra.gpkg", *fields)[0])
    assert ("missing", "remark", "remark missing") in said(case("S11/missing.gpkg", *fields)[0])
    delivery, _ = table({"pid": pa.array(["a"]), "x": pa.array([1]), "y": pa.array([1])})
    both = plan(agreed(("pid", TEXT), ("u", TEXT), ("v", TEXT)), delivery)
    assert [(rule, field) for rule, field, _ in said(both)] == [("missing", "u"), ("missing", "v"), ("extra", "x"), ("extra", "y")]
    warned = plan(agreed(("pid", TEXT)), delivery, extra="warn")
    assert [each.severity for each in warned.findings] == ["warning", "warning"]
    assert all("extra_columns" in each.remedy for each in both.findings if each.rule == "extra")
    assert not any("extra_columns" in each.remedy for each in warned.findings)  # it is set already


@pytest.mark.parametrize(
    ("delivered", "told"),
    [
        ("post_code", "`columns: {post_code: postcode}`"),
        ("POSTCODE", "`columns: {POSTCODE: postcode}`"),
        ("post code:", '`columns: {"post code:": postcode}`'),
        ("street", "map its delivered name under `columns` in the publication file"),
    ],
)
def test_a_column_that_was_renamed_is_told_with_the_line_that_maps_it(delivered, told):
    delivery, _ = table({delivered: pa.array(["x"])})
    (missing, _) = plan(agreed(("postcode", TEXT)), delivery, key=()).findings
    assert missing.remedy.removesuffix(".").endswith(told)
    if told.startswith("`"):
        written = yaml_of(told.strip("`"))
        assert plan(agreed(("postcode", TEXT)), delivery, columns=written["columns"], key=()).findings == ()


def test_a_missing_geometry_and_a_second_one_that_nobody_agreed_on():
    delivery, _ = table({"pid": pa.array(["a"])})
    assert said(plan(agreed(("pid", TEXT)), replace(delivery, geometry=None, schema=delivery.schema.remove(1)))) == [
        ("missing", "geometry", "geometry missing")
    ]
    made, _, _ = case("Q02/curr.parquet", ("pid", TEXT))
    assert said(made) == [("extra", "entrance", "entrance not in the contract")]
    made, found, _ = case("Q02/curr.parquet", ("pid", TEXT), ("entrance", FieldType("geometry")))
    assert (made.findings, found.column_names) == ((), ["pid", "geometry", "entrance"])


def test_names_cut_by_dbf_are_told_and_never_mapped_by_guess():
    fields = (("pid", TEXT), ("construction_year", INTEGER), ("construction_type", TEXT), ("name", TEXT))
    made, found, _ = case("S03/cut.shp", *fields)
    assert ("missing", "construction_year", "construction_year missing") in said(made)
    assert ("missing", "construction_type", "construction_type missing") in said(made)
    (cut,) = [each for each in made.findings if each.rule == "name_cut"]
    assert cut.observed == "shapefile names end after 10 characters (constructi, construc_1)"
    assert found["construction_year"].null_count == 3
    source = open_source(SourceSpec(str(CASES / "S03/cut.shp")))
    aliases = {"constructi": "construction_year", "construc_1": "construction_type"}
    mapped = plan(agreed(*fields), source.delivery, columns=aliases)
    assert mapped.findings == ()
    assert cast_batch(next(iter(source.batches())), mapped)[0]["construction_year"].to_pylist() == [1990, 2001, 2015]


def test_a_mapping_of_a_column_that_is_not_there_and_two_for_one():
    delivery, _ = table({"pid": pa.array(["a"]), "b": pa.array(["a"])})
    assert ("missing", "c", "a missing") in said(plan(agreed(("pid", TEXT), ("c", TEXT)), delivery, columns={"a": "c"}))
    assert "pid and b both stand for pid" in [each[2] for each in said(plan(agreed(("pid", TEXT)), delivery, columns={"b": "pid"}))]


def test_names_and_text_meet_in_nfc():
    fields = (("pid", TEXT), ("name", TEXT), ("größe", INTEGER))
    before, after = (case(f"F14/{name}.geojson", *fields) for name in ("prev", "curr"))
    assert (before[0].findings, after[0].findings) == ((), ())
    old, new = (dict(zip(made[1]["pid"].to_pylist(), made[1]["name"].to_pylist(), strict=True)) for made in (before, after))
    assert {key for key in old if old[key] != new[key]} == {"u4", "u5", "u6"}


def test_an_all_null_column_of_any_type_fits():
    fields = (("pid", TEXT), ("height", NUMBER), ("note", TEXT), ("remark", TEXT), ("floors", INTEGER))
    results = [case(f"F10/{name}", *fields) for name in ("prev.parquet", "curr.gpkg")]
    assert [(made.findings, faults) for made, _, faults in results] == [((), []), ((), [])]
    old, new = (found.to_pydict() for _, found, _ in results)
    assert old["height"] == new["height"]  # NaN in Parquet, null in SQLite: one missing number
    assert old["remark"] == new["remark"] == [None] * 6
    delivery, batch = table({"pid": pa.array(["a", "b"]), "x": pa.array([float("nan"), None])})
    made = seen(plan(agreed(("pid", TEXT), ("x", TEXT)), delivery), batch)
    assert (made.findings, cast_batch(batch, made)[1]) == ((), [])


def test_a_column_that_can_never_be_cast_is_no_fault_of_a_row():
    delivery, batch = table({"pid": pa.array([401, None, 402])})
    made = plan(agreed(("pid", TEXT)), delivery)
    found, faults = cast_batch(batch, made)
    assert (found["pid"].to_pylist(), faults, holding(batch, made)) == ([None, None, None], [], {"pid"})
    assert holding(batch.slice(1, 1), made) == frozenset()


def test_a_value_that_does_not_fit_is_a_fault_of_its_row():
    delivery, batch = table({"pid": pa.array([12.0, 12.5, None, float("nan")])})
    found, (fault,) = cast_batch(batch, plan(agreed(("pid", INTEGER)), delivery))
    assert found["pid"].to_pylist() == [12, None, None, None]
    assert (fault.rule, fault.field, fault.expected, fault.severity) == ("type", "pid", "integer", "error")
    assert (fault.rows.tolist(), fault.observed.to_pylist()) == ([1], ["12.5"])


def test_lists_and_objects_keep_their_types_and_their_nulls():
    fields = (("pid", TEXT), ("tags", TAGS), ("attr", ATTR))
    for kind in ("geojson", "parquet"):
        prev, curr = (case(f"S06/{name}.{kind}", *fields) for name in ("prev", "curr"))
        assert (prev[0].findings, prev[2], curr[0].findings, curr[2]) == ((), [], (), [])
        assert prev[1]["tags"].to_pylist() == [["x", "y"], ["x", "y"], None]
        assert curr[1]["tags"].to_pylist() == [["x", "y"], ["y", "x"], []]
        assert prev[1]["attr"].to_pylist() == curr[1]["attr"].to_pylist()  # only the order of members differs
        assert curr[1].schema.field("attr").type == pa.struct([("k", pa.int64()), ("u", pa.string())])
    assert {(rule, field) for rule, field, _ in said(case("S06/curr.geojson", ("pid", TEXT))[0])} == {("extra", "tags"), ("extra", "attr")}


def test_column_order_and_columns_outside_the_contract():
    delivery, batch = table({
        "district": pa.array(["D1"]).dictionary_encode(), "b": pa.array([1], pa.int16()), "nr": pa.array([7], pa.uint8()),
        "pid": pa.array(["a"]),
    })  # fmt: skip
    made = plan(agreed(("pid", TEXT), ("b", INTEGER)), delivery, key=("nr", "pid"), partition="district")
    found, faults = cast_batch(batch, made)
    assert (made.findings, faults) == ((), [])
    assert found.schema.names == ["nr", "pid", "b", PARTITION_COLUMN, "geometry"]
    assert [str(kind) for kind in found.schema.types] == ["int64", "string", "int64", "string", "binary"]
    assert found.to_pylist()[0] == {"nr": 7, "pid": "a", "b": 1, PARTITION_COLUMN: "D1", "geometry": None}
    inside = plan(agreed(("pid", TEXT), ("b", INTEGER)), delivery, partition="b", key=("pid",))
    assert PARTITION_COLUMN not in inside.schema.names


def test_a_partition_column_that_is_missing_is_named():
    delivery, _ = table({"pid": pa.array(["a"])})
    assert said(plan(agreed(("pid", TEXT)), delivery, partition="district")) == [("missing", "district", "district missing")]


def test_a_derived_measure_need_not_be_delivered():
    delivery, _ = table({"pid": pa.array(["a"])})
    area = Field("area", NUMBER, derived=Derived(measure="area"))
    assert plan(contract(schema_fields=(Field("pid", TEXT), area)), delivery).findings == ()


@pytest.mark.parametrize("field", ["geometry", "geom"])
def test_an_attribute_called_geometry_stays_an_attribute(field):
    fields = [("pid", TEXT), (field, TEXT)]
    source = pa.record_batch({"pid": pa.array(["a"]), field: pa.array(["x"]), "shape": pa.array([b"g"], pa.binary())})
    delivery = Delivery("a", "Parquet", None, source.schema, GeometryColumn("shape", "EPSG:4326"))
    agreement = agreed(*fields)
    found, _ = cast_batch(source, plan(agreement, delivery))
    assert found[field].to_pylist() == ["x"]
    assert found[agreement.geometry_name].to_pylist() == [b"g"]
