"""A scorecard over runs: how many features passed, were warned of or rejected in each, against thresholds; as text, JSON, HTML, JUnit.

Not here: counting (`lineage.verdict`), the gate's exit code (`cli`). Shares are of features by their worst outcome.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from merestone.json_value import JsonObject
from merestone.render.page import framed
from merestone.render.xml_text import Element, document
from merestone.words import came_of, count, plural, visible

_COLOURS = {"passed": "#2e7d5b", "warned": "#d9a21b", "rejected": "#b3372f"}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Largest shares of features, from 0 to 1; None asks for nothing. A conflict between events breaks the gate in any case."""

    max_rejected: float | None = None
    max_warned: float | None = None
    allow_empty: bool = False

    def to_json(self) -> dict[str, float | None]:
        """The JSON object."""
        return {"max_rejected": self.max_rejected, "max_warned": self.max_warned}

    def pass_all(self, scores: Sequence[Score]) -> bool:
        """Whether the gate passes: no run breaks a threshold, and there is a run, or none is accepted."""
        return bool(scores or self.allow_empty) and not any(each.breaches(self) for each in scores)


@dataclass(frozen=True, slots=True)
class Score:
    """One run: features by worst outcome, events, and contradictions between its events.

    `nameless`: it was refused, or stopped, before any feature could be named. `missing`: a version names it, and it is not there. `status`,
    `refused_by`, `why`, `rolled_back_by`: what came of it; a run whose features all passed may have been refused.
    """

    run_id: str
    version: int | None
    sealed_utc: str
    events: int
    features: int
    passed: int
    warned: int
    rejected: int
    conflicts: int
    nameless: bool = False
    missing: bool = False
    status: str = "unknown"
    refused_by: str | None = None
    why: str | None = None
    rolled_back_by: int | None = None

    @property
    def ended_otherwise(self) -> bool:
        """Whether more came of it than a version that stands, or than nobody says."""
        return self.rolled_back_by is not None or self.status not in ("published", "unknown")

    @property
    def ended(self) -> str:
        """What came of it, in words."""
        came = came_of(self.status, self.version, self.refused_by, self.rolled_back_by)
        return f"{came}: {visible(self.why)}" if self.why else came

    def share(self, name: str) -> float:
        """The share of `passed`, `warned` or `rejected` features; 0 in a run that met none, but all are rejected with a refused delivery."""
        if self.nameless:
            return 1.0 if name == "rejected" else 0.0
        value: int = getattr(self, name)
        return value / self.features if self.features else 0.0

    def breaches(self, limits: Thresholds) -> list[str]:
        """What of the thresholds the run breaks, in words."""
        found = ["a version names this run, and it is not there"] if self.missing else []
        for name, limit in (("rejected", limits.max_rejected), ("warned", limits.max_warned)):
            if limit is not None and self.share(name) > limit:
                found.append(f"{percent(self.share(name))} {name}, limit {percent(limit)}")
        if self.conflicts:
            found.append(f"{plural(self.conflicts, 'event')} in conflict")
        return found


def to_json(name: str, scores: Sequence[Score], limits: Thresholds) -> JsonObject:
    """The JSON object."""
    runs = [
        {
            "run_id": each.run_id,
            "version": each.version,
            "sealed_utc": each.sealed_utc,
            "events": each.events,
            "features": each.features,
            "passed": each.passed,
            "warned": each.warned,
            "rejected": each.rejected,
            "conflicts": each.conflicts,
            "status": each.status,
            "refused_by": each.refused_by,
            "why": each.why,
            "rolled_back_by": each.rolled_back_by,
            "breaches": each.breaches(limits),
        }
        for each in scores
    ]
    return {
        "name": name,
        "status": "pass" if limits.pass_all(scores) else "fail",
        "thresholds": limits.to_json(),
        "runs": runs,
    }


def text(name: str, scores: Sequence[Score], limits: Thresholds) -> str:
    """For a person at a terminal, oldest run first."""
    lines = [f"{name}: {_verdict(scores, limits)}"]
    for each in scores:
        made = f"v{each.version}" if each.version is not None else "-"
        lines.append(
            f"  {each.sealed_utc[:10]}  {made:<6}{each.run_id:<18} {count(each.features):>11} features"
            f"  {percent(each.share('passed')):>8} passed  {count(each.warned):>7} warned  {count(each.rejected):>7} rejected"
        )
        lines += [f"{'':14}{each.ended}"] if each.ended_otherwise else []
        lines += [f"{'':14}BREAKS {broken}" for broken in each.breaches(limits)]
    return "\n".join(lines)


def junit(name: str, scores: Sequence[Score], limits: Thresholds) -> str:
    """JUnit XML: one test case a run."""
    cases = []
    for each in scores:
        broken = each.breaches(limits)
        inner: tuple[Element, ...] = (
            (Element("failure", "; ".join(broken), {"message": "; ".join(broken), "type": "threshold"}),) if broken else ()
        )
        inner += (Element("system-out", each.ended),) if each.ended_otherwise else ()
        cases.append(Element("testcase", inner, {"classname": f"lineage.{name}", "name": f"run {each.run_id}", "time": "0"}))
    if not limits.pass_all(scores) and not cases:  # a build that reads this has to see that nothing was judged
        why = _verdict(scores, limits)
        nothing = (Element("failure", why, {"message": why, "type": "empty"}),)
        cases.append(Element("testcase", nothing, {"classname": f"lineage.{name}", "name": "runs", "time": "0"}))
    failures = str(max(sum(bool(each.breaches(limits)) for each in scores), int(not limits.pass_all(scores))))
    sums = {"tests": str(len(cases)), "failures": failures, "errors": "0", "skipped": "0"}
    suite = Element("testsuite", tuple(cases), {"name": f"lineage scorecard of {name}", **sums, "time": "0"})
    return document(Element("testsuites", (suite,), sums))


