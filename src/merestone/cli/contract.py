"""The commands `contract lint | schema | show | infer`.

Not here: what a contract is and what is unwise in one (`contract`).
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click

from merestone.cli import edge, options, words
from merestone.cli.family import Family
from merestone.contract.body import body
from merestone.contract.files import examine, read_contract, read_document
from merestone.contract.schema import json_schema
from merestone.draft.init import draft, new_file
from merestone.errors import EXIT_DONE, EXIT_REFUSED
from merestone.inspect import browse
from merestone.inspect.output import check_outputs
from merestone.storage.place import local_path
from merestone.words import visible

LATER = {
    "export": "`merestone contract schema` prints the JSON Schema of the document",
    "diff": "",
    "docs": "`merestone contract show FILE` shows a contract",
    "import": "",
    "publish": "a publication file names its contract's file",
    "list": "",
    "pin": "",
    "notices": "",
    "deprecate": "",
}


@click.group(cls=Family, later=LATER)
def contract() -> None:
    """Check and show contracts."""


@contract.command()
@click.argument("file", metavar="FILE")
@options.as_json
def lint(file: str, as_json: bool) -> int:
    """Say what is wrong or unwise in a contract file.

    Exit 1 where there are errors; warnings and marks to confirm alone exit 0.
    """
    agreed, messages = examine(file)
    found = Counter(each.level for each in messages)
    value = {
        "status": "fail" if found["error"] else "pass",
        "contract_version": str(agreed.contract_version) if agreed else None,
        "errors": found["error"],
        "warnings": found["warning"],
        "confirm": found["confirm"],
        "messages": [each.to_json() for each in messages],
    }
    edge.answer(value, words.linted(file, value), as_json=as_json)
    return EXIT_REFUSED if found["error"] else EXIT_DONE


@contract.command()
@options.as_json
def schema(as_json: bool) -> int:
    """Print the JSON Schema of the contract document (draft 2020-12), with or without --json."""
    found = json_schema()
    edge.answer(found, json.dumps(found, ensure_ascii=False, indent=2), as_json=as_json)
    return EXIT_DONE


@contract.command("show")
@click.argument("target", metavar="FILE|DATASET[@N]")
@options.as_json
def shown(target: str, as_json: bool) -> int:
    """Show a contract as it is published, defaults filled in: that of a file, or of a version of a dataset."""
    value = _of_file(target) if _is_contract(target) else _of_version(target)
    edge.answer(value, words.contract(value), as_json=as_json)
    return EXIT_DONE


@contract.command("infer")
@options.drafted
@click.option("--out", metavar="FILE", help="Write the contract to a new file, in place of standard output.")
@options.as_json
def inferred(
    source: str, layer: str | None, crs: str | None, key: list[str], previous: str | None, owner: str | None, out: str | None, as_json: bool
) -> int:
    """Draft a contract from the header and the rows of a delivery; guesses are marked `# confirm`.

    What a person should know stands on standard error. `merestone init` writes a publication file too.
    """
    check_outputs({"--out": out}, [source, previous])
    made = draft(source, layer=layer, crs=crs, key=key, previous=previous, owner=owner)
    for each in made.notes:
        edge.note(f"note: {visible(each)}")
    if out is not None:
        new_file(out, made.text)
    value = {"status": "done", "contract": out, "text": made.text, "key": list(made.key), "notes": list(made.notes)}
    edge.answer(
        value,
        made.text.rstrip("\n") if out is None else f"drafted {out}\n  next: merestone check {source} --contract {out}",
        as_json=as_json,
    )
    return EXIT_DONE


def _is_contract(target: str) -> bool:
    """A file that is no publication file."""
    return Path(local_path(target)).is_file() and "destination" not in read_document(target, what="contract").tree


def _of_file(path: str) -> dict[str, Any]:
    agreed = read_contract(path)
    return {"contract": body(agreed), "sha256": agreed.digest}


def _of_version(text: str) -> dict[str, Any]:
    manifest = browse.version_at(text).manifest
    return {"contract": manifest.contract, "sha256": manifest.contract_sha256}
