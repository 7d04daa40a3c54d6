"""A delivery against its contract, without publishing: the same steps as a first publish, up to the verdict on the delivery.

Not here: the steps (`prepare`, `receive`, `process`), guards, which judge a change and not a delivery.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from pyproj import CRS

from merestone.contract.contract import Contract
from merestone.contract.files import read_contract
from merestone.dataset.current import current
from merestone.dataset.known import Known
from merestone.errors import UsageError
from merestone.gate import delivery as gate_delivery
from merestone.gate import raster as gate_raster
from merestone.line import environment
from merestone.line.finding_places import layer, places_of, shown, write_layer
from merestone.line.neighbourhood import Judged, judge_delivery
from merestone.line.prepare import prepare
from merestone.line.prepared import Prepared
from merestone.line.process import Processed, process_parts
from merestone.line.receive import Received, Reception, without_consequences
from merestone.line.settings import CheckSettings
from merestone.publication.publication import CrsRule, KeyRule, PartitionRule, Publication
from merestone.render.findings_page import page
from merestone.results.finding import Finding
from merestone.results.result import CheckResult
from merestone.source.port import SourceSpec, UnreadableValueError
from merestone.source.raster import read_raster
from merestone.storage.open import open_store
from merestone.storage.place import local_path


def of_contract(delivery: str, contract: str, layer: str | None = None) -> Publication:
    """A publication for a delivery that has only a contract: strict in everything.

    Raises:
        UsageError: the contract is missing or broken, or names no key.
    """
    place = local_path(delivery, what="a delivery")
    agreed = read_contract(contract)
    if not agreed.key and agreed.geometry_type != "raster":
        raise UsageError(
            f"contract {contract} names no key, so that no feature can be told from another",
            field="key",
            hint="add `key: [COLUMN]` to the contract, or check the publication file, which may name it",
        )
    return Publication(
        path=place,
        name=agreed.name or Path(delivery).stem,
        contract=local_path(contract, field="--contract", what="a contract"),
        source=SourceSpec(place, layer=layer),
        destination="",
        key=KeyRule(agreed.key),
        partition=PartitionRule(by="none"),
        crs=CrsRule(
            missing_grids="fallback"
        ),  # another CRS is refused anyway; a grid that is missing here must not hide what else is wrong
    )


def check(publication: Publication, settings: CheckSettings) -> tuple[CheckResult, str | None]:
    """Judge a delivery as `publish` would, over every row, whatever is published.

    Args:
        publication: how the delivery is read and under which contract.
        settings: how the check is called.

    Returns:
        The result, and the HTML page where it was asked for.

    Raises:
        MerestoneError: the delivery could not be checked (it cannot be read, the contract is broken, a grid is missing).
    """
    clock = time.perf_counter()
    agreed = read_contract(publication.contract)
    if agreed.geometry_type == "raster":
        return _raster(publication, agreed, settings, clock)
    last = current(open_store(publication.destination)) if publication.destination else None
    prepared = replace(prepare(publication, None, evidence=last), compared=False)
    findings = [*prepared.findings]
    if prepared.unreadable:
        return _ended(publication, prepared, findings, settings, clock)
    with environment.scratch() as folder:
        keep = settings.drawn or agreed.topology_rule_set != "none"
        try:
            received, processed = _passes(prepared, folder, keep=keep)
        except UnreadableValueError as fault:
            return _ended(publication, prepared, [*findings, fault.finding], settings, clock)
        findings += [*received.findings, *_service(prepared, received, settings.now or environment.now())]
        judged = judge_delivery(prepared, received.candidates, processed)
        findings += [*without_consequences(received, [*received.tally.findings(), *processed.tally.findings()]), *judged.findings]
        return _ended(publication, prepared, findings, settings, clock, (received, processed, judged))


def _passes(prepared: Prepared, folder: str, *, keep: bool) -> tuple[Received, Processed]:
    """Both passes at once, a batch going through the second as soon as the first is done with it: what is judged is not kept.

    Args:
        prepared: settings and values of the check.
        folder: the scratch folder.
        keep: whether rows are looked at again: their topology, or their places.

    Raises:
        SourceError: the delivery breaks off or cannot be decoded.
    """
    reception, workers = Reception(prepared, Known.nothing()), environment.cores()
    while True:
        parts = reception.parts(workers=workers // 2)  # the lighter half; on two cores the reading thread does it between two batches
        processed = process_parts(prepared, parts, folder, workers=workers, keep=keep)
        received = reception.received(processed.spool)
        if not reception.suspects:
            return received, processed
        reception = reception.again()


def _ended(
    publication: Publication,
    prepared: Prepared,
    findings: list[Finding],
    settings: CheckSettings,
    clock: float,
    passes: tuple[Received, Processed, Judged] | None = None,
) -> tuple[CheckResult, str | None]:
    """The result, and what is made of its places. `passes` is what reading the rows found, None where they could not be read."""
    rows, refused = (passes[0].rows, int(passes[1].rejected.sum())) if passes else (0, 0)
    breach = any(each.severity == "error" and not each.per_row for each in findings)
    fails = breach or refused > publication.rejects.max_fraction * rows
    ordered = tuple(sorted(findings, key=lambda each: each.severity != "error"))
    result = CheckResult(
        settings.delivery,
        settings.contract,
        "fail" if fails else "pass",
        rows,
        ordered,
        time.perf_counter() - clock,
        drawn=settings.drawn,
        axes={name: each.to_json() for name, each in passes[0].verdicts.items()} if passes else {},
    )
    if not settings.drawn:
        return result, None
    table = places_of(prepared, ordered, passes)
    if settings.errors is not None:
        write_layer(layer(table, ordered), settings.errors, prepared.contract.crs_epsg)
    return result, page(result, shown(table, prepared, passes), crs=prepared.crs, geographic=prepared.geographic) if settings.page else None


def _raster(
    publication: Publication,
    agreed: Contract,
    settings: CheckSettings,
    clock: float,
) -> tuple[CheckResult, str | None]:
    """The same for a raster: what it says of itself is judged, its pixels are not read."""
    raster = read_raster(publication.source.path)
    described = gate_raster.as_delivery(raster, pa.schema([]), asserted=publication.source.crs)
    ordered = tuple(gate_raster.judge(agreed, raster, described))
    result = CheckResult(
        settings.delivery,
        settings.contract,
        "fail" if ordered else "pass",
        0,
        ordered,
        time.perf_counter() - clock,
        drawn=settings.drawn,
    )
    table = places_of(None, ordered, None) if settings.drawn else None
    if settings.errors is not None:
        write_layer(layer(table, ordered), settings.errors, agreed.crs_epsg)
    crs = CRS.from_epsg(agreed.crs_epsg)
    shown_on = (
        page(result, shown(table, None, None), crs=f"EPSG:{agreed.crs_epsg}", geographic=crs.is_geographic) if settings.page else None
    )
    return result, shown_on


def _service(prepared: Prepared, received: Received, now: datetime) -> list[Finding]:
    """What is judged once all rows are seen: how fresh they are, and how their edges are meant."""
    found = [gate_delivery.freshness(prepared.contract, now, newest=received.newest) if received.rows else None]
    if prepared.delivered_edges is not None:
        found.append(gate_delivery.edges(prepared.contract, prepared.delivered_edges))
    return [each for each in found if each is not None]
