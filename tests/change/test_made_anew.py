"""What an export makes anew, and what was edited in every row."""

from __future__ import annotations

import datetime as dt
import uuid

import numpy as np
import pyarrow as pa
import pytest

from merestone.change.made_anew import made_anew

N = 60
DRAW = np.random.default_rng(5)
NAMES = [f"{each} {street}" for each in range(12) for street in ("Harbour Lane", "Mill Road", "Church Street", "Long Meadow", "Quay")]


def guids(seed):
    draw = np.random.default_rng(seed)
    return [f"{{{uuid.UUID(bytes=draw.bytes(16), version=4)}}}" for _ in range(N)]


def stamps(day):
    return [dt.datetime(2026, 7, day, 2, 0, at) for at in range(N)]  # noqa: DTZ001


TARIFFS = np.round(DRAW.uniform(5, 90, N), 4)
CODES = [f"{at:04d}" for at in range(N)]
ANEW = {
    "GUIDs": (guids(1), guids(2)),
    "GUIDs, some missing": ([None, *guids(1)[1:]], guids(2)),
    "times of the export": (stamps(8), stamps(7)),
    "texts of times": ([str(each) for each in stamps(8)], [str(each) for each in stamps(7)]),
    "serial numbers that go on": (list(range(9_000, 9_000 + N)), list(range(1_000, 1_000 + N))),
    "serial numbers within text": ([f"EXP26-{at:06d}" for at in range(900, 900 + N)], [f"EXP25-{at:06d}" for at in range(100, 100 + N)]),
    "serial numbers of any length": ([f"g{at}" for at in range(9_000, 9_000 + N)], [f"g{at}" for at in range(N)]),
    "draws": (DRAW.integers(2**40, 2**50, N).tolist(), DRAW.integers(2**40, 2**50, N).tolist()),
}
CONTENT = {
    "prices that rose": (np.round(TARIFFS * 1.03, 4).tolist(), TARIFFS.tolist()),
    "measures in another unit": ((TARIFFS * 1000).tolist(), TARIFFS.tolist()),
    "counts of a new year": ((10_000 + np.arange(N) * 977 + 31).tolist(), (10_000 + np.arange(N) * 977).tolist()),
    "names in capitals": ([each.upper() for each in NAMES], NAMES),
    "names that were spelt out": ([each.replace("Lane", "Ln").replace("Street", "St.") + "." for each in NAMES], NAMES),
    "the codes of other rows": (CODES[1:] + CODES[:1], CODES),
    "codes that were spelt anew": ([f"{at * 37:05d}-A" for at in range(N)], [f"{at * 37:05d}" for at in range(N)]),
    "a code list": (["b"] * N, ["a"] * N),
    "one stamp for all rows": (["2026-07-08"] * N, ["2026-07-07"] * N),
    "truth": ([True] * N, [False] * N),
    "lists": ([[1]] * N, [[2]] * N),
    "nothing": ([None] * N, guids(2)),
}


def judged(now, then):
    asked = []

    def met(values):
        asked.append(values)
        return len(set(values.to_pylist()) & set(then)) / len(values)

    return made_anew(pa.array(now), pa.array(then), met), asked


@pytest.mark.parametrize("what", ANEW)
def test_what_an_export_makes_anew(what):
    assert judged(*ANEW[what])[0]


@pytest.mark.parametrize("what", CONTENT)
def test_what_was_edited_in_every_row_is_content(what):
    assert not judged(*CONTENT[what])[0]


def test_the_earlier_export_is_asked_only_where_nothing_else_decides():
    assert judged(*ANEW["GUIDs"])[1]
    assert not judged(*CONTENT["a code list"])[1]
    assert not judged(*CONTENT["prices that rose"])[1]
