"""The hash tree over the events of a run: leaves, roots and inclusion proofs.

Not here: where the events and the roots are kept (`store`), the comparison with what is kept (`audit.verify`).

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

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.columnar.arrays import one_chunk
from merestone.columnar.hashed_values import JoinedText, Piece
from merestone.lineage.event import columns
from merestone.lineage.event.schema import LINEAGE_ARROW_SCHEMA

SIZE = 32
_LEAF = b"\x00"
_NODE = b"\x01"
_BLOCK = 1 << 14  # leaves; a power of two
_SLICE = 65_536  # rows encoded at a time: about 25 MB of text


def encode_events(table: pa.Table, *, without: Sequence[str] = ()) -> pa.Array:
    """The encoding of each event of a table in the schema's form or in compact form: pyarrow binary array."""
    encoded: pa.Array = hashing.joined(_pieces(table, without), table.num_rows)
    return encoded


def leaves(table: pa.Table) -> npt.NDArray[np.uint8]:
    """The leaf of each event: uint8, shape (rows, 32)."""
    found = [np.empty((0, SIZE), np.uint8)]
    for start in range(0, table.num_rows, _SLICE):
        some = table.slice(start, _SLICE)
        found.append(hashing.hashed([_LEAF, *_pieces(some)], some.num_rows, SIZE))
    return np.concatenate(found)


def as_texts(row: pa.Table) -> dict[str, str]:
    """The one event of a table as the texts that its encoding is made of, null fields left out."""
    found = {}
    for field in LINEAGE_ARROW_SCHEMA:
        column = one_chunk(row.column(field.name))
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
    return bytes(_reduced(nodes)[0])


class Growing:
    """The root over leaves that come piece by piece; of those that came it keeps one node for each full block."""

    def __init__(self) -> None:
        self._blocks: list[npt.NDArray[np.uint8]] = []
        self._rest = np.empty((0, SIZE), np.uint8)

    def add(self, nodes: npt.NDArray[np.uint8]) -> None:
        """Add leaves of shape (n, 32) at the end."""
        self._rest = np.concatenate([self._rest, nodes])
        while len(self._rest) >= _BLOCK:
            self._blocks.append(_reduced(self._rest[:_BLOCK]))
            self._rest = self._rest[_BLOCK:]

    def root(self) -> bytes:
        """As `root_of` of all leaves: blocks are whole subtrees, and what is left is the last node of their level."""
        last = [_reduced(self._rest)] if len(self._rest) else []
        return root_of(np.concatenate([self._rest[:0], *self._blocks, *last]))


def leaves_of_run(roots: Sequence[bytes], said: bytes) -> npt.NDArray[np.uint8]:
    """The leaves of a run: the roots of its parts, and last what its run manifest says (`form.said`)."""
    joined = b"".join(leaf_of(each) for each in (*roots, said))
    return np.frombuffer(joined, np.uint8).reshape(-1, SIZE)


def root_of_run(roots: Sequence[bytes], said: bytes) -> bytes:
    """The root of a run."""
    return root_of(leaves_of_run(roots, said))


@dataclass(frozen=True, slots=True)
class InclusionProof:
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


def prove(nodes: npt.NDArray[np.uint8], place: int) -> InclusionProof:
    """The proof of the leaf at `place` among leaves of shape (n, 32).

    Raises:
        IndexError: the leaf does not exist.
    """
    if not 0 <= place < len(nodes):
        raise IndexError(f"leaf {place} of {len(nodes)}")
    steps: list[tuple[str, bytes]] = []
    while len(nodes) > 1:
        other = place ^ 1
        if other < len(nodes):
            steps.append(("left" if other < place else "right", nodes[other].tobytes()))
        nodes, place = _up(nodes), place >> 1
    return InclusionProof(tuple(steps))


def _reduced(nodes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The one node over at least one node."""
    while len(nodes) > 1:
        nodes = _up(nodes)
    return nodes


def _up(nodes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    pairs = len(nodes) // 2
    below = pa.Array.from_buffers(pa.binary(2 * SIZE), pairs, [None, pa.py_buffer(np.ascontiguousarray(nodes))])
    upper = hashing.hashed([_NODE, below], pairs, SIZE)
    return np.concatenate([upper, nodes[2 * pairs :]]) if len(nodes) % 2 else upper


def _pieces(table: pa.Table, without: Sequence[str] = ()) -> list[Piece]:
    """The encoding in pieces; what is the same in every row is written once, not row by row."""
    found: list[Piece] = []
    for field in LINEAGE_ARROW_SCHEMA:
        if field.name in without:
            continue
        column = one_chunk(table.column(field.name))
        if columns.is_uniform(column):
            text = column.dictionary[0].as_py().encode()
            found.append(b"%b:%d:%b," % (field.name.encode(), len(text), text))
        elif column.null_count < len(column):
            found.append(JoinedText(field.name.encode(), _writable(column)))
    return found


def _writable(column: pa.Array) -> pa.Array:
    """A column as the encoding writes it: a time as microseconds, a double as the integer with the same bits."""
    return column.view(pa.int64()) if pa.types.is_timestamp(column.type) or pa.types.is_floating(column.type) else column


def _text(column: pa.Array) -> pa.Array:
    """The values as the encoding writes them: a string column."""
    return columns.to_hex(column) if pa.types.is_fixed_size_binary(column.type) else pc.cast(_writable(column), pa.string())
