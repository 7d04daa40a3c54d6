"""Contracts from files: the only module of this room that does I/O.

Not here: versions on a shared store, which come with the registry proper; what a contract says (`parse`), whether it is wise (`lint`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path  # noqa: TID253 - this module alone reads contract files

from merestone.contract.contract import Contract
from merestone.contract.lint import LintMessage, lint
from merestone.contract.parse import parse
from merestone.document.forms import SHOWN_PROBLEMS, Problem
from merestone.document.yaml_reader import MAX_BYTES, Document, read_yaml
from merestone.errors import UsageError
from merestone.storage.place import local_path

_STAMP_LIKE = re.compile(r"(?:.*[:/@])?v[0-9]+\.[0-9]+\.[0-9]+-crs:EPSG:.*")


def read_document(path: str, *, what: str = "file") -> Document:
    """Read a YAML or JSON file.

    Args:
        path: the file.
        what: what the file is, for messages.

    Raises:
        UsageError: the file is missing or cannot be read, or cannot be read as YAML (see `yaml_reader.read_yaml`).
    """
    return read_yaml(_bytes(path, what), path)


def _bytes(path: str, what: str) -> bytes:
    try:
        with Path(local_path(path, what=f"a {what}")).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError as fault:
        raise UsageError(f"{what} {path} does not exist", field=path, hint=f"check the path; «draft(SOURCE)» drafts a {what}") from fault
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise UsageError(f"{what} {path} cannot be read: {reason}", field=path, hint="check the path and its permissions") from fault


def read_contract(path: str) -> Contract:
    """Read a contract that can be published against.

    Raises:
        UsageError: the file is missing or broken, or the contract has problems or lint errors, all of which are reported; or `path` is a
            stamp, which only a registry could resolve.
    """
    contract, messages = examine(path)
    errors = [Problem(each.path, each.message, each.hint, each.line) for each in messages if each.level == "error"]
    if contract is None or errors:
        raise refusal(path, "contract", errors)
    return contract


def examine(path: str) -> tuple[Contract | None, tuple[LintMessage, ...]]:
    """Everything there is to say about a contract file: None and its errors where it cannot be read as a contract.

    Raises:
        UsageError: the file is missing, a publication file, or not a valid YAML document.
    """
    if _STAMP_LIKE.fullmatch(path) and not Path(local_path(path, what="a contract")).exists():
        raise UsageError(f"contract {path} is a stamp in a registry: not in this version", field=path, hint="name the contract's file")
    return _examined(_bytes(path, "contract"), path)


@lru_cache(maxsize=8)
def _examined(data: bytes, path: str) -> tuple[Contract | None, tuple[LintMessage, ...]]:
    """Bytes that this process has met before are not parsed again: one publication asks for its contract two or three times."""
    document = read_yaml(data, path)
    if "contract_version" not in document.tree and {"contract", "destination"} <= document.tree.keys():
        raise UsageError(f"{path} is a publication file, not a contract", field=path, hint=f"its contract is {document.tree['contract']}")
    parsed = parse(document)
    if isinstance(parsed, Contract):
        return parsed, lint(parsed, document)
    return None, tuple(LintMessage("error", each.path, each.message, each.hint, each.line) for each in parsed)


def refusal(path: str, what: str, problems: list[Problem]) -> UsageError:
    """All problems of one file as one error."""
    if len(problems) == 1:
        message = f"{what} {path}: {problems[0]}"
    else:
        shown = [f"  {problem}" + (f" ({problem.hint})" if problem.hint else "") for problem in problems[:SHOWN_PROBLEMS]]
        if len(problems) > SHOWN_PROBLEMS:
            shown.append(f"  and {len(problems) - SHOWN_PROBLEMS} more")
        message = "\n".join([f"{what} {path} has {len(problems)} problems:", *shown])
    if len(problems) == 1:
        hint = problems[0].hint
    elif what == "contract":
        hint = f"correct them and check with «lint({path})»"
    else:
        hint = "correct them and try again"
    return UsageError(message, field=problems[0].path or path, hint=hint)
