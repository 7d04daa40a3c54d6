# What the C module offers to `compiled_lookup`: entries are (data, hashes, digests, codes, proven, shift, rows), rows apart (hash, slot, digest, code).

from typing import Any, TypeAlias

Entries: TypeAlias = tuple[Any, Any, Any, Any, Any, int, int]
Apart: TypeAlias = tuple[Any, Any, Any, Any]

CALLS: int

def meet(
    entries: Entries,
    apart: Apart,
    state: Any,
    table: Any,
    bits: int,
    hashes: Any,
    digests: Any,
    n: int,
    start: int,
    slots: Any,
    codes: Any,
    flags: Any,
    cursor: Any,
    /,
) -> int: ...
def fill(entries: Entries, table: Any, bits: int, /) -> None: ...
def seek(entries: Entries, apart: Apart, state: Any, table: Any, bits: int, hashes: Any, n: int, slots: Any, /) -> None: ...
def among(entries: Entries, wanted: Any, n: int, slots: Any, /) -> None: ...
