"""The task of topology: features that have to be judged together, by themselves and in any process.

Not here: the rules (`gate.topology`), which features those are and what they are called (`neighbourhood`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.columnar import hashing
from merestone.dataset.known import Halves, find, halves
from merestone.dataset.manifest import DataFile
from merestone.dataset.rows import read_rows
from merestone.gate import topology
from merestone.gate.topology import Breach, Ints, Rules
from merestone.gate.topology_edges import box_tree, meeting
from merestone.geometry import kernel
from merestone.identity import key as keys
from merestone.storage.open import open_store

Boxes = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Staying:
    """The published features that a change leaves alone, in the files that can hold them.

    Args:
        store: the dataset's, by its URL.
        files: the live files of the last version.
        schema: key columns and geometry, as today's files have them.
        key_columns: what names a row.
        geometry: the geometry column.
        gone: the key hashes of the features that do not stay, uint64 (k, 2), sorted.
    """

    store: str
    files: tuple[DataFile, ...]
    schema: pa.Schema
    key_columns: tuple[str, ...]
    geometry: str
    gone: Halves


@dataclass(frozen=True, slots=True)
class TopologyUnit:
    """What is judged together.

    Args:
        rules: the contract's.
        arriving: pyarrow binary array of geometries in stored form: those of a delivery, or those that are new or come in place of others.
        absent: (k, 4) boxes of features that were refused; see `gate.topology.judge`.
        staying: the published features beside them; None where there are none.
        left: the partitions that features leave: only what the change touches is judged. None: everything is.
    """

    rules: Rules
    arriving: pa.Array
    absent: Boxes
    staying: Staying | None = None
    left: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class JudgedTopology:
    """The breaches; places are those of `arriving`, and after them of features that stay.

    places: those of features that stay which a breach names, ascending; keys: their key bytes.
    """

    breaches: list[Breach]
    places: Ints
    keys: pa.Array


def judge_topology(unit: TopologyUnit) -> JudgedTopology:
    """Judge a delivery, or what a change makes of a dataset.

    Raises:
        CorruptError: a published file is damaged.
    """
    rules, arriving, absent = unit.rules, unit.arriving, unit.absent
    if unit.staying is None:
        return _judged(topology.judge(arriving, rules, absent=absent), len(arriving), pa.array([], pa.binary()))
    reader = _Reader(unit.staying)
    if unit.left is None:
        breaches = topology.judge(pa.concat_arrays([arriving, reader(None)]), rules, absent=absent)
    else:
        leaving = reader.leaving(unit.left)
        touches = len(arriving) or len(leaving)
        breaches = topology.judge_change(arriving, leaving, reader, rules, absent=absent) if touches else []
    return _judged(breaches, len(arriving), reader.keys)


def _judged(breaches: list[Breach], arriving: int, key_bytes: pa.Array) -> JudgedTopology:
    none = np.zeros(0, np.int64)
    named: Ints = np.unique(np.concatenate([none, *(side for each in breaches for side in (each.one, each.other))]))
    named = named[named >= arriving]
    return JudgedTopology(breaches, named, key_bytes.take(pa.array(named - arriving)))


class _Reader:
    """Reads the features that stay. `keys` are the key bytes of those read last."""

    def __init__(self, staying: Staying) -> None:
        self._staying = staying
        self._store = open_store(staying.store)
        self.keys = pa.array([], pa.binary())

    def __call__(self, boxes: Boxes | None) -> pa.Array:
        """The geometries, as a binary array; of features that meet one of the boxes (k, 4), or of all."""
        shapes, names = [], []
        tree = None if boxes is None else box_tree(boxes)
        for file in self._staying.files:
            if tree is not None and (file.bbox is None or not len(meeting(tree, np.array([file.bbox])))):
                continue
            rows = self._read(file, geometry=True)
            if tree is not None:  # most rows of a file lie nowhere near, and need no key
                rows = rows.take(pa.array(meeting(tree, kernel.scan(rows.column(self._staying.geometry)).bounds)))
            canonical, _ = keys.key_bytes(rows, self._staying.key_columns)
            stays = pa.array(find(self._staying.gone, halves(hashing.blake2b16(canonical))) < 0)
            shapes.append(joined_binary(rows.column(self._staying.geometry).chunks).filter(stays))
            names.append(canonical.filter(stays))
        self.keys = joined_binary(names)
        return joined_binary(shapes)

    def leaving(self, partitions: frozenset[str]) -> pa.Array:
        """The geometries of the features that leave, from the partitions that held them."""
        shapes = []
        for file in self._staying.files:
            if file.partition in partitions:
                canonical, _ = keys.key_bytes(self._read(file, geometry=False), self._staying.key_columns)
                gone = np.flatnonzero(find(self._staying.gone, halves(hashing.blake2b16(canonical))) >= 0)
                if len(gone):
                    shapes += self._read(file, geometry=True).column(self._staying.geometry).take(pa.array(gone)).chunks
        return joined_binary(shapes)

    def _read(self, file: DataFile, *, geometry: bool) -> pa.Table:
        """The rows of a file: key columns, and the geometry where it is asked for."""
        schema = self._staying.schema
        schema = schema if geometry else schema.remove(schema.get_field_index(self._staying.geometry))
        return read_rows(self._store, [file], schema).combine_chunks()


def joined_binary(parts: Iterable[pa.Array]) -> pa.Array:
    """Binary arrays as one."""
    return pa.concat_arrays([*(each.cast(pa.binary()) for each in parts), pa.array([], pa.binary())])
