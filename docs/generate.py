"""Write the reference pages that are made from the code, each in its place (`make docs`); a test holds what is committed to it.

Not here: what the pages say. The words stand in the code: help texts in `merestone.cli`, docstrings of the public library and of what it
answers, the error tree, the definitions of contract and lineage.
"""

# ruff: noqa: INP001 - a script beside the pages that it writes, no package

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import merestone
from merestone import errors
from merestone.api import lineage
from merestone.api.schemas import CLASSES
from merestone.api.schemas import json_schema as answer_schema
from merestone.cli.edge import EXIT_INTERRUPTED, EXIT_TERMINATED
from merestone.cli.examples import EXAMPLES
from merestone.cli.family import Family
from merestone.cli.main import root
from merestone.contract.reference_page import reference
from merestone.contract.schema import json_schema
from merestone.lineage.event.schema import SCHEMA
from merestone.results import json_form
from merestone.rules.reference_page import reference as findings_page

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
from examples_of_names import EXAMPLES_OF_TYPES  # noqa: E402 - beside this script

MADE = "<!-- Made from the code by `make docs`; a test compares. Do not edit. -->"
FIELDS_BEGIN, FIELDS_END = "<!-- fields: compiled from lineage_schema.yaml -->\n", "<!-- end of fields -->"

SHARED = frozenset({"as_json", "quiet", "verbose"})
"""Options that every command has; the head of the page explains them."""

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
        DOCS / "reference" / "api.md": api_page(),
        **{DOCS / "reference" / schema_file(name): _json(answer_schema(name)) for name in (*CLASSES, "contract schema", "error")},
        DOCS / "reference" / "errors.md": errors_page(),
        DOCS / "reference" / "contract.md": reference(),
        DOCS / "reference" / "findings.md": findings_page(),
        DOCS / "reference" / "contract.schema.json": _json(json_schema()),
        lineage: before + FIELDS_BEGIN + SCHEMA.to_markdown() + FIELDS_END + after,
        DOCS / "spec" / "lineage.schema.json": _json(SCHEMA.to_json_schema()),
    }


def schema_file(command: str) -> str:
    """Where the schema of a command's object stands, below docs/reference."""
    return f"schemas/{command.replace(' ', '-')}.schema.json"


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
        "error. Each section names the JSON Schema of its object. A command that could not run prints",
        '`{"status": "error", "error": {"kind", "message", "field", "hint"}}` ([errors](errors.md)). The same values are what the functions of',
        "[the library](api.md) answer.",
        "",
        "`-q` prints nothing but answers and faults, so a run that went well is silent. `-v` prints each stage with its time. At a terminal a",
        "line on standard error shows the stage, its rows, their rate and the time left.",
        "",
        "Every option has an environment variable, `MERESTONE_<COMMAND>_<OPTION>`: `MERESTONE_PUBLISH_SOURCE` for `merestone publish --source`,",
        "`MERESTONE_LINEAGE_RETAIN_WINDOW` for `merestone lineage retain --window`. The option goes before the variable; a flag is switched on by 1.",
        "",
        "`merestone --debug COMMAND ...` keeps the traceback of an unexpected fault in a file. `merestone --version` prints the version and",
        "the kernel in use.",
    ]
    for name, command in commands():
        out += ["", f"## merestone {name}", "", "```", _usage(name, command), "```", "", *_paragraphs(command.help)]
        out += ["", f"Example: `{EXAMPLES[name]}`"]
        rows = [_row(each) for each in command.params if isinstance(each, click.Option) and not each.hidden and each.name not in SHARED]
        if rows:
            out += ["", "| option | |", "|---|---|", *rows]
        out += ["", f"With `--json`: {', '.join(f'`{each}`' for each in names_of(name))} ([schema]({schema_file(name)}))."]
    out += [
        "",
        "## Later versions",
        "",
        'These names are taken; they answer "not in this version" with exit code 2: ' + ", ".join(f"`{each}`" for each in later()) + ".",
    ]
    return "\n".join(out) + "\n"


def names_of(command: str) -> list[str]:
    """The names in the object of a command, in their order; those of the usual answer where there are several."""
    if command == "contract schema":
        return list(json_schema())
    return [json_form.name_of(each) for each in json_form.fields(CLASSES[command][0])]


def _paragraphs(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").strip().splitlines()]


def _usage(name: str, command: click.Command) -> str:
    parts = []
    for each in command.params:
        if isinstance(each, click.Argument):
            parts.append(str(each.metavar))
        elif isinstance(each, click.Option) and not each.hidden and each.name not in {"quiet", "verbose"}:
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
        "`MerestoneError` with `kind`, `exit_code`, `retry`, `message`, `field` and `hint`. With `--json` the names kind, retry,",
        "message, field and hint stand in `error`. Kinds and exit codes are an interface: they are only ever added.",
        "",
        "A refused delivery is not an error but a result: exit code 1, with findings.",
        "",
        "| exit code | kind | in Python | retry helps | meaning |",
        "|---|---|---|---|---|",
    ]
    out += [f"| {code} | | | | {meaning} |" for code, meaning in EXIT_CODES.items()]
    for each in kinds():
        out.append(f"| {each.exit_code} | `{each.kind}` | `{each.__name__}` | {'yes' if each.retry else ''} | {_sentence(each)} |")
    out.append(f"| {EXIT_INTERRUPTED} | `interrupted` | `KeyboardInterrupt` | | Ctrl-C; the message says which version is current. |")
    out.append(f"| {EXIT_TERMINATED} | `interrupted` | | | SIGTERM; the message says which version is current. |")
    return "\n".join(out) + "\n"


