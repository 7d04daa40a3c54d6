"""What the commands about datasets, contracts and lineage say to a person.

Not here: the endings of publish, check, diff and apply (`render.text`), printing (`edge`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from merestone.api.answers import (
    ChangesResult,
    ContractResult,
    DraftResult,
    LintResult,
    LogResult,
    ReadResult,
    RollbackResult,
    StatusResult,
    VerifyResult,
)
from merestone.api.lineage_answers import SummaryResult, WhyResult
from merestone.api.places import as_typed
from merestone.json_value import JsonObject
from merestone.later import later
from merestone.render import text
from merestone.results.json_form import to_json
from merestone.results.result import DiffResult
from merestone.words import came_of, count, distance, listed, percent, plural, size, visible

if TYPE_CHECKING:
    import shapely
else:
    shapely = later("shapely")

_CELL = 24  # characters of a cell in a table
_LINE = 110  # characters of a line of a table


def table(heads: list[str], rows: list[list[str]], right: frozenset[int] = frozenset()) -> str:
    """Rows under heads, columns aligned; those numbered in `right` to the right."""
    widths = [max(len(row[n]) for row in [heads, *rows]) for n in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if n in right else cell.ljust(width) for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [heads, *rows]
    )


def drafted(made: DraftResult, *, compared: bool) -> str:
    """The end of `init`; `compared`: with an older delivery."""
    file = as_typed(str(made.publication))
    lines = [f"drafted {as_typed(str(made.contract))}", f"        {file}", *(f"  {visible(each)}" for each in made.notes)]
    if not compared:
        lines.append("  with --previous OLD, keys are judged by what they join, and columns that each export makes anew are found")
    settle = f"state the {listed([f'`{each}`' for each in made.unsettled], len(made.unsettled))} in {as_typed(str(made.contract))}, then "
    return "\n".join([*lines, f"  next: {settle if made.unsettled else ''}{shlex.join(['merestone', 'publish', file])}"])


def written(result: ReadResult) -> str:
    """The end of `read --out`."""
    return f"{result.name} v{result.version}: {plural(result.features, 'feature')} written to {result.out} ({result.crs})"


def preview(dataset: str, crs: str, rows: list[JsonObject], geometry: str, features: int | None, typed: str) -> str:
    """The first features as a table, as many columns as a line holds."""
    total = f"{plural(features, 'feature')}, " if features is not None else ""
    head = f"{dataset}: {total}{crs}"
    if not rows:
        return f"{head}\n  no features" + ("" if features == 0 else " there")
    names = list(rows[0])
    cells = [[_cell(each[name], shape=name == geometry) for name in names] for each in rows]
    kept: list[int] = []
    room = _LINE
    for n, name in enumerate(names):
        room -= max(len(name), *(len(row[n]) for row in cells)) + 2
        if kept and room < 0:
            break
        kept.append(n)
    more = f"  ({plural(len(names) - len(kept), 'more column')})" if len(kept) < len(names) else ""
    shown = table([names[n] for n in kept], [[row[n] for n in kept] for row in cells])
    all_shown = features is not None and len(rows) == features
    end = "" if all_shown else f"\nfirst {len(rows)}; all of them: merestone read {typed} --out FILE"
    return f"{head}{more}\n{shown}{end}"


def _cell(value: Any, *, shape: bool = False) -> str:
    if value is None:
        return "-"
    if shape:
        found = shapely.from_wkb(value)
        if found.is_empty:
            return f"{found.geom_type} empty"
        return f"{found.geom_type} {shapely.get_num_coordinates(found)}" if found.geom_type != "Point" else f"Point {found.x:g} {found.y:g}"
    text = visible(value.hex() if isinstance(value, bytes) else str(value))
    return text if len(text) <= _CELL else text[: _CELL - 3] + "..."


def log(result: LogResult) -> str:
    """The versions, newest first."""
    rows = [
        [
            f"v{each.version}",
            _time(each.time_utc),
            count(each.features),
            *(count(each.counts.get(name, 0)) for name in _STEPS),
            f"{each.files_written} + {each.files_carried}",
            size(each.bytes_written),
            each.contract_version.split("-", 1)[0],
            each.run_id + (f"  rolled back: {visible(each.reason)}" if each.reason else ""),
        ]
        for each in result.versions
    ]
    heads = ["", "time (UTC)", "features", *_STEPS, "files new + carried", "written", "contract", "run"]
    return table(heads, rows, frozenset(range(2, 9)))


_STEPS = ("added", "changed", "removed", "moved")


def status(result: StatusResult) -> str:
    """How the dataset stands."""
    lines = [
        f"{result.name} v{result.version}: {plural(result.features, 'feature')}, contract {result.contract_version}",
        _row("published", _time(result.time_utc)),
        _row("fresh", _fresh(result)),
    ]
    lines += [_row("since", f"{plural(len(result.since), 'run')} brought nothing")] if result.since else []
    for each in result.since[-5:]:
        by = f" by its {each.refused_by}" if each.refused_by == "contract" else f" by a {each.refused_by}" if each.refused_by else ""
        lines.append(_row("", f"{_time(each.started_utc)}  {each.status}{by}  run {each.run_id}-{each.attempt}"))
        lines += [_row("", f"  {visible(each.why)}")] if each.why else []
    if result.held:
        lines.append(_row("held", f"{plural(result.held, 'row')} of the last delivery rejected; what was accepted before stays"))
    if result.suppressed_share:
        lines.append(_row("noise", f"{percent(result.suppressed_share)} of the last delivery differed within the grid only"))
    loose = f", {size(result.loose_bytes)} by no version (attempts that failed or still run)" if result.loose_bytes else ""
    lines.append(_row("storage", f"{size(result.live_bytes)} live, {size(result.old_bytes)} held by older versions only{loose}"))
    lines.append(_row("versions", f"{result.versions}; merestone log lists them"))
    return "\n".join(lines)


def _fresh(result: StatusResult) -> str:
    """Freshness against the promise of the contract."""
    promise = f"{plural(result.sla_minutes, 'minute')} promised"
    if result.fresh_utc is None:
        return f"no run record gives a time; {promise}"
    last = f"the last delivery that matches what is published: {_time(result.fresh_utc)}"
    return f"{'yes' if result.fresh else 'NO'}, {promise}; {last}"


def rolled_back(result: RollbackResult, typed: str) -> str:
    """The end of `rollback`."""
    delta = result.delta.known()
    step = ", ".join(f"{count(delta[name])} {name}" for name in _STEPS if delta[name])
    head = f"{result.name} v{result.version} is v{result.to} again: {step or 'no feature changed'}"
    lines = [head, _row("reason", visible(result.reason))]
    if result.withdrawn:
        taken_back = _many(len(result.withdrawn), "delivery", "deliveries")
        lines.append(_row("withdrawn", f"{taken_back}; publishing one again stops at a guard"))
    return "\n".join([*lines, _row("next", f"merestone changes {typed}")])


def verified(result: VerifyResult, typed: str) -> str:
    """The end of `verify`."""
    extent = (
        f"{plural(len(result.versions), 'version')}, {plural(result.objects, 'object')}, {plural(result.rows, 'row')}, {size(result.bytes)}"
    )
    if result.whole:
        lines = [f"{typed} is whole: {extent}"]
    else:
        lines = [f"{typed} is DAMAGED: {plural(len(result.damages), 'damage')} in {extent}"]
        for each in result.damages:
            versions = ", ".join(f"v{number}" for number in each.versions) or "no version"
            lines += [
                f"  {each.path}: {each.problem} ({versions})",
                f"      expected {visible(each.expected)}, found {visible(each.observed)}",
            ]
        lines.append("  next: restore these files from a backup, or roll back to a version that does not name them")
    if result.orphans:
        lines.append(_row("orphans", f"{plural(len(result.orphans), 'manifest')} of attempts that were cut off: harmless"))
    return "\n".join(lines)


def changes(result: ChangesResult, typed: str) -> str:
    """The end of `changes`: the summary, what was written, or the next command."""
    difference = DiffResult(
        before=f"{result.name} v{result.start}" if result.start else f"{result.name}, from nothing",
        after=f"v{result.end}",
        delta=result.delta,
        unchanged=result.unchanged,
        changed=result.changed,
        keys=result.keys,
        seconds=result.seconds,
    )
    lines = [text.diff(difference)]
    lines += [_row("map", result.html)] if result.html else []
    lines += [_row("written", result.out)] if result.out else []
    if len(lines) == 1 and result.delta.touched + result.delta.reprocessed:
        lines.append(_row("next", f"merestone changes {typed} --from {result.start} --to {result.end} --html v{result.end}.html"))
    return "\n".join(lines)


def linted(file: str, result: LintResult) -> str:
    """The end of `contract lint`."""
    total = (
        f"{plural(result.errors, 'error')}, {plural(result.warnings, 'warning')}, {_many(result.confirm, 'guess', 'guesses')} to confirm"
    )
    if result.contract_version is None:  # what cannot be read as a contract was not looked at for the rest
        total = plural(result.errors, "error")
    lines = [f"{file}: {total}"]
    for each in result.messages:
        line = f"line {each.line}: " if each.line else ""
        path = f"{each.path} " if each.path else ""
        hint = f"; {each.hint}" if each.hint and each.level != "confirm" else ""
        lines.append(f"  {each.level.ljust(7)}  {line}{path}{visible(each.message)}{hint}")
    if result.confirm:
        lines.append("  next: check each guess, then remove its `# confirm` mark")
    return "\n".join(lines)


def contract(result: ContractResult) -> str:
    """A published body, one clause a line; fields as a table."""
    body = dict(result.contract)
    fields = body.pop("schema_fields")
    lines = [_row(name, visible(_flat(each)), 22) for name, each in body.items()]
    lines.append(_row("sha256", result.sha256, 22))
    rows = [
        [
            each["name"],
            each["type"],
            "" if each["nullable"] else "never null",
            ", ".join(
                f"{name} {_flat(more)}" if more is not True else name
                for name, more in each.items()
                if name not in ("name", "type", "nullable") and (name, more) != ("unit", "none")
            ),
        ]
        for each in fields
    ]
    return "\n".join([*lines, "", table(["field", "type", "", "more"], rows)])


def _flat(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_flat(each)}" for name, each in value.items())
    return ", ".join(_flat(each) for each in value) if isinstance(value, list) else str(value)


def run_summary(result: SummaryResult) -> str:
    """The verdict of a run."""
    value = to_json(result)
    cause = f": {visible(value['why'])}" if value["why"] else ""
    attempts = f"{plural(len(value['attempts']), 'sealed attempt')}, the last sealed {_time(value['sealed_utc'])}"
    lines = [
        f"{value['name']}: run {value['run_id']}",
        _row("result", f"{ended(value)}{cause}"),
        _row("features", _verdict(value, "features", "features_")),
        _row("events", _verdict(value, "total_events", "")),
        _row("stages", ", ".join(value["plan"]) or "none"),
        _row("attempts", attempts),
        _row("root", value["root"]),
    ]
    if value["expired"] is not None:
        gone = value["expired"]
        lines.append(
            _row(
                "expired",
                f"{_time(gone['utc'])} after {gone['window']} ({visible(gone['basis'])}); "
                f"{plural(value['sealed_events'], 'event')} of live features stay",
            )
        )
    found = value["deduplication"]
    if found is not None:
        lines.append(
            _row(
                "set aside",
                f"{plural(found['replays'], 'replay')}, {plural(found['corrections'], 'correction')}, "
                f"{plural(found['conflicts'], 'conflict')}",
            )
        )
        lines += [
            _row(
                "CONFLICT",
                f"{each['stage']} of {visible(each['feature_id'])} in attempt {each['attempt']}: two events differ in "
                f"{', '.join(each['columns'])}",
            )
            for each in found["samples"]
        ]
    rows = [[each["stage"], each["event_type"], each["outcome"], count(each["events"])] for each in value["stages"]]
    lines += ["", table(["stage", "event", "outcome", "events"], rows, frozenset({3}))]
    if value["reasons"]:
        why = [[count(each["events"]), each["outcome"], each["stage"], visible(each["reason"] or "")] for each in value["reasons"]]
        lines += ["", table(["events", "outcome", "stage", "reason"], why, frozenset({0}))]
    return "\n".join(lines)


def _verdict(value: JsonObject, total: str, prefix: str) -> str:
    parts = [f"{count(value[prefix + name])} {name}" for name in ("passed", "warned", "rejected") if value[prefix + name]]
    return f"{count(value[total])}: {', '.join(parts)}" if parts else count(value[total])


def reasons(result: WhyResult) -> str:
    """Why a feature is as it is."""
    value = to_json(result)
    name = visible(value["feature_id"])
    if value["present"]:
        place = f", partition {value['partition']}" if value["partition"] else ""
        head = f"{name} stands in {value['name']} v{value['version']} as v{value['since']} made it{place}"
    elif value["versions"]:
        head = f"{name} is not in {value['name']} v{value['version']}: v{value['versions'][0]['version']} removed it"
    else:
        head = f"{name} was never part of {value['name']} (v{value['version']} is current)"
    lines = [head, *(_row(f"v{each['version']}", f"{_time(each['time_utc'])}  {_touch(each)}") for each in value["versions"])]
    for each in value["runs"]:
        why = f": {visible(each['reason'])}" if each["reason"] else ""
        at = "" if each["outcome"] == "PASS" else f" at {each['stage']}"  # what passed did so at every stage
        by_itself = "" if each["status"] in ("published", "unchanged", "foreign", "unknown") else "the feature by itself: "
        lines.append(_row("run", f"{each['run_id']} ({ended(each)})  {by_itself}{each['outcome']}{at}{why}"))
        lines += [_row("", f"the run: {visible(each['why'])}")] if each["why"] else []
        lines += [_row("", f"{event['stage']} {event['event_type']} {event['outcome']}{_technical(event)}") for event in each["events"]]
    if not value["complete"]:
        lines.append(_row("older", "not every version and run was read: --all reads them"))
    return "\n".join(lines)


def ended(run: JsonObject) -> str:
    """What came of a run that an answer holds."""
    return came_of(run["status"], run["version"], run["refused_by"], run["rolled_back_by"])


def _touch(each: JsonObject) -> str:
    parts = [each["class"]]
    if each["fields"]:
        parts.append(f"in {', '.join(each['fields'])}")
    if each["geometry"]:
        size_of_it = each["geometry_change"]
        parts.append("geometry" + (f" (moved by up to {distance(size_of_it, 'CRS units')})" if size_of_it else ""))
    parts += each["labels"]
    if each["class"] == "moved":
        parts.append(f"from {each['old_partition']} to {each['partition']}")
    if each["reason"]:
        parts.append(f"by a roll-back: {visible(each['reason'])}")
    return ", ".join(parts)


def _technical(event: JsonObject) -> str:
    parts = []
    if event["source_crs"] != event["target_crs"]:
        parts.append(f"{event['source_crs']} to {event['target_crs']}")
    if event["accuracy_m"] is not None:
        parts.append(f"accuracy {event['accuracy_m']:g} m")
    if event["tool_version"]:
        parts.append(event["tool_version"])
    return f"  ({visible(', '.join(parts))})" if parts else ""


def _many(number: int, one: str, more: str) -> str:
    return f"{count(number)} {one if number == 1 else more}"


def _time(text: str) -> str:
    """2026-03-01T04:05:06.123456Z as 2026-03-01 04:05:06."""
    return text[:19].replace("T", " ")


def _row(name: str, text: str, width: int = 10) -> str:
    return f"  {name.ljust(width)} {text}"
