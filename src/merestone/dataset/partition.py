"""Which partition a feature belongs to, and what the partition is called on disk.

Not here: which partitions a change touches (`change.delta`), writing them (`writer.files`).

A partition's name is its folder below `data/`: "" without partitions, "cell=0110" for a leaf of the kd-tree (the path of below / above
decisions, "cell=root" for a tree of one leaf, "cell=none" for rows without a position), "district=D0001" for a column value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

NO_POSITION = "cell=none"
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"  # what Hive-style readers take for null
EMPTY = "%"  # a lone percent sign is not percent-encoded text, so no value can collide with the empty one
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~ ")
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{each}{n}" for each in ("com", "lpt") for n in range(1, 10))})
NAME_LIMIT = 200  # bytes of one folder name; file systems allow 255

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A cell of the kd-tree that is not split further."""


@dataclass(frozen=True, slots=True)
class Split:
    """A cell split at `at` on axis 0 (x) or 1 (y): positions below it on one side, at or above it on the other."""

    axis: int
    at: float
    below: Split | Leaf
    above: Split | Leaf


Tree = Split | Leaf


def build_tree(centres: Floats, target_rows: int, total: int) -> Tree:
    """Draw the splits once, from centres of the boxes of the stored geometries.

    Args:
        centres: float64 (m, 2) in the contract's CRS, all or a sample; rows with NaN are left out. Their order does not matter.
        target_rows: a leaf holds at most about this many features.
        total: how many features the sample stands for.
    """
    sample = centres[~np.isnan(centres).any(axis=1)]
    return _grow(sample, target_rows, total / len(sample) if len(sample) else 0.0)


def _grow(points: Floats, target_rows: int, weight: float) -> Tree:
    if len(points) * weight <= target_rows:
        return Leaf()
    spans = points.max(axis=0) - points.min(axis=0)
    for axis in (0, 1) if spans[0] >= spans[1] else (1, 0):
        values = points[:, axis]
        at = float(np.partition(values, len(values) // 2)[len(values) // 2])
        under = values < at
        if not under.any():  # half of the points and more share the least value: split just above it
            larger = values[values > at]
            if not len(larger):
                continue
            at = float(larger.min())
            under = values < at
        return Split(axis, at, _grow(points[under], target_rows, weight), _grow(points[~under], target_rows, weight))
    return Leaf()  # all points are one point


def _leaves(tree: Tree, path: str = "") -> Iterator[str]:
    if isinstance(tree, Leaf):
        yield path
    else:
        yield from _leaves(tree.below, path + "0")
        yield from _leaves(tree.above, path + "1")


def leaf_names(tree: Tree) -> list[str]:
    """The partition names of a tree, in the order of `place`'s codes; rows without a position come last."""
    return [*(f"cell={path or 'root'}" for path in _leaves(tree)), NO_POSITION]


def place(tree: Tree, centres: Floats) -> Ints:
    """The leaf of each centre as a place in `leaf_names(tree)`; int32 (n,)."""
    nowhere = np.isnan(centres).any(axis=1)
    out = np.empty(len(centres), np.int32)
    waiting: list[tuple[Tree, npt.NDArray[np.int64]]] = [(tree, np.flatnonzero(~nowhere))]
    code = 0
    while waiting:
        node, rows = waiting.pop()
        if isinstance(node, Leaf):
            out[rows] = code
            code += 1
        else:
            under = centres[rows, node.axis] < node.at
            waiting += [(node.above, rows[~under]), (node.below, rows[under])]
    out[nowhere] = code
    return out


TREE_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("axis", pa.int8(), nullable=False),
        pa.field("at", pa.float64(), nullable=False),
    ]
)


def tree_to_table(tree: Tree) -> pa.Table:
    """The splits of a tree as a pyarrow.Table of TREE_SCHEMA, each under the path of below (0) and above (1) that leads to it."""
    found: list[tuple[str, int, float]] = []
    waiting: list[tuple[str, Tree]] = [("", tree)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, Split):
            found.append((path, node.axis, node.at))
            waiting += [(path + "1", node.above), (path + "0", node.below)]
    columns = zip(*found, strict=True) if found else ((), (), ())
    return pa.Table.from_arrays([pa.array(each, kind.type) for each, kind in zip(columns, TREE_SCHEMA, strict=True)], schema=TREE_SCHEMA)


