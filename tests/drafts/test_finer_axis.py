"""What is drafted from a delivery, published and compared keeps every ordinate, however fine each axis is by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st

import merestone
from contracts import contract
from drafts.exports import Export
from estate import geoparquet
from merestone.drafts.init import precision_of
from merestone.gate.fineness import fineness, precision
from merestone.geometry import kernel

N = 600
AXES = st.one_of(st.integers(0, 7), st.just(("%.6g", 0)), st.just("constant"))


def axis(kind, low, seed, n=N):
    """Ordinates above `low`: of so many decimals, of six significant digits, or all alike."""
    if kind == "constant":
        return np.full(n, float(low))
    drawn = low + 0.1 + 0.8 * np.random.default_rng(seed).random(n)
    if isinstance(kind, int):
        return np.round(drawn, kind)
    return np.array([float(kind[0] % each) for each in drawn])


@settings(max_examples=40, deadline=None)
@given(AXES, AXES, st.sampled_from([(4326, 122, 37), (4326, 9, 52), (28992, 120_000, 480_000)]), st.sampled_from([40, N]))
@example("constant", 4, (4326, 5, 52), N)
@example(2, 0, (28992, 120_000, 480_000), N)
def test_a_draft_is_as_fine_as_the_finer_axis_and_its_gate_lets_it_pass(one, other, place, n):
    epsg, low_x, low_y = place
    spots = np.column_stack([axis(one, low_x, 1, n), axis(other, low_y, 2, n)])
    wkb = pa.array(shapely.to_wkb(shapely.points(spots)), pa.binary())
    export = Export({"id": [f"A{at}" for at in range(n)]}, crs=f"EPSG:{epsg}")
    export.table = export.table.set_column(1, "geom", wkb)
    decimals, why = precision_of(epsg, export.facts().geometry)
    finest, usual = (5, 3) if epsg == 28992 else (9, 7)
    needed = [max(_decimals(each) for each in along) for along in spots.T]
    assert decimals >= (max(needed) if max(needed) <= finest else usual)  # finer than that is no grid
    if why.startswith("measured"):
        assert decimals == max(needed)
        assert len(set(needed)) == 1 or why.endswith(f"{needed[0]} along x and {needed[1]} along y")
    finding = precision(contract(crs_epsg=epsg, coordinate_precision=decimals), fineness(wkb, kernel.scan(wkb), decimals))
    assert finding is None or finding.severity == "warning"


def _decimals(value):
    return len(np.format_float_positional(value, trim="-").partition(".")[2])


@pytest.mark.parametrize(
    ("one", "other", "epsg", "corner"),
    [(("%.6g", 0), ("%.6g", 0), 4326, (-122, 37)), (5, "constant", 4326, (-122, 37)), (2, 0, 28992, (120_000, 480_000))],
    ids=["six significant digits", "one latitude", "whole northings"],
)
def test_what_is_drafted_published_and_compared_keeps_the_finer_axis(tmp_path, one, other, epsg, corner):
    spots = np.column_stack([axis(one, corner[0], 1), axis(other, corner[1], 2)])
    moved = spots.copy()
    finer = int(np.argmax([max(_decimals(each) for each in along) for along in spots.T]))
    step = 10.0 ** -max(_decimals(each) for each in spots[:, finer])
    moved[:50, finer] += step
    names = [f"A{at:04d}" for at in range(N)]
    files = [
        geoparquet(tmp_path / f"{name}.parquet", {"code": names, "geometry": list(shapely.points(each))}, epsg=epsg)
        for name, each in (("first", spots), ("second", moved))
    ]
    drafted = merestone.draft(files[0], owner="steward@example.org", out=tmp_path)
    published = merestone.publish(drafted.publication)
    assert published.status == "published", published.findings
    assert {each.severity for each in published.findings} == {"warning"}  # of the coarser axis
    stored = merestone.open(drafted.publication).to_arrow().sort_by("code")
    at = shapely.get_coordinates(shapely.from_wkb(stored.column("geometry").to_numpy(zero_copy_only=False)))
    assert np.abs(at - spots).max() <= step / 2
    assert merestone.diff(*files).delta.changed == 50


@pytest.mark.parametrize("along", [0, 1], ids="xy")
def test_an_axis_that_was_fine_may_not_lose_its_decimals(along):
    spots = np.column_stack([axis(7, 9, 1), axis(7, 52, 2)])
    coarse, part = spots.copy(), spots.copy()
    coarse[:, along] = np.round(coarse[:, along], 3)
    part[: N // 2, along] = np.round(part[: N // 2, along], 3)

    def judged(now, then=None):
        counts = []
        for each in (now, now if then is None else then):
            wkb = pa.array(shapely.to_wkb(shapely.points(each)), pa.binary())
            counts.append(fineness(wkb, kernel.scan(wkb), 7))
        last = None if then is None else counts[1].record(7)
        return precision(contract(coordinate_precision=7), counts[0], None, last, "v1")

    lost = judged(coarse, spots)
    assert (lost.severity, lost.count) == ("error", N)
    assert f"99 % of 600 ordinates along {'xy'[along]} have 3 decimals or fewer" in lost.observed
    assert judged(coarse).severity == "warning"
    assert judged(coarse, coarse) is None
    assert judged(coarse, part) is None
    assert judged(spots, coarse) is None
