"""The one object that `--json` prints, for each command; the names are an interface (spec/publication.md).

Not here: what a person reads (`text`). Numbers that JSON lacks (NaN, infinity) are refused, never written.
"""

from __future__ import annotations

import json
import re
from typing import Any

from merestone.errors import MerestoneError
from merestone.results.result import ApplyResult, CheckResult, DiffResult, PublishResult

_CONTROL = re.compile(r"[\x7f-\x9f]")


def publish(result: PublishResult) -> dict[str, Any]:
    """The object of `publish --json`."""
    return {
        "status": result.status,
        "refused_by": result.refused_by,
        "version": result.version,
        "features": result.features,
        "delivered": result.delivered,
        "delta": result.delta.to_json(),
        "unchanged": result.unchanged,
        "rejected": result.rejected,
        "held": result.held,
        "files_written": result.files_written,
        "files_carried": result.files_carried,
        "bytes_written": result.bytes_written,
        "rows_written": result.rows_written,
        "partitions_touched": result.partitions_touched,
        "partitions": result.partitions,
        "run_id": result.run_id,
        "confirm": result.confirm,
        "findings": [finding.to_json() for finding in result.findings],
    }


def diff(result: DiffResult) -> dict[str, Any]:
    """The object of `diff --json`; `keys` only where they were asked for."""
    out: dict[str, Any] = {"delta": result.delta.to_json(), "unchanged": result.unchanged}
    if result.keys is not None:
        out["keys"] = {name: list(keys) for name, keys in result.keys.items()}
    out["findings"] = [finding.to_json() for finding in result.findings]
    return out


def apply(result: ApplyResult) -> dict[str, Any]:
    """The object of `apply --json`."""
    return {
        "status": result.status,
        "name": result.name,
        "from": result.start,
        "to": result.end,
        "onto": result.onto,
        "delta": result.delta.to_json(),
        "features": result.features,
        "set_digest": result.set_digest,
        "expected": result.expected,
        "version": result.version,
        "findings": [finding.to_json() for finding in result.findings],
    }


def check(result: CheckResult) -> dict[str, Any]:
    """The object of `check --json`."""
    return {"status": result.status, "findings": [finding.to_json() for finding in result.findings], "axes": dict(result.axes)}


def error(fault: MerestoneError) -> dict[str, Any]:
    """The object of a command that could not run."""
    return {"status": "error", "error": fault.to_json()}


def dumps(value: dict[str, Any]) -> str:
    """One line of JSON, UTF-8, without NaN, and without the control characters that JSON itself lets through (U+007F to U+009F)."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False, allow_nan=False))
