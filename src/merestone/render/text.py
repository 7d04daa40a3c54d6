"""The endings of publish, diff, apply and check in words: what happened, how many, and why.

Not here: the next command (`cli.next_steps`: each door has its own), printing (`cli`), JSON (`results.json_form`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from merestone.results.finding import Finding
from merestone.results.result import ApplyResult, Changed, CheckResult, Counts, DiffResult, PublishResult
from merestone.words import called, count, distance, duration, listed, ordinate, plural, size, visible

WIDTH = 92
LISTED = 40
"""How many findings the text lists; the JSON has all of them."""


def publish(result: PublishResult) -> str:
    """The end of `publish` in words, without the next step; it ends without a line break."""
    if result.status == "refused":
        lines = _stopped(result) if result.refused_by == "guard" else _refused(result)
    elif result.status == "unchanged":
        lines = _unchanged(result)
    else:
        lines = _published(result)
    lines += [row("note", notice) for notice in result.notices]
    return "\n".join(lines)


def diff(result: DiffResult) -> str:
    """The end of `diff` in words."""
    if result.refused:
        head = title(f"{result.before} and {result.after} cannot be compared.", result.seconds)
        return "\n".join([head, *_findings(result.findings), *(row("note", visible(each)) for each in result.notes)])
    if result.compared_nothing:
        head = f"{result.before} to {result.after}: NOTHING was compared, since neither side has a row"
    else:
        head = f"{result.before} to {result.after}: {_classes(result.delta) or 'no change'}, {count(result.unchanged)} unchanged"
        aside = max(result.not_compared.before, result.not_compared.after)
        head += f", {plural(aside, 'row')} not compared" if aside else ""
    lines = [title(head, result.seconds), *_details(result.delta, result.changed), *_findings(result.findings)]
    lines += [row("note", visible(each)) for each in result.notes]
    if result.keys is not None:
        for name, keys in result.keys.items():
            if keys:
                lines.append(row(name, ", ".join(visible(key) for key in keys)))
    return "\n".join(lines)


def apply(result: ApplyResult) -> str:
    """The end of `apply` in words."""
    step = f"{result.name} {f'v{result.start}' if result.start else 'nothing'} to v{result.end}"
    if result.status == "unchanged":
        return title(f"{result.onto} is {result.name} v{result.end} already: same set digest {result.set_digest[:12]}.", result.seconds)
    if result.status == "refused":
        lines = [title(f"{step} does NOT apply to {result.onto}. It stays as it is.", result.seconds)]
        if result.findings:
            return "\n".join([*lines, *_findings(result.findings)])
        wanted = f"v{result.start}" if result.start else "nothing"
        return "\n".join([*lines, row("digest", f"{result.set_digest} there, {result.expected} is {wanted}")])
    made = f" as its v{result.version}" if result.version is not None else ""
    return "\n".join(
        [
            title(f"{step} applied to {result.onto}{made}: {_classes(result.delta) or 'no change'}", result.seconds),
            row("proved", f"{plural(result.features, 'feature')}, set digest {result.set_digest} as in {result.name} v{result.end}"),
        ]
    )


def check(result: CheckResult) -> str:
    """The end of `check` in words."""
    errors = sum(finding.severity == "error" for finding in result.findings)
    warnings = len(result.findings) - errors
    said = {"pass": "passes", "fail": "BREAKS", "error": "could not be checked against"}[result.status]
    if result.status == "pass" and errors:
        said = "has rows that break, within what the publication allows,"
    extent = f": {plural(errors, 'error')}" if errors else ""
    extent += (", " if extent else ": ") + plural(warnings, "warning") if warnings else ""
    held = "no row was checked" if errors and not result.rows else plural(result.rows, "row")  # columns or CRS can end it before the first
    lines = [title(f"{result.delivery} {said} {result.contract} ({held}){extent}", result.seconds)]
    lines += _findings(result.findings)
    lines += [row("not judged", f"{listed(each.rules, len(each.rules))}: {each.why}") for each in result.not_judged]
    lines += [row("unchecked", text) for text in result.errors]
    return "\n".join(lines)


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
    tail = [f"{count(each.count)}{' rows' if _of_rows(each) else ''} in all"] if each.surface != "guard" and not _counts(each) else []
    place = next((sample for sample in each.features if sample.x is not None and sample.y is not None), None)
    if place is not None and place.x is not None and place.y is not None:
        who = visible(called(place.id, place.row))
        where = f"{ordinate(place.x)}, {ordinate(place.y)}"
        tail += [f"{who} is at {where}"] if f" at {where}" not in each.observed else []
    if tail:
        lines.append(margin + "; ".join(tail))
    if each.remedy and each.surface != "guard":
        lines.append(f"{margin}next: {visible(each.remedy)}")
    return lines


def _counts(each: Finding) -> bool:
    """Whether the words of a finding name its number."""
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
    lines = [title(head, result.seconds), *_details(delta, result.changed)]
    if result.rejected:
        held = f", {count(result.held)} of them stay as last accepted" if result.held else ""
        lines.append(row("rejected", f"{plural(result.rejected, 'row')} in quarantine{held}"))
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
    lines.append(row("files", files))
    if planned and not first:
        lines.append(
            row(
                "rows",
                f"{count(result.rows_written)} of {count(result.features)} to rewrite; changes lie in "
                f"{count(result.partitions_touched)} of {plural(result.partitions, 'partition')}",
            )
        )
    return lines


def _unchanged(result: PublishResult) -> list[str]:
    lines = [
        title(
            f"{result.name} unchanged: {plural(result.delivered, 'row')} delivered, {_same(result)}. v{result.version} stays current.",
            result.seconds,
        )
    ]
    lines += _details(result.delta, None)
    if result.rejected:
        held = f", {count(result.held)} of them stay as last accepted" if result.held else ""
        lines.append(row("rejected", f"{plural(result.rejected, 'row')} in quarantine{held}"))
    return lines + _findings(_news(result))


def _same(result: PublishResult) -> str:
    """What became of the rows of a delivery that changed nothing: those that were rejected are not known to be the same."""
    if not result.rejected:
        return "same content"
    held = f", {count(result.held)} held as last accepted" if result.held else ""
    return f"{count(result.unchanged)} with the same content, {count(result.rejected)} rejected{held}"


def _news(result: PublishResult) -> list[Finding]:
    """The findings without "undecided" on the precision of a small dataset: said at its first publish, nobody can act on it every night."""
    return [each for each in result.findings if result.current is None or (each.rule, each.severity) != ("precision", "warning")]


def _refused(result: PublishResult) -> list[str]:
    lines = [f"{result.name} REFUSED by its contract. {_stays(result)}"]
    lines += _findings(result.findings)
    lines.append("  A contract breach cannot be confirmed: correct the delivery, or agree on another contract.")
    return lines


def _stopped(result: PublishResult) -> list[str]:
    lines = [f"{result.name} STOPPED by a guard. {_stays(result)}"]
    lines += _findings(result.findings)
    if result.delta.touched:
        lines.append(row("change", f"{_classes(result.delta)}; {count(result.unchanged)} unchanged"))
    if result.current is not None:
        lines.append(f"  if not meant: correct the delivery; v{result.current} stays current until then")
    else:
        lines.append("  if not meant: correct the delivery, or its contract; nothing is published until then")
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


def _details(delta: Counts, changed: Changed | None) -> list[str]:
    lines = []
    if changed is not None and delta.changed:
        lines.append(row("changed", _what_changed(delta, changed)))
    if delta.rekeyed:
        lines.append(row("rekeyed", f"{plural(delta.rekeyed, 'feature')} with the same content under another key (added and removed)"))
    if delta.refreshed or delta.suppressed:
        parts = [f"{count(delta.refreshed)} delivered in other bytes, same content"] if delta.refreshed else []
        if delta.suppressed:
            parts.append(f"{count(delta.suppressed)} within the grid of what is published (noise)")
        lines.append(row("ignored", ", ".join(parts)))
    if delta.backfilled:
        lines.append(row("backfilled", f"{plural(delta.backfilled, 'feature')} of them only got values in fields that the contract added"))
    if delta.reprocessed:
        lines.append(row("reprocessed", f"{plural(delta.reprocessed, 'feature')} delivered as before, made anew under new rules"))
    return lines


def _what_changed(delta: Counts, changed: Changed) -> str:
    """What differs in the changed features: "371 attributes, 38 geometry (largest move 2.41 m), 3 both; most in owner_class (290)"."""
    parts = {"attributes": changed.attributes, "geometry": changed.geometry, "both": changed.both}
    text = ", ".join(f"{count(number)} {name}" for name, number in parts.items() if number)
    if changed.largest_move is not None:
        text += f" (largest move {distance(changed.largest_move, changed.unit)})"
    if delta.reversed:
        text += f"; {count(delta.reversed)} only reversed"
    if changed.most is not None:
        text += f"; most in {visible(changed.most[0])} ({count(changed.most[1])})"
    return text


def _findings(findings: Iterable[Finding]) -> list[str]:
    ranked = sorted(findings, key=lambda each: each.severity != "error")
    width = max((len(f"{each.surface}.{each.rule}") for each in ranked[:LISTED]), default=0)
    lines = [line for each in ranked[:LISTED] for line in finding(each, width)]
    if len(ranked) > LISTED:
        lines.append(f"  and {plural(len(ranked) - LISTED, 'finding')} more")
    return lines


def title(text: str, seconds: float) -> str:
    """The first line of an answer, with the time at its right."""
    return f"{text}  {duration(seconds).rjust(WIDTH - len(text) - 2)}"


def row(name: str, text: str) -> str:
    """A line of an answer: its name and its words."""
    return f"  {name.ljust(10)} {text}"
