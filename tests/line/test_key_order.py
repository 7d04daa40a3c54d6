"""Keys in their order, whether they fit into memory or are split into ranges at rest."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merestone.line.comparing import key_order
from merestone.line.comparing.key_order import in_order, key_batches, key_bytes
from merestone.line.preparing.reading import KEY
from merestone.scratch.spool import Spool

# Prefixes that many share, a zero byte at the end, and keys in all sizes.
keys = st.lists(st.binary(min_size=1, max_size=12) | st.binary(max_size=2).map(lambda end: b"osgb10000" + end), unique=True, max_size=60)


@pytest.mark.parametrize("budget", [1 << 20, 40, 1], ids=["held", "split", "split finely"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=keys, size=st.integers(1, 20))
def test_sorted_as_bytes_with_their_places(keys, size, budget, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranges")
    parts = [pa.array(keys[at : at + size], pa.binary()) for at in range(0, len(keys), size)]
    found = list(in_order(lambda: [*parts, pa.array([], pa.binary())], str(folder), budget=budget))
    assert [key for some, _ in found for key in some.to_pylist()] == sorted(keys)
    assert [place for _, places in found for place in places.tolist()] == sorted(range(len(keys)), key=keys.__getitem__)
    assert not list(folder.iterdir())


def test_no_range_holds_much_more_than_its_share(tmp_path, monkeypatch):
    keys = [f"osgb{n:012}".encode() for n in range(20_000)]  # in order, as many deliveries are
    parts = [pa.array(keys[at : at + 1_000], pa.binary()) for at in range(0, len(keys), 1_000)]
    sizes = [len(some) for some, _ in in_order(lambda: parts, str(tmp_path), budget=sum(each.nbytes for each in parts) // 10 + 1)]
    assert len(sizes) == 10
    assert max(sizes) < 2 * len(keys) / 10
    monkeypatch.setattr(key_order.os, "sysconf", lambda _: 16)  # a system that opens few files
    assert len(list(in_order(lambda: parts, str(tmp_path), budget=1))) == 4


def test_the_keys_of_some_rows(tmp_path):
    spool = Spool(str(tmp_path), "s", pa.schema([("n", pa.int64()), (KEY, pa.binary())]))
    for at in (0, 3, 6):
        spool.write(pa.record_batch([pa.array(range(at, at + 3)), pa.array([b"%d" % n for n in range(at, at + 3)])], schema=spool.schema))
    rows = pa.array([1, 6, 8]).to_numpy()
    assert [each.to_pylist() for each in key_batches(spool, rows)] == [[b"1"], [b"6", b"8"]]
    assert key_bytes(spool, rows).to_pylist() == [b"1", b"6", b"8"]
    assert key_bytes(spool, rows[:0]).to_pylist() == []
    assert [each.schema.names for each in spool.batches("n")] == [["n"]] * 3
