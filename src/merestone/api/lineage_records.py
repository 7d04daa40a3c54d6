"""Lineage for others: ISO records, OpenLineage, PROV, proofs, evidence, and the head that answers for all of it.

Not here: how they are written (`render`), what they say (`audit`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path as File
from typing import Literal

from merestone.api.lineage_answers import (
    EvidenceResult,
    HeadResult,
    Iso19115Result,
    OpenLineageResult,
    ProblemsResult,
    ProveResult,
    ProvResult,
)
from merestone.api.places import AnyDataset, Path, keep_apart, text_of, whole
from merestone.audit import evidence_file, facts, heads, iso, questions
from merestone.errors import InternalError, SourceError
from merestone.inspect.output import write_text, written_whole
from merestone.render import iso19115 as iso_text
from merestone.render import openlineage as openlineage_text
from merestone.render import prov as prov_text
from merestone.render.iso19115_extend import encoding_of, extend
from merestone.render.iso19115_lint import lint, read_record
from merestone.results.json_form import to_json
from merestone.storage.place import local_path


def head(dataset: AnyDataset, *, out: Path | None = None) -> HeadResult:
    """Give the head of a dataset's record: kept in another place, it answers for every version and run until now.

    Print it, sign it, or store it under an object lock; `merestone.verify` with this file then finds also a newest run that has gone.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        out: write the head to this file.

    Raises:
        UsageError: nothing was ever published or sealed there.

    Example:
        >>> made = lineage.head("parcels.yaml", out="head.json")
        >>> merestone.verify("parcels.yaml", head="head.json").status
        'whole'
    """
    keep_apart({"out": out}, [dataset])
    opened = whole(dataset)
    found = heads.head_of(opened)
    named = None if out is None else os.fspath(out)
    result = HeadResult(
        heads.FORMAT,
        questions.name_of(opened),
        found.version,
        list(found.runs),
        list(found.objects),  # type: ignore[arg-type]  # `Head.objects` has these names
        found.digest,
        named,
    )
    if out is not None:
        write_text(out, json.dumps(to_json(result), ensure_ascii=False, indent=1) + "\n")
    return result


def iso19115(
    dataset: AnyDataset,
    *,
    run_id: str | None = None,
    encoding: Literal["gmd", "mdb"] = "gmd",
    extends: Path | None = None,
    out: Path | None = None,
) -> Iso19115Result:
    """Write the lineage of a version or a run as an ISO 19115 metadata record. The record is checked before it is written.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_id: a run, also a refused one, in place of a version.
        encoding: gmd (ISO 19139) or mdb (ISO 19115-3).
        extends: put the lineage into this metadata record, in its own encoding.
        out: write the record to this file.

    Raises:
        UsageError: no such version or run exists.
        SourceError: the record to extend cannot be read, or is not a metadata record.

    Example:
        >>> lineage.iso19115("parcels.yaml", encoding="mdb").encoding
        'mdb'
    """
    keep_apart({"out": out}, [dataset, extends])
    named = text_of(dataset)
    record = iso.record_of_version(named) if run_id is None else iso.record_of_run(named, run_id)
    used: str = encoding
    if extends is not None:
        data = _bytes(extends)
        used = _encoding(data, os.fspath(extends))
        text = extend(data, record, os.fspath(extends))
    else:
        text = iso_text.render(record, encoding)
        if problems := lint(read_record(text.encode(), "the record")):
            raise InternalError(f"the record fails its own check: {'; '.join(problems)}", hint="please report this")
    if out is not None:
        write_text(out, text)
    return Iso19115Result(
        identifier=record.identifier,
        version=record.version,
        encoding=used,
        steps=len(record.steps),
        sources=len(record.sources),
        out=None if out is None else os.fspath(out),
        xml=text if out is None else None,
        text=text,
    )


def lint_iso19115(file: Path) -> ProblemsResult:
    """Check an ISO 19115 metadata record for what its XML schemas let through. XML with a DOCTYPE is never read.

    Raises:
        SourceError: the file cannot be read or is not XML.

    Example:
        >>> made = lineage.iso19115("parcels.yaml", out="record.xml")
        >>> lineage.lint_iso19115("record.xml").status
        'pass'
    """
    problems = lint(read_record(_bytes(file), os.fspath(file)))
    return ProblemsResult("fail" if problems else "pass", list(problems))


def openlineage(dataset: AnyDataset, *, run_id: str | None = None, out: Path | None = None) -> OpenLineageResult:
    """Give a run as OpenLineage events: START, then COMPLETE or FAIL.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_id: a run, also a refused one; by default the one that made the version.
        out: write the events to this file, one a line.

    Raises:
        UsageError: no such run exists.

    Example:
        >>> [each["eventType"] for each in lineage.openlineage("parcels.yaml").events]
        ['START', 'COMPLETE']
    """
    keep_apart({"out": out}, [dataset])
    found = facts.facts_of(text_of(dataset), run_id)
    made = openlineage_text.events(found, f"urn:merestone:{found.written_by}")
    text = openlineage_text.ndjson(made)
    if out is not None:
        write_text(out, text)
    return OpenLineageResult(found.run_id, found.version, list(made), None if out is None else os.fspath(out), text)


def prov(dataset: AnyDataset, *, run_id: str | None = None, out: Path | None = None) -> ProvResult:
    """Give a run as W3C PROV, in its JSON form.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        run_id: a run, also a refused one; by default the one that made the version.
        out: write the document to this file.

    Raises:
        UsageError: no such run exists.

    Example:
        >>> "activity" in lineage.prov("parcels.yaml").document
        True
    """
    keep_apart({"out": out}, [dataset])
    found = facts.facts_of(text_of(dataset), run_id)
    document = prov_text.document(found)
    text = prov_text.text(document)
    if out is not None:
        write_text(out, text)
    return ProvResult(found.run_id, found.version, document, None if out is None else os.fspath(out), text)


def prove(dataset: AnyDataset, feature_id: str, *, run_id: str | None = None, out: Path | None = None) -> ProveResult:
    """Prove that what is said of a feature is part of a sealed run, by Merkle inclusion proofs of its events.

    Whoever has the root of the run from elsewhere verifies the proof with a short script that needs no Merestone.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        feature_id: the key as messages write it.
        run_id: the run; by default the newest one up to the version that met the feature.
        out: write the proof to this file, and the script beside it.

    Raises:
        UsageError: no such run, or no run of a version met the feature.
        CorruptError: the lineage is not what was sealed.

    Example:
        >>> len(lineage.prove("parcels.yaml", "p2").proofs) > 0
        True
    """
    beside = "" if out is None else str(File(out).parent / evidence_file.VERIFIER)
    keep_apart({"out": out, "the script beside it": beside or None}, [dataset])
    found = evidence_file.proof_of(text_of(dataset), feature_id, run_id)
    text = json.dumps(found, ensure_ascii=False, indent=1)
    if out is not None:
        write_text(out, text + "\n")
        write_text(beside, evidence_file.verifier())
    return ProveResult(**found, out=None if out is None else os.fspath(out), text=text, verifier=beside)


def evidence(dataset: AnyDataset, *, out: Path) -> EvidenceResult:
    """Write all that stands behind a version into one ZIP file, with a script that verifies it.

    It holds the contract, the chain of manifests, run records, sealed run manifests, ISO records, the verdict and the roots.

    Args:
        dataset: a folder, a URL, a publication file (each with or without @N), or an opened dataset.
        out: the ZIP file.

    Raises:
        UsageError: no such version exists.
        CorruptError: what the version names is missing or altered.

    Example:
        >>> lineage.evidence("parcels.yaml", out="evidence.zip").files > 3
        True
    """
    keep_apart({"out": out}, [dataset])
    with written_whole(os.fspath(out)) as place:
        return EvidenceResult(**evidence_file.evidence(text_of(dataset), place), out=os.fspath(out))


def _encoding(data: bytes, path: str) -> str:
    found = encoding_of(read_record(data, path))
    if found is None:
        raise SourceError(
            f"{path} is not a metadata record: its root is neither gmd:MD_Metadata nor mdb:MD_Metadata",
            field=path,
            hint="give a record of ISO 19139 or ISO 19115-3",
        )
    return found


def _bytes(path: Path) -> bytes:
    try:
        return File(local_path(os.fspath(path), what="a record")).read_bytes()
    except OSError as fault:
        raise SourceError(
            f"{os.fspath(path)} cannot be read: {fault.strerror or fault}", field=os.fspath(path), hint="check the path and its permissions"
        ) from fault
