"""Topology in the line: which features are judged together, over a whole delivery and near a change of a dataset.

Not here: the rules and their words (`gate.topology`), the judgement itself (`judge_topology`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change import classes
from merestone.change.classes import Before
from merestone.dataset.known import Halves, Known, sort_by_hash
from merestone.dataset.manifest import Manifest
from merestone.engine.port import Engine
from merestone.identity import key as keys
from merestone.later import later
from merestone.line.comparing.key_order import key_bytes
from merestone.line.judging.change_verdict import ChangeVerdict
from merestone.line.preparing.prepared import Prepared
from merestone.line.preparing.reading import KEY
from merestone.line.processing.process import Processed
from merestone.line.receiving.candidates import Candidates
from merestone.line.run import Run
from merestone.results.finding import Finding
from merestone.scratch.spool import ROW

if TYPE_CHECKING:
    from merestone.gate import topology
    from merestone.gate.topology import Breach, Ints, Name, Rules
    from merestone.line.processing import judge_topology as near
else:
    topology = later("merestone.gate.topology")
    near = later("merestone.line.processing.judge_topology")


@dataclass(frozen=True, slots=True)
class TopologyOfDelivery:
    """The topology of a delivery: its findings, and the breaches with all of their places, which are rows of the spool of pass 2."""

    findings: list[Finding]
    breaches: list[Breach]
    name: Name


def judge_delivery(prepared: Prepared, candidates: Candidates, processed: Processed, engine: Engine) -> TopologyOfDelivery:
    """The topology of a delivery by itself, over all rows whose geometry is good."""

    def name(places: Ints) -> list[tuple[str | None, int | None]]:
        asked, at = np.unique(places, return_inverse=True)
        texts = prepared.reading.ids_of(key_bytes(processed.spool, asked)).to_pylist()
        return [(texts[place], int(candidates.row[row])) for place, row in zip(at.tolist(), places.tolist(), strict=True)]

    rules = _rules(prepared)
    if rules is None:
        return TopologyOfDelivery([], [], name)
    geometry = [batch.column(prepared.geometry) for batch in processed.spool.batches()]
    good = np.flatnonzero(~processed.misshapen)
    unit = near.TopologyUnit(rules, near.joined_binary(geometry).take(pa.array(good)), processed.absent(misshapen=True))
    [found] = engine.run_units(near.judge_topology, [unit])
    breaches = [replace(each, one=_spooled(good, each.one), other=_spooled(good, each.other)) for each in found.breaches]
    return TopologyOfDelivery(topology.findings(breaches, rules, name), breaches, name)


def _spooled(good: Ints, places: Ints) -> Ints:
    """Places among the good rows as rows of the spool; -1 stays."""
    out: Ints = np.where(places >= 0, good[places], -1) if len(good) else places
    return out


def judge_version(run: Run, known: Known, verdict: ChangeVerdict, processed: Processed, before: Before) -> list[Finding]:
    """The topology of the version that a change would make: near the change, or of all where the last version was not held to the same rules.

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
    whole = terms.parent.other_rules or (run.head is not None and rules.rule_set == "planar" and _excused(run.head.manifest))
    staying, left = _staying(run, leaves), None
    if staying is not None and not whole:
        going = np.unique(np.concatenate([before.partition[gone], known.partition_of(run.delivery.removed)]))
        left = frozenset(verdict.names[code] for code in going.tolist())
        if not len(arriving) and not left:
            return []
    unit = near.TopologyUnit(rules, arriving, processed.absent(misshapen=False), staying, left)
    [found] = run.engine.run_units(near.judge_topology, [unit])
    number = run.delivery.candidates.row

    def name(places: Ints) -> list[tuple[str | None, int | None]]:
        new = places < len(arriving)
        texts = np.empty(len(places), dtype=object)
        texts[new] = keys.ids_of(arriving_keys.take(pa.array(places[new]))).to_pylist()
        texts[~new] = keys.ids_of(found.keys.take(pa.array(np.searchsorted(found.places, places[~new])))).to_pylist()
        of = [int(number[rows[place]]) if place < len(rows) else None for place in places.tolist()]
        return list(zip(texts.tolist(), of, strict=True))

    return topology.findings(found.breaches, rules, name)


def _rules(prepared: Prepared) -> Rules | None:
    if prepared.contract.topology_rule_set == "none":
        return None
    return topology.rules_of(prepared.contract, metres=prepared.projection.metres, geographic=prepared.projection.geographic)


def _excused(last: Manifest) -> bool:
    """Whether the last version may leave ground uncovered that was no gap then, since a rejected feature belongs there; a rollback keeps no count."""
    return last.counts.get("rejected", 0) > 0 or last.rollback is not None


def _arriving(verdict: ChangeVerdict, geometry: str, fresh: npt.NDArray[np.bool_]) -> tuple[pa.Array, pa.Array, Ints]:
    """Stored geometry and key bytes of the rows that are new or have another geometry, and which candidates they are."""
    shapes, names, rows = [], [], [np.zeros(0, np.int64)]
    for spool in verdict.settled.ready:
        for batch in spool.batches():
            row = np.asarray(batch.column(ROW))
            at = np.flatnonzero(fresh[row])
            shapes.append(batch.column(geometry).take(pa.array(at)))
            names.append(batch.column(KEY).take(pa.array(at)))
            rows.append(row[at])
    return near.joined_binary(shapes), near.joined_binary(names), np.concatenate(rows)


def _staying(run: Run, leaves: Halves) -> near.Staying | None:
    """The published features that a change leaves alone; None before the first version, and under other keys, where every row is stored anew."""
    terms = run.terms
    if run.head is None or terms.parent.rekeyed:  # under other keys none can have been refused
        return None
    names, schema = terms.reading.key_columns, terms.layout.row_schema
    wanted = pa.schema([schema.field(name) for name in (*names, terms.geometry)])
    return near.Staying(run.store.url, run.files, wanted, names, terms.geometry, leaves[sort_by_hash(leaves)])
