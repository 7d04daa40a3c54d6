"""The feature index: logs and checkpoints add up to what a plain dictionary says; look-ups; the digest of a set."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.dataset.index import load, load_table, look_up, needs_checkpoint, rows_of_keys
from merestone.dataset.known import CHANGES_SCHEMA, INDEX_SCHEMA, Sum, find, halves, sort_by_hash, unhalves
from merestone.dataset.manifest import IndexRef, ObjectRef
from merestone.dataset.partition import Partitions
from merestone.errors import CorruptError
from merestone.storage.local import LocalStore
from merestone.writer.files import write_pieces, write_table

keys = st.integers(0, 25).map(lambda n: b"s" + str(n).encode())
state = st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from(["cell=0", "cell=1", "", "cell=none"]))


def digest(n):
    return blake2b(str(n).encode(), digest_size=16).digest()


def log(rows):
    """A change log of {key: (digest, source digest, partition) or None for a removal}."""
    ordered = sorted(rows.items())
    columns = {field.name: pa.nulls(len(ordered), field.type) for field in CHANGES_SCHEMA}
    columns["key"] = pa.array([key for key, _ in ordered], pa.binary())
    classes = pa.array(["removed" if value is None else "changed" for _, value in ordered])
    columns["class"] = classes.dictionary_encode().cast(CHANGES_SCHEMA.field("class").type)
    for name in ("reversed", "rekeyed", "attributes", "geometry"):
        columns[name] = pa.array([False] * len(ordered))
    for place, name in enumerate(("digest", "source_digest")):
        columns[name] = pa.array([None if value is None else digest(value[place]) for _, value in ordered], pa.binary(16))
    columns["partition"] = pa.array([None if value is None else value[2] for _, value in ordered], pa.string()).dictionary_encode()
    return pa.table(columns, schema=CHANGES_SCHEMA)


nights = st.tuples(
    st.dictionaries(keys, state, min_size=1, max_size=20),
    st.lists(st.dictionaries(keys, st.one_of(state, st.none()), max_size=8), max_size=5),
)


def written(folder, first, later):
    """The model after all nights, and the index of them."""
    store, model, refs = LocalStore(str(folder)), dict(first), []
    refs.append((1, write_table(store, "_changes/1.parquet", log(first))))
    for version, night in enumerate(later, 2):
        real = {key: value for key, value in night.items() if value is not None or key in model}
        refs.append((version, write_table(store, f"_changes/{version}.parquet", log(real))))
        for key, value in real.items():
            if value is None:
                del model[key]
            else:
                model[key] = value
    return store, model, IndexRef(None, None, tuple(refs))


@given(nights)
@settings(deadline=None, max_examples=60)
def test_logs_add_up_to_what_a_dictionary_says(tmp_path_factory, told):
    store, model, index = written(tmp_path_factory.mktemp("index"), *told)
    partitions = Partitions(None)
    known = load(store, index, partitions)
    names = partitions.names()
    assert len(known) == len(model)
    for key, (_, source, partition) in model.items():
        (at,) = find(known.hash, halves(pa.array([digest_of(key)], pa.binary(16))))
        assert at >= 0
        assert unhalves(known.source[[at]])[0].as_py() == digest(source)
        assert names[known.partition[at]] == partition
    rows = look_up(store, index, known.position)
    assert dict(zip(rows.column("key").to_pylist(), rows.column("digest").to_pylist(), strict=True)) == {
        key: digest(value[0]) for key, value in model.items()
    }


def digest_of(key):
    return blake2b(key, digest_size=16).digest()


@given(nights)
@settings(deadline=None, max_examples=30)
def test_a_checkpoint_is_the_same_index(tmp_path_factory, told):
    folder = tmp_path_factory.mktemp("index")
    store, model, index = written(folder, *told)
    table = load_table(store, index)
    assert table.schema.equals(INDEX_SCHEMA)
    assert table.column("key").to_pylist() == sorted(model)
    ref = write_pieces(store, "_index/c.parquet", INDEX_SCHEMA, [table.slice(0, 3), table.slice(3)], str(folder))
    again = load_table(store, IndexRef(ref, 9, ()))
    assert again.equals(table)
    later = write_table(store, "_changes/later.parquet", log({b"s2": (5, 5, "cell=9"), **({} if b"s3" not in model else {b"s3": None})}))
    both = load_table(store, IndexRef(ref, 9, ((10, later),)))
    assert both.column("key").to_pylist() == sorted({*model, b"s2"} - {b"s3"})
    first, nights_after = told
    made = dict.fromkeys(first, 1)
    for version, night in enumerate(nights_after, 2):
        made |= dict.fromkeys(night, version)
    assert dict(zip(table["key"].to_pylist(), table["version"].to_pylist(), strict=True)) == {key: made[key] for key in model}
    assert dict(zip(both["key"].to_pylist(), both["version"].to_pylist(), strict=True))[b"s2"] == 10
    if model:
        key = max(model)
        assert rows_of_keys(store, ref, pa.array([key, b"nix"], pa.binary()), ["key", "version"]).to_pylist() == [
            {"key": key, "version": made[key]}
        ]


def test_a_file_that_is_cut_or_gone_is_an_error_and_never_an_empty_index(tmp_path):
    store, _, index = written(tmp_path, {b"s1": (1, 1, "")}, [])
    path = tmp_path / index.log[0][1].path
    data = path.read_bytes()
    path.write_bytes(data[:-9])
    with pytest.raises(CorruptError, match=r"_changes/1.parquet"):
        load(store, index, Partitions(None))
    path.unlink()
    with pytest.raises(CorruptError, match="missing"):
        load(store, index, Partitions(None))


def test_keys_that_share_their_first_half_are_told_apart():
    hashes = np.array([[7, 3], [7, 1], [7, 2], [1, 9], [9, 1]], np.uint64)
    ordered = hashes[sort_by_hash(hashes)]
    assert ordered.tolist() == [[1, 9], [7, 1], [7, 2], [7, 3], [9, 1]]
    wanted = np.array([[7, 2], [7, 4], [9, 1], [0, 0], [10, 1], [7, 1]], np.uint64)
    assert find(ordered, wanted).tolist() == [2, -1, 4, -1, -1, 1]


@given(
    st.dictionaries(st.integers(0, 50), st.integers(0, 9), max_size=20), st.dictionaries(st.integers(0, 50), st.integers(0, 9), max_size=20)
)
def test_a_set_digest_follows_a_change_and_does_not_depend_on_the_way(before, after):
    def columns(rows):
        return (
            halves(pa.array([digest(f"k{key}") for key in rows], pa.binary(16))),
            halves(pa.array([digest(value) for value in rows.values()], pa.binary(16))),
        )

    step = Sum()
    step.add(*columns(before))
    step.add(*columns({key: value for key, value in before.items() if after.get(key) != value}), -1)
    step.add(*columns({key: value for key, value in after.items() if before.get(key) != value}))
    fresh = Sum()
    fresh.add(*columns(dict(reversed(after.items()))))
    assert str(step) == str(fresh)
    assert (str(step) == str(Sum())) == (not after)


def test_long_logs_ask_for_a_checkpoint():
    def index(*rows):
        return IndexRef(None, None, tuple((n, ObjectRef(f"_changes/{n}", count, 1, "")) for n, count in enumerate(rows, 1)))

    assert not needs_checkpoint(index(1_000_000), 1_000_000)
    assert not needs_checkpoint(index(1_000_000, *[4_000] * 30), 1_000_000)
    assert needs_checkpoint(index(1_000_000, *[4_000] * 60), 1_000_000)
    assert needs_checkpoint(index(1_000_000, 600_000), 1_000_000)
