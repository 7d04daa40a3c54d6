"""Answers of the lineage commands in words, for a person at a terminal.

Not here: `summary` and `why` (`words`), machine output (the commands themselves).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from merestone.api.lineage_answers import (
    CompleteResult,
    EventsResult,
    EvidenceResult,
    HeadResult,
    HistoryResult,
    HoldResult,
    IngestResult,
    Iso19115Result,
    ProveResult,
    RetainResult,
    RunsResult,
)
from merestone.cli.words import ended
from merestone.json_value import JsonObject
from merestone.results.json_form import to_json
from merestone.words import count, plural, size, visible


def head(result: HeadResult, typed: str) -> str:
    """The head of a dataset's record."""
    version = f"v{result.version}, " if result.version is not None else ""
    lines = [
        f"{result.name}: {version}{plural(len(result.runs), 'head')} of the runs, {plural(len(result.objects), 'object')} named",
        f"  digest     {result.digest}",
    ]
    if result.out is not None:
        lines.append(
            f"  next       keep {result.out} in another place; later: {shlex.join(['merestone', 'verify', typed, '--head', result.out])}"
        )
    return "\n".join(lines)


def iso_written(result: Iso19115Result) -> str:
    """An ISO record that was written."""
    value = to_json(result)
    what = f"version {value['version']}" if value["version"] is not None else "the run"
    return f"{value['out']}: ISO record of {what} ({value['encoding']}), {plural(value['steps'], 'step')}, {plural(value['sources'], 'source')}"


def problems(name: str, found: Sequence[str], good: str, noun: str = "problem") -> str:
    """A check of something: its problems, one a line, or that it has none."""
    if not found:
        return f"{name} {good}"
    return "\n".join([f"{name} has {plural(len(found), noun)}:", *(f"  {visible(each)}" for each in found)])


def proved(result: ProveResult) -> str:
    """A proof that was written."""
    value, out = to_json(result), str(result.out)
    return "\n".join(
        [
            f"{out}: {plural(len(value['proofs']), 'event')} of {visible(value['feature_id'])} in run {value['run_id']}, root {value['root']}",
            f"  next       {shlex.join(['python', result.verifier, out, result.root])}",
        ]
    )


def evidence(result: EvidenceResult) -> str:
    """An evidence file that was written."""
    value = to_json(result)
    return "\n".join(
        [
            f"{value['out']}: evidence for {value['name']} v{value['version']}, {plural(value['files'], 'file')}",
            f"  keep       {value['evidence_sha256']}, the sha256 of its evidence.json, in another place",
            f"  next       unpack it, then: python verify_lineage.py . {value['evidence_sha256']}",
        ]
    )


def history(result: HistoryResult) -> str:
    """The events of one feature, by run."""
    value = to_json(result)
    lines = [f"{visible(value['feature_id'])} in {value['name']}: {plural(len(value['events']), 'event')}"]
    last = None
    for event in value["events"]:
        if event["run_id"] != last:
            last = event["run_id"]
            run = value["runs"][last]
            lines.append(f"  {run['run_date']}  run {visible(last)} ({ended(run)})")
            lines += [f"    the run: {visible(run['why'])}"] if run["why"] else []
        lines.append("    " + _event(event))
    if conflicts := value["deduplication"]["conflicts"]:
        lines.append(f"  CONFLICT   {plural(conflicts, 'event')} contradict another of their own attempt")
    return "\n".join(lines)


def events(result: EventsResult) -> str:
    """Events that were asked for."""
    value = to_json(result)
    lines = [f"{value['name']}: {plural(value['count'], 'event')}" + (f", written to {value['out']}" if value["out"] else "")]
    lines += [f"  {visible(each['feature_id'])}  run {visible(each['run_id'])}  {_event(each)}" for each in value["events"]]
    if value["count"] > len(value["events"]):
        lines.append(f"  and {count(value['count'] - len(value['events']))} more; --limit shows and --out writes more")
    return "\n".join(lines)


def runs(result: RunsResult) -> str:
    """The sealed runs of a dataset."""
    value = to_json(result)
    lines = [f"{value['name']}: {plural(len(value['runs']), 'sealed run')}"]
    for each in value["runs"]:
        made = f"v{each['version']}" if each["version"] is not None else "-"
        again = f" (attempt {each['attempt']})" if each["attempt"] > 1 else ""
        gone = f", expired on {each['expired_utc'][:10]}" if each["expired_utc"] else ""
        lines.append(
            f"  {each['sealed_utc'][:19].replace('T', ' ')}  {made:<6}{visible(each['run_id'])}{again}  {count(each['total_events'])} events: "
            f"{count(each['passed'])} passed, {count(each['warned'])} warned, {count(each['rejected'])} rejected{gone}"
        )
        if each["status"] not in ("published", "unknown") or each["rolled_back_by"] is not None:
            lines.append(f"{'':23}{ended(each)}" + (f": {visible(each['why'])}" if each["why"] else ""))
    return "\n".join(lines)


