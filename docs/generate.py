"""Write the reference pages that are made from the code, each in its place (`make docs`); a test holds what is committed to it.

Not here: what the pages say. The words stand in the code: help texts in `merestone.cli`, the error tree, the definitions of contract and
lineage. Only the names of the JSON objects are listed here; a test runs the commands and compares.
"""

# ruff: noqa: INP001 - a script beside the pages that it writes, no package

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from merestone import errors
from merestone.cli.edge import EXIT_INTERRUPTED
from merestone.cli.examples import EXAMPLES
from merestone.cli.family import Family
from merestone.cli.main import root
from merestone.contract.reference import reference
from merestone.contract.schema import json_schema
from merestone.lineage.event.schema import SCHEMA

DOCS = Path(__file__).parent
MADE = "<!-- Made from the code by `make docs`; a test compares. Do not edit. -->"
FIELDS_BEGIN, FIELDS_END = "<!-- fields: compiled from lineage_schema.yaml -->\n", "<!-- end of fields -->"

JSON_NAMES = {
    "init": ("status", "contract", "publication", "notes", "next"),
    "publish": (
        "status",
        "refused_by",
        "version",
        "features",
        "delivered",
        "delta",
        "unchanged",
        "rejected",
        "held",
        "files_written",
        "files_carried",
        "bytes_written",
        "rows_written",
        "partitions_touched",
        "partitions",
        "run_id",
        "confirm",
        "findings",
    ),
    "check": ("status", "findings", "axes"),
    "diagnose": ("status", "fault", "remedy", "rows", "steps"),
    "diff": ("status", "before", "after", "delta", "unchanged", "findings", "not_compared", "notes", "html", "out"),
    "read": ("type", "name", "version", "features"),
    "files": ("name", "version", "url", "files"),
    "changes": ("name", "from", "to", "delta", "unchanged", "findings", "html", "out"),
    "apply": ("status", "name", "from", "to", "onto", "delta", "features", "set_digest", "expected", "version", "findings"),
    "log": ("url", "versions"),
    "status": (
        "name",
        "url",
        "version",
        "time_utc",
        "features",
        "contract_version",
        "fresh_utc",
        "since",
        "versions",
        "live_bytes",
        "old_bytes",
        "loose_bytes",
        "suppressed_share",
    ),
    "rollback": ("status", "name", "version", "to", "reason", "features", "delta", "run_id", "withdrawn"),
    "verify": ("url", "status", "versions", "objects", "bytes", "rows", "damages", "orphans"),
    "contract lint": ("status", "contract_version", "errors", "warnings", "confirm", "messages"),
    "contract schema": ("$schema", "title", "description", "type", "additionalProperties", "properties", "required"),
    "contract show": ("contract", "sha256"),
    "contract infer": ("status", "contract", "text", "key", "notes"),
    "lineage summary": (
        "name",
        "version",
        "run_id",
        "attempts",
        "run_date",
        "sealed_utc",
        "schema_version",
        "plan",
        "tool",
        "root",
        "total_events",
        "passed",
        "rejected",
        "warned",
        "features",
        "features_passed",
        "features_rejected",
        "features_warned",
        "stages",
        "reasons",
        "sealed_events",
        "deduplication",
        "expired",
    ),
    "lineage why": ("feature_id", "name", "version", "present", "partition", "since", "versions", "runs"),
    "lineage iso19115": ("status", "identifier", "version", "encoding", "steps", "sources", "out", "xml"),
    "lineage scorecard": ("name", "status", "thresholds", "runs", "html", "junit"),
    "lineage history": ("name", "feature_id", "events", "deduplication", "out"),
    "lineage rejects": ("name", "count", "events", "out"),
    "lineage runs": ("name", "runs"),
    "lineage query": ("name", "count", "events", "out"),
    "lineage check-complete": ("status", "name", "runs", "features", "gaps"),
    "lineage ingest": ("status", "lines", "events", "quarantined", "runs", "known", "quarantine", "samples"),
    "lineage retain": ("status", "window", "basis", "first_kept", "prefixes", "bytes", "leftover", "confirm", "tombstone", "holds"),
    "lineage openlineage": ("run_id", "version", "events", "out"),
    "lineage prov": ("run_id", "version", "document", "out"),
    "lineage prove": (
        "format",
        "dataset",
        "version",
        "feature_id",
        "run_id",
        "attempt",
        "root",
        "run_manifest",
        "run_manifest_sha256",
        "proofs",
        "out",
    ),
    "lineage evidence": ("name", "version", "run_id", "root", "manifest_sha256", "evidence_sha256", "files", "out"),
    "lineage validate-schema": ("status", "faults"),
    "lineage check-partitions": ("status", "problems"),
}
"""Command to the names in its object, in order; what an option adds is left out (`keys`, `duckdb`, `vrt`; `crs`, `columns`, `out`)."""

EXIT_CODES = {
    errors.EXIT_DONE: "Done, or unchanged.",
    errors.EXIT_REFUSED: "Refused by the contract or stopped by a guard; for checks, the subject fails.",
}


