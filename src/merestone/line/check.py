"""A delivery against its contract, without publishing: the same steps as a first publish, up to the verdict on the delivery.

Not here: the steps (`prepare`, `receive`, `process`), guards, which judge a change and not a delivery.
"""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from merestone.contract.contract import Contract
from merestone.contract.files import read_contract
from merestone.dataset.current import current
from merestone.dataset.history import lines
from merestone.dataset.known import Known
from merestone.dataset.version import Version
from merestone.engine.port import Engine
from merestone.engine.threads import Threads
from merestone.errors import InternalError
from merestone.gate import raster as gate_raster
from merestone.gate.delivery import far_out, no_rows, rejected_share
from merestone.line import environment
from merestone.line.finding_places import Passes, layer, places_of, shown, write_layer
from merestone.line.judging.delivery_promises import delivery_promises
from merestone.line.preparing.prepare import prepare
from merestone.line.preparing.prepared import Prepared
from merestone.line.processing.neighbourhood import judge_delivery
from merestone.line.processing.process import Processed, process_stream
from merestone.line.receiving.receive import Received, Reception, stream, without_consequences, without_missing
from merestone.line.receiving.row_evidence import RowEvidence
from merestone.line.settings import CheckSettings
from merestone.publication.publication import CrsRule, KeyRule, PartitionRule, Publication
from merestone.reference.systems import horizontal, of_code
from merestone.render.findings_page import page
from merestone.results.finding import Finding
from merestone.results.progress import Watch, staged
from merestone.results.result import AxisOrder, CheckResult, NotJudged
from merestone.rules.catalogue import RULES
from merestone.source.port import Source, SourceSpec, UnreadableValueError
from merestone.source.raster import read_raster
from merestone.storage.open import open_store
from merestone.storage.place import local_path


def of_contract(delivery: str, contract: str, layer: str | None = None) -> Publication:
    """A publication for a delivery that has only a contract: strict in everything.

    Raises:
        UsageError: the contract is missing or broken.
    """
    place = local_path(delivery, what="a delivery")
    agreed = read_contract(contract)
    return Publication(
        path=place,
        name=agreed.name or Path(delivery).stem,
        contract=local_path(contract, field="contract", what="a contract"),
        source=SourceSpec(place, layer=layer),
        destination="",
        key=KeyRule(agreed.key),
        partition=PartitionRule(by="none"),
        crs=CrsRule(
            missing_grids="fallback"
        ),  # another CRS is refused anyway; a grid that is missing here must not hide what else is wrong
    )


def of_version(version: Version, shown: str, contract: str) -> Publication:
    """A publication for a published version that a consumer holds to a contract: what was added since does not count against it.

    Raises:
        UsageError: the contract is missing or broken.
    """
    return Publication(
        path=shown,
        name=version.manifest.name,
        contract=local_path(contract, field="contract", what="a contract"),
        source=SourceSpec(shown),
        destination="",
        key=KeyRule.of_manifest(version.manifest.key, published=True),
        partition=PartitionRule(by="none"),
        extra_columns="warn",
        crs=CrsRule(missing_grids="fallback"),
    )


