"""Guards: how much change may be published without a person's word, what the likely cause is, and the token that says "I mean it".

Not here: breaches of the contract (`gate`), which nobody can confirm; gathering the evidence (`line.judging.mass_change`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from merestone.json_value import JsonObject
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.rules.rule import Rule
from merestone.words import percent

Box = tuple[float, float, float, float]  # x, y minimum, then maximum


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the change looks like, for guessing its cause; every share is of 1.

    keys: what the key is called. features: how many were published. changed: how many of the delivered features are classed changed.
    found_elsewhere: changed or added contents that stood under another key. rekeyed: pairs of added and removed with one content.
    column: the attribute that changed in most of the changed features, and its share. column_cause: why that attribute, where it can be
    measured. removed: how many were not delivered again. geometry_changed: how many of the changed features have another geometry; the
    shares that follow are of those alone. shift: their common displacement in units of the CRS (x, y) and the share that follows it.
    metres: metres in one unit of the CRS. retyped: what type became what, and the share. vertices: the share whose number of vertices
    differs within one type. swapped: the share that fits with x and y exchanged. scaled: the factor between all ordinates, and the share.
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
    scaled: tuple[float, float] | None = None
    retyped: tuple[str, float] | None = None
    column_cause: str = ""
    removed: int = 0


MOST = 0.9
"""A cause explains "almost all" of a change from this share on."""
HALF = 0.5
"""Below this share of a change nothing is said of what it has in common."""
EDITED = "the column was edited as a whole, or the rule by which it is filled changed"
"""What is said of a column whose values show nothing else."""


def cause(evidence: Evidence) -> str:
    """The likely cause of a mass change in one sentence; empty where nothing stands out."""
    if evidence.touched and evidence.found_elsewhere >= MOST * evidence.touched:
        return (
            f"{evidence.found_elsewhere:,} of {evidence.touched:,} contents were found again under other keys: "
            f"{evidence.keys} looks like a row number that each export hands out anew"
        )
    if evidence.rekeyed and 2 * evidence.rekeyed >= MOST * evidence.touched:
        return (
            f"{evidence.rekeyed:,} features kept their content and have a new {evidence.keys}: the keys were renumbered "
            "(`key_migration` in the publication names the old ones)"
        )
    if evidence.removed and evidence.removed >= MOST * evidence.touched:
        return f"{evidence.removed:,} published features are missing from the delivery: an export that broke off, or a filter"
    return _cause_of_changes(evidence)


def _cause_of_changes(evidence: Evidence) -> str:
    """What most of the touched features have in common: what explains almost all of them, else what most of them show.

    Every share is of all touched features, whatever it was measured on: one geometry that moved explains nothing of sixty edits.
    """
    touched = max(evidence.touched, evidence.changed, 1)
    of_geometry, geometry = _cause_of_geometry(evidence)
    of_geometry *= evidence.geometry_changed / touched
    name, of_column = evidence.column or ("", 0.0)
    of_column *= evidence.changed / touched
    if of_geometry >= MOST or (of_geometry >= HALF and of_column < MOST):
        return f"{percent(of_geometry)} of them {geometry}"
    if of_column >= MOST:
        return f"{percent(of_column)} of them in {name}: {evidence.column_cause or EDITED}"
    return f"{percent(of_column)} of them in {name}" if of_column >= HALF else ""


def _cause_of_geometry(evidence: Evidence) -> tuple[float, str]:
    """The share of the changed geometries that show one thing, and what it is; 0 where no thing is shown by almost all of them."""
    if evidence.swapped >= MOST:
        return evidence.swapped, "fit with x and y exchanged: an axis swap"
    if evidence.scaled is not None and evidence.scaled[1] >= MOST:
        return evidence.scaled[1], f"have the old coordinates times {evidence.scaled[0]:g}: another unit"
    if evidence.shift is not None and evidence.shift[2] >= MOST:
        dx, dy, share = evidence.shift
        return share, f"by the same {_metres(dx * evidence.metres, dy * evidence.metres)}: a datum or CRS change"
    if evidence.retyped is not None and evidence.retyped[1] >= MOST:
        return evidence.retyped[1], f"are geometries of another type: {evidence.retyped[0]}"
    if evidence.vertices >= MOST:
        return evidence.vertices, "have another number of vertices: the geometry was generalised anew"
    return 0.0, ""


def _metres(dx: float, dy: float) -> str:
    size = float(np.hypot(dx, dy))
    compass = ("east", "north-east", "north", "north-west", "west", "south-west", "south", "south-east")
    return f"{size:,.2f} m to the {compass[round(float(np.arctan2(dy, dx)) / (np.pi / 4)) % 8]}"


def common_shift(now: npt.NDArray[np.float64], then: npt.NDArray[np.float64]) -> tuple[float, float, float] | None:
    """The displacement that most geometries share: its x and y, and the share that follows it.

    A geometry follows it where both corners of its box moved by that, within a twentieth: what grew, or is a point no longer, was drawn
    anew and not displaced.

    Args:
        now: float64 (n, 4), boxes as xmin, ymin, xmax, ymax.
        then: those before.
    """
    moves = now - then
    moves = moves[np.isfinite(moves).all(axis=1)]
    if not len(moves):
        return None
    centres = (moves[:, :2] + moves[:, 2:]) / 2
    middle = np.median(centres, axis=0)
    size = float(np.hypot(*middle))
    if size == 0:
        return None
    away = [np.hypot(*(corner - middle).T) for corner in (moves[:, :2], moves[:, 2:])]
    return float(middle[0]), float(middle[1]), float((np.maximum(*away) <= size / 20).mean())


UNITS = (1000.0, 0.001, 100.0, 0.01, 0.3048, 1 / 0.3048, 180 / np.pi, np.pi / 180, 10_000.0, 0.0001)
"""Factors between units that exports mix up: km, cm, feet, degrees and radians, hectares."""


def common_factor(now: npt.NDArray[np.float64], then: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """The unit factor that most pairs of numbers share (within 1 %), and the share of the pairs that follow it."""
    good = np.isfinite(now) & np.isfinite(then) & (then != 0)
    if not good.any():
        return None
    ratio = now[good] / then[good]
    middle = float(np.median(ratio))
    factor = next((each for each in UNITS if abs(middle / each - 1) < 0.01), None)
    return None if factor is None else (factor, float((np.abs(ratio / factor - 1) < 0.01).mean()))


# --- the guards (docs/spec/gate.md#guards); each None where its limit is None or holds ---------------------------------------------------


FEW_SHARE = 0.5


def allowed(limit: float | None, features: int, min_touched: int) -> float | None:
    """The limit of a share guard for a change of some features: one edit among three features is not a mass change.

    Args:
        limit: the share that may be touched; None where it is not guarded.
        features: how many features the guard counts.
        min_touched: below so many the guard stops only above a half.
    """
    return limit if limit is None or features >= min_touched else max(limit, FEW_SHARE)


def changed_fraction(evidence: Evidence, *, share: float, limit: float, sampled: tuple[int, int] | None = None) -> Finding | None:
    """(added + changed + removed, rekeyed pairs once) / previous features above its limit.

    `sampled`: the share is a lower bound, judged from this many of that many candidates.
    """
    if not evidence.features or share <= limit:
        return None
    limited, much, why = percent(limit), percent(share), _because(cause(evidence))
    if sampled is None and share > 1:  # what was added counts against what was published
        return catalogue.CHANGED.finding(
            evidence.keys, count=evidence.touched, case="beyond", limit=limited, much=evidence.touched, published=evidence.features, why=why
        )
    if sampled is None:
        return catalogue.CHANGED.finding(evidence.keys, count=evidence.touched, limit=limited, much=much, why=why)
    return catalogue.CHANGED.finding(
        evidence.keys,
        count=evidence.touched,
        case="sampled",
        limit=limited,
        much=much,
        why=why,
        sample=sampled[0],
        candidates=sampled[1],
    )


def removed_fraction(keys: str, removed: int, features: int, limit: float | None, why: str = "") -> Finding | None:
    """Features that are missing now / previous features above its limit."""
    if limit is None or not features or removed <= limit * features:
        return None
    return _stop(catalogue.REMOVED, keys, limit, removed / features, why, removed)


def moved_fraction(keys: str, moved: int, features: int, limit: float | None, why: str = "") -> Finding | None:
    """Features with equal content in another partition / previous features above its limit."""
    if limit is None or not features or moved <= limit * features:
        return None
    return _stop(catalogue.MOVED, keys, limit, moved / features, why, moved)


def key_survival(keys: str, survived: int, features: int, limit: float | None, why: str = "") -> Finding | None:
    """Published keys that were delivered again / previous features below its limit."""
    if limit is None or not features or survived >= limit * features:
        return None
    return _stop(catalogue.KEY_SURVIVAL, keys, limit, survived / features, why, features - survived)


def null_geometry_fraction(column: str, nowhere: int, rows: int, limit: float | None) -> Finding | None:
    """Delivered rows with a null or empty geometry / delivered rows above its limit; the only guard that needs no earlier version."""
    if limit is None or not rows or nowhere <= limit * rows:
        return None
    why = "the export lost the geometry, or wrote it into a column that is not read" if nowhere == rows else ""
    return _stop(catalogue.NO_GEOMETRY, column, limit, nowhere / rows, why, nowhere)


def older(column: str, newest: str, published: str, version: str) -> Finding:
    """A delivery whose newest time lies before that of what is published: an older export, or the newest features are gone."""
    return catalogue.OLDER.finding(column, name=column, moment=newest, published=published, version=version)


def axis_order(column: str, evidence: Sequence[str], warning: Finding | None) -> Finding:
    """A first version whose positions fit both ways round: it would become the reference by which all later ones are judged."""
    count = warning.count if warning is not None else 1
    return catalogue.ORDER_UNSEEN.finding(column, count=count, evidence="; ".join(evidence))


def extent_shift(
    column: str, now: Box | None, then: Box | None, limit: float | None, *, metres: float | None, outside: int = 0
) -> Finding | None:
    """How far the farthest-moved side of the extent moved / the diagonal of the previous extent, above its limit.

    Args:
        column: the geometry column.
        now: the extent of what is delivered; None where no row has a position.
        then: that of the last version, in the same CRS.
        limit: a share of the diagonal: 0.1 is a tenth of it.
        metres: metres in one unit of that CRS, None for degrees.
        outside: delivered rows that reach out of the old extent.
    """
    if limit is None or now is None or then is None:
        return None
    share = shift_of(now, then)
    if share <= limit:
        return None
    what = f"a side moved by {percent(share)} of it: {_box(then)} became {_box(now)}"
    why = _because(_extent_cause(now, then, share, metres, outside))
    return catalogue.EXTENT_SHIFT.finding(column, count=outside, limit=percent(limit), what=what, why=why)


def shift_of(now: Box, then: Box) -> float:
    """The largest move of one of the four sides, as a share of the diagonal of `then` (infinite where that is a point)."""
    move = max(abs(one - other) for one, other in zip(now, then, strict=True))
    diagonal = float(np.hypot(then[2] - then[0], then[3] - then[1]))
    return move / diagonal if diagonal else (np.inf if move else 0.0)


def _extent_cause(now: Box, then: Box, share: float, metres: float | None, outside: int) -> str:
    if shift_of((now[1], now[0], now[3], now[2]), then) < share / 10:
        return "the old extent fits with x and y exchanged: an axis swap"
    scale = common_factor(np.array(now), np.array(then))
    if scale is not None and scale[1] == 1:
        return f"every side is the old one times {scale[0]:g}: another unit"
    if now[0] <= 0 <= now[2] and now[1] <= 0 <= now[3] and not (then[0] <= 0 <= then[2] and then[1] <= 0 <= then[3]) and 0 in now:
        return "positions at 0, 0 were delivered: coordinates that were missing became numbers"
    sizes = abs((now[2] - now[0]) - (then[2] - then[0])), abs((now[3] - now[1]) - (then[3] - then[1]))
    if max(sizes) < 0.05 * max(abs(now[0] - then[0]), abs(now[1] - then[1])):
        dx, dy = now[0] - then[0], now[1] - then[1]
        far = _metres(dx * metres, dy * metres) if metres is not None else f"{dx:g}, {dy:g}"
        return f"the whole extent is displaced by {far}: a datum or CRS change"
    if now[0] >= then[0] and now[1] >= then[1] and now[2] <= then[2] and now[3] <= then[3]:
        return "the delivery covers a part of the old extent only: an export that broke off, or a filter"
    return f"{outside:,} rows reach out of the old extent" if outside else ""


def _box(box: Box) -> str:
    return " ".join(f"{each:.10g}" for each in box)


def column_changed(column: str, changed: int, kept: int, limit: float | None, why: str = "") -> Finding | None:
    """Features with another value in one column / features that are in both versions, above its limit."""
    if limit is None or not kept or changed <= limit * kept:
        return None
    why = why or EDITED
    return _stop(catalogue.COLUMN_CHANGED, column, limit, changed / kept, why, changed, name=column)


def withdrawn(delivery: str, taken_back: Sequence[str], keys: str) -> Finding | None:
    """A delivery that a roll-back withdrew does not come back by itself."""
    if delivery not in taken_back:
        return None
    return catalogue.WITHDRAWN.finding(keys, digest=delivery[:12])


def withdrawn_features(keys: str, back: int, entries: int, limit: float | None, wrong: Sequence[str]) -> Finding | None:
    """A change that a roll-back withdrew does not come back by itself.

    Args:
        keys: what the key is called.
        back: how many of the withdrawn features come back as they were withdrawn.
        entries: how many were withdrawn.
        limit: the share of them that may come back.
        wrong: the features among them that a person named as wrong.
    """
    if wrong:
        return catalogue.WITHDRAWN_NAMED.finding(keys, count=len(wrong), back=f"{len(wrong):,}", named=", ".join(wrong[:5]))
    if limit is None or not entries or back <= limit * entries:
        return None
    return catalogue.WITHDRAWN_CHANGE.finding(keys, count=back, limit=percent(limit), back=f"{back:,}", entries=f"{entries:,}")


def emptied(delivered: int, features: int, keys: str, *, first: bool = False) -> Finding | None:
    """An empty delivery over a filled dataset always stops, and so does one that would be the first version."""
    if delivered or not (features or first):
        return None
    return catalogue.EMPTIED.finding(keys, count=features, case="first" if first else "", published=features)


def _stop(rule: Rule, field: str, limit: float, share: float, why: str, count: int, *, name: str = "") -> Finding:
    return rule.finding(field, count=count, limit=percent(limit), much=percent(share), why=_because(why), name=name)


def _because(why: str) -> str:
    return f". {why[0].upper()}{why[1:]}" if why else ""


# --- the token ---------------------------------------------------------------------------------------------------------------------------


def fired(findings: Sequence[Finding]) -> list[str]:
    """The names of the guards that fired, sorted."""
    return sorted({each.rule for each in findings if each.surface == "guard"})


def token(parent: str | None, delivery: str, guards: Collection[str], issued_utc: str) -> str:
    """The token for one confirmation: bound to the parent manifest, the delivery, the set of guards that fired, and when it was given out."""
    text = "\n".join([parent or "", delivery, *sorted(guards), issued_utc])
    digest = blake2b(text.encode(), digest_size=4).hexdigest()
    return f"{digest[:4]}-{digest[4:]}"


def unfit(
    given: str,
    issued: JsonObject | None,
    *,
    delivered: bool,
    against: int | None,
    version: int | None,
    guards: Collection[str],
    oldest_utc: str,
) -> str:
    """Why a token does not confirm a stop, in a sentence.

    Args:
        given: the token.
        issued: what the run that gave it out noted of it; None where none did.
        delivered: whether that run was of the same delivery.
        against: the version that was current then.
        version: the version that is current.
        guards: those that fired now.
        oldest_utc: the time before which tokens have expired.
    """
    if issued is None:
        return f"the token {given} does not fit: no run of this dataset gave it out"
    named = issued.get("guards") or []
    others = sorted(set(guards) - set(named))
    reasons = [] if delivered else ["it is the word for another delivery"]
    if against != version:
        was, now_is = (f"v{each}" if each is not None else "no version" for each in (against, version))
        reasons.append(f"it was given out against {was}, and {now_is} is current")
    if others:
        reasons.append(f"other guards stopped the run than it is for ({', '.join(others)})")
    if str(issued.get("issued_utc", "")) < oldest_utc:
        reasons.append(f"it has expired (given out {issued.get('issued_utc')})")
    return f"the token {given} does not fit: {'; '.join(reasons) or 'it is damaged'}"


def confirms(
    given: str, issued: JsonObject, *, parent: str | None, delivery: str, guards: Collection[str], now_utc: str, oldest_utc: str
) -> bool:
    """Whether a token confirms a stop by `guards`.

    `issued` is what the refused run noted of it, `oldest_utc` the time before which it has expired. One token is the word for a set of
    guards: in its run they are met one after the other: a stop by some of them is covered; one by any other guard is not.
    """
    when, named = str(issued.get("issued_utc", "")), issued.get("guards") or []
    fresh = oldest_utc <= when <= now_utc
    return fresh and set(guards) <= set(named) and issued.get("token") == given == token(parent, delivery, named, when)
