"""Answers of the lineage commands in words, for a person at a terminal.

Not here: `summary` and `why` (`words`), machine output (the commands themselves).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from merestone.report.text import plural, visible


def iso_written(value: dict[str, Any]) -> str:
    """An ISO record that was written."""
    what = f"version {value['version']}" if value["version"] is not None else "the run"
    return f"{value['out']}: ISO record of {what} ({value['encoding']}), {plural(value['steps'], 'step')}, {plural(value['sources'], 'source')}"


def problems(name: str, found: Sequence[str], sound: str) -> str:
    """A check of something: its problems, one a line, or that it is sound."""
    if not found:
        return f"{name} {sound}"
    return "\n".join([f"{name} has {plural(len(found), 'problem')}:", *(f"  {visible(each)}" for each in found)])


def proved(value: dict[str, Any], out: str, script: str) -> str:
    """A proof that was written."""
    return "\n".join([
        f"{out}: {plural(len(value['proofs']), 'event')} of {visible(value['feature_id'])} in run {value['run_id']}, root {value['root']}",
        f"  next       python {script} {out} {value['root']}",
    ])


def evidence(value: dict[str, Any]) -> str:
    """An evidence file that was written."""
    return "\n".join([
        f"{value['out']}: evidence for {value['name']} v{value['version']}, {plural(value['files'], 'file')}",
        f"  next       unpack it, then: python verify_lineage.py . {value['manifest_sha256']}",
    ])