def page(name: str, scores: Sequence[Score], limits: Thresholds) -> str:
    """One self-contained HTML page with charts; it needs no network and no script."""
    verdict = _verdict(scores, limits)
    rows = "".join(
        f"<tr class='{'bad' if each.breaches(limits) else ''}'><td>{_safe(each.sealed_utc[:16].replace('T', ' '))}</td>"
        f"<td>{_safe(each.ended)}</td><td>{_safe(each.run_id)}</td><td>{count(each.features)}</td>"
        f"<td>{count(each.passed)}</td><td>{count(each.warned)}</td><td>{count(each.rejected)}</td><td>{_safe('; '.join(each.breaches(limits)))}</td></tr>"
        for each in reversed(scores)
    )
    body = f"""<h1>{_safe(name)}: lineage scorecard</h1><p>{_safe(verdict)}.</p>
<h2>Features met by each run</h2>{_bars(scores)}
<p class="key">{"".join(f'<span style="color:{colour}">&#9632; {word}</span>' for word, colour in _COLOURS.items())}</p>
<h2>Share rejected</h2>{_line(scores, "rejected", limits.max_rejected)}
<h2>Share warned of</h2>{_line(scores, "warned", limits.max_warned)}
<h2>Runs</h2><div class="wide"><table><thead><tr><th>sealed (UTC)</th><th>what came of it</th><th>run</th><th>features</th><th>passed</th><th>warned</th>
<th>rejected</th><th>breaks</th></tr></thead><tbody>{rows}</tbody></table></div>
"""
    return framed(f"{name}: lineage scorecard", _STYLE, body)


_STYLE = """body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222; background: #fff }
h1 { overflow-wrap: anywhere } .wide { overflow-x: auto }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd }
td:nth-child(n+4):nth-child(-n+7) { text-align: right; font-variant-numeric: tabular-nums } .bad { background: #fbeae8 }
svg { width: 100%; height: auto } h2 { font-size: 1.05rem; margin-top: 2rem } .key span { margin-right: 1.2rem }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } th, td { border-color: #444 } .bad { background: #4a211e } }
"""


def _verdict(scores: Sequence[Score], limits: Thresholds) -> str:
    """The gate in one line."""
    if not scores:
        return "no run is sealed here; there is nothing to judge" + ("" if limits.allow_empty else ", and the gate FAILS")
    broken = sum(bool(each.breaches(limits)) for each in scores)
    return f"{plural(len(scores), 'run')}, {f'{broken} BREAK the thresholds' if broken else 'all within the thresholds'}"


def percent(share: float) -> str:
    """0.0123 as "1.23 %"; what is not nothing never reads as nothing."""
    value = share * 100
    return f"{value:.2f} %" if value == 0 or value >= 0.005 else f"{value:.2g} %"


_WIDTH, _HEIGHT, _LEFT = 900, 180, 70


def _bars(scores: Sequence[Score]) -> str:
    most = max((each.features for each in scores), default=0) or 1
    step = (_WIDTH - _LEFT) / max(len(scores), 1)
    shapes = [f'<text x="0" y="12" font-size="12" fill="currentColor">{count(most)}</text>']
    for at, each in enumerate(scores):
        top = float(_HEIGHT)
        for word, colour in _COLOURS.items():
            number: int = getattr(each, word)
            height = number / most * (_HEIGHT - 10)
            height = max(height, 1.5) if number else 0.0  # a single rejected feature is seen, too
            top -= height
            if height:
                shapes.append(
                    f'<rect x="{_LEFT + at * step + step * 0.1:.1f}" y="{top:.1f}" width="{step * 0.8:.1f}" height="{height:.1f}" fill="{colour}">'
                    f"<title>{_safe(each.run_id)}: {count(number)} {word}</title></rect>"
                )
    return _svg(shapes, "features of each run by worst outcome")


def _line(scores: Sequence[Score], word: str, limit: float | None) -> str:
    most = max([each.share(word) for each in scores] + [limit or 0.0]) * 1.1 or 1.0
    step = (_WIDTH - _LEFT) / max(len(scores), 1)
    places = [(_LEFT + (at + 0.5) * step, _HEIGHT - each.share(word) / most * (_HEIGHT - 10)) for at, each in enumerate(scores)]
    shapes = [f'<text x="0" y="12" font-size="12" fill="currentColor">{percent(most)}</text>']
    if limit is not None:
        y = _HEIGHT - limit / most * (_HEIGHT - 10)
        shapes.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#888" stroke-dasharray="6 4"><title>limit {percent(limit)}'
            f"</title></line>"
        )
    shapes.append(
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" stroke="{_COLOURS[word]}" stroke-width="2"/>'
    )
    shapes += [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{_COLOURS[word]}"><title>{_safe(each.run_id)}: {percent(each.share(word))}</title></circle>'
        for (x, y), each in zip(places, scores, strict=True)
    ]
    return _svg(shapes, f"share of features {word}, by run")


def _svg(shapes: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 4}" role="img" aria-label="{label}">{"".join(shapes)}</svg>'


def _safe(value: str) -> str:
    return html.escape(value)
