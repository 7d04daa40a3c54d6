"""Checking a delivery against what is published says what a check of all of it says: same status, same rules, same features."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import Point, Polygon, box

from estate import Estate, geoparquet
from merestone.line.check import check
from merestone.line.settings import CheckSettings
from merestone.publication.reader import read_publication, with_source

FIELDS = [
    {"name": "pid", "type": "string", "nullable": False},
    {"name": "use", "type": "string", "nullable": False},
    {"name": "lot", "type": "string", "unique": True},
    {"name": "height", "type": "number"},
]
TERMS = {
    "geometry_type": "geometry",
    "semantics": {"use": {"enum": ["home", "shop"]}, "height": {"null_means": "not measured"}},
    "negative": {"max_features": 7},
}

ROWS = {
    "good": lambda n: ("home", f"L{n}", 4.0, box(5 + n / 100, 52, 5.005 + n / 100, 52.01)),
    "other": lambda n: ("shop", f"L{n}", 5.0, box(5 + n / 100, 52, 5.005 + n / 100, 52.02)),
    "wide": lambda n: ("home", f"L{n}", 4.0, box(-179.0, 52 + n / 100, 179.0, 52.005 + n / 100)),  # a warning, so that it is published
    "null": lambda n: (None, f"L{n}", 4.0, Point(5, 52)),
    "enum": lambda n: ("mine", f"L{n}", 4.0, Point(5, 52)),
    "nine": lambda n: ("home", f"L{n}", -9999.0, Point(5, 52)),
    "bow": lambda n: ("home", f"L{n}", 4.0, Polygon([(5, 52), (6, 53), (6, 52), (5, 53)])),
    "polar": lambda n: ("home", f"L{n}", 4.0, Point(52, 174)),  # a longitude where the latitude stands
    "twin": lambda n: ("home", "L1", 4.0, Point(5, 52 + n / 100)),
}
# A row that was delivered stays, goes or becomes another: often the same, so that most of a night is known.
NIGHTS = st.lists(st.dictionaries(st.integers(1, 8), st.sampled_from(sorted([*ROWS, "good", "wide"])), min_size=1), min_size=2, max_size=4)
FRACTIONS = st.sampled_from([0.0, 0.3, 1.0])


def said(result):
    """Whether it is refused, and per rule the features that are named."""
    rules = {(each.field, each.rule, each.severity): frozenset(sample.id for sample in each.features) for each in result.findings}
    return result.status in ("refused", "fail"), rules


def full(product, path):
    """A check of every row, with the same evidence of where positions are expected: the last version."""
    product.write(path)
    publication = with_source(read_publication(str(product.folder / "product.yaml")), str(path))
    return check(publication, CheckSettings(str(path), ""))[0]


@given(NIGHTS, FRACTIONS)
@settings(max_examples=25, deadline=None)
def test_incremental_is_full(tmp_path_factory, nights, fraction):
    folder = tmp_path_factory.mktemp("gate")
    kept: dict[int, str] = {}
    standing = product(folder / "standing", fraction)
    for number, night in enumerate(nights):
        kept = {key: kept.get(key, kind) if number % 2 else kind for key, kind in night.items()}
        path = delivery(folder / f"{number}.parquet", kept)
        expected = said(full(standing, path))
        assert said(standing.publish(path).result) == expected, (number, kept)


def product(folder, fraction):
    made = Estate(folder, FIELDS, **TERMS).agreed()
    made.settings["rejects"] = {"max_fraction": fraction}
    return made


def delivery(path, kinds):
    rows = {f"p{key}": ROWS[kind](key) for key, kind in kinds.items()}
    use, lot, height, shapes = zip(*rows.values(), strict=True)
    return geoparquet(
        path,
        {
            "pid": pa.array(list(rows)),
            "use": pa.array(use, pa.string()),
            "lot": pa.array(lot),
            "height": pa.array(height, pa.float64()),
            "geometry": list(shapes),
        },
    )


def test_a_warning_on_a_row_that_did_not_change_is_said_again(tmp_path):
    made = product(tmp_path / "a", 1.0)
    first = made.publish(delivery(tmp_path / "1.parquet", {1: "wide", 2: "good", 3: "good"}))
    again = made.publish(delivery(tmp_path / "2.parquet", {1: "wide", 2: "other", 3: "good"}))
    gone = made.publish(delivery(tmp_path / "3.parquet", {2: "other", 3: "good"}))
    assert ("geometry", "antimeridian") in first.rules("warning")
    assert said(first.result) == said(again.result)
    assert again.classes.keys() == {"p2"}
    assert ("geometry", "antimeridian") not in gone.rules()
