"""Published rows that stay though what was delivered for them was not taken: judged under the contract in force.

Not here: reading them (`published_rows`), candidates (`process_batch`), the topology of rows near a change (`neighbourhood`).

While the rules are those of the last version its rows were judged by them. Under other rules a row that is delivered is judged as a
candidate, and a row that stays is judged here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merestone.change.classes import Comparison
from merestone.contract.contract import Contract
from merestone.gate import feature
from merestone.gate.findings import reasons, rejected
from merestone.geometry import kernel
from merestone.identity import key as keys
from merestone.line.preparing.prepared import Prepared
from merestone.line.receiving.row_places import at_place, middles
from merestone.results.finding import SAMPLES, Finding, RowFaults, Sample
from merestone.rules import catalogue
from merestone.words import listed

Limits = tuple[float, float, float, float]


def unless_broken(contract: Contract, limits: Limits | None, rows: pa.Table, found: Comparison) -> Comparison:
    """A comparison in which published rows that break the contract in force keep nothing: what was delivered is stored in their place.

    Args:
        contract: the contract in force.
        limits: where its CRS is valid.
        rows: the n published rows, pyarrow.Table.
        found: how the delivered ones differ from them.
    """
    if not rows.num_rows:
        return found
    good = ~rejected(_faults(contract, limits, rows)[1], rows.num_rows)
    return replace(found, suppressed=found.suppressed & good, kept=tuple((name, mask & good) for name, mask in found.kept))


def judge_held(prepared: Prepared, rows: pa.Table, delivered: npt.NDArray[np.int32]) -> Finding | None:
    """The finding about rows that would stay in place of rejected ones, and break the contract in force; None where there are none.

    Args:
        prepared: the contract and its rules.
        rows: the published rows, pyarrow.Table.
        delivered: (n,) the row of the delivery that each stands in for, from 1.
    """
    scan, faults = _faults(prepared.contract, prepared.projection.limits, rows)
    at = np.flatnonzero(rejected(faults, rows.num_rows))
    if not len(at):
        return None
    shown = at[:SAMPLES]
    ids = keys.feature_ids(rows, prepared.parent.published.key_columns).take(pa.array(shown)).to_pylist()
    why = reasons(faults, rows.num_rows, severity="error").take(pa.array(shown)).to_pylist()
    samples = tuple(
        at_place(Sample(name, int(delivered[row]), observed=said), *place)
        for name, row, said, place in zip(ids, shown.tolist(), why, middles(scan.bounds[shown]).tolist(), strict=True)
    )
    return catalogue.HELD_ROW.finding(
        "",
        count=len(at),
        features=samples,
        stamp=prepared.contract.contract_version,
        rows=listed([f"{each.id} ({each.observed})" for each in samples[:3]], len(at)),
    )


def _faults(contract: Contract, limits: Limits | None, rows: pa.Table) -> tuple[kernel.Scan, list[RowFaults]]:
    geometry = rows.column(contract.geometry_name).combine_chunks().cast(pa.binary())
    scan = kernel.scan(geometry)
    return scan, feature.check_rows(rows, contract, delivered=scan, stored=scan, canonical=geometry, limits=limits)
