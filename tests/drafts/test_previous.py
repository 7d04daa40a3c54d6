"""What holds in two exports: types, gaps, precision; what each one makes anew; and what differs, in words."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import shapely

from drafts.exports import SPOTS, Export, held_together, loose_of
from merestone.drafts.init import precision_of
from merestone.drafts.previous import unmeasured

N = 200
CODES = [f"E{7 * at + 1000:05d}" for at in range(N)]
DRAW = np.random.default_rng(3)
TARIFFS = np.round(DRAW.uniform(5, 90, N), 2)


def export(**columns):
    return Export({"code": CODES, "kind": ["road", "path"] * (N // 2), **columns})


@pytest.mark.parametrize(
    ("now", "then", "kind"),
    [
        (pa.array([1] * N), pa.array([1.5] * N), "number"),
        (pa.array([1.5] * N), pa.array([1] * N), "number"),
        (pa.array([None] * N), pa.array(["a"] * N), "string"),
        (pa.array(["a"] * N), pa.array([None] * N), "string"),
        (pa.array([Decimal("1.50")] * N, pa.decimal128(5, 2)), pa.array([Decimal("1234.5")] * N, pa.decimal128(6, 1)), "decimal(7,2)"),
        (pa.array([dt.date(2026, 7, 7)] * N), pa.array(["2026-07-07"] * N), "date"),
        (pa.array(["2026-07-07"] * N), pa.array([dt.date(2026, 7, 7)] * N), "date"),
        (pa.array([True] * N), pa.array([1] * N), "boolean"),
    ],
    ids=str,
)
def test_a_type_takes_the_values_of_both(now, then, kind):
    shared, _ = held_together(export(v=now), export(v=then))
    assert str(shared.inferred.column("v").kind) == kind
    assert shared.torn == ()
    null = pa.types.is_null(now.type) or pa.types.is_null(then.type)
    assert any(each.startswith("v is ") for each in shared.said) != null


def test_where_no_type_takes_both_it_is_said():
    shared, _ = held_together(export(v=["2020-07-22"] * N), export(v=[1595376000000] * N))
    assert shared.torn == ("v",)
    assert "v is string now and was integer before, and no type takes both" in shared.said


def test_columns_that_one_export_has_are_named():
    shared, _ = held_together(export(colour=["red"] * N, width=[1] * N), export(height=[1] * N))
    assert [each.name for each in shared.came] == ["colour", "width"]
    assert shared.gone == ("height",)
    assert shared.said == ("only in the newer export: colour and width", "only in the older export: height")


def typed(*texts):
    wkb = pa.array([None if text is None else shapely.to_wkb(shapely.from_wkt(text)) for text in texts], pa.binary())
    made = Export({"id": [f"k{at}" for at in range(len(texts))]})
    made.table = made.table.set_column(1, "geom", wkb)
    return made


@pytest.mark.parametrize(
    ("now", "then", "kind", "dimensions"),
    [
        ("LINESTRING (0 0, 1 1)", "MULTILINESTRING ((0 0, 1 1))", "multilinestring", "xy"),
        ("MULTIPOINT (0 0)", "POINT (0 0)", "multipoint", "xy"),
        ("LINESTRING (0 0, 1 1)", "POINT (0 0)", "geometry", "xy"),
        ("POINT Z (0 0 1)", "POINT (0 0)", "point", "any"),
    ],
)
def test_geometry_type_and_dimensions_hold_for_both(now, then, kind, dimensions):
    shared, _ = held_together(typed(now), typed(then))
    assert (shared.inferred.geometry.type, shared.inferred.geometry.dimensions) == (kind, dimensions)
    assert len(shared.said) == 1


def test_gaps_are_those_of_both():
    geometry = held_together(typed("POINT (5 6)", None), typed("POINT (1 2)", "POINT EMPTY"))[0].inferred.geometry
    assert (geometry.nulls, geometry.empty) == (1, 1)


def placed(spots, crs):
    made = Export({"id": [f"k{at}" for at in range(len(spots))]}, crs=crs)
    made.table = made.table.set_column(1, "geom", pa.array(shapely.to_wkb(shapely.points(spots)), pa.binary()))
    return made


@pytest.mark.parametrize(
    ("spots", "epsg", "decimals"),
    [
        (SPOTS[:700].astype(np.float32).astype(np.float64), 4326, 5),
        (np.float64(np.float32(SPOTS[:700] * 4 + [1, 40])), 4326, 5),
        (np.float64(np.float32(SPOTS[:700] * 10_000)), 28992, 1),
        (np.round(SPOTS[:700] * 10_000 * 4) / 4, 28992, 2),
        (np.round(SPOTS[:700] * 10_000), 28992, 0),
        (SPOTS[:700], 4326, 5),
    ],
    ids=["5 decimals", "off every grid", "metres", "quarters of a metre", "whole metres", "no floats of 32 bits"],
)
def test_floats_of_32_bits_have_the_decimals_that_they_hold(spots, epsg, decimals):
    one, two = placed(spots, f"EPSG:{epsg}"), placed(np.random.default_rng(1).random((700, 2)), f"EPSG:{epsg}")
    for facts in (one.facts(), held_together(two, one)[0].inferred):
        assert precision_of(epsg, facts.geometry)[0] == decimals


# --- what each export makes anew -----------------------------------------------------------------------------------------------------------

CONTENT = {
    "prices that were edited": (np.round(TARIFFS * 1.07, 2), TARIFFS),
    "prices that were drawn anew for most": (np.r_[DRAW.uniform(5, 90, N - 14), TARIFFS[-14:]], TARIFFS),
    "a code of another list, all moved on": ([f"Z{at % 90:03d}" for at in range(N)], [f"Z{(at + 1) % 90:03d}" for at in range(N)]),
    "a unique code that was dealt out once": (CODES[::-1], [f"X{at:05d}" for at in range(N)]),
    "the neighbour of each": ([f"X{max(at, 5):05d}" for at in range(N)][::-1], [f"X{max(at, 5):05d}" for at in range(N)]),
    "a year": (["2026"] * N, ["2025"] * N),
    "names in capitals": ([f"ELM ROAD {at} NORTH" for at in range(N)], [f"Elm Road {at} North" for at in range(N)]),
    "a guid that stays": ([f"{at * 7919:032x}" for at in range(N)],) * 2,
}


@pytest.mark.parametrize("what", CONTENT)
def test_what_changed_in_most_rows_is_content(what):
    now, then = CONTENT[what]
    if what.startswith("a unique"):
        now = [*(f"X{(at * 77 + 5) % N:05d}" for at in range(N // 3)), *then[N // 3 :]]
    found = loose_of(export(v=now), export(v=then))
    assert found.volatile == {}
    if what == "a year":
        assert "v has one value in all rows, and another one than before: is it the time or the number of the export?" in found.said


ANEW = {
    "guids": (lambda seed: [DRAW.bytes(16).hex() + str(seed) for _ in range(N)], "made anew in each export: differs for 200 of 200"),
    "times": (lambda seed: [dt.datetime(2026, 7, seed, 2, at // 60, at % 60) for at in range(N)], "made anew in each export"),  # noqa: DTZ001
    "rows": (lambda seed: [str(at + seed % 2) for at in range(N)], "counts the rows of the file"),
    "other rows": (lambda seed: np.random.default_rng(seed).permutation(N).tolist(), "dealt out anew in each export"),
}


@pytest.mark.parametrize("what", ANEW)
def test_what_each_export_makes_anew_is_volatile(what):
    made, words = ANEW[what]
    found = loose_of(export(v=made(1)), export(v=made(2)))
    assert list(found.volatile) == ["v"]
    assert found.volatile["v"].startswith(words)
    assert found.said[0].startswith(f"volatile: v, {words}")


def test_an_id_that_systems_make_anew_is_doubted_before_a_comparison_shows_that_it_stays():
    ids = {"GlobalID": [f"{{{at * 7919:032X}}}" for at in range(N)], "rank": [str(at + 1) for at in range(N)], "objectid": CODES[::-1]}
    source = export(**ids, uuid=[f"{at:08x}-aaaa-4bbb-8ccc-{at:012x}" for at in range(N)])
    found = unmeasured(source.facts(), ("code",), None)
    assert (found.volatile, set(found.doubted)) == ({}, {"GlobalID", "rank", "objectid", "uuid"})
    assert set(unmeasured(source.facts(), ("code", "objectid"), "rank").doubted) == {"GlobalID", "uuid"}
    assert (loose_of(source, source).volatile, loose_of(source, source).doubted) == ({}, {})


@pytest.mark.parametrize(
    ("now", "then", "clause"),
    [
        (TARIFFS, TARIFFS.astype(np.float32).astype(np.float64), ("decimals", 2)),
        (TARIFFS, np.nextafter(TARIFFS, 100), ("decimals", 2)),
        (np.exp(DRAW.uniform(-9, 12, N)), None, ("digits", 7)),
        (TARIFFS, TARIFFS + 0.01, None),
        (TARIFFS, TARIFFS, None),
    ],
    ids=["32 bits", "last bit", "wide range", "edited", "the same"],
)
def test_numbers_that_differ_in_their_last_digits_are_drafted_with_the_digits_that_count(now, then, clause):
    then = now * (1 + 3e-8 * DRAW.uniform(-0.1, 0.1, N)) if then is None else then
    found = loose_of(export(v=now), export(v=then)).rounded
    assert found.get("v") == clause or (clause and found["v"][0] == "digits" == clause[0] and 5 <= found["v"][1] <= 9)
