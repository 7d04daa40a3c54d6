"""Which columns are drafted as the key: the best joined of two exports, or, of one, in the order in which a steward would look at them.

Not here: what a column holds (`infer`), how well a key joins (`join`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from merestone.drafts.infer import COUNTS, Inferred, KeyCandidate, id_like
from merestone.drafts.join import Exports, Hashes, Joined, hashes, together
from merestone.errors import UsageError
from merestone.source.port import Source
from merestone.words import listed, percent, plural

_JUDGED = 12
"""How many keys are held against each other."""
_MEMBERS, _TOGETHER, _SETS = 8, 3, 6
"""Of so many columns, sets of up to so many are tried as a key; so many of them are judged."""
_HEAD = 50_000
_NONE_BACK = 0.01
_CLEARLY = 1.05
"""Several columns are the key where they join so much more than any one."""
_WELL = 0.9
"""Keys that join so much of what the best one joins are held against each other."""
_MEANING = 0.5
"""A key under which less than this share of what else is known agrees has lost its meaning from export to export."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The key; how well it joins, where two exports were compared; why it, in words; columns that other exports deal out anew."""

    columns: tuple[str, ...]
    joined: Joined | None
    said: tuple[str, ...]
    dealt_out: tuple[str, ...] = ()
    doubt: str = ""


def asked_key(asked: Sequence[str], inferred: Inferred, exports: Exports | None, path: str) -> Chosen:
    """The key that a person named.

    Raises:
        UsageError: a column is not there.
    """
    by_name = {each.name: each for each in inferred.keys}
    unknown = [each for each in asked if each not in by_name]
    if unknown:
        raise UsageError(f"{path} has no column {unknown[0]}", field=unknown[0], hint=f"its columns are {', '.join(by_name)}")
    said = []
    if len(asked) == 1 and by_name[asked[0]].why_not:
        facts = inferred.column(asked[0])
        refused = "; publish will refuse the delivery and name the rows" if facts and (facts.nulls or facts.duplicates) else ""
        said.append(f"{asked[0]} is not a clean key: {by_name[asked[0]].why_not}{refused}")
    elif len(asked) == 1 and by_name[asked[0]].doubt:
        said.append(by_name[asked[0]].doubt)
    key = tuple(asked)
    if exports is None:
        return Chosen(key, None, tuple(said))
    keys = [key, *(each for each in _candidates(inferred) if each != key)]
    found = exports.judge(keys[:_JUDGED])
    return Chosen(key, found[0], (*said, *_how_it_joins(found[0])), _dealt_out(found[0], found))


def first_key(inferred: Inferred, source: Source) -> Chosen:
    """The key to offer where no older export is there.

    Raises:
        UsageError: no column can be the key by itself.
    """
    usable = [each for each in inferred.keys if not each.why_not]
    if not usable:
        raise _no_key(inferred, source, sets_of(inferred, [source]))
    best = usable[0]
    said = [f"key: {best.name}, unique and never null in {plural(inferred.rows, 'row')}"]
    if best.doubt:
        said.append(best.doubt)
    return Chosen((best.name,), None, (*said, *_others(inferred, (best.name,), {})), doubt=best.doubt)


