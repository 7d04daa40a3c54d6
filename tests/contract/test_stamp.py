"""D09: versions are compared as numbers; the stamp has one form."""

from __future__ import annotations

import itertools

import pytest

from merestone.contract.stamp import Stamp

ORDER = ["v1.2.0", "v1.9.0", "v1.10.0", "v1.10.1", "v2.0.0", "v10.0.0"]


def stamp(version: str) -> Stamp:
    return Stamp.parse(f"{version}-crs:EPSG:4326-res:10m")


def test_d09_versions_sort_as_numbers():
    for shuffled in itertools.islice(itertools.permutations(ORDER), 0, 720, 37):
        assert [str(each).split("-")[0] for each in sorted(map(stamp, shuffled))] == ORDER
    assert max(map(stamp, ORDER)).version == (10, 0, 0)
    assert max(each for each in map(stamp, ORDER) if each.major == 1).version == (1, 10, 1)


def test_a_stamp_reads_back():
    for text in ("v1.2.0-crs:EPSG:4326-res:10m", "v0.0.1-crs:EPSG:28992-res:0.5mm", "v3.0.12-crs:EPSG:2193-res:2.5km"):
        assert str(Stamp.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "v2.0.0-rc.1-crs:EPSG:4326-res:10m",  # pre-releases have no place in the form
        "1.2.0-crs:EPSG:4326-res:10m",
        "v1.2-crs:EPSG:4326-res:10m",
        "v01.2.0-crs:EPSG:4326-res:10m",
        "v1.2.0-crs:epsg:4326-res:10m",
        "v1.2.0-crs:EPSG:4326-res:10",
        "v1.2.0-crs:EPSG:4326-res:10ft",
        "v1.2.0",
        "v1.2.0-crs:EPSG:4326-res:10m ",
        "v\u0661.2.0-crs:EPSG:4326-res:10m",
        "v1.2.0-crs:EPSG:0-res:10m",
        "v" + "9" * 5000 + ".0.0-crs:EPSG:4326-res:10m",
    ],
)
def test_other_forms_are_refused(text):
    with pytest.raises(ValueError, match="is not v<major>"):
        Stamp.parse(text)


@pytest.mark.parametrize(("resolution", "metres"), [("10m", 10), ("5cm", 0.05), ("2mm", 0.002), ("1.5km", 1500), ("1deg", 111_320)])
def test_the_resolution_in_metres(resolution, metres):
    assert Stamp.parse(f"v1.0.0-crs:EPSG:4326-res:{resolution}").resolution_m == pytest.approx(metres)
