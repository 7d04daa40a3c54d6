"""The columns of a version from what its files say: a file that does not describe its geometry is damage, never a fault of the program."""

import json

import pyarrow as pa
import pytest

from merestone.dataset.columns import geo_of
from merestone.errors import CorruptError

GOOD = {"version": "1.1.0", "primary_column": "shape", "columns": {"shape": {"encoding": "WKB"}}}


def described(metadata):
    return pa.schema([("shape", pa.binary())], metadata=metadata)


def test_what_a_file_says_of_its_geometry_is_read():
    assert geo_of(described({"geo": json.dumps(GOOD)}), "a.parquet") == GOOD


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {"other": "{}"},
        {"geo": "{"},
        {"geo": "[]"},
        {"geo": "null"},
        {"geo": "{}"},
        {"geo": json.dumps(GOOD | {"primary_column": None})},
        {"geo": json.dumps(GOOD | {"primary_column": "gone"})},
        {"geo": json.dumps(GOOD | {"primary_column": ["shape"]})},
        {"geo": json.dumps(GOOD | {"columns": ["shape"]})},
        {"geo": json.dumps(GOOD | {"columns": {"shape": "WKB"}})},
    ],
)
def test_a_file_that_does_not_describe_its_geometry_is_damaged(metadata):
    with pytest.raises(CorruptError, match=r"a\.parquet does not describe its geometry"):
        geo_of(described(metadata), "a.parquet")