def _sentence(kind: type[errors.MerestoneError]) -> str:
    return " ".join((kind.__doc__ or "").split())


# --- the library -----------------------------------------------------------------------------------------------------------------------

LINEAGE = tuple(name for name in lineage.__all__ if inspect.isfunction(getattr(lineage, name)))
"""The functions about lineage."""
_SECTIONS = ("Args", "Returns", "Raises", "Example", "Attributes")


def public() -> Iterator[tuple[str, Any]]:
    """Every public name with what it stands for, functions first."""
    found = [(f"merestone.{name}", getattr(merestone, name)) for name in merestone.__all__ if name != "__version__"]
    found += [(f"merestone.api.lineage.{name}", getattr(lineage, name)) for name in LINEAGE]
    yield from sorted(
        found, key=lambda each: (inspect.isclass(each[1]), not callable(each[1]), each[0].startswith("merestone.api."), each[0])
    )


def example_of(name: str, value: Any) -> str:
    """The example of a public name, as doctest has it: its own, or that of `EXAMPLES_OF_TYPES`."""
    short = name.rpartition(".")[2]
    return EXAMPLES_OF_TYPES.get(short) or parts(inspect.getdoc(value) or "").get("Example", "")


def parts(text: str) -> dict[str, str]:
    """A docstring by section; the words before the first section are under ""."""
    found, name = {"": ""}, ""
    for line in text.splitlines():
        head = line.removesuffix(":")
        if line.endswith(":") and head in _SECTIONS:
            name = head
            found[name] = ""
        else:
            found[name] += line + "\n"
    return {each: inspect.cleandoc(words) for each, words in found.items()}


def api_page() -> str:
    """docs/reference/api.md."""
    out = [
        "# Python: reference",
        "",
        MADE,
        "",
        "`import merestone` offers these names; they load on first use. What a function answers is what the command of the same name prints with",
        "`--json`. Refusals are answers, with `refused` true; a question that could not be answered is a `MerestoneError`",
        "([errors](errors.md)). Paths may be text or `os.PathLike`; a dataset is a folder, a URL, a publication file, or what `merestone.open`",
        "gives. [How to use it](../how-to/use-in-python.md) shows a whole task.",
        "",
        "Every example runs as a test, in a folder that holds `parcels.yaml`, `parcels.contract.yaml`, the deliveries `sunday.geojson` and",
        "`monday.geojson`, and the dataset at the state that the example needs.",
    ]
    for name, value in public():
        out += ["", f"## {name}", ""]
        out += _of_class(value) if inspect.isclass(value) else _of_function(name, value) if callable(value) else [_constant(value)]
        example = example_of(name, value)
        if example:
            out += ["", "```pycon", *example.splitlines(), "```"]
    return "\n".join(out) + "\n"


def _constant(value: Any) -> str:
    return f"A value of type `{type(value).__module__.split('.')[0]}.{type(value).__qualname__}`: the columns of lineage events."


def _of_function(name: str, value: Any) -> list[str]:
    found = parts(inspect.getdoc(value) or "")
    out = ["```python", f"{name}{_signature(value)}", "```", "", *found[""].splitlines()]
    for section in ("Args", "Returns", "Raises"):
        if found.get(section):
            out += (
                ["", f"{section}:", "", *_listed(found[section])]
                if section != "Returns"
                else ["", "Returns: " + " ".join(found[section].split())]
            )
    return out


def _of_class(value: Any) -> list[str]:
    found = parts(value.__doc__ or "")
    out = inspect.cleandoc(found[""]).splitlines()
    if issubclass(value, errors.MerestoneError):
        return [*out, "", f"Kind `{value.kind}`, exit code {value.exit_code}."]
    if dataclasses.is_dataclass(value) and "Attributes" in found:
        hints = {each.name: each for each in dataclasses.fields(value)}
        described = json_form.described(value)
        out += ["", "| attribute | type | in JSON | |", "|---|---|---|---|"]
        for each, field in hints.items():
            json_name = f"`{json_form.name_of(field)}`" if field in json_form.fields(value) else ""
            out.append(f"| `{each}` | `{_kind(field.type)}` | {json_name} | {described.get(each, '')} |")
    methods = [
        (each, member)
        for each, member in vars(value).items()
        if each[0] != "_" and (inspect.isfunction(member) or isinstance(member, property)) and inspect.getdoc(member)
    ]
    if methods:
        out += ["", "| member | |", "|---|---|"]
    for each, member in methods:
        spelt = each if isinstance(member, property) else f"{each}{_signature(member)}"
        words = " ".join(parts(inspect.getdoc(member) or "")[""].split())
        out.append(f"| `{spelt}` | {words} |".replace("| None", "\\| None") if "| None" in spelt else f"| `{spelt}` | {words} |")
    return out


def _kind(text: Any) -> str:
    return str(text).replace(" | ", " or ")


def _signature(value: Any) -> str:
    """The signature as the code writes it, without the types that a reader would have to look up."""
    text = str(inspect.signature(value)).replace("self, ", "").replace("(self)", "()")
    text = re.sub(r"<function nobody at 0x[0-9a-f]+>", "nobody", text)
    return text.replace("'", "")


def _listed(text: str) -> list[str]:
    """`name: words` entries as a list."""
    out: list[str] = []
    for line in text.splitlines():
        entry = re.match(r"(?P<name>[\w, ]+): (?P<words>.*)", line)
        if entry and not line.startswith(" "):
            out.append(f"- `{entry['name']}`: {entry['words']}")
        elif out:
            out[-1] += " " + line.strip()
    return out


def main() -> None:
    """Write what differs, and say so."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")


if __name__ == "__main__":
    main()
