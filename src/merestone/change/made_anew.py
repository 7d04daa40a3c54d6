"""Whether the values of a column are made anew in each export: near unique, never met before, and not the old ones edited.

Not here: which column is asked about, and where the earlier values lie (`drafts`, `line.judging`).

That most rows have another value says nothing: a year's new tariffs differ in every row, and are content. An id that an export mints leaves
other traces. Nearly every value is there once, none was there before, and a feature's new value is as far from its old one as from any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ALL = 0.99
"""The share of the features that have another value, from which on an export may have made all values anew; edits leave some as they were."""
NEAR_UNIQUE = 0.9
"""The share of the values that are different from each other, from which on a column is near unique."""
_MET = 0.05
_LOOKED_AT = 1_000  # pairs of texts that are held against each other
_NEARER = 0.25  # how much more alike (of 1) a feature's two texts are than those of neighbours, where one was made of the other
_FOLLOWS = 0.3  # rank correlation from which on numbers follow the old ones
_DENSE = 4  # a serial number leaves out three values of four at most
_NUMBER = r"^-?\d{1,15}(\.\d+)?$"
_TIME = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"


def made_anew(now: pa.Array, then: pa.Array, met: Callable[[pa.Array], float]) -> bool:
    """Whether an export made these values anew.

    Args:
        now: the values of some features that have another value than before.
        then: their earlier values, one for each; of the same kind.
        met: which share of some different values the earlier export holds anywhere; asked only where nothing else decides.
    """
    held = pc.and_(pc.is_valid(now), pc.is_valid(then))
    now, then = now.filter(held), then.filter(held)
    if len(now) < 2 or pa.types.is_nested(now.type) or pa.types.is_boolean(now.type):
        return False
    different = pc.unique(now)
    if len(different) < NEAR_UNIQUE * len(now):
        return False
    return not _edited(now, then) and met(different) <= _MET


def _edited(now: pa.Array, then: pa.Array) -> bool:
    """Whether values were made of the old ones."""
    if pa.types.is_temporal(now.type):
        return False
    one, other = _numbers(now), _numbers(then)
    if one is not None and other is not None:
        return float((one == other).mean()) > 0.5 or _follow(one, other)  # the same number in other letters around it
    texts = now.cast(pa.string()), then.cast(pa.string())
    return not pc.all(pc.match_substring_regex(texts[0], _TIME)).as_py() and _rewritten(*texts)


def _numbers(values: pa.Array) -> npt.NDArray[np.float64] | None:
    """The values as numbers, where every one is a number, reads as one, or has one within the same text as all others."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        if pc.all(pc.match_substring_regex(values, _TIME)).as_py():
            return None
        if not pc.all(pc.match_substring_regex(values, _NUMBER)).as_py():
            around = pc.unique(pc.replace_substring_regex(values, r"\d+", "0"))
            if len(around) > 1 or "0" not in around[0].as_py():
                return None
            values = pc.replace_substring_regex(values, r"\D", "")
        values = values.cast(pa.float64())
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)):
        return None
    return np.asarray(values.cast(pa.float64(), safe=False), dtype=np.float64)


def _follow(now: npt.NDArray[np.float64], then: npt.NDArray[np.float64]) -> bool:
    """Whether numbers are the old ones edited: high where they were high; the next numbers of a series are not, though they rise together."""
    if (now == np.floor(now)).all() and len(np.unique(now)) == len(now) and now.max() - now.min() < _DENSE * len(now):
        return False
    one, other = (np.argsort(np.argsort(each, kind="stable"), kind="stable").astype(np.float64) for each in (now, then))
    if len(now) == 2:
        return True  # two numbers rise together or do not; nothing can be said, and content is the careful answer
    return bool(np.corrcoef(one, other)[0, 1] > max(_FOLLOWS, min(3 / np.sqrt(len(now)), 0.9)))


def _rewritten(now: pa.Array, then: pa.Array) -> bool:
    """Whether texts are the old ones edited: a feature's two texts are more alike than its new one and its neighbour's old one."""
    some = pa.array(np.linspace(0, len(now) - 1, min(len(now), _LOOKED_AT)).astype(np.int64))
    new, old = ([_pairs_of_signs(each) for each in side.take(some).to_pylist()] for side in (now, then))
    own = float(np.mean([_alike(one, other) for one, other in zip(new, old, strict=True)]))
    others = float(np.mean([_alike(one, other) for one, other in zip(new, old[1:] + old[:1], strict=True)]))
    return own - others > _NEARER


def _pairs_of_signs(text: Any) -> frozenset[str]:
    folded = text.casefold()
    return frozenset(folded[at : at + 2] for at in range(max(len(folded) - 1, 1)))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / max(len(one) + len(other), 1)
