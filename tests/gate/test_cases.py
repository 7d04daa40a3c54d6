"""The cases of tests/cases that the gate decides, read from their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from contracts import contract
from merestone.contract.contract import Field, FieldType, GeometryClause, Semantics
from merestone.contract.parse import parse
from merestone.document.yaml_reader import read_yaml
from merestone.gate.delivery import TwinKeys, duplicate_keys, equal_groups, null_keys, text_hash, twin_keys
from merestone.gate.feature import DEGREES, check_rows
from merestone.gate.findings import FindingTally, rejected
from merestone.geometry import kernel
from merestone.normalise.cast import cast_batch, holding, plan_cast, untypable_findings
from merestone.normalise.snap import snap
from merestone.render import text
from merestone.source.open import open_source
from merestone.source.port import SourceSpec

CASES = Path(__file__).parent.parent / "cases"
KEY = Field("pid", FieldType("string"), nullable=False)


def judged(case, agreement):
    """Findings of the schema and of every row, and what a person reads of them."""
    source = open_source(SourceSpec(str(CASES / case)))
    plan = plan_cast(agreement, source.delivery, {}, ["pid"], None, "refuse")
    tally, first, untypable = FindingTally(), 1, set()
    for batch in source.batches():
        untypable |= holding(batch, plan)
        cast, miscast = cast_batch(batch, plan)
        wkb = cast.column(agreement.geometry_name)
        stored, snapped, _ = snap(wkb, agreement)
        delivered, kept = kernel.scan(wkb), kernel.scan(stored)
        found = check_rows(
            cast,
            agreement,
            delivered=delivered,
            stored=kept,
            canonical=stored,
            limits=DEGREES,
            skip=rejected(snapped, cast.num_rows),
            miscast=miscast,
            absent=untypable,
        )
        tally.add(
            [*miscast, *snapped, *found],
            rows=np.arange(first, first + cast.num_rows),
            ids=cast.column("pid").cast(pa.string()),
            bounds=kept.bounds,
        )
        first += cast.num_rows
    findings = (*plan.findings, *untypable_findings(plan, untypable), *tally.findings())
    return findings, "\n".join(line for each in findings for line in text.finding(each))


def keys_of(case):
    source = open_source(SourceSpec(str(CASES / case)))
    return pa.chunked_array([batch.column("pid") for batch in source.batches()]).combine_chunks()


def test_k01_null_and_duplicate_keys_are_named_in_one_report():
    keys = keys_of("K01/features.geojson")
    rows = np.arange(1, len(keys) + 1)
    there = keys.is_valid().to_numpy(zero_copy_only=False)
    groups = equal_groups(text_hash(keys.cast(pa.string()))[there], rows[there])
    findings = [null_keys("pid", rows[~there]), duplicate_keys("pid", groups, [str(keys[row - 1].as_py()) for row in groups.firsts()])]
    said = "\n".join(line for each in findings for line in text.finding(each))
    for words in ("pid", "2 null keys (rows 2 and 5 of the file)", "key 7 twice (rows 3 and 6)"):
        assert words in said


def test_k03_codes_that_lost_their_zeros_are_refused():
    agreement = contract(schema_fields=(Field("pid", FieldType("string"), nullable=False, pattern="^[0-9]{4}$"),))
    findings, said = judged("K03/short_text.geojson", agreement)
    assert {each.rule for each in findings} == {"pattern"}
    for words in ("pid", "401", "402", "^[0-9]{4}$"):
        assert words in said
    findings, said = judged("K03/numbers.geojson", agreement)
    assert not findings[0].per_row
    assert "integer where string is agreed" in said


def test_k05_twins_are_named_and_both_stay():
    keys = keys_of("K05/twins.geojson")
    twins = TwinKeys()
    twins.add(keys)
    at = twins.suspects().tolist()
    finding = twin_keys("pid", [keys[place].as_py() for place in at], [place + 1 for place in at])
    assert finding.observed == "'AB-9' / 'AB-9 '"
    assert finding.severity == "warning"


def test_d01_a_value_outside_the_code_list():
    agreement = contract(
        schema_fields=(KEY, Field("area", FieldType("number"), nullable=False), Field("land_use", FieldType("string"))),
        semantics=(("land_use", Semantics(enum=("residential", "commercial"))),),
    )
    findings, said = judged("D01/payload.geojson", agreement)
    assert [each.rule for each in findings] == ["enum"]
    for words in ("land_use", "row b", "mixed_use"):
        assert words in said


def test_d03_a_null_and_a_missing_member_are_both_null():
    agreement = contract(schema_fields=(KEY, Field("area", FieldType("number"), nullable=False), Field("land_use", FieldType("string"))))
    findings, said = judged("D03/payload.geojson", agreement)
    assert [(each.rule, each.count) for each in findings] == [("null", 2)]
    for words in ("area", "rows b and d", "null not allowed"):
        assert words in said


def test_g01_null_empty_and_a_point_are_three_things():
    _, said = judged("G01/points.parquet", contract())
    assert "p2 null" in said
    assert "p1 empty" in said
    assert judged("G01/points.parquet", contract(geometry=GeometryClause(nullable=True, empty=True)))[0] == ()


def test_g06_bad_numbers_are_named_and_good_features_are_not():
    findings, said = judged("G06/bad.parquet", contract(geometry=GeometryClause(empty=True)))
    for words in ("i2 NaN", "i3 infinite", "i4 NaN in Z"):
        assert words in said
    errors = [sample.id for each in findings if each.severity == "error" for sample in each.features]
    assert sorted(errors) == ["i2", "i3", "i4"]


@pytest.mark.parametrize(
    ("file", "severities", "words"),
    [
        ("split", [], ()),
        ("spanning", ["warning"], ("f2", "wider than 180 degrees")),
        ("beyond", ["error"], ("f3", "longitude 182 outside -180..180")),
    ],
)
def test_g07_across_the_antimeridian(file, severities, words):
    fields = (KEY, Field("name", FieldType("string"))) if file == "split" else (KEY,)
    findings, said = judged(f"G07/{file}.geojson", contract(schema_fields=fields))
    assert [each.severity for each in findings] == severities
    for each in words:
        assert each in said


def test_d04_codes_that_look_like_other_values_are_text():
    agreement = parse(read_yaml((CASES / "D04" / "quoted.yaml").read_bytes(), "quoted.yaml"))
    findings, _ = judged("D04/payload.geojson", agreement)
    assert findings == ()
    assert len(keys_of("D04/payload.geojson")) == 3
