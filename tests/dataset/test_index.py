"""The feature index: logs and checkpoints add up to what a plain dictionary says; look-ups; the digest of a set."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import PATHS, on
from merestone.columnar.lookup import SAME
from merestone.dataset import proved
from merestone.dataset.checkpoint import mapped
from merestone.dataset.index import live_keys, load, load_table, look_up, needs_checkpoint, rows_of_keys
from merestone.dataset.known import CHANGES_SCHEMA, INDEX_SCHEMA, Sum, find, halves, sort_by_hash, unhalves
from merestone.dataset.manifest import IndexRef, ObjectRef
from merestone.dataset.partition import Partitions
from merestone.dataset.tables import CheckpointRows
from merestone.errors import CorruptError
from merestone.storage.local import LocalStore
from merestone.writer.checkpoint import write_checkpoint
from merestone.writer.files import write_table
from stores import fresh

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
        own = [value is not None and (name == "digest" or value[0] != value[1]) for _, value in ordered]
        columns[name] = pa.array(
            [digest(value[place]) if said else None for said, (_, value) in zip(own, ordered, strict=True)], pa.binary(16)
        )
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


def checkpoint(store, model, order, folder, name="_index/c.parquet", version=7):
    """The checkpoint of a model, its keys in some order."""
    names = sorted({partition for _, _, partition in model.values()})
    piece = pa.table(
        [
            pa.array(order, pa.binary()),
            pa.array([digest_of(key) for key in order], pa.binary(16)),
            pa.array([digest(model[key][1]) for key in order], pa.binary(16)),
            pa.array([None if model[key][0] == model[key][1] else digest(model[key][0]) for key in order], pa.binary(16)),
            pa.array([names.index(model[key][2]) for key in order], pa.int32()),
            pa.array([version] * len(order), pa.int64()),
        ],
        schema=CheckpointRows.schema,
    )
    return write_checkpoint(store, name, piece.to_batches(max_chunksize=3), names, str(folder))


def as_said(store, index):
    """What an index says of each key, by every way to ask it."""
    partitions = Partitions(None, [("cell=9", "9"), ("cell=1", "1")])  # codes are those of the run, and not of the file
    known = load(store, index, partitions)
    names, slots = partitions.names(), known.slots()
    rows = look_up(store, index, slots).to_pylist()
    keys = [row["key"] for row in rows]
    hashes = halves(pa.array([digest_of(key) for key in keys], pa.binary(16)))
    assert len(known) == len(rows) == len({*keys})
    assert known.find(hashes).tolist() == slots.tolist()
    assert known.hash_of(slots).tolist() == hashes.tolist()
    assert [each.as_py() for each in unhalves(known.source_of(slots))] == [row["source_digest"] for row in rows]
    assert [names[code] for code in known.partition_of(slots)] == [row["partition"] for row in rows]
    names = partitions.names()
    assert known.per_partition(len(names)).tolist() == [[row["partition"] for row in rows].count(name) for name in names]
    assert [key for batch in live_keys(store, index, slots[::-1]) for key in batch.to_pylist()] == keys
    got, _, said = known.lookup.meet(hashes, known.source_of(slots))
    assert got.tolist() == slots.tolist()
    assert not len(known.unclaimed())
    assert (said == SAME).all()
    return {row["key"]: (row["digest"], row["source_digest"], row["partition"]) for row in rows}


def told(model):
    """The model as digests."""
    return {key: (digest(one), digest(two), partition) for key, (one, two, partition) in model.items()}


@pytest.mark.parametrize("path", PATHS)
@given(nights)
@settings(deadline=None, max_examples=20)
def test_logs_add_up_to_what_a_dictionary_says(path, tmp_path_factory, history):
    store, model, index = written(tmp_path_factory.mktemp("index"), *history)
    with on(path):
        assert as_said(store, index) == told(model)


@pytest.mark.parametrize("path", PATHS)
@given(st.dictionaries(keys, state, min_size=1, max_size=20), st.randoms(), nights)
@settings(deadline=None, max_examples=20)
def test_a_checkpoint_in_any_order_and_the_logs_after_it_add_up(path, tmp_path_factory, first, order, history):
    folder = tmp_path_factory.mktemp("index")
    later = history[1]
    store, model, index = written(folder, first, later)
    shuffled = list(first)
    order.shuffle(shuffled)
    with_checkpoint = IndexRef(checkpoint(store, first, shuffled, folder), 7, index.log[1:])
    with on(path):
        assert as_said(store, with_checkpoint) == told(model)
        assert load_table(store, with_checkpoint).drop(["version"]).to_pylist() == load_table(store, index).drop(["version"]).to_pylist()


@given(nights)
@settings(deadline=None, max_examples=15)
def test_every_row_knows_the_version_that_made_it(tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("index")
    store, model, index = written(folder, *history)
    table = load_table(store, index)
    assert table.schema.equals(INDEX_SCHEMA)
    assert table.column("key").to_pylist() == sorted(model)
    first, nights_after = history
    made = dict.fromkeys(first, 1)
    for version, night in enumerate(nights_after, 2):
        made |= dict.fromkeys(night, version)
    assert dict(zip(table["key"].to_pylist(), table["version"].to_pylist(), strict=True)) == {key: made[key] for key in model}
    if model:
        ref, key = checkpoint(store, model, sorted(model, reverse=True), folder), max(model)
        found = rows_of_keys(store, ref, pa.array([key, b"nix"], pa.binary()), ["key", "version"])
        assert found.to_pylist() == [{"key": key, "version": 7}]
        later = write_table(store, "_changes/later.parquet", log({key: (5, 5, "cell=9")}))
        both = load_table(store, IndexRef(ref, 7, ((10, later),)))
        assert dict(zip(both["key"].to_pylist(), both["version"].to_pylist(), strict=True)) == dict.fromkeys(model, 7) | {key: 10}


def test_every_byte_of_a_checkpoint_is_proven_before_it_decides(tmp_path, monkeypatch):
    """Also of one that is too large to be read whole: a byte that was flipped is an error, and never another answer."""
    monkeypatch.setattr(proved, "SMALL", 0)
    store = LocalStore(str(tmp_path))
    model = {b"s" + str(n).encode(): (n % 4, n % 3, "cell=0") for n in range(40)}
    ref = checkpoint(store, model, sorted(model), tmp_path)
    index, right = IndexRef(ref, 7, ()), told(model)
    assert as_said(store, index) == right
    path = tmp_path / ref.path
    data = path.read_bytes()
    for at in range(0, len(data), 13):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            said = as_said(store, index)
        except CorruptError:
            continue
        assert said == right, f"byte {at}"  # page headers that nobody looks at


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_checkpoint_is_read_where_it_lies(tmp_path, kind):
    """Only what is asked for is decoded; the columns that every row is compared with are not."""
    store = LocalStore(str(tmp_path)) if kind == "local" else fresh()
    model = {b"s" + str(n).encode(): (1, 1, "") for n in range(40)}
    entries, names = mapped(store, checkpoint(store, model, sorted(model), tmp_path))
    assert (entries.rows, entries.groups, names) == (40, 1, [""])
    assert entries.data.readonly
    assert not entries.proven.any()


def digest_of(key):
    return blake2b(key, digest_size=16).digest()


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


@pytest.mark.parametrize("path", PATHS)
def test_a_set_digest_is_the_sum_of_the_digests_of_key_hash_and_digest(path):
    names, values = [b"a", b"bc", b""], [1, 2, 3]
    with on(path):
        total = Sum()
        total.add(
            *(halves(pa.array(each, pa.binary(16))) for each in ([digest_of(key) for key in names], [digest(value) for value in values]))
        )
    parts = [int.from_bytes(digest_of(digest_of(key) + digest(value)), "big") for key, value in zip(names, values, strict=True)]
    assert str(total) == f"{sum(parts) % 2**128:032x}"


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


def test_long_logs_and_another_order_ask_for_a_checkpoint():
    ref = ObjectRef("_index/c.parquet", 1_000_000, 1, "")

    def index(*rows, whole=ref):
        return IndexRef(whole, 1, tuple((n, ObjectRef(f"_changes/{n}", count, 1, "")) for n, count in enumerate(rows, 1)))

    assert not needs_checkpoint(index(90_000, whole=None), 90_000)
    assert needs_checkpoint(index(1_000_000, whole=None), 1_000_000)
    assert not needs_checkpoint(index(*[1_000] * 60), 1_000_000)
    assert needs_checkpoint(index(*[1_000] * 61), 1_000_000)
    assert needs_checkpoint(index(*[20_000] * 6), 1_000_000)
    assert not needs_checkpoint(index(*[1_000] * 7), 1_000_000, 0.04)
    assert needs_checkpoint(index(*[1_000] * 7), 1_000_000, 0.06)
    assert not needs_checkpoint(index(*[1_000] * 6), 1_000_000, 1.0), "a checkpoint of this week: an order of the day is not followed"
