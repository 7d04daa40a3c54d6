"""What differs between a candidate and its published row, and which differences are only blanks or noise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely

from merestone.change.classes import Noise, compare, found_elsewhere, rekeyed
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape
from merestone.identity.digest import DigestField, Layout

LAYOUT = Layout((DigestField("name"), DigestField("note"), DigestField("rank")), Grid(3), Shape())
NOISE = Noise(0.05, {})


def side(rows):
    """Rows of (name, note, rank, x) as a table, points on the grid of a millimetre."""
    columns = list(zip(*rows, strict=True))
    wkb = kernel.canonical(pa.array(shapely.to_wkb(shapely.points(columns[3], 0.0)), pa.binary()), LAYOUT.grid, LAYOUT.shape)[0]
    return pa.table(
        {
            "name": pa.array(columns[0], pa.string()),
            "note": pa.array(columns[1], pa.string()),
            "rank": pa.array(columns[2], pa.int64()),
            "geometry": wkb.cast(pa.binary()),
        }
    )


def compared(pairs):
    after, before = side([each[0] for each in pairs]), side([each[1] for each in pairs])
    return compare(after, before, LAYOUT, "geometry", delivered=after.select(["geometry"]), noise=NOISE, in_place=np.ones(len(after), bool))


OLD = ("High Street", "b", 1, 5.0)
PAIRS = {
    # a change of OLD to the answers to: attributes, geometry, only blanks at the end
    ("High Street ", "b", 1, 5.0): (True, False, True),
    ("High Street\u3000\t", "b  ", 1, 5.0): (True, False, True),
    (" High Street", "b", 1, 5.0): (True, False, False),
    ("High  Street", "b", 1, 5.0): (True, False, False),
    ("High Street ", "c", 1, 5.0): (True, False, False),
    ("High Street ", "b", 2, 5.0): (True, False, False),
    ("High Street ", "b", None, 5.0): (True, False, False),
    ("High Street ", None, 1, 5.0): (True, False, False),
    ("High Street ", "b", 1, 5.001): (True, True, False),
    ("High Street", "b", 1, 5.001): (False, True, False),
    ("High Street", "b", 1, 5.0): (False, False, False),
}


def test_each_kind_of_difference_is_told():
    found = compared([(new, OLD) for new in PAIRS])
    for row, (new, answers) in enumerate(PAIRS.items()):
        assert (found.attributes[row], found.geometry[row], found.blanks[row]) == answers, new
    fields = {name: differs.tolist() for name, differs in found.fields}
    assert fields == {name: [new[at] != OLD[at] for new in PAIRS] for at, name in enumerate(("name", "note", "rank"))}


def test_blanks_and_nothing_are_two_things():
    """A text of blanks is not null, to whatever its blanks are cut."""
    found = compared([((" ", "b", 1, 5.0), (None, "b", 1, 5.0)), ((" ", "b", 1, 5.0), ("", "b", 1, 5.0))])
    assert found.attributes.tolist() == [True, True]
    assert found.blanks.tolist() == [False, True]


@pytest.mark.parametrize(("moved", "quiet"), [(0.0, True), (0.0004, True), (0.00056, False), (0.00055, True)])
def test_noise_is_measured_from_the_published_value(moved, quiet):
    """Digests are of what is stored; whether it is noise, the delivered ordinates tell."""
    before = side([("a", "b", 1, 5.0)])
    after = side([("a", "b", 1, 5.001)])
    delivered = pa.array([shapely.to_wkb(shapely.Point(5.0 + moved, 0))], pa.binary())
    found = compare(after, before, LAYOUT, "geometry", delivered=pa.table({"geometry": delivered}), noise=NOISE, in_place=np.ones(1, bool))
    assert found.suppressed.tolist() == [quiet]


def halves(*values):
    return np.array([[each, each + 1] for each in values], np.uint64).reshape(-1, 2)


def test_content_that_is_alone_on_both_sides_is_rekeyed():
    added, removed = rekeyed(halves(1, 2, 2, 3, 5), halves(3, 2, 4, 5, 5))
    assert added.tolist() == [False, False, False, True, False]
    assert removed.tolist() == [True, False, False, False, False]
    assert [each.tolist() for each in rekeyed(halves(), halves(1))] == [[], [False]]


def test_content_under_another_key_is_counted():
    assert found_elsewhere(halves(1, 2, 3), halves(1, 2, 9), halves(1, 9, 9)) == 1
