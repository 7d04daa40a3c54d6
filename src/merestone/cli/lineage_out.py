"""The commands `lineage iso19115 | openlineage | prov | prove | evidence`: lineage for others.

Not here: the formats (`render`), where the facts come from (`audit.iso`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from merestone.audit import evidence_file, facts, iso
from merestone.cli import edge, lineage_words, options
from merestone.errors import EXIT_DONE, EXIT_REFUSED, InternalError, SourceError, UsageError
from merestone.inspect.output import check_outputs, written_whole
from merestone.render import iso19115
from merestone.render import openlineage as ol
from merestone.render import prov as w3c
from merestone.render.iso19115_extend import encoding_of, extend
from merestone.render.iso19115_lint import lint, read_record
from merestone.storage.place import local_path


@click.command("iso19115")
@click.argument("dataset", metavar="DATASET[@N]", required=False)
@click.option("--run", "run_id", metavar="ID", help="The record of one run, refused ones too, in place of a version's.")
@click.option(
    "--encoding",
    type=click.Choice(iso19115.ENCODINGS),
    default=iso19115.GMD,
    show_default=True,
    help="gmd is ISO 19139, mdb is ISO 19115-3.",
)
@click.option("--extend", "existing", metavar="FILE", help="Put the lineage into this metadata record, in the record's own encoding.")
@click.option("--out", metavar="FILE", help="Write the record to this file; by default it is printed.")
@click.option("--lint", "linted", metavar="FILE", help="Check a record instead: what its XML schemas let through. Exit 1 on faults.")
@options.as_json
def iso19115_record(
    dataset: str | None,
    run_id: str | None,
    encoding: str,
    existing: str | None,
    out: str | None,
    linted: str | None,
    as_json: bool,
) -> int:
    """Write the lineage of a version or a run as an ISO 19115 metadata record.

    The record is checked before it is written. XML with a DOCTYPE is never read.
    """
    if linted is not None:
        return _lint(linted, as_json=as_json)
    if dataset is None:
        raise UsageError("no dataset is named", field="DATASET[@N]", hint="merestone lineage iso19115 --help")
    check_outputs({"--out": out}, [dataset, existing])
    record = iso.record_of_version(dataset) if run_id is None else iso.record_of_run(dataset, run_id)
    if existing is not None:
        data = _bytes(existing)
        encoding = _encoding(data, existing)
        text = extend(data, record, existing)
    else:
        text = iso19115.render(record, encoding)
        if problems := lint(read_record(text.encode(), "the record")):
            raise InternalError(f"the record fails its own check: {'; '.join(problems)}", hint="please report this")
    value: dict[str, Any] = {
        "status": "written",
        "identifier": record.identifier,
        "version": record.version,
        "encoding": encoding,
        "steps": len(record.steps),
        "sources": len(record.sources),
        "out": out,
    }
    if out is not None:
        _write(out, text)
        shown = lineage_words.iso_written(value)
    else:
        value["xml"] = text
        shown = text.rstrip("\n")
    edge.answer(value, shown, as_json=as_json)
    return EXIT_DONE


def _lint(path: str, *, as_json: bool) -> int:
    problems = lint(read_record(_bytes(path), path))
    edge.answer(
        {"status": "fail" if problems else "pass", "problems": problems},
        lineage_words.problems(path, problems, "is a sound record"),
        as_json=as_json,
    )
    return EXIT_REFUSED if problems else EXIT_DONE


def _encoding(data: bytes, path: str) -> str:
    found = encoding_of(read_record(data, path))
    if found is None:
        raise SourceError(
            f"{path} is no metadata record: its root is neither gmd:MD_Metadata nor mdb:MD_Metadata",
            field=path,
            hint="give a record of ISO 19139 or ISO 19115-3",
        )
    return found


def _bytes(path: str) -> bytes:
    try:
        return Path(local_path(path, what="a record")).read_bytes()
    except OSError as fault:
        raise SourceError(
            f"{path} cannot be read: {fault.strerror or fault}", field=path, hint="check the path and its permissions"
        ) from fault


@click.command()
@options.dataset
@click.argument("feature", metavar="FEATURE")
@click.option("--run", "run_id", metavar="ID", help="A run; by default the newest one, up to the version, that met the feature.")
@click.option(
    "--out", metavar="FILE", help="Write the proof to this file, and the script that verifies it beside it; by default it is printed."
)
@options.as_json
def prove(dataset: str, feature: str, run_id: str | None, out: str | None, as_json: bool) -> int:
    """Prove that what is said of a feature is part of a sealed run: Merkle inclusion proofs of its events.

    Whoever has the run's root from elsewhere verifies the proof with a short script that needs no Merestone.
    """
    beside = None if out is None else str(Path(out).parent / evidence_file.VERIFIER)
    check_outputs({"--out": out, "the script beside it": beside}, [dataset])
    found = evidence_file.proof_of(dataset, feature, run_id)
    if out is not None and beside is not None:
        _write(out, json.dumps(found, ensure_ascii=False, indent=1) + "\n")
        _write(beside, evidence_file.verifier())
        edge.answer({**found, "out": out}, lineage_words.proved(found, out, beside), as_json=as_json)
    else:
        edge.answer({**found, "out": None}, json.dumps(found, ensure_ascii=False, indent=1), as_json=as_json)
    return EXIT_DONE


@click.command()
@options.dataset
@click.option("--out", metavar="FILE", required=True, help="The ZIP file to write.")
@options.as_json
def evidence(dataset: str, out: str, as_json: bool) -> int:
    """Write all that stands behind a version into one ZIP file, with a script that verifies it.

    It holds the contract, the chain of manifests, run records, sealed run manifests, ISO records, the verdict and the roots.
    """
    check_outputs({"--out": out}, [dataset])
    with written_whole(out) as place:
        value = {**evidence_file.evidence(dataset, place), "out": out}
    edge.answer(value, lineage_words.evidence(value), as_json=as_json)
    return EXIT_DONE


def _write(path: str, text: str) -> None:
    with written_whole(path) as place:
        Path(place).write_text(text, encoding="utf-8", newline="\n")


_run = click.option("--run", "run_id", metavar="ID", help="A run, refused ones too; by default the one that made the version.")


@click.command()
@options.dataset
@_run
@click.option("--out", metavar="FILE", help="Write the events to this file, one a line; by default they are printed.")
@options.as_json
def openlineage(dataset: str, run_id: str | None, out: str | None, as_json: bool) -> int:
    """Tell a run as OpenLineage events: START, then COMPLETE or FAIL."""
    check_outputs({"--out": out}, [dataset])
    found = facts.facts_of(dataset, run_id)
    told = ol.events(found, f"urn:merestone:{found.tools.get('merestone', 'unknown')}")
    return _told({"run_id": found.run_id, "version": found.version, "events": told}, ol.ndjson(told), out, as_json=as_json)


@click.command()
@options.dataset
@_run
@click.option("--out", metavar="FILE", help="Write the document to this file; by default it is printed.")
@options.as_json
def prov(dataset: str, run_id: str | None, out: str | None, as_json: bool) -> int:
    """Tell a run as W3C PROV, in its JSON form."""
    check_outputs({"--out": out}, [dataset])
    found = facts.facts_of(dataset, run_id)
    document = w3c.document(found)
    return _told({"run_id": found.run_id, "version": found.version, "document": document}, w3c.text(document), out, as_json=as_json)


def _told(value: dict[str, Any], text: str, out: str | None, *, as_json: bool) -> int:
    if out is not None:
        _write(out, text)
    edge.answer({**value, "out": out}, text.rstrip("\n") if out is None else f"{out}: run {value['run_id']}", as_json=as_json)
    return EXIT_DONE
