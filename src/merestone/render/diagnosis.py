"""The walk of `diagnose` in words.

Not here: the walk (`results.diagnosis`), the words of one finding (`text`).
"""

from __future__ import annotations

from merestone.render.text import finding as finding_lines
from merestone.results.diagnosis import DiagnoseResult
from merestone.words import plural


def text(result: DiagnoseResult) -> str:
    """The walk, a line for each step up to the fault."""
    head = f"first fault: {result.fault}" if result.fault else "no fault found"
    lines = [f"{result.delivery} ({plural(result.rows, 'row')}): {head}"]
    for each in result.steps:
        if each.state == "fault":
            lines.append(f"  {each.name.ljust(12)} FAULT")
            lines += [f"  {line}" for one in each.findings for line in finding_lines(one)]
        elif each.state != "not reached":
            lines.append(f"  {each.name.ljust(12)} {each.state}: {each.words}")
    later = [each.name for each in result.steps if each.state == "not reached"]
    if result.fault is not None:
        lines.append(f"  not reached: {', '.join(later)}. Correct this first, then diagnose again." if later else "  Correct this.")
    return "\n".join(lines)
