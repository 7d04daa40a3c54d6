"""Guards: how much change may be published without a person's word, what the likely cause is, and the token that says "I mean it".

Not here: breaches of the contract (`gate`), which nobody can confirm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from merestone.outcome import Finding


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the change looks like, for guessing its cause; every share is of 1.

    keys: what the key is called. features: how many were published. changed: how many of the delivered features are classed changed.
    found_elsewhere: changed or added contents that stood under another key. rekeyed: pairs of added and removed with one content.
    column: the attribute that changed in most of the changed features, and its share. shift: the common displacement of the changed
    geometries in units of the CRS (x, y) and the share of them that follow it. metres: metres in one unit of the CRS.
    vertices: share of the changed geometries whose number of vertices differs. swapped: share that fits with x and y exchanged.
    """

    keys: str
    features: int
    changed: int = 0
    found_elsewhere: int = 0
    touched: int = 0
    rekeyed: int = 0
    column: tuple[str, float] | None = None
    shift: tuple[float, float, float] | None = None
    metres: float = 1.0
    vertices: float = 0.0
    swapped: float = 0.0
    geometry_changed: int = 0


MOST = 0.9  # a cause explains "almost all" of a change from here on


def cause(evidence: Evidence) -> str:
    """The likely cause of a mass change in one sentence; empty where nothing stands out."""
    if evidence.touched and evidence.found_elsewhere >= MOST * evidence.touched:
        return (f"{evidence.found_elsewhere:,} of {evidence.touched:,} contents were found again under other keys: "
                f"{evidence.keys} looks like a row number that each export hands out anew")
    if evidence.rekeyed and 2 * evidence.rekeyed >= MOST * evidence.touched:
        return f"{evidence.rekeyed:,} features kept their content and have a new {evidence.keys}: the keys were renumbered"
    if evidence.swapped >= MOST and evidence.geometry_changed:
        return f"{percent(evidence.swapped)} of the changed geometries fit with x and y exchanged: an axis swap"
    if evidence.shift is not None and evidence.shift[2] >= MOST:
        dx, dy, share = evidence.shift
        return f"{percent(share)} of them by the same {_metres(dx * evidence.metres, dy * evidence.metres)}: a datum or CRS change"
    if evidence.column is not None and evidence.column[1] >= MOST:
        name, share = evidence.column
        return f"{percent(share)} of them in {name}: if each export makes it anew, declare it `volatile` in the contract; else its type or rule changed"
    if evidence.geometry_changed and evidence.vertices >= MOST:
        return f"{percent(evidence.vertices)} of the changed geometries have another number of vertices: the geometry was generalised anew"
    return ""


def _metres(dx: float, dy: float) -> str:
    size = float(np.hypot(dx, dy))
    compass = ("east", "north-east", "north", "north-west", "west", "south-west", "south", "south-east")
    return f"{size:,.2f} m to the {compass[round(float(np.arctan2(dy, dx)) / (np.pi / 4)) % 8]}"


def percent(share: float) -> str:
    """A share as a person reads it: never 100 % unless it is."""
    text = f"{share * 100:.0f}" if share >= 0.1 or share == 0 else f"{share * 100:.1f}"
    if text == "100" and share < 1:
        text = "99.9"
    return f"{text} %"


def common_shift(dx: npt.NDArray[np.float64], dy: npt.NDArray[np.float64]) -> tuple[float, float, float] | None:
    """The displacement that most geometries share: its x and y, and the share within 5 % (and at least a thousandth of it) of it."""
    good = np.isfinite(dx) & np.isfinite(dy)
    if not good.any():
        return None
    x, y = float(np.median(dx[good])), float(np.median(dy[good]))
    size = float(np.hypot(x, y))
    if size == 0:
        return None
    near = np.hypot(dx[good] - x, dy[good] - y) <= 0.05 * size
    return x, y, float(near.mean())


def changed_fraction(evidence: Evidence, *, share: float, limit: float) -> Finding | None:
    """The mass-change guard: (added + changed + removed, rekeyed pairs once) / previous features above its limit."""
    if not evidence.features or share <= limit:
        return None
    why = cause(evidence)
    return Finding(
        surface="guard", field=evidence.keys, rule="changed", severity="error", expected=f"at most {percent(limit)} changed",
        observed=f"{percent(share)} changed" + (f". {why[0].upper()}{why[1:]}" if why else ""), count=evidence.touched,
        remedy="if this is meant, repeat the command with --confirm and the token",
    )


def withdrawn(delivery: str, taken_back: Sequence[str], keys: str) -> Finding | None:
    """A delivery that a roll-back withdrew does not come back by itself."""
    if delivery not in taken_back:
        return None
    return Finding(
        surface="guard", field=keys, rule="withdrawn", severity="error", expected="a delivery other than the one that was rolled back",
        observed=f"exactly the delivery {delivery[:12]} that a roll-back withdrew", count=1,
        remedy="deliver a corrected export; if it is meant, repeat the command with --confirm and the token",
    )


def emptied(delivered: int, features: int, keys: str) -> Finding | None:
    """An empty delivery over a filled dataset always stops."""
    if delivered or not features:
        return None
    return Finding(
        surface="guard", field=keys, rule="empty", severity="error", expected=f"a delivery for {features:,} published features",
        observed="an empty delivery", count=features,
        remedy="see whether the export broke off; if it is meant, repeat the command with --confirm and the token",
    )


def token(parent: str | None, delivery: str, findings: Sequence[Finding], issued_utc: str) -> str:
    """The token for one confirmation: bound to the parent manifest, the delivery, the guards that fired, and when it was given out."""
    text = "\n".join([parent or "", delivery, *sorted(each.rule for each in findings), issued_utc])
    digest = blake2b(text.encode(), digest_size=4).hexdigest()
    return f"{digest[:4]}-{digest[4:]}"


def confirms(given: str, issued: dict[str, Any], *, parent: str | None, delivery: str, findings: Sequence[Finding], now_utc: str, oldest_utc: str) -> bool:
    """Whether a token confirms this stop: `issued` is what the refused run noted of it, `oldest_utc` the time before which it has expired."""
    fresh = oldest_utc <= str(issued.get("issued_utc", "")) <= now_utc
    return fresh and issued.get("token") == given == token(parent, delivery, findings, str(issued.get("issued_utc", "")))
