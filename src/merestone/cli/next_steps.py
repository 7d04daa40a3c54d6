"""The next command after an answer, as a person would type it.

Not here: the answers in words (`render.text`, `words`), hints of errors (`wording`).
"""

from __future__ import annotations

import shlex

from merestone.api import places
from merestone.render.text import LISTED, row
from merestone.results.result import ApplyResult, CheckResult, PublishResult


def publish(result: PublishResult, file: str, command: str, look: str = "", confirm: str | None = None) -> list[str]:
    """What follows a publish.

    Args:
        result: what it answered.
        file: the publication file, as it was typed.
        command: what repeats the run, without a token.
        look: the command that shows the change at which a guard stopped.
        confirm: the token that the run came with.
    """
    if result.status == "refused":
        return _refused(result, command, look)
    if result.status == "planned":
        return [row("next", command + (f" --confirm {confirm}" if confirm is not None else ""))]
    if result.status == "unchanged":
        return []
    if result.current is None:
        return [row("next", f"merestone read {shlex.quote(file)}; tomorrow the same command on the next export")]
    return [row("next", f"merestone changes {shlex.quote(file)} --html v{result.version}.html")]


def _refused(result: PublishResult, command: str, look: str) -> list[str]:
    lines = [row("more", "--json lists every finding")] if len(result.findings) > LISTED else []
    if result.refused_by != "guard":
        return lines
    if look and any(each.surface == "guard" and each.rule not in ("withdrawn", "empty") for each in result.findings):
        lines.append(row("look", look))
    if not result.confirm:  # a dry run leaves nothing behind that a token could be held against
        return [*lines, row("next", f"{command}, which stops alike and gives the token to confirm it with")]
    against = f"against v{result.current} only" if result.current is not None else "only"
    until = f", until {result.expires}" if result.expires else ""
    return [
        *lines,
        f"  if meant: repeat with --confirm {result.confirm} (this delivery {against}{until})",
        row("confirm", f"{command} --confirm {result.confirm}"),
    ]


def look_at(file: str, source: str | None, current: int | None) -> str:
    """The command that shows what a guard stopped: the findings on a map, or once there is a version, the change.

    Empty where the delivery has to be mapped or asserted before it can be compared.

    Args:
        file: the publication file.
        source: the delivery, where the call named one.
        current: the version that is published.
    """
    if current is None:
        given = ["--source", source] if source is not None else []
        return shlex.join(["merestone", "check", file, *given, "--html", "findings.html"])
    publication = places.read_publication(file)
    spec = publication.source
    if publication.columns or spec.crs is not None or spec.encoding is not None or spec.geometry is not None:
        return ""
    layer = ["--layer", spec.layer] if spec.layer is not None else []
    return shlex.join(["merestone", "diff", file, source or places.as_typed(spec.path), *layer, "--html", "change.html"])


def check(result: CheckResult) -> list[str]:
    """What follows a check."""
    lines = [row("more", "--json lists every finding")] if len(result.findings) > LISTED else []
    if any(each.rule == "no_rows" for each in result.findings):
        lines.append(row("if meant", "--allow-empty accepts a delivery without rows"))
    if not result.drawn and any(sample.x is not None for each in result.findings for sample in each.features):
        lines.append(row("places", "--html FILE draws the findings on a map, --errors FILE writes them as a layer for a GIS"))
    return lines


def apply(result: ApplyResult) -> list[str]:
    """What follows a change that did not fit its copy."""
    if result.status != "refused" or result.findings:
        return []
    return [row("next", "name the version that the copy holds with --from, or make it anew: merestone read DATASET --out FILE")]
