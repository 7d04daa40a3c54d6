"""What a person sees: what happened, how many, why, and the next command (spec/publication.md).

Not here: printing (`cli`), machine output (`jsonout`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from merestone.errors import MerestoneError
from merestone.results.finding import Finding
from merestone.results.result import ApplyResult, Changed, CheckResult, Counts, DiffResult, PublishResult
from merestone.words import count, distance, duration, ordinate, plural, size, visible

WIDTH = 92
LISTED = 40
"""How many findings the text lists; the JSON has all of them."""


def publish(result: PublishResult, look: str = "") -> str:
    """The end of `publish` in words; ends without a line break. `look` is the command that shows a change at which a guard stopped."""
    if result.status == "refused":
        lines = _stopped(result, look) if result.refused_by == "guard" else _refused(result)
    elif result.status == "unchanged":
        lines = _unchanged(result)
    else:
        lines = _published(result)
    lines += [_row("note", notice) for notice in result.notices]
    return "\n".join(lines)


def diff(result: DiffResult) -> str:
    """The end of `diff` in words."""
    if result.refused:
        head = _title(f"{result.before} and {result.after} cannot be compared.", result.seconds)
        return "\n".join([head, *_findings(result.findings), *(_row("note", visible(each)) for each in result.notes)])
    title = f"{result.before} to {result.after}: {_classes(result.delta) or 'no change'}, {count(result.unchanged)} unchanged"
    lines = [_title(title, result.seconds), *_details(result.delta, result.changed, result.refreshed), *_findings(result.findings)]
    lines += [_row("note", visible(each)) for each in result.notes]
    if result.keys is not None:
        for name, keys in result.keys.items():
            if keys:
                lines.append(_row(name, ", ".join(visible(key) for key in keys)))
    return "\n".join(lines)


def apply(result: ApplyResult) -> str:
    """The end of `apply` in words."""
    step = f"{result.name} {f'v{result.start}' if result.start else 'nothing'} to v{result.end}"
    if result.status == "unchanged":
        return _title(f"{result.onto} is {result.name} v{result.end} already: same set digest {result.set_digest[:12]}.", result.seconds)
    if result.status == "refused":
        lines = [_title(f"{step} does NOT apply to {result.onto}. It stays as it is.", result.seconds)]
        if result.findings:
            return "\n".join([*lines, *_findings(result.findings)])
        return "\n".join(
            [
                *lines,
                _row("digest", f"{result.set_digest} there, {result.expected} is {f'v{result.start}' if result.start else 'nothing'}"),
                _row("next", "name the version that the copy is at with --from, or make the copy anew: merestone read DATASET --out FILE"),
            ]
        )
    made = f" as its v{result.version}" if result.version is not None else ""
    return "\n".join(
        [
            _title(f"{step} applied to {result.onto}{made}: {_classes(result.delta) or 'no change'}", result.seconds),
            _row("proved", f"{plural(result.features, 'feature')}, set digest {result.set_digest} as in {result.name} v{result.end}"),
        ]
    )


def check(result: CheckResult) -> str:
    """The end of `check` in words."""
    errors = sum(finding.severity == "error" for finding in result.findings)
    warnings = len(result.findings) - errors
    said = {"pass": "passes", "fail": "BREAKS", "error": "could not be checked against"}[result.status]
    extent = f": {plural(errors, 'error')}" if errors else ""
    extent += (", " if extent else ": ") + plural(warnings, "warning") if warnings else ""
    held = "no row was checked" if errors and not result.rows else plural(result.rows, "row")  # columns or CRS can end it before the first
    lines = [_title(f"{result.delivery} {said} {result.contract} ({held}){extent}", result.seconds)]
    lines += _findings(result.findings)
    if result.status == "pass" and not result.rows:
        lines.append(_row("empty", "there is no row in it; `publish` stops it where anything is published"))
    lines += [
        _row(
            "axes",
            f"{visible(name)}: undecidable whether x and y are swapped ({'; '.join(said['evidence'])}); "
            "an `extent` in the contract would decide",
        )
        for name, said in result.axes.items()
        if said["decision"] == "undecidable"
    ]
    lines += [_row("unchecked", text) for text in result.errors]
    if not result.drawn and any(sample.x is not None for each in result.findings for sample in each.features):
        lines.append(_row("places", "--html FILE draws the findings on a map, --errors FILE writes them as a layer for a GIS"))
    return "\n".join(lines)


def error(fault: MerestoneError) -> str:
    """A command that could not run: the thing, and the next step."""
    lines = [f"merestone: {fault.message}"]
    if fault.hint:
        lines.append(f"  next: {fault.hint}")
    return "\n".join(visible(line) for each in lines for line in each.split("\n"))


def observed(each: Finding) -> str:
    """What was observed, with the field where the words do not name it."""
    return each.observed if not each.field or each.field in each.observed else f"{each.field}: {each.observed}"


def finding(each: Finding, width: int = 0) -> list[str]:
    """One finding as lines: what was observed, what was expected, what to do."""
    name = f"{each.surface}.{each.rule}"
    width = max(width, len(name))
    label = "warning: " if each.severity == "warning" else ""
    margin = " " * (width + 5)
    lines = [f"  {name.ljust(width)}   {label}{visible(observed(each))}", f"{margin}expected {visible(each.expected)}"]
    told = [f"{count(each.count)}{' rows' if _of_rows(each) else ''} in all"] if each.surface != "guard" and not _tells(each) else []
    place = next((sample for sample in each.features if sample.x is not None and sample.y is not None), None)
    if place is not None and place.x is not None and place.y is not None:
        who = visible(place.id) if place.id is not None else f"row {place.row}"
        where = f"{ordinate(place.x)}, {ordinate(place.y)}"
        told += [f"{who} is at {where}"] if f" at {where}" not in each.observed else []
    if told:
        lines.append(margin + "; ".join(told))
    if each.remedy and each.surface != "guard":
        lines.append(f"{margin}next: {visible(each.remedy)}")
    return lines


def _tells(each: Finding) -> bool:
    """Whether the words of a finding tell its number."""
    # A number with its noun: "3 null keys", "2,481 of 2,481 rows"; neither a row ("rows 6 and 9") nor a key or part of it ("105-6 twice").
    return each.count <= 1 or re.search(rf"(?<![^ (])(?<!key )(?<!row )(?<!rows ){each.count:,} (?!and )[a-z]", each.observed) is not None


def _of_rows(each: Finding) -> bool:
    """Whether the number of a finding is one of rows, and not of pairs or places."""
    of_rows = each.surface != "geometry" and all(sample.row is not None for sample in each.features)
    return each.per_row or each.rule == "extent" or (bool(each.features) and of_rows)


# --- the endings of publish ------------------------------------------------------------------------------------------------------------


def _published(result: PublishResult) -> list[str]:
    planned = result.status == "planned"
    first = result.current is None
    delta = result.delta
    if planned:
        verb = "would be published as v1" if first else f"v{result.current} would change"
        verb = verb if delta.touched or first else f"v{result.current} would stay"
        head = f"{result.name} {verb}: {_classes(delta) or 'no change'} (dry run, nothing written)"
    elif first:
        head = f"{result.name} v{result.version} published: {plural(result.features, 'feature')}"
    else:
        head = f"{result.name} v{result.version} published: {_classes(delta) or 'no feature changed'}"
    lines = [_title(head, result.seconds), *_details(delta, result.changed, result.refreshed)]
    if result.rejected:
        held = f", {count(result.held)} of them stay as last accepted" if result.held else ""
        lines.append(_row("rejected", f"{plural(result.rejected, 'row')} in quarantine{held}"))
    lines += _findings(_news(result))
    total = result.files_written + result.files_carried
    done = "to rewrite" if planned else ("written" if first else "rewritten")
    volume = f"{'about ' if planned else ''}{size(result.bytes_written)}"
    files = (
        f"{count(result.files_written)} {done} ({volume})"
        if first
        else (f"{count(result.files_written)} of {count(total)} {done} ({volume}), {count(result.files_carried)} carried")
    )
    if result.rebuild is not None and not first:
        files += f"; a rebuild writes {count(result.rebuild[0])} (about {size(result.rebuild[1])})"
    lines.append(_row("files", files))
    if planned and not first:
        lines.append(
            _row(
                "rows",
                f"{count(result.rows_written)} of {count(result.features)} to rewrite; changes lie in "
                f"{count(result.partitions_touched)} of {plural(result.partitions, 'partition')}",
            )
        )
    file = result.file or result.name
    if planned:
        lines.append(_row("next", result.command or f"merestone publish {file}"))
    elif first:
        lines.append(_row("next", f"merestone read {file}; tomorrow the same command on the next export"))
    else:
        lines.append(_row("next", f"merestone changes {file} --html v{result.version}.html"))
    return lines


def _unchanged(result: PublishResult) -> list[str]:
    lines = [
        _title(
            f"{result.name} unchanged: {plural(result.delivered, 'row')} delivered, same content. v{result.version} stays current.",
            result.seconds,
        )
    ]
    lines += _details(result.delta, None, result.refreshed)
    if result.rejected:
        held = f", {count(result.held)} of them stay as last accepted" if result.held else ""
        lines.append(_row("rejected", f"{plural(result.rejected, 'row')} in quarantine{held}"))
    return lines + _findings(_news(result))


def _news(result: PublishResult) -> list[Finding]:
    """The findings without "undecided" on the precision of a small dataset: said at its first publish, nobody can act on it every night."""
    return [each for each in result.findings if result.current is None or (each.rule, each.severity) != ("precision", "warning")]


def _refused(result: PublishResult) -> list[str]:
    lines = [f"{result.name} REFUSED by its contract. {_stays(result)}"]
    lines += _findings(result.findings)
    lines.append("  A contract breach cannot be confirmed: correct the delivery, or agree on another contract.")
    return lines


def _stopped(result: PublishResult, look: str) -> list[str]:
    lines = [f"{result.name} STOPPED by a guard. {_stays(result)}"]
    lines += _findings(result.findings)
    if result.delta.touched:
        lines.append(_row("change", f"{_classes(result.delta)}; {count(result.unchanged)} unchanged"))
    if look and any(each.surface == "guard" and each.rule not in ("withdrawn", "empty") for each in result.findings):
        lines.append(_row("look", look))
    if result.current is not None:
        lines.append(f"  if not meant: have the producer correct the delivery; v{result.current} stays until a sound one comes")
    if result.confirm:
        against = f"against v{result.current} only" if result.current is not None else "only"
        until = f", until {result.expires}" if result.expires else ""
        lines.append(f"  if meant: repeat with --confirm {result.confirm} (this delivery {against}{until})")
        if result.command:
            lines.append(_row("confirm", f"{result.command} --confirm {result.confirm}"))
    elif result.command:  # a dry run leaves nothing behind that a token could be held against
        lines.append(_row("next", f"{result.command}, which stops alike and gives the token to confirm it with"))
    return lines


def _stays(result: PublishResult) -> str:
    current = result.version if result.version is not None else result.current
    return "Nothing published." if current is None else f"v{current} stays current; nothing published."


# --- parts -----------------------------------------------------------------------------------------------------------------------------


def _classes(delta: Counts) -> str:
    """The classes that are not empty: "57 added, 412 changed, 12 removed"."""
    return ", ".join(
        f"{count(number)} {name}" for name, number in delta.to_json().items() if number and name in ("added", "changed", "removed", "moved")
    )


def _details(delta: Counts, changed: Changed | None, refreshed: int) -> list[str]:
    lines = []
    if changed is not None and delta.changed:
        parts = []
        if changed.attributes:
            parts.append(f"{count(changed.attributes)} attributes")
        if changed.geometry:
            parts.append(f"{count(changed.geometry)} geometry")
        if changed.both:
            parts.append(f"{count(changed.both)} both")
        text = ", ".join(parts)
        if changed.largest_move is not None:
            text += f" (largest move {distance(changed.largest_move, changed.unit)})"
        if delta.reversed:
            text += f"; {count(delta.reversed)} only reversed"
        if changed.most is not None:
            text += f"; most in {visible(changed.most[0])} ({count(changed.most[1])})"
        lines.append(_row("changed", text))
    if delta.rekeyed:
        lines.append(_row("rekeyed", f"{plural(delta.rekeyed, 'feature')} with the same content under another key (added and removed)"))
    if refreshed or delta.suppressed:
        parts = [f"{count(refreshed)} delivered in other bytes, same content"] if refreshed else []
        if delta.suppressed:
            parts.append(f"{count(delta.suppressed)} within the grid of what is published (noise)")
        lines.append(_row("ignored", ", ".join(parts)))
    if delta.reprocessed:
        lines.append(_row("reprocessed", f"{plural(delta.reprocessed, 'feature')} delivered as before, made anew under new rules"))
    return lines


def _findings(findings: Iterable[Finding]) -> list[str]:
    ranked = sorted(findings, key=lambda each: each.severity != "error")
    width = max((len(f"{each.surface}.{each.rule}") for each in ranked[:LISTED]), default=0)
    lines = [line for each in ranked[:LISTED] for line in finding(each, width)]
    if len(ranked) > LISTED:
        lines.append(f"  and {plural(len(ranked) - LISTED, 'finding')} more; --json lists all of them")
    return lines


def _title(text: str, seconds: float) -> str:
    return f"{text}  {duration(seconds).rjust(WIDTH - len(text) - 2)}"


def _row(name: str, text: str) -> str:
    return f"  {name.ljust(10)} {text}"
