# What the C module offers to `compiled`; a column is (kind, tag, name, validity, offsets, data, extra, first row, width).

from typing import Any, TypeAlias

Given: TypeAlias = tuple[int, int, bytes, Any, Any, Any, Any, int, int]
Form: TypeAlias = tuple[int, int, int, bool, bool, bool]
Owned: TypeAlias = tuple[int, int, object]  # address and size of memory that lives as long as the object
Box: TypeAlias = tuple[float, float, float, float]

CALLS: int

def scan(
    wkb: Given,
    n: int,
    kind: Any,
    has_z: Any,
    has_m: Any,
    empty: Any,
    parts: Any,
    vertices: Any,
    bounds: Any,
    flags: Any,
    /,
) -> None: ...
def decimals(wkb: Given, n: int, counts: Any, bounded: bool, bounds: Box, /) -> None: ...
def measures(wkb: Given, n: int, area: Any, length: Any, /) -> None: ...
def doubtful(wkb: Given, n: int, out: Any, /) -> None: ...
def encode(wkb: Given, n: int, form: Form, offsets: Any, /) -> Owned: ...
def canonical(wkb: Given, n: int, form: Form, wanted: int, offsets: Any, flags: Any, /) -> Owned: ...
def digest(columns: tuple[Given, ...], wkb: Given | None, n: int, form: Form, out: Any, /) -> None: ...
def coordinates(wkb: Given, n: int, /) -> bytes: ...
def with_coordinates(wkb: Given, n: int, xy: Any, offsets: Any, /) -> Owned: ...
def largest_move(before: Given, after: Given, n: int, out: Any, /) -> None: ...
def within(
    delivered: Given,
    published: Given,
    n: int,
    limits: tuple[float, float, float],
    keep: int,
    either_way: bool,
    out: Any,
    /,
) -> None: ...
def hilbert(x: Any, y: Any, n: int, bounds: Box, order: int, out: Any, /) -> None: ...