def pages() -> dict[Path, str]:
    """Every generated file with its text."""
    lineage = DOCS / "spec" / "lineage.md"
    before, _, rest = lineage.read_text(encoding="utf-8").partition(FIELDS_BEGIN)
    _, _, after = rest.partition(FIELDS_END)
    return {
        DOCS / "reference" / "cli.md": cli_page(),
        DOCS / "reference" / "errors.md": errors_page(),
        DOCS / "reference" / "contract.md": reference(),
        DOCS / "reference" / "contract.schema.json": _json(json_schema()),
        lineage: before + FIELDS_BEGIN + SCHEMA.to_markdown() + FIELDS_END + after,
        DOCS / "spec" / "lineage.schema.json": _json(SCHEMA.to_json_schema()),
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


# --- the command line ------------------------------------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that works, by its full name ("contract lint"), in the order of `merestone --help`."""
    context = click.Context(root, info_name="merestone")
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if isinstance(command, Family):
            inner = click.Context(command, info_name=name, parent=context)
            for sub in command.list_commands(inner):
                found = command.get_command(inner, sub)
                if found is not None:
                    yield f"{name} {sub}", found
        elif command is not None:
            yield name, command


def later() -> Iterator[str]:
    """The full names of the commands of later versions."""
    context = click.Context(root, info_name="merestone")
    yield from root.later
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if isinstance(command, Family):
            yield from (f"{name} {each}" for each in command.later)


def cli_page() -> str:
    """docs/reference/cli.md."""
    out = ["# Command line: reference", "", MADE, "", *_paragraphs(root.help), ""]
    out += [
        "`--json`, which every command has, prints exactly one object on standard output, whatever happens; all else goes to standard",
        'error. A command that could not run prints `{"status": "error", "error": {"kind", "message", "field", "hint"}}`',
        "([errors](errors.md)).",
        "",
        "`merestone --debug COMMAND ...` keeps the traceback of an unexpected fault in a file. `merestone --version` prints the version.",
    ]
    for name, command in commands():
        out += ["", f"## merestone {name}", "", "```", _usage(name, command), "```", "", *_paragraphs(command.help)]
        out += ["", f"Example: `{EXAMPLES[name]}`"]
        rows = [_row(each) for each in command.params if isinstance(each, click.Option) and not each.hidden and each.name != "as_json"]
        if rows:
            out += ["", "| option | |", "|---|---|", *rows]
        out += ["", f"With `--json`: {', '.join(f'`{each}`' for each in JSON_NAMES[name])}."]
    out += [
        "",
        "## Later versions",
        "",
        'These names are taken; they answer "not in this version" with exit code 2: ' + ", ".join(f"`{each}`" for each in later()) + ".",
    ]
    return "\n".join(out) + "\n"


def _paragraphs(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").strip().splitlines()]


def _usage(name: str, command: click.Command) -> str:
    parts = []
    for each in command.params:
        if isinstance(each, click.Argument):
            parts.append(str(each.metavar))
        elif isinstance(each, click.Option) and not each.hidden:
            spelt = f"{each.opts[0]}{_value(each)}"
            parts.append(spelt if each.required else f"[{spelt}]")
    return " ".join(["merestone", name, *parts])


def _value(option: click.Option) -> str:
    if option.is_flag:
        return ""
    return " " + ("|".join(option.type.choices) if isinstance(option.type, click.Choice) else str(option.metavar))


def _row(option: click.Option) -> str:
    value = _value(option).replace("|", "\\|")
    default = f" Default: {option.default}." if option.show_default else ""
    return f"| `{option.opts[0]}{value}` | {option.help}{default}{' Required.' if option.required else ''} |"


# --- errors ----------------------------------------------------------------------------------------------------------------------------


def kinds() -> list[type[errors.MerestoneError]]:
    """Every kind of error, by exit code."""
    return sorted(errors.MerestoneError.__subclasses__(), key=lambda each: each.exit_code)


def errors_page() -> str:
    """docs/reference/errors.md."""
    out = [
        "# Errors and exit codes: reference",
        "",
        MADE,
        "",
        "A command that could not answer ends with one of these kinds. In Python they are exceptions in `merestone.errors`, all of them",
        "`MerestoneError` with `kind`, `exit_code`, `retry`, `message`, `field` and `hint`. With `--json` the names kind, message, field",
        "and hint stand in `error`. Kinds and exit codes are an interface: they are only ever added.",
        "",
        "A refused delivery is no error but a result: exit code 1, with findings.",
        "",
        "| exit code | kind | in Python | retry helps | meaning |",
        "|---|---|---|---|---|",
    ]
    out += [f"| {code} | | | | {meaning} |" for code, meaning in EXIT_CODES.items()]
    for each in kinds():
        out.append(f"| {each.exit_code} | `{each.kind}` | `{each.__name__}` | {'yes' if each.retry else ''} | {_sentence(each)} |")
    out.append(f"| {EXIT_INTERRUPTED} | `interrupted` | `KeyboardInterrupt` | | Ctrl-C; the message says which version is current. |")
    return "\n".join(out) + "\n"


def _sentence(kind: type[errors.MerestoneError]) -> str:
    return " ".join((kind.__doc__ or "").split())


def main() -> None:
    """Write what differs, and say so."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")


if __name__ == "__main__":
    main()
