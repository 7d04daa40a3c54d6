"""The facts of one run for other catalogues, gathered from run manifest, run record and version.

Not here: how they are written (`render.openlineage`, `render.prov`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePath

from merestone.audit import questions
from merestone.dataset.record import read_records
from merestone.errors import UsageError
from merestone.inspect import browse
from merestone.json_value import JsonObject
from merestone.lineage.store import steps
from merestone.lineage.store.run_manifest import RunManifest, attempts_of, attempts_that_count
from merestone.lineage.store.verdict import verdict
from merestone.lineage.store.writing import ROOT
from merestone.render.run_facts import ForeignFacts, RunFacts, StepFacts


def facts_of(text: str, run_id: str | None) -> RunFacts:
    """The facts of the run that made a version, or of the run that is named.

    Args:
        text: DATASET[@N].
        run_id: a run, refused ones too.

    Raises:
        UsageError: no such dataset, version or sealed run.
        CorruptError: what they name cannot be read.
    """
    address = browse.parse_address(text)
    dataset = browse.open_dataset(address.where)
    if run_id is None:
        run_id, _ = browse.run_of(dataset.version(address.version))
    attempts = attempts_that_count(attempts_of(dataset.store, run_id))
    last = attempts[-1]
    paths = {each.path for each in attempts}
    known = questions.version_of(dataset, paths)
    made = dataset.manifest(known.version) if known is not None else None
    done = steps.run_steps(dataset.store, attempts, ROOT)
    record = next((each for each in reversed(read_records(dataset.store, run_id))), None)
    about: JsonObject = last.doc.get("about") or {}
    source: JsonObject = about.get("source") or {}
    sealed = datetime.fromisoformat(last.sealed_utc)
    foreign = _foreign(dataset.url, last, verdict(dataset.store, attempts)) if last.foreign else None
    started = (
        datetime.fromisoformat(record.started_utc)
        if record is not None
        else min((each.first for each in done if each.first), default=sealed)
    )
    ended = datetime.fromisoformat(record.ended_utc) if record is not None and record.ended_utc else sealed
    if foreign is not None:
        record = None
        started, ended = _times(attempts, sealed)
    if not done and made is None and record is None and foreign is None:
        raise UsageError(f"run {run_id!r} holds no events", field="run_id", hint="«lineage.runs(DATASET)» lists the runs")
    delivery = record.delivery if record is not None else {}
    return RunFacts(
        namespace=dataset.url,
        name=about.get("dataset") or questions.name_of(dataset),
        run_id=run_id,
        attempt=last.attempt,
        started=started,
        ended=ended,
        version=made.version if made else None,
        previous=made.parent if made else (record.parent_version if record else None),
        contract=about.get("contract_version"),
        delivery=PurePath(str(source["path"])).name if source.get("path") else None,
        delivery_rows=delivery.get("rows"),
        delivery_digest=delivery.get("set_digest"),
        delivery_crs=source.get("crs"),
        features=made.features if made else None,
        size=made.files.bytes if made else None,
        files=made.files.count if made else None,
        crs=f"EPSG:{made.contract['crs_epsg']}" if made else None,
        root=last.root,
        run_manifest=last.path,
        verdict=verdict(dataset.store, attempts),
        steps=tuple(
            StepFacts(
                each.stage,
                each.event_type,
                each.source_crs,
                each.target_crs,
                each.passed,
                each.warned,
                each.rejected,
                each.first or sealed,
                each.last or sealed,
                tuple(sorted(each.tools)),
            )
            for each in done
        ),
        tools=dict(last.doc.get("tool") or {}),
        fields=tuple((each["name"], each["type"]) for each in made.contract["schema_fields"]) if made else (),
        delta=dict(record.delta) if record is not None else {},
        foreign=foreign,
        findings=tuple(str(each["observed"]) for each in last.doc["findings"] if each.get("severity") == "error"),
        recorded_by=str(about.get("recorded_by") or ""),
    )


def _foreign(place: str, run: RunManifest, total: dict[str, int]) -> ForeignFacts:
    """What another program says of its run. Where it does not say how it ended, it completed, unless nothing of it passed."""
    about = run.doc["about"]
    job = about.get("job") or {"namespace": place, "name": run.run_id, "run": run.run_id}
    outcome = about.get("outcome")
    passed = bool(total["passed"] or total["warned"] or not total["rejected"])
    return ForeignFacts(
        job["namespace"],
        job["name"],
        job["run"],
        outcome == "complete" if outcome is not None else passed,
        about.get("reason"),
        tuple(about.get("inputs") or ()),
        tuple(about.get("outputs") or ()),
    )


def _times(attempts: Sequence[RunManifest], sealed: datetime) -> tuple[datetime, datetime]:
    """When a run of another program began and ended: as it says, but never after what happened in it; else when its events happened."""
    about = attempts[-1].doc["about"]
    firsts, lasts = (
        [datetime.fromisoformat(each.doc[name]) for each in attempts if each.doc.get(name)]
        for name in ("first_event_utc", "last_event_utc")
    )
    started = datetime.fromisoformat(about["started_utc"]) if about.get("started_utc") else None
    ended = datetime.fromisoformat(about["ended_utc"]) if about.get("ended_utc") else None
    first, last = min(firsts, default=started or sealed), max(lasts, default=ended or sealed)
    if started is None or ended is None or last < started:  # ingested later, for another day
        return first, last
    return min(started, first), max(ended, last)