def joining_key(inferred: Inferred, exports: Exports, sources: tuple[Source, Source], *, aside: bool = False) -> Chosen:
    """The key that joins two exports best.

    Args:
        inferred: what holds in both.
        exports: the two, newer and older.
        sources: the same.
        aside: whether rows without a key of their own may be set aside: where no clean column joins, one with few such rows will do.

    Raises:
        UsageError: no column and no set of columns can be the key.
    """
    singles = _candidates(inferred)[:_JUDGED]
    rank: dict[tuple[str, ...], int] = {(each.name,): each.rank for each in inferred.keys}
    found = list(exports.judge(singles))
    best = max((each.score for each in found), default=0.0)
    counts = all(rank[each] >= COUNTS for each in singles)
    faulty = [(each.name,) for each in inferred.keys if each.near and each.why_not and aside]
    if faulty and (not found or counts or best < _MEANING * found[0].smaller):
        singles = [*singles, *faulty][:_JUDGED]
        found = list(exports.judge(singles))
        best = max(each.score for each in found)
        counts = all(rank[each] >= COUNTS for each in singles)
    sets = sets_of(inferred, sources) if not found or counts or best < _MEANING * found[0].smaller else []
    if sets:
        several = exports.judge([*singles, *sets])
        better = max(each.score for each in several[len(singles) :]) > (_MEANING if counts else _CLEARLY) * best
        found = list(several if better else several[: len(singles)])
    agreed = max((each.score for each in found if rank.get(each.key, 0) < COUNTS), default=0.0)
    # The order of rows is not a key, though it may join well for as long as rows are only added at the end.
    last = {each.key: agreed > 0 and agreed >= _MEANING * best and rank.get(each.key, 0) >= COUNTS for each in found}
    # Those that do well are judged again, by what is not part of any of them: a column is not evidence for all but itself.
    leading = max((each for each in found if not last[each.key]), key=lambda each: each.score, default=None)
    well = [] if leading is None or leading.score <= 0 else [each for each in found if not last[each.key] and _near(each, leading)]
    rivals = {each.key: each for each in exports.among(well)}

    def order(each: Joined) -> tuple[object, ...]:
        held = rivals.get(each.key, each)
        return last[each.key], each.key not in rivals, -round(held.score, 6), -each.rows, len(each.key), rank.get(each.key, 9)

    found.sort(key=order)
    back = [each for each in found if each.rows > _NONE_BACK * each.smaller]
    if not back and found and not found[0].smaller:
        return first_key(inferred, sources[0])
    if not back:
        gone = {each.key: each for each in found}
        keys = [_lost(each, gone) for each in inferred.keys]
        raise _no_key(replace(inferred, keys=tuple(keys)), sources[0], sets)
    chosen = back[0]
    numbered = {(each.name,) for each in inferred.columns if each.series or each.in_order}
    if chosen.alike < _MEANING and (rank.get(chosen.key, 0) >= COUNTS or chosen.key in numbered):
        keys = [_meaningless(each, chosen) for each in inferred.keys]
        raise _no_key(replace(inferred, keys=tuple(keys)), sources[0], sets)
    said = [f"key: {' and '.join(chosen.key)}, {_how_clean(inferred, chosen.key)}", *_how_it_joins(chosen)]
    said += [each.doubt for each in inferred.keys if (each.name,) == chosen.key and (each.rank >= COUNTS or "previous" in each.doubt)]
    equal = [each for each in back[1:] if each.key in rivals and _equal(rivals[each.key], rivals[chosen.key])]
    if equal:
        names = listed([" and ".join(each.key) for each in equal[:5]], len(equal))
        one = len(equal) == 1 and len(equal[0].key) == 1
        said.append(f"{names} {'joins' if one else 'join'} the two exports just as well: look which of them is the key")
    joined = {each.key: each for each in found if each not in equal}
    return Chosen(chosen.key, chosen, (*said, *_others(inferred, chosen.key, joined)), _dealt_out(chosen, found))


def _how_clean(inferred: Inferred, key: tuple[str, ...]) -> str:
    faults = next((each.why_not for each in inferred.keys if (each.name,) == key), "")
    return f"{faults}; those rows are not compared" if faults else f"unique and never null in {plural(inferred.rows, 'row')}"


def _near(each: Joined, leading: Joined) -> bool:
    """Whether a key does nearly as well as the leading one, in rows and in what agrees."""
    return each.score >= _WELL * leading.score and each.alike >= _WELL * leading.alike


def _candidates(inferred: Inferred) -> list[tuple[str, ...]]:
    return [(each.name,) for each in inferred.keys if not each.why_not]


def _equal(one: Joined, other: Joined) -> bool:
    return one.rows == other.rows and abs(one.score - other.score) <= 1e-6 * max(one.score, other.score, 1.0)


def _how_it_joins(found: Joined) -> list[str]:
    """How well the key joins, in words; a warning where it does so badly."""
    said = [in_words(found)]
    if found.rows and found.alike < _MEANING:
        said.append(f"no column keeps its meaning from export to export; {' and '.join(found.key)} is drafted as the key and needs another")
    return said


def in_words(found: Joined) -> str:
    """What a key joins."""
    share = percent(found.rows / max(found.smaller, 1))
    return (
        f"it joins {found.rows:,} of the {found.smaller:,} rows of the smaller export ({share}), "
        f"and {percent(found.alike)} of what can be compared agrees under it"
    )


def _dealt_out(chosen: Joined, found: Sequence[Joined]) -> tuple[str, ...]:
    """Columns whose values come back for other things: as keys they join rows that do not agree."""
    return tuple(
        each.key[0]
        for each in found
        if len(each.key) == 1 and each.key != chosen.key and each.rows and each.alike < _MEANING * chosen.alike and chosen.alike >= _MEANING
    )


