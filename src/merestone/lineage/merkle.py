"""The hash tree over the events of a run: leaves, roots and inclusion proofs.

Not here: where the events and the roots are kept (`store`), the comparison with what is kept (`verify`).

The tree is that of RFC 6962 section 2.1 with blake2b (32 bytes) for SHA-256: leaf = H(0x00 || event), node = H(0x01 || left || right), an
odd last node moves up unchanged, the root of nothing is H(""). A run's tree has two storeys: one tree over the events of each part, in the
order of its rows, and one over the roots of the parts, in the order of the run manifest, each root being a leaf (H(0x00 || root)).

An event is encoded as one entry per field that is not null, in the order of the schema: name ":" length ":" text ",", where length counts
the bytes of the text (UTF-8). Integers are decimal; event_time_utc is microseconds since 1970; accuracy_m is the decimal of the signed
64-bit integer with the bits of the IEEE 754 double. New optional fields come last in the schema, so older events keep their leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.geometry import kernel
from merestone.lineage import columns
from merestone.lineage.schema import LINEAGE_ARROW_SCHEMA

SIZE = 32
_LEAF = b"\x00"
_NODE = b"\x01"
_SLICE = 65_536  # rows encoded at a time: about 25 MB of text


def encode_events(table: Any, *, without: Sequence[str] = ()) -> Any:
    """The encoding of each event of a table in the schema's form or in compact form: pyarrow binary array."""
    pieces: list[Any] = []
    for field in LINEAGE_ARROW_SCHEMA:
        if field.name in without:
            continue
        column = columns.one_chunk(table.column(field.name))
        if column.null_count == len(column):
            continue
        piece = _entries(field.name, column)
        # A column that says one thing costs one scalar, not a text per row.
        if isinstance(piece, pa.DictionaryArray):
            piece = pa.scalar(piece.dictionary[0].as_py(), pa.binary()) if _uniform(piece) else pc.cast(piece, pa.binary())
        pieces.append(piece)
    merged: list[Any] = []
    for piece in pieces:
        if isinstance(piece, pa.Scalar) and merged and isinstance(merged[-1], pa.Scalar):
            merged[-1] = pa.scalar(merged[-1].as_py() + piece.as_py(), pa.binary())
        else:
            merged.append(piece)
    return pc.binary_join_element_wise(*merged, pa.scalar(b"", pa.binary()), null_handling="replace", null_replacement=b"")


def leaves(table: Any) -> npt.NDArray[np.uint8]:
    """The leaf of each event: uint8, shape (rows, 32)."""
    found = [np.empty((0, SIZE), np.uint8)]
    for start in range(0, table.num_rows, _SLICE):
        encoded = encode_events(table.slice(start, _SLICE))
        found.append(columns.raw(kernel.blake2b32(pc.binary_join_element_wise(pa.scalar(_LEAF), encoded, pa.scalar(b""))), SIZE))
    return np.concatenate(found)


def as_texts(row: Any) -> dict[str, str]:
    """The one event of a table as the texts that its encoding is made of, null fields left out."""
    found = {}
    for field in LINEAGE_ARROW_SCHEMA:
        column = columns.one_chunk(row.column(field.name))
        if not column.null_count:
            found[field.name] = str(_text(column)[0].as_py())
    return found


def leaf_of(data: bytes) -> bytes:
    """The leaf of one encoded event, or of one part's root."""
    return blake2b(_LEAF + data, digest_size=SIZE).digest()


def root_of(nodes: npt.NDArray[np.uint8]) -> bytes:
    """The root over leaves of shape (n, 32)."""
    if not len(nodes):
        return blake2b(b"", digest_size=SIZE).digest()
    while len(nodes) > 1:
        nodes = _up(nodes)
    return bytes(nodes[0])


def root_of_parts(roots: Sequence[bytes]) -> bytes:
    """The root of a run from the roots of its parts."""
    joined = b"".join(leaf_of(each) for each in roots)
    return root_of(np.frombuffer(joined, np.uint8).reshape(-1, SIZE))


@dataclass(frozen=True, slots=True)
class Proof:
    """The way from a leaf to a root: (side, hash) of each neighbour, lowest first; side says where the neighbour stands, left or right."""

    steps: tuple[tuple[str, bytes], ...]

    def root(self, leaf: bytes) -> bytes:
        """The root that the leaf leads to."""
        for side, other in self.steps:
            pair = other + leaf if side == "left" else leaf + other
            leaf = blake2b(_NODE + pair, digest_size=SIZE).digest()
        return leaf

    def to_json(self) -> list[dict[str, str]]:
        """The list of steps."""
        return [{"side": side, "hash": other.hex()} for side, other in self.steps]


def prove(nodes: npt.NDArray[np.uint8], place: int) -> Proof:
    """The proof of the leaf at `place` among leaves of shape (n, 32).

    Raises:
        IndexError: there is no such leaf.
    """
    if not 0 <= place < len(nodes):
        raise IndexError(f"leaf {place} of {len(nodes)}")
    steps: list[tuple[str, bytes]] = []
    while len(nodes) > 1:
        other = place ^ 1
        if other < len(nodes):
            steps.append(("left" if other < place else "right", nodes[other].tobytes()))
        nodes, place = _up(nodes), place >> 1
    return Proof(tuple(steps))


def _up(nodes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    pairs = len(nodes) // 2
    data = np.empty((pairs, 1 + 2 * SIZE), np.uint8)
    data[:, 0] = _NODE[0]
    data[:, 1:] = nodes[:2 * pairs].reshape(pairs, 2 * SIZE)
    offsets = np.arange(pairs + 1, dtype=np.int32) * (1 + 2 * SIZE)
    joined = pa.BinaryArray.from_buffers(pa.binary(), pairs, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    upper = columns.raw(kernel.blake2b32(joined), SIZE)
    return np.concatenate([upper, nodes[2 * pairs:]]) if len(nodes) % 2 else upper


def _entries(name: str, column: Any) -> Any:
    """name:length:text, for each value; null for null. Dictionary columns come back as dictionary columns."""
    if isinstance(column, pa.DictionaryArray):
        if len(column.dictionary) <= len(column):
            return pa.DictionaryArray.from_arrays(column.indices, _entries(name, column.dictionary))
        column = pc.cast(column, pa.string())
    text = pc.cast(_text(column), pa.binary())
    length = pc.cast(pc.cast(pc.binary_length(text), pa.string()), pa.binary())
    return pc.binary_join_element_wise(pa.scalar(f"{name}:".encode()), length, pa.scalar(b":"), text, pa.scalar(b","), pa.scalar(b""))


def _text(column: Any) -> Any:
    """The values as the encoding writes them: a string column."""
    if pa.types.is_fixed_size_binary(column.type):
        return columns.to_hex(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_floating(column.type):
        column = column.view(pa.int64())
    return pc.cast(column, pa.string())


def _uniform(column: Any) -> bool:
    return len(column.dictionary) == 1 and column.null_count == 0