def complete(result: CompleteResult) -> str:
    """The gate over completeness."""
    value = to_json(result)
    looked = f"{plural(len(value['runs']), 'run')}" + (f", {plural(value['features'], 'feature')}" if value["features"] else "")
    lines = [f"{value['name']}: lineage is {'complete' if value['status'] == 'pass' else 'NOT complete'} ({looked})"]
    for gap in value["gaps"]:
        more = gap["count"] - len(gap["samples"])
        shown = ", ".join(visible(each) for each in gap["samples"]) + (f" and {count(more)} more" if more > 0 else "")
        lines.append(
            f"  {gap['severity']:<8} run {visible(gap['run_id'])}  {gap['rule']}: {gap['message']} ({count(gap['count'])}): {shown}"
        )
    return "\n".join(lines)


def _event(event: JsonObject) -> str:
    parts = [event["stage"], event["event_type"], event["outcome"]]
    if event["source_crs"] != event["target_crs"]:
        parts.append(f"{event['source_crs']} to {event['target_crs']}")
    if event["change_class"]:
        parts.append(event["change_class"])
    if event["rejection_reason"]:
        parts.append(f"({event['rejection_reason']})")
    return visible(" ".join(parts))


def ingested(result: IngestResult, file: str) -> str:
    """What became of the lines of a file."""
    value = to_json(result)
    lines = [
        f"{file}: {plural(value['lines'], 'line')} in, {plural(value['events'], 'event')} and {count(value['quarantined'])} in quarantine"
    ]
    lines += [
        f"  sealed     run {visible(each['run_id'])}: {plural(each['events'], 'event')}, root {each['root']}" for each in value["runs"]
    ]
    if value["known"]:
        lines.append(f"  known      {plural(len(value['known']), 'run')} of this file: taken in before")
    lines += [f"  line {each['line']}: {visible(each['reason'])}" for each in value["samples"]]
    if value["quarantine"]:
        lines.append(f"  all of them stand in {value['quarantine']}")
    return "\n".join(lines)


def retained(result: RetainResult, typed: str) -> str:
    """What expired, or would."""
    value = to_json(result)
    going = [each for each in value["prefixes"] if not each["held_by"]]
    terms = f"{value['window']} ({visible(value['basis'])})"
    if value["status"] == "nothing":
        lines = [f"nothing expires: {'holds keep what' if value['prefixes'] else 'no lineage'} is older than {terms}"]
    else:
        done = "would expire" if value["status"] == "planned" else "expired"
        lines = [
            f"{plural(len(going), 'day')} of lineage {done}, {size(value['bytes'])}: runs before {value['first_kept']}, older than {terms}"
        ]
    for each in value["prefixes"]:
        lines.append(
            f"  {each['run_date']}  {plural(len(each['runs']), 'run')}, {plural(each['events'], 'event')}, {size(each['bytes'])}"
            + (
                f", kept by hold {', '.join(each['held_by'])}"
                if each["held_by"]
                else f"; {plural(each['carried_features'], 'live feature')} carried on to the baseline"
            )
        )
    if value["leftover"]:
        lines.append(f"  and {plural(value['leftover'], 'object')} that an earlier time left behind")
    lines += [
        f"  hold {each['id']}  {each['kind']} {visible(each['value'])}: {visible(each['reason'])}"
        for each in value["holds"]
        if not each["released"]
    ]
    if value["confirm"]:
        again = [
            "merestone",
            "lineage",
            "retain",
            typed,
            "--window",
            value["window"],
            "--basis",
            value["basis"],
            "--confirm",
            value["confirm"],
        ]
        lines.append(f"  next       {visible(shlex.join(again))}")
    if value["tombstone"]:
        lines.append(f"  tombstone  {value['tombstone']}")
    return "\n".join(lines)


def held(result: HoldResult) -> str:
    """A hold that was placed or released."""
    hold = result.hold
    what = f"{hold['kind']} {visible(hold['value'])}".strip()
    if hold["released"]:
        return f"hold {hold['id']} on {what} is released: {visible(hold['released']['reason'])}"
    return f"hold {hold['id']} keeps {what}: {visible(hold['reason'])}"