def tree_from_table(table: pa.Table) -> Tree:
    """Read the splits of a tree back."""
    splits = {path: (axis, at) for path, axis, at in zip(*(each.to_pylist() for each in table.columns), strict=True)}

    def grown(path: str) -> Tree:
        if path not in splits:
            return Leaf()
        axis, at = splits[path]
        return Split(axis, at, grown(path + "0"), grown(path + "1"))

    return grown("")


def encode_value(value: str | None) -> str:
    """One partition value as a folder name, Hive-style: percent-encoded UTF-8 (RFC 3986), null as Hive's own word.

    Different values get different names on a disk that separates upper from lower case; `Partitions` sees to the others.
    """
    if value is None:
        return HIVE_NULL
    if value == "":
        return EMPTY
    data = value.encode()
    text = "".join(chr(each) if each in _PLAIN else f"%{each:02X}" for each in data)
    if value == HIVE_NULL or value.split(".")[0].lower() in _RESERVED or value.strip(".") == "" or text[0] in " ." or text[-1] in " .":
        text = _encode_all(data)
    return _shorten(text, data)


def _encode_all(data: bytes) -> str:
    return "".join(f"%{each:02X}" for each in data)


def _shorten(text: str, data: bytes) -> str:
    if len(text) <= NAME_LIMIT:
        return text
    # "%~" is not percent-encoding, so a shortened name is never taken for a value; the manifest knows the value.
    cut = text[:96]
    cut = cut[: cut.rfind("%")] if "%" in cut[-2:] else cut  # never half an escape
    return cut + "%~" + blake2b(data, digest_size=16).hexdigest()


class Partitions:
    """Names and values of partitions, as int32 codes that are handed out in the order of asking.

    A column value and its folder name go together for ever: `names` of the last manifest are given in. Two values whose names differ
    in case only would share a folder on some disks; there the later one is percent-encoded throughout.
    """

    def __init__(self, column: str | None, known: Iterable[tuple[str, str | None]] = ()) -> None:
        self._column = None if column is None else encode_value(column)
        self._names: list[str | None] = []
        self._values: list[str | None] = []
        self._by_name: dict[str, int] = {}
        self._by_value: dict[str | None, int] = {}
        self._asked: tuple[pa.Array, Ints] = (pa.array([], pa.string()), np.zeros(0, np.int32))
        for name, value in known:
            code = self._append(name, value)
            self._by_value[value] = code

    def _append(self, name: str | None, value: str | None) -> int:
        self._names.append(name)
        self._values.append(value)
        code = len(self._names) - 1
        if name is not None:
            self._by_name[name] = code
        return code

    def __len__(self) -> int:
        return len(self._names)

    def of_names(self, names: Sequence[str]) -> Ints:
        """Codes of partition names; names not seen before are added."""
        return np.array([self._by_name[each] if each in self._by_name else self._append(each, None) for each in names], np.int32)

    @property
    def column_values(self) -> pa.Array:
        """The column values that have a code: a string array, null among them where a row without a value has one."""
        self._ask_values()
        return self._asked[0]

    @property
    def value_codes(self) -> Ints:
        """The code of each of `column_values`."""
        self._ask_values()
        return self._asked[1]

    def _ask_values(self) -> None:
        if len(self._asked[1]) != len(self._by_value):
            self._asked = (pa.array(list(self._by_value), pa.string()), np.array(list(self._by_value.values()), np.int32))

    def of_values(self, values: Sequence[str | None]) -> Ints:
        """Codes of column values; their names are settled by `names`."""
        out = np.empty(len(values), np.int32)
        for n, value in enumerate(values):
            code = self._by_value.get(value)
            if code is None:
                code = self._append(None, value)
                self._by_value[value] = code
            out[n] = code
        return out

    def names(self) -> list[str]:
        """The name of each code. New values are named in the order of their bytes; the order of rows has no say."""
        taken = {name.lower() for name in self._names if name is not None}
        unnamed = [code for code, name in enumerate(self._names) if name is None]
        for code in sorted(unnamed, key=lambda each: (self._values[each] is not None, (self._values[each] or "").encode())):
            value = self._values[code]
            name = f"{self._column}={encode_value(value)}"
            if name.lower() in taken and value is not None:
                name = f"{self._column}={_shorten(_encode_all(value.encode()), value.encode())}"
            taken.add(name.lower())
            self._names[code] = name
            self._by_name[name] = code
        return [name for name in self._names if name is not None]

    def values_of(self, names: Iterable[str]) -> dict[str, str | None]:
        """Name to column value, for the manifest."""
        self.names()
        return {name: self._values[self._by_name[name]] for name in names}