def _others(inferred: Inferred, chosen: tuple[str, ...], joined: dict[tuple[str, ...], Joined]) -> list[str]:
    """The other columns that could be taken for the key, and why they are not; usable ones first."""
    others = [each for each in inferred.keys if each.name not in chosen and (not each.why_not or each.near or id_like(each.name) < 2)]
    said = []
    for each in others[:6]:
        found = joined.get((each.name,))
        if each.why_not:
            said.append(f"not the key: {each.name}, {each.why_not}")
        elif found is not None and found.rows <= _NONE_BACK * found.smaller:
            said.append(f"not the key: {each.name}, {_none_back(found)}")
        elif found is not None:
            said.append(
                f"not the key: {each.name}, it joins {found.rows:,} rows, and {percent(found.alike)} of what can be compared agrees under it"
            )
        elif not joined:
            said.append(f"not the key: {each.name}, {each.doubt or 'unique too; name it as the key if it is the better one'}")
    return said


def _none_back(found: Joined) -> str:
    return f"only {percent(found.rows / max(found.smaller, 1))} of its values come back from the previous delivery: it is made anew"


def _lost(each: KeyCandidate, gone: dict[tuple[str, ...], Joined]) -> KeyCandidate:
    found = gone.get((each.name,))
    return each if each.why_not or found is None else replace(each, why_not=_none_back(found))


def _meaningless(each: KeyCandidate, found: Joined) -> KeyCandidate:
    words = f"a number that each export hands out anew: {percent(found.alike)} of what can be compared agrees under it"
    return replace(each, why_not=words) if (each.name,) == found.key else each


def _no_key(inferred: Inferred, source: Source, sets: Sequence[tuple[str, ...]]) -> UsageError:
    likely = sorted(
        (each for each in inferred.keys if each.near or id_like(each.name) < 2 or each.rank > 5), key=lambda each: not each.near
    )
    nearly = [f"{each.name} ({each.why_not})" for each in likely]
    nearly = nearly or [each.name for each in inferred.keys[:5]]
    if not nearly:
        what = "no rows and no columns" if not inferred.rows else "no columns but the geometry"
        hint = "name a delivery with columns, or another layer of it: «layer=NAME»"
        return UsageError(f"{source.delivery.path} has {what}: nothing identifies a feature in it", field="key", hint=hint)
    unique = f"unique together: {'; '.join(','.join(each) for each in sets[:3])}; " if sets else ""
    return UsageError(
        f"no column of {source.delivery.path} can be the key: {listed(nearly[:5], len(nearly))}",
        field="key",
        hint=f"{unique}repair one of them, or name columns that identify a feature together: «key=COLUMNS»",
    )


# --- several columns together ------------------------------------------------------------------------------------------------------------


def sets_of(inferred: Inferred, sources: Sequence[Source]) -> list[tuple[str, ...]]:
    """Sets of two or three columns that are unique together in every export, and no part of which is; the likeliest first."""
    fit = [
        each.name
        for each in inferred.columns
        if each.kind.kind in {"string", "integer"} and not each.note and not each.nulls and not each.counter and len(each.codes) != 1
    ]
    unique = {each.name for each in inferred.keys if not each.why_not}
    fit = [each for each in fit if each not in unique and all(each in source.delivery.schema.names for source in sources)]
    heads = [_head(each, fit) for each in sources]
    values = {name: len(np.unique(heads[0][name])) for name in fit}
    likeliest = sorted(fit, key=lambda name: (id_like(name), -values[name]))[:_MEMBERS]
    members = [each for each in fit if each in likeliest]
    found: list[tuple[str, ...]] = []
    for size in range(2, _TOGETHER + 1):
        found += [
            each
            for each in combinations(members, size)
            if not any(set(part) <= set(each) for part in found) and all(_alone(together([head[name] for name in each])) for head in heads)
        ]
    found.sort(key=lambda each: (len(each), sum(id_like(name) for name in each)))
    return [each for each in found[:_SETS] if all(_alone(_whole(source, each)) for source in sources)]


def _head(source: Source, names: Sequence[str]) -> dict[str, Hashes]:
    """The first rows of an export."""
    parts: dict[str, list[Hashes]] = {name: [np.zeros(0, np.uint64)] for name in names}
    left = _HEAD
    for batch in source.batches():
        for name in names:
            parts[name].append(hashes(batch.column(name).slice(0, left)))
        left -= batch.num_rows
        if left <= 0:
            break
    return {name: np.concatenate(each) for name, each in parts.items()}


def _whole(source: Source, names: Sequence[str]) -> Hashes:
    parts = [together([hashes(batch.column(name)) for name in names]) for batch in source.batches()]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _alone(keys: Hashes) -> bool:
    return len(np.unique(keys)) == len(keys)
