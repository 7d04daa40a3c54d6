"""Numbers, lists and names as a person reads them: the one place where a count, a share, a size or a length becomes text.

Not here: sentences (`gate.rules`, `render`), what a terminal or a page looks like (`render`, `cli`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def count(number: int) -> str:
    """1190482 as "1,190,482"."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """A number and its noun: "1 row", "2 rows"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def size(number: int) -> str:
    """Bytes with a decimal unit: "48 MB", "1.2 MB", "640 B"."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 9.95 else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """A time as "0.4 s", "9 s", "2 min 5 s"."""
    if seconds < 0.95:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def distance(value: float, unit: str) -> str:
    """A length as "2.41 m", "0.000012 degrees": two significant digits at least."""
    unit = "degrees" if unit == "degree" and value != 1 else unit
    if value == 0:
        return f"0 {unit}"
    decimals = 2
    while decimals < 12 and abs(value) < 10.0 ** (1 - decimals):
        decimals += 1
    return f"{value:,.{decimals}f} {unit}"


def ordinate(value: float) -> str:
    """An ordinate as one would type it: metres to the millimetre, degrees to seven places."""
    return f"{value:.7f}".rstrip("0").rstrip(".") if abs(value) <= 360 else f"{value:.3f}".rstrip("0").rstrip(".")


def visible(text: str) -> str:
    r"""Text from a delivery, safe on a terminal: what cannot be seen is written as an escape such as \x0a or \u2028."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else (f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}") for char in text)


def percent(share: float) -> str:
    """A share as a person reads it: never 100 % unless it is."""
    if not math.isfinite(share):
        return "infinitely many %"
    text = f"{share * 100:.0f}" if share >= 0.1 or share == 0 else f"{share * 100:.1f}"
    if text == "100" and share < 1:
        text = "99.9"
    return f"{text} %"


def called(key: str | None, row: int | None) -> str:
    """A feature as a sentence names it: its key, "key 49" where that is a number and would be read as a count, or "row 3"."""
    if key is None:
        return f"row {row}"
    return f"key {key}" if key.lstrip("-").isdigit() else key


def listed(words: Sequence[str], count: int) -> str:
    """Words as a list: "a", "a and b", "a, b and c", "a, b and 12 more": `count` is how many there are, `words` the first of them."""
    if count > len(words):
        return f"{', '.join(words)} and {count - len(words):,} more" if words else f"{count:,}"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))


def came_of(status: str, version: int | None, refused_by: str | None, rolled_back_by: int | None) -> str:
    """What came of a run: "v3", "v3, rolled back by v4", "STOPPED by a guard, nothing published"."""
    if status == "published":
        return f"v{version}" + (f", rolled back by v{rolled_back_by}" if rolled_back_by is not None else "")
    if status == "refused":
        by = {None: "REFUSED", "guard": "STOPPED by a guard"}.get(refused_by, f"REFUSED by its {refused_by}")
        return f"{by}, nothing published"
    if status in ("failed", "abandoned"):
        return f"{status.upper()}, nothing published"
    return {"unchanged": "unchanged", "foreign": "of another program"}.get(status, "no version")
