"""Topology in the line: which features are judged together, over a whole delivery and near a change of a dataset.

Not here: the rules and their words (`gate.topology`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Before
from merestone.columnar import hashing
from merestone.dataset.known import Halves, Known, find, halves, sort_by_hash
from merestone.dataset.manifest import DataFile, Manifest
from merestone.dataset.rows import read_rows
from merestone.gate import topology
from merestone.gate.topology import Breach, Ints, Name, Rules
from merestone.gate.topology_edges import box_tree, meeting
from merestone.geometry import kernel
from merestone.identity import key as keys
from merestone.line.comparing.key_order import key_bytes
from merestone.line.judging.change_verdict import ChangeVerdict
from merestone.line.preparing.prepared import Prepared
from merestone.line.preparing.reading import KEY
from merestone.line.processing.process import Processed
from merestone.line.receiving.candidates import Candidates
from merestone.line.run import Run
from merestone.results.finding import Finding
from merestone.scratch.spool import ROW

Boxes = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TopologyOfDelivery:
    """The topology of a delivery: its findings, and the breaches with all of their places, which are rows of the spool of pass 2."""

    findings: list[Finding]
    breaches: list[Breach]
    name: Name


def judge_delivery(prepared: Prepared, candidates: Candidates, processed: Processed) -> TopologyOfDelivery:
    """The topology of a delivery by itself, over all rows whose geometry is good."""

    def name(places: Ints) -> list[tuple[str | None, int | None]]:
        asked, at = np.unique(places, return_inverse=True)
        texts = keys.ids_of(key_bytes(processed.spool, asked)).to_pylist()
        return [(texts[place], int(candidates.row[row])) for place, row in zip(at.tolist(), places.tolist(), strict=True)]

    rules = _rules(prepared)
    if rules is None:
        return TopologyOfDelivery([], [], name)
    geometry = [batch.column(prepared.geometry) for batch in processed.spool.batches()]
    good = np.flatnonzero(~processed.misshapen)
    found = topology.judge(_one(geometry).take(pa.array(good)), rules, absent=processed.absent(misshapen=True))
    breaches = [replace(each, one=_spooled(good, each.one), other=_spooled(good, each.other)) for each in found]
    return TopologyOfDelivery(topology.findings(breaches, rules, name), breaches, name)


def _spooled(good: Ints, places: Ints) -> Ints:
    """Places among the good rows as rows of the spool; -1 stays."""
    out: Ints = np.where(places >= 0, good[places], -1) if len(good) else places
    return out


def judge_version(run: Run, known: Known, verdict: ChangeVerdict, processed: Processed, before: Before) -> list[Finding]:
    """The topology of the version that a change would make: near the change, or of all of it where the last version was not held to the same rules.

    Raises:
        CorruptError: a published file is damaged.
    """
    terms, rules = run.terms, _rules(run.terms)
    if rules is None:
        return []
    codes, settled = verdict.settled.codes, verdict.settled
    fresh = np.isin(codes, (classes.ADDED, classes.REPROCESSED)) | ((codes == classes.CHANGED) & settled.geometry)
    gone = np.isin(codes, (classes.REPROCESSED, classes.REMOVED)) | ((codes == classes.CHANGED) & settled.geometry)
    arriving, arriving_keys, rows = _arriving(verdict, terms.geometry, fresh)
    leaves = np.concatenate([run.delivery.candidates.hash[gone], run.delivery.removed_hash])
    carried, absent = _Staying(run, leaves), processed.absent(misshapen=False)
    if run.head is None or terms.parent.rekeyed:  # under other keys every row is stored anew, and none can have been refused
        breaches = topology.judge(arriving, rules, absent=absent)
    elif terms.parent.other_rules or (rules.rule_set == "planar" and _excused(run.head.manifest)):
        breaches = topology.judge(pa.concat_arrays([arriving, carried(None)]), rules, absent=absent)
    else:
        going = np.unique(np.concatenate([before.partition[gone], known.partition[run.delivery.removed]]))
        leaving = carried.leaving({verdict.names[code] for code in going.tolist()})
        if not len(arriving) and not len(leaving):
            return []
        breaches = topology.judge_change(arriving, leaving, carried, rules, absent=absent)
    number = run.delivery.candidates.row

    def name(places: Ints) -> list[tuple[str | None, int | None]]:
        new = places < len(arriving)
        texts = np.empty(len(places), dtype=object)
        texts[new] = keys.ids_of(arriving_keys.take(pa.array(places[new]))).to_pylist()
        texts[~new] = keys.ids_of(carried.keys.take(pa.array(places[~new] - len(arriving)))).to_pylist()
        of = [int(number[rows[place]]) if place < len(rows) else None for place in places.tolist()]
        return list(zip(texts.tolist(), of, strict=True))

    return topology.findings(breaches, rules, name)


def _rules(prepared: Prepared) -> Rules | None:
    return topology.rules_of(prepared.contract, metres=prepared.projection.metres, geographic=prepared.projection.geographic)


def _excused(last: Manifest) -> bool:
    """Whether the last version may leave ground uncovered that was no gap then, since a rejected feature belongs there; a rollback keeps no count."""
    return last.counts.get("rejected", 0) > 0 or last.rollback is not None


def _arriving(verdict: ChangeVerdict, geometry: str, fresh: npt.NDArray[np.bool_]) -> tuple[Any, Any, Ints]:
    """Stored geometry and key bytes of the rows that are new or have another geometry, and which candidates they are."""
    shapes, names, rows = [], [], [np.zeros(0, np.int64)]
    for spool in verdict.settled.ready:
        for batch in spool.batches():
            row = np.asarray(batch.column(ROW))
            at = np.flatnonzero(fresh[row])
            shapes.append(batch.column(geometry).take(pa.array(at)))
            names.append(batch.column(KEY).take(pa.array(at)))
            rows.append(row[at])
    return _one(shapes), _one(names), np.concatenate(rows)


class _Staying:
    """The published features that a change leaves alone, read from the files that can hold them. `keys` are the key bytes of those read last."""

    def __init__(self, run: Run, leaving: Halves) -> None:
        self._run = run
        self._gone = leaving[sort_by_hash(leaving)]
        terms = run.terms
        schema = terms.layout.row_schema
        self._geometry = terms.geometry
        self._schema = pa.schema([schema.field(name) for name in (*terms.reading.key_columns, terms.geometry)])
        self.keys = pa.array([], pa.binary())

    def __call__(self, boxes: Boxes | None) -> pa.Array:
        """The geometries, as a binary array; of features that meet one of the boxes (k, 4), or of all."""
        shapes, names = [], []
        tree = None if boxes is None else box_tree(boxes)
        for file in self._run.files:
            if tree is not None and (file.bbox is None or not len(meeting(tree, np.array([file.bbox])))):
                continue
            rows = self._read(file, geometry=True)
            if tree is not None:  # most rows of a file lie nowhere near, and need no key
                rows = rows.take(pa.array(meeting(tree, kernel.scan(rows.column(self._geometry)).bounds)))
            canonical, _ = keys.key_bytes(rows, self._run.terms.reading.key_columns)
            stays = pa.array(find(self._gone, halves(hashing.blake2b16(canonical))) < 0)
            shapes.append(_one(rows.column(self._geometry).chunks).filter(stays))
            names.append(canonical.filter(stays))
        self.keys = _one(names)
        return _one(shapes)

    def leaving(self, partitions: set[str]) -> Any:
        """The geometries of the features that leave, from the partitions that held them."""
        shapes = []
        for file in self._run.files:
            if file.partition in partitions:
                canonical, _ = keys.key_bytes(self._read(file, geometry=False), self._run.terms.reading.key_columns)
                gone = np.flatnonzero(find(self._gone, halves(hashing.blake2b16(canonical))) >= 0)
                if len(gone):
                    shapes += self._read(file, geometry=True).column(self._geometry).take(pa.array(gone)).chunks
        return _one(shapes)

    def _read(self, file: DataFile, *, geometry: bool) -> Any:
        """The rows of a file: key columns, and the geometry where it is asked for."""
        schema = self._schema if geometry else self._schema.remove(self._schema.get_field_index(self._geometry))
        return read_rows(self._run.store, [file], schema).combine_chunks()


def _one(parts: Iterable[Any]) -> pa.Array:
    """Binary arrays as one."""
    return pa.concat_arrays([*(each.cast(pa.binary()) for each in parts), pa.array([], pa.binary())])
