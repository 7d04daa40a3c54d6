"""The published vectors of fingerprint layout 2: reference, compiled kernel and NumPy path reproduce them, and from the first release on they never change."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest

from identity import make_vectors, reference, vectors
from merestone.geometry import kernel
from merestone.geometry.kernel_values import Grid, Shape
from merestone.identity.digest import DigestField, Layout, digest_batch

VECTORS = vectors.load()
# The digest of the file as it was frozen; more vectors may follow, these stay.
FROZEN = 125
FROZEN_DIGEST = "0be98f53c76b7be8cd6e2ef277e7e5e7e568ebc673433af5f05e66b0caeb66a9"


pytestmark = pytest.mark.usefixtures("each_kernel")


def test_the_file_is_what_the_generator_writes():
    assert vectors.FILE.read_text(encoding="utf-8") == make_vectors.text()


def test_frozen_vectors_have_not_moved():
    digests = "".join(each["name"] + each["digest"] for each in VECTORS[:FROZEN])
    assert hashlib.sha256(digests.encode()).hexdigest() == FROZEN_DIGEST


@pytest.mark.parametrize("vector", VECTORS, ids=[each["name"] for each in VECTORS])
def test_vector(vector):
    assert vectors.reference_payload(vector).hex() == vector["payload"]
    assert hashlib.blake2b(bytes.fromhex(vector["payload"]), digest_size=16).hexdigest() == vector["digest"]
    table, layout = vectors.arrow_of(vector)
    assert digest_batch(table, layout, "geometry").to_pylist()[0].hex() == vector["digest"]
    stored = kernel.canonical(table.column("geometry"), layout.grid, layout.shape)[0].to_pylist()[0]
    assert (None if stored is None else stored.hex()) == vector["stored"]


def test_all_vectors_in_one_column():
    """Rows of all kinds beside each other, with nulls between them, on one grid."""
    same = [each for each in VECTORS if each["grid"] == {"xy": 7, "z": 7, "m": 7} and each["dimensions"] == "as_is"]
    values = [value for each in same for value in (vectors.wkb_of(each), None)]
    got = kernel.digest([], pa.array(values, pa.binary()), Grid(7), Shape(), len(values)).to_pylist()
    rules = reference.Rules(reference.Grids(7, 7, 7))
    assert got == [reference.digest(value, {}, rules) for value in values]


def test_vectors_tell_apart_what_differs_and_join_what_is_one():
    by_name = {each["name"]: each["digest"] for each in VECTORS}
    one = [
        ("point", "point, as multipoint", "point, big-endian", "point, EWKB with SRID"),
        ("point empty", "multipoint empty"),
        ("point zm", "point zm, big-endian EWKB"),
        ("line", "line, as multilinestring", "line with repeats", "multilinestring with an empty part"),
        ("line, direction irrelevant", "line reversed, direction irrelevant"),
        (
            "polygon with two holes",
            "polygon, other start",
            "polygon, rings the other way",
            "polygon, holes in the other order",
            "polygon, as multipolygon",
            "multipolygon with an empty part",
        ),
        ("bow-tie", "bow-tie, other way"),
        ("multipolygon", "multipolygon, parts in the other order"),
        ("collection", "collection, members in another order"),
        ("text composed", "text decomposed", "text with the Angstrom sign"),
        ("integer", "integer as number"),
        ("instant", "the same instant in another zone"),
        ("no attribute", "null attribute is left out", "number NaN is null"),
    ]
    for names in one:
        assert len({by_name[name] for name in names}) == 1, names
    apart = [
        ("null geometry", "point empty"),
        ("line", "line reversed"),
        ("point", "point z", "point m", "point zm"),
        ("polygon empty", "line empty", "point empty", "collection empty"),
        ("circular string", "line"),
        ("empty text is a value", "no attribute"),
        ("instant", "local time"),
        ("multipoint keeps repeats", "multipoint with an empty part"),
    ]
    for names in apart:
        assert len({by_name[name] for name in names}) == len(names), names


def test_the_example_of_the_specification():
    page = vectors.FILE.with_name("fingerprint.md").read_text(encoding="utf-8").split("## An example")[1].split("## Vectors")[0]
    lines = [line.strip().split("   ")[0] for line in page.splitlines() if line.startswith("    ")]
    payload = bytes.fromhex("".join(lines[:-1]))
    assert lines[-1] == "digest = " + hashlib.blake2b(payload, digest_size=16).hexdigest()
    table = pa.table({"n": [3], "geometry": pa.array([bytes.fromhex("0101000000" + "0000000000002440" + "0000000000004c40")])})
    layout = Layout((DigestField("n"),), Grid(7))
    assert "digest = " + digest_batch(table, layout, "geometry").to_pylist()[0].hex() == lines[-1]