def check(
    publication: Publication, settings: CheckSettings, *, source: Source | None = None, engine: Engine | None = None
) -> tuple[CheckResult, str | None]:
    """Judge a delivery as `publish` would, over every row, whatever is published.

    Args:
        publication: how the delivery is read and under which contract.
        settings: how the check is called.
        source: the rows, in place of the publication's source.
        engine: what carries out the units of the passes; threads on all cores by default.

    Returns:
        The result, and the HTML page where it was asked for.

    Raises:
        MerestoneError: the delivery could not be checked (it cannot be read, the contract is broken, a grid is missing).
    """
    clock = time.perf_counter()
    agreed = read_contract(publication.contract)
    if agreed.geometry_type == "raster":
        return _raster(publication, agreed, settings, clock)
    store = open_store(publication.destination) if publication.destination else None
    last = current(store) if store is not None else None
    now = settings.now or environment.now()
    versions = lines(store, last) if store is not None and last is not None else ()
    prepared = prepare(publication, None, source, evidence=last, versions=versions, now=now)
    findings = [*prepared.findings]
    if prepared.unreadable and not prepared.columnless:
        return _ended(publication, prepared, findings, settings, clock)
    evidence = RowEvidence(hold=False) if settings.drawn or agreed.topology_rule_set != "none" else None
    engine = engine or Threads(environment.cores())
    with environment.scratch() as folder:
        try:
            with staged(settings.progress, "pass 1", prepared.source.delivery.rows):
                received, processed = _passes(prepared, folder, engine, evidence, settings.progress)
        except UnreadableValueError as fault:
            return _ended(publication, prepared, [*findings, fault.finding], settings, clock)
        if received.rows == 0 and prepared.columnless:
            findings = without_missing(findings)
        elif prepared.unreadable:
            return _ended(publication, prepared, findings, settings, clock)
        findings = [
            *received.places.placed(findings),
            *received.findings,
            *delivery_promises(prepared, received, now, last, environment.modified(publication.source.path) if source is None else None),
        ]
        findings += [each for each in (no_rows(received.rows, allowed=settings.allow_empty),) if each is not None]
        with staged(settings.progress, "topology"):
            topology = judge_delivery(prepared, received.candidates, processed, engine)
        rows = without_consequences(received, [*received.tally.findings(), *processed.tally.findings()])
        findings += [*far_out(rows, received.rows), *topology.findings]
        found = (received, processed, topology, evidence or RowEvidence(hold=False))
        return _ended(publication, prepared, findings, settings, clock, found)


def _passes(prepared: Prepared, folder: str, engine: Engine, evidence: RowEvidence | None, watch: Watch) -> tuple[Received, Processed]:
    """Both passes at once, a batch going through the second as soon as the first is done with it: what is judged is not kept.

    Args:
        prepared: the values of the check.
        folder: the scratch folder.
        engine: what carries out the units.
        evidence: takes the rows at fault, where rows are looked at again: their topology, or their places.
        watch: is called after each batch.

    Raises:
        SourceError: the delivery breaks off or cannot be decoded.
    """
    reception = Reception(prepared, Known.nothing(), folder, watch=watch)
    # The first pass is the lighter half: on two cores the reading thread does it between two batches.
    batches = stream(reception, folder, engine.share(engine.workers // 2), prepared.candidate_schema)
    processed = process_stream(prepared, batches, folder, engine, evidence=evidence)
    if reception.received is None:
        raise InternalError("a check ends only after all rows are read")
    return reception.received, processed


def _ended(
    publication: Publication,
    prepared: Prepared,
    findings: list[Finding],
    settings: CheckSettings,
    clock: float,
    passes: Passes | None = None,
) -> tuple[CheckResult, str | None]:
    """The result, and what is made of its places. `passes` is what reading the rows found, None where they could not be read."""
    rows, refused = (passes[0].rows, int(passes[1].rejected.sum())) if passes else (0, 0)
    too_many = rejected_share(refused, rows, publication.rejects.max_fraction)
    findings = findings if too_many is None else [*findings, too_many]
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
        not_judged=_not_judged(prepared),
        axes={name: AxisOrder(decision=each.decision, evidence=list(each.evidence)) for name, each in passes[0].verdicts.items()}
        if passes
        else {},
    )
    if not settings.drawn:
        return result, None
    places = places_of(prepared, ordered, passes)
    if settings.errors is not None:
        write_layer(layer(places, ordered), settings.errors, prepared.contract.crs_epsg)
    if not settings.page:
        return result, None
    projection = prepared.projection
    return result, page(result, shown(places, prepared, passes), crs=projection.crs, geographic=projection.geographic)


def _not_judged(prepared: Prepared) -> tuple[NotJudged, ...]:
    """The rules on keys, where neither contract nor publication names one."""
    if prepared.reading.names_features:
        return ()
    rules = tuple(each.name for each in RULES if each.columns == ("key",) and each.refuses != "nothing" and each.clauses == ("key",))
    return (
        NotJudged(
            rules,
            "the contract names no key. `publish` needs one: add `key: COLUMN`, a column whose value identifies a feature in every delivery",
        ),
    )


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
    places = places_of(None, ordered, None)
    if settings.errors is not None:
        write_layer(layer(places, ordered), settings.errors, agreed.crs_epsg)
    shown_on = (
        page(
            result,
            shown(places, None, None),
            crs=f"EPSG:{agreed.crs_epsg}",
            geographic=bool(horizontal(of_code(agreed.crs_epsg)).is_geographic),
        )
        if settings.page
        else None
    )
    return result, shown_on
