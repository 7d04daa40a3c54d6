"""The plan counts what is written, exactly."""

from __future__ import annotations

import numpy as np

from merestone.change.plan import plan
from merestone.dataset.manifest import DataFile


def file(partition, rows, n=0):
    return DataFile(f"data/{partition}/r-{n}.parquet", rows, 1, "", partition)


def test_touched_partitions_are_rewritten_and_the_rest_is_carried():
    files = (file("a", 10), file("a", 5, 1), file("b", 7), file("c", 3))
    made = plan(files, ["a", "b", "c", "d"], np.array([0, 0, 3], np.int32), np.array([0, 2, 2, 2], np.int32))
    assert made.touched == ("a", "d")
    assert made.rows == {"a": 16, "d": 1}
    assert made.dropped == ("c",)
    assert [each.partition for each in made.carried] == ["b"]
    assert made.rewritten_rows == 17


def test_no_change_touches_nothing():
    files = (file("a", 10),)
    made = plan(files, ["a"], np.zeros(0, np.int32), np.zeros(0, np.int32))
    assert made.touched == made.dropped == ()
    assert made.carried == files
