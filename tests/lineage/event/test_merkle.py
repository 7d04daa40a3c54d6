"""The hash tree, against RFC 6962 written out as it stands there."""

import hashlib
import struct
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merestone.lineage.event import columns, merkle
from merestone.lineage.event.collector import LineageCollector
from merestone.lineage.event.record import LineageEvent
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA


def hashed(data):
    return hashlib.blake2b(data, digest_size=32).digest()


def tree(leaves):
    """MTH of RFC 6962 section 2.1, over leaf hashes."""
    if not leaves:
        return hashed(b"")
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashed(b"\x01" + tree(leaves[:split]) + tree(leaves[split:]))


def encoded(row):
    """One event, encoded as docs/spec/lineage.md says."""
    out = b""
    for name in LINEAGE_ARROW_SCHEMA.names:
        value = row[name]
        if value is None:
            continue
        if isinstance(value, datetime):
            value = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        elif isinstance(value, float):
            value = struct.unpack("<q", struct.pack("<d", value))[0]
        text = str(value).encode()
        out += f"{name}:{len(text)}:".encode() + text + b","
    return out


events = st.builds(
    LineageEvent,
    run_id=st.sampled_from(["r1", "ä"]),
    sequence=st.integers(0, (1 << 63) - 1),
    event_time_utc=st.datetimes(min_value=datetime(1969, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - Hypothesis wants naive bounds
    stage=st.just("validate"),
    event_type=st.just("VALIDATE"),
    feature_id=st.text("aä漢:,", min_size=1, max_size=4),
    source_crs=st.just("EPSG:25832"),
    target_crs=st.sampled_from(["EPSG:4326", "EPSG:25832"]),
    outcome=st.just("WARN"),
    strategy_index=st.none() | st.integers(0, 9),
    accuracy_m=st.none() | st.floats(0, 1e300),
    rejection_reason=st.none() | st.text(max_size=6),
    audit_tag=st.none() | st.just("nightly"),
    from_partition=st.sampled_from(["", "a", None]),
)


@settings(deadline=None)
@given(st.lists(events, min_size=1, max_size=12))
def test_the_leaves_are_those_of_the_page(some):
    collector = LineageCollector()
    for each in some:
        collector.add(each)
    table = collector.to_table()
    expected = [hashed(b"\x00" + encoded(row)) for row in table.to_pylist()]
    assert [bytes(each) for each in merkle.leaves(table)] == expected
    assert [bytes(each) for each in merkle.leaves(columns.compact(table))] == expected
    assert merkle.root_of(merkle.leaves(table)) == tree(expected)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33])
def test_root_and_every_proof(count):
    hashes = [hashed(bytes([each])) for each in range(count)]
    nodes = np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 32)
    root = tree(hashes)
    assert merkle.root_of(nodes) == root
    for place, leaf in enumerate(hashes):
        proof = merkle.prove(nodes, place)
        assert proof.root(leaf) == root
        assert proof.root(hashed(b"other")) != root
        assert len(proof.to_json()) == len(proof.steps)
    with pytest.raises(IndexError):
        merkle.prove(nodes, count)


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=6))
def test_the_root_over_leaves_that_come_piece_by_piece(sizes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merkle, "_BLOCK", 4)
        hashes = [hashed(bytes([each])) for each in range(sum(sizes))]
        growing, at = merkle.Growing(), 0
        for size in sizes:
            growing.add(np.frombuffer(b"".join(hashes[at : at + size]), np.uint8).reshape(-1, 32))
            at += size
            assert growing.root() == tree(hashes[:at])


def test_the_root_of_a_run_is_over_its_parts_and_what_its_manifest_tells():
    roots = [hashed(b"a"), hashed(b"b"), hashed(b"c")]
    assert merkle.root_of_run(roots, b"{}") == tree([hashed(b"\x00" + each) for each in (*roots, b"{}")])
    assert merkle.root_of_run([], b"{}") == hashed(b"\x00{}")
