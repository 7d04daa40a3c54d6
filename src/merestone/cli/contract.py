"""The commands `contract lint | schema | show | infer`.

Not here: what a contract is and what is unwise in one (`api.contracts`, `api.drafting`).
"""

from __future__ import annotations

import json

import click

from merestone.api import contracts
from merestone.cli import edge, options, words
from merestone.cli.family import Family
from merestone.errors import EXIT_DONE, EXIT_REFUSED
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
    """Check, draft and show contracts."""


@contract.command()
@click.argument("file", metavar="FILE")
@options.as_json
def lint(file: str, as_json: bool) -> int:
    """Say what is wrong or unwise in a contract file.

    Exit 1 where there are errors; warnings and marks to confirm alone exit 0.
    """
    result = contracts.lint(file)
    edge.answer(result, words.linted(file, result), as_json=as_json)
    return EXIT_REFUSED if result.refused else EXIT_DONE


@contract.command()
@options.as_json
def schema(as_json: bool) -> int:
    """Print the JSON Schema of the contract document (draft 2020-12), with or without --json."""
    found = contracts.contract_schema()
    edge.answer(found, json.dumps(found, ensure_ascii=False, indent=2), as_json=as_json)
    return EXIT_DONE


@contract.command("show")
@click.argument("target", metavar="FILE|DATASET[@N]")
@options.as_json
def shown(target: str, as_json: bool) -> int:
    """Show a contract as it is published, defaults filled in: that of a file, or of a version of a dataset."""
    result = contracts.show_contract(target)
    edge.answer(result, words.contract(result), as_json=as_json)
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
    from merestone.api import drafting  # noqa: PLC0415 - the other commands of the family read no delivery

    made = drafting.infer(source, layer=layer, crs=crs, key=key, previous=previous, owner=owner, out=out)
    for each in made.notes:
        edge.note(f"note: {visible(each)}")
    text = made.text.rstrip("\n") if out is None else f"drafted {out}\n  next: merestone check {source} --contract {out}"
    edge.answer(made, text, as_json=as_json)
    return EXIT_DONE
