"""Whatever the facts are, a draft reads back to them and lints without errors."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.contract.contract import Contract, FieldType
from merestone.contract.field_type import parse_type
from merestone.contract.lint import lint
from merestone.contract.parse import parse
from merestone.document.yaml_reader import read_yaml
from merestone.drafts.text import ContractFacts, FieldFacts, Note, draft_contract, possible_precision, resolution_for

UUID = "3f0c2a52-6a1e-4d0e-9a55-5d2c9d1b7e10"
text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)


def facts(**changes) -> ContractFacts:
    base = {
        "name": "parcels",
        "product_id": UUID,
        "epsg": 28992,
        "axis_order": "lon_lat",
        "geometry_type": "polygon",
        "coordinate_precision": 3,
        "fields": (FieldFacts("id", FieldType("integer"), nullable=False),),
        "key": ("id",),
    }
    return ContractFacts(**(base | changes))


def read(draft: str) -> Contract:
    document = read_yaml(draft.encode(), "draft.yaml")
    contract = parse(document)
    assert isinstance(contract, Contract), contract
    assert not [each for each in lint(contract, document) if each.level != "confirm"]
    return contract


def test_guesses_are_marked_and_facts_are_not():
    contract = read(draft_contract(facts(notes={"key": Note("unique in 5,321 rows; not the FID")})))
    assert contract.confirm == ("contract_version", "product_owner_id", "freshness_sla_minutes", "availability_target")
    known = read(
        draft_contract(
            facts(
                owner="me@example.org",
                resolution="5cm",
                notes={"freshness_sla_minutes": Note(""), "availability_target": Note("as agreed")},
            )
        )
    )
    assert known.confirm == ()
    assert known.product_owner_id == "me@example.org"
    assert str(known.contract_version) == "v1.0.0-crs:EPSG:28992-res:5cm"


def test_a_field_carries_its_note():
    drafted = draft_contract(
        facts(
            resolution="1m",
            fields=(
                FieldFacts("id", FieldType("integer"), nullable=False),
                FieldFacts("guid", FieldType("string"), volatile=True, note=Note("another in every row\nof the second file", confirm=True)),
                FieldFacts("Shape_Area", FieldType("number"), derived=True, unit="US survey foot"),
                FieldFacts("class", FieldType("string"), enum=("NO", "012", "x y")),
                FieldFacts("entrance", FieldType("geometry"), crs_epsg=4258, coordinate_precision=6),
                FieldFacts("price", parse_type("decimal(10,2)")),
            ),
        )
    )
    contract = read(drafted)
    assert "schema_fields[1]" in contract.confirm
    assert "# confirm: another in every row of the second file" in drafted
    assert contract.field("guid").volatile
    assert contract.field("Shape_Area").derived is not None
    assert contract.meaning("class").enum == ("NO", "012", "x y")
    assert contract.field("entrance").crs_epsg == 4258
    assert str(contract.field("price").type) == "decimal(10,2)"


def test_names_that_yaml_takes_for_something_else_are_quoted():
    names = ("null", "true", "No", "y", "~", "1", "1e3", "-", "a: b", "a #b", "[x]", ".5")
    drafted = draft_contract(facts(key=(), fields=tuple(FieldFacts(name, FieldType("string")) for name in names)))
    assert [field.name for field in read(drafted).schema_fields] == list(names)
    assert '"No"' in drafted  # for readers of YAML 1.1


def test_geometry_facts_are_stated_where_they_differ_from_the_default():
    clause = read(draft_contract(facts(dimensions="xyz", z_precision=2, null_geometry=True, empty_geometry=True))).geometry
    assert (clause.dimensions, clause.z_precision, clause.nullable, clause.empty) == ("xyz", 2, True, True)
    assert "geometry:" not in draft_contract(facts())


@given(names=st.lists(text, min_size=1, max_size=4), name=text, note=text)
@settings(max_examples=200, deadline=None)
def test_any_name_and_note_survives(names, name, note):
    distinct = list({unicodedata.normalize("NFC", each).casefold(): unicodedata.normalize("NFC", each) for each in names}.values())
    drafted = draft_contract(
        facts(
            name="n" + "".join(each for each in name if each.isprintable()),
            key=(),
            fields=tuple(FieldFacts(each, FieldType("string"), note=Note(note)) for each in distinct),
            drafted_from=note,
        )
    )
    assert [field.name for field in read(drafted).schema_fields] == distinct


@pytest.mark.parametrize("epsg", [4326, 4258, 28992, 3857, 2249, 27700, 25832, 2193, 4807])
@pytest.mark.parametrize("precision", range(8))
def test_a_guessed_resolution_lints_clean(epsg, precision):
    read(draft_contract(facts(epsg=epsg, coordinate_precision=possible_precision(epsg, precision))))


def test_the_guessed_resolution_is_ten_steps():
    assert resolution_for(28992, 3) == "1cm"
    assert resolution_for(4326, 7) == "1m"


def test_precision_is_cut_to_what_can_be_computed():
    assert possible_precision(4326, 15) == 10
    assert possible_precision(3857, 9) == 5
    assert possible_precision(28992, 3) == 3
