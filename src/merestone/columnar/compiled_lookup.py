"""The compiled path behind `lookup`: arrays handed to C.

Not here: the C code (`_lookup.c`), the public functions and their documentation (`lookup`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import merestone.columnar._lookup as _lookup  # noqa: PLR0402 - mypy finds the stub of a C module in this form only
from merestone.columnar.entries import CODE, DIGEST, HASH, Apart, Entries, Halves, Slots

NAME = "compiled"
if getattr(_lookup, "CALLS", 0) != 1:
    raise ImportError("the extension for look-ups was built from other sources than these; build it again")

Table = tuple[npt.NDArray[np.uint32], int]


def _given(entries: Entries) -> _lookup.Entries:
    starts = entries.starts
    return (entries.data, starts[HASH], starts[DIGEST], starts[CODE], entries.proven, entries.shift, entries.rows)


def _apart(apart: Apart) -> _lookup.Apart:
    return (apart.hash, apart.slot, apart.digest, apart.code)


def bits_of(rows: int) -> int:
    """How many bits number the buckets of a table that is at most half full."""
    return max(2 * rows, 1).bit_length()


def table(entries: Entries, room: Any) -> Table:
    """See `lookup.table_of`."""
    bits = bits_of(entries.rows)
    buckets: npt.NDArray[np.uint32] = room(1 << bits)
    _lookup.fill(_given(entries), buckets, bits)
    return buckets, bits


def meet(
    entries: Entries,
    apart: Apart,
    state: npt.NDArray[np.uint8],
    found: Table | None,
    hashes: Halves,
    digests: Halves | None,
    start: int,
    out: tuple[Slots, Slots, npt.NDArray[np.uint8]],
    cursor: npt.NDArray[np.int64],
) -> int:
    """See `lookup.meet`; the row before which it stopped."""
    buckets, bits = found or (None, 0)
    return _lookup.meet(_given(entries), _apart(apart), state, buckets, bits, hashes, digests, len(hashes), start, *out, cursor)


def seek(entries: Entries, apart: Apart, state: npt.NDArray[np.uint8], found: Table | None, hashes: Halves) -> Slots:
    """See `lookup.seek`."""
    buckets, bits = found or (None, 0)
    out = np.empty(len(hashes), np.int32)
    _lookup.seek(_given(entries), _apart(apart), state, buckets, bits, hashes, len(hashes), out)
    return out


def among(entries: Entries, wanted: Halves) -> Slots:
    """See `lookup.among`."""
    out = np.full(len(wanted), -1, np.int32)
    _lookup.among(_given(entries), wanted, len(wanted), out)
    return out
