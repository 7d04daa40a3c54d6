"""Faults of a whole delivery: keys, keys that are nearly equal, how many features, edges.

Not here: reading or casting rows (`source`, `normalise`), the CRS and its axis order (`reference.identity`), faults of single rows (`feature`),
how fine coordinates are (`fineness`), how old the content is (`freshness`).
Every finding here refuses the delivery (docs/spec/gate.md#findings), but for those of severity warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.unicode import normalised
from merestone.contract.contract import Contract
from merestone.gate.findings import NAMED
from merestone.geometry.kernel_values import Scan
from merestone.results.finding import SAMPLES, Finding, Sample
from merestone.rules import catalogue
from merestone.words import listed, ordinate, percent

_OUTSIDE = 0.01  # of the rows
_BOX_ROUNDING = 2.0**-23  # of the largest ordinate: boxes are often kept in single precision

# --- keys ------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """Keys that stand more than once: `rows` holds, group after group, ascending row numbers (from 1); `starts` where a group begins."""

    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def group(self, number: int) -> npt.NDArray[np.int64]:
        """The rows of one group."""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.rows)
        return self.rows[self.starts[number] : end]

    def firsts(self, limit: int = SAMPLES) -> npt.NDArray[np.int64]:
        """One row of each of the first groups: the rows whose key texts a message needs."""
        return self.rows[self.starts[:limit]]


def equal_groups(hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> KeyGroups:
    """Find the rows whose hashes are equal, in the order of their first row.

    Args:
        hashes: (n,) or (n, 2) words of a key hash.
        rows: (n,) row numbers, from 1.
    """
    words = hashes.reshape(len(rows), hashes.shape[1] if hashes.ndim > 1 else 1)
    order = np.lexsort((rows, *(words[:, column] for column in range(words.shape[1]))))
    ordered = words[order]
    same = np.zeros(len(rows) + 1, dtype=np.bool_)
    if len(rows) > 1:
        same[1:-1] = (ordered[1:] == ordered[:-1]).all(axis=1)
    member = same[:-1] | same[1:]
    begins = np.flatnonzero(member & ~same[:-1])
    ends = np.flatnonzero(member & ~same[1:]) + 1
    if not len(begins):
        none = np.empty(0, dtype=np.int64)
        return KeyGroups(none, none)
    first_seen = np.argsort(rows[order[begins]], kind="stable")
    begins, sizes = begins[first_seen], (ends - begins)[first_seen]
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    within = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    return KeyGroups(rows[order[np.repeat(begins, sizes) + within]], starts)


def null_keys(field: str, rows: npt.NDArray[np.int64]) -> Finding | None:
    """Rows (from 1) without a key, or with a null in a part of it (docs/spec/gate.md#keys)."""
    if not len(rows):
        return None
    what = "null key" if len(rows) == 1 else "null keys"
    return catalogue.KEY_NULL.finding(field, count=len(rows), features=_samples(rows), what=what, rows=_rows(rows))


def unfit_keys(field: str, rows: npt.NDArray[np.int64]) -> Finding | None:
    """Rows (from 1) whose key has a value, but none of the agreed type: 12.5 where integers are agreed. No share of them is tolerated."""
    if not len(rows):
        return None
    what = "key" if len(rows) == 1 else "keys"
    return catalogue.KEY_TYPE.finding(field, count=len(rows), features=_samples(rows), what=what, rows=_rows(rows))


def blank_keys(field: str, rows: npt.NDArray[np.int64]) -> Finding | None:
    """Rows (from 1) whose key is a text that names nothing: empty, blank, or with a NUL, at which other tools end it."""
    if not len(rows):
        return None
    what = "key is" if len(rows) == 1 else "keys are"
    return catalogue.KEY_BLANK.finding(field, count=len(rows), features=_samples(rows), what=what, rows=_rows(rows))


def duplicate_keys(field: str, groups: KeyGroups, texts: Sequence[str]) -> Finding | None:
    """Keys that several rows carry: which one is meant is unknown; none is taken.

    Args:
        field: the key column, or the columns joined by ", ".
        groups: from `equal_groups` over all rows with a key.
        texts: the key as text for `groups.firsts()`, in that order; the samples are theirs.
    """
    if not len(groups):
        return None
    words: list[str] = []
    samples: list[Sample] = []
    for number, text in enumerate(texts):
        rows = groups.group(number)
        samples.extend(Sample(text, int(row)) for row in rows[: SAMPLES - len(samples)])
        if number < NAMED:
            times = "twice" if len(rows) == 2 else f"{len(rows):,} times"
            words.append(f"key {text} {times} ({_rows(rows)})")
    return catalogue.KEY_DUPLICATE.finding(field, count=len(groups.rows), features=tuple(samples), keys=listed(words, len(groups)))


def repeated_values(field: str, groups: KeyGroups, shown: Mapping[int, tuple[str, ...]]) -> Finding:
    """`schema_fields[].unique`: values that stand in several rows.

    Args:
        field: the field that promises every value only once.
        groups: the rows of equal values, one group at least.
        shown: feature id and value as text of the first rows of `groups`, `SAMPLES` of them, and of `groups.firsts()`.
    """
    words = []
    for number, first in enumerate(groups.firsts(NAMED).tolist()):
        rows = groups.group(number)
        words.append(f"{shown[first][1]} {'twice' if len(rows) == 2 else f'{len(rows):,} times'} ({_rows(rows)})")
    samples = [Sample(shown[row][0], row, observed=shown[row][1]) for row in groups.rows[:SAMPLES].tolist()]
    return catalogue.UNIQUE.finding(field, count=len(groups.rows), features=tuple(samples), name=field, values=listed(words, len(groups)))


def _samples(rows: npt.NDArray[np.int64]) -> tuple[Sample, ...]:
    return tuple(Sample(None, int(row)) for row in rows[:SAMPLES])


def _rows(rows: npt.NDArray[np.int64]) -> str:
    shown = [f"{row}" for row in rows[:NAMED].tolist()]
    return ("row " if len(rows) == 1 else "rows ") + listed(shown, len(rows))


# --- keys that are nearly equal (blanks or case) ---------------------------------------------------------------------------------------


class TwinKeys:
    """Looks for keys that differ in blanks or case only; 16 bytes of memory a key.

    Keys are compared exactly; a looser rule could merge two objects. A pair that a person would read as one key is therefore only
    pointed out. Two steps, because the texts of a large delivery are not kept: `suspects` says which rows' texts are needed. Texts that are
    not in question themselves, such as those of published keys, go through `among`.
    """

    def __init__(self) -> None:
        self._hashes: list[npt.NDArray[np.uint64]] = []
        self._found: list[npt.NDArray[np.uint64]] = []
        self._ordered: npt.NDArray[np.uint64] | None = None

    def add(self, texts: pa.Array) -> None:
        """Take in the key texts of a batch: pyarrow string array; positions count on over the batches."""
        self._hashes.append(text_hash(_folded(texts)))
        self._ordered = None

    def among(self, texts: pa.Array) -> npt.NDArray[np.int64]:
        """Places of texts that may be the twin of one that was taken in; its twins are suspects from now on."""
        hashes = text_hash(_folded(texts))
        found = _places_in(self._in_order(), hashes)
        self._found.append(hashes[found])
        return found

    def suspects(self, limit: int = 1_000) -> npt.NDArray[np.int64]:
        """Positions (over all batches, from 0) of keys that may have a twin: whole groups, at most about `limit` positions."""
        ordered = self._in_order()
        wanted = np.unique(np.concatenate([ordered[1:][ordered[1:] == ordered[:-1]], *self._found]))
        hashes, rows, at = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], 0
        for some in self._hashes:  # the few of millions that are in question; only these are put in groups
            here = _places_in(wanted, some)
            hashes.append(some[here])
            rows.append(here + at)
            at += len(some)
        suspects = np.concatenate(rows)
        groups = equal_groups(np.concatenate(hashes), suspects)
        if self._found:
            alone = np.setdiff1d(suspects, groups.rows)
            groups = KeyGroups(
                np.concatenate([groups.rows, alone]), np.concatenate([groups.starts, len(groups.rows) + np.arange(len(alone))])
            )
        if len(groups.rows) <= limit:
            return groups.rows
        keep = np.searchsorted(groups.starts, limit, side="right") - 1
        return groups.rows[: groups.starts[max(int(keep), 1)]]

    def _in_order(self) -> npt.NDArray[np.uint64]:
        """All hashes, ascending."""
        if self._ordered is None:
            self._ordered = np.concatenate([np.empty(0, np.uint64), *self._hashes])
            self._ordered.sort()
        return self._ordered


def _places_in(ordered: npt.NDArray[np.uint64], hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Which of some hashes stand in an ordered array: their places, ascending."""
    if not len(ordered):
        return np.empty(0, dtype=np.int64)
    at = np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)
    return np.flatnonzero(ordered[at] == hashes)


def twin_keys(field: str, texts: Sequence[str], rows: Sequence[int | None]) -> Finding | None:
    """A warning that names the pairs among these keys which differ in blanks or case only.

    Args:
        field: the key column.
        texts: key texts; a text that stands twice counts once.
        rows: the row of each (from 1), None for a key of the previous version that is gone.
    """
    folds = _folded(pa.array(texts, pa.string())).to_pylist()
    groups: dict[str, dict[str, int | None]] = {}
    for fold, text, row in zip(folds, texts, rows, strict=True):
        groups.setdefault(fold, {}).setdefault(text, row)
    twins = [group for group in groups.values() if len(group) > 1]
    if not twins:
        return None
    words = [" / ".join(f"'{text}'" for text in group) for group in twins]
    samples = [Sample(text, row) for group in twins for text, row in group.items()][:SAMPLES]
    return catalogue.KEY_TWIN.finding(field, count=sum(map(len, twins)), features=tuple(samples), keys=listed(words[:NAMED], len(words)))


def _folded(texts: pa.Array) -> pa.Array:
    """Lower case, blanks trimmed and runs of them made one, and letters that are drawn alike made alike (Unicode NFKC: full width, ligatures)."""
    texts = pc.utf8_trim_whitespace(pc.utf8_lower(normalised(texts, "NFKC")))
    if pc.any(pc.match_substring_regex(texts, r"\s")).as_py():
        texts = pc.replace_substring_regex(texts, r"\s+", " ")
    return texts


def text_hash(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """(n,) a 64-bit hash of each text: byte values times a weight of their place, modulo 2^64 (a multilinear hash).

    Equal texts have equal hashes; unequal ones are compared again by whoever asks (`twin_keys`), so a collision costs time, not truth.
    """
    raw = pc.fill_null(texts.cast(pa.binary()), b"")
    if len(raw) == 0:
        return np.empty(0, dtype=np.uint64)
    _, offsets, values = raw.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[raw.offset : raw.offset + len(raw) + 1].astype(np.int64)
    data = np.empty(0, dtype=np.uint8) if values is None else np.frombuffer(values, dtype=np.uint8)[ends[0] : ends[-1]]
    ends -= ends[0]
    place = np.arange(len(data)) - np.repeat(ends[:-1], np.diff(ends))
    terms = (data.astype(np.uint64) + np.uint64(1)) * _mixed(place.astype(np.uint64))
    sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)))
    return sums[ends[1:]] - sums[ends[:-1]]


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """(n,) words without a pattern: the finaliser of SplitMix64."""
    z = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# --- the delivery as a whole -----------------------------------------------------------------------------------------------------------


def other_crs(agreed: str, delivered: str, way: str) -> Finding:
    """A delivery in another CRS than the agreed one, which the publication accepts: it is transformed by a recorded step.

    Args:
        agreed: the contract's CRS.
        delivered: the delivery's.
        way: the operation between them, and its accuracy.
    """
    return catalogue.CRS_MISMATCH.finding("crs", case="transformed", severity="warning", agreed=agreed, delivered=delivered, way=way)


def rejected_share(rejected: int, rows: int, limit: float) -> Finding | None:
    """A larger share of rejected rows than the publication lets pass; where it lets none pass, each rejected row says it by itself.

    Args:
        rejected: how many rows go to quarantine.
        rows: of how many.
        limit: the share that passes.
    """
    if not limit or rejected <= limit * rows:
        return None
    share = percent(rejected / rows)
    return catalogue.REJECTED_SHARE.finding("", count=rejected, limit=percent(limit), share=share, rejected=rejected, rows=rows)


def no_rows(rows: int, *, allowed: bool) -> Finding | None:
    """A delivery without rows, where a gate is asked that has nothing to judge then. A publish asks by a guard instead (`change.guards.emptied`)."""
    return None if rows or allowed else catalogue.NO_ROWS.finding("")


def far_out(findings: Sequence[Finding], rows: int) -> list[Finding]:
    """The findings on rows, where more than 1 % of the rows lie outside the `extent` as a finding on the delivery: no share of rejects covers it."""
    return [
        replace(each, per_row=False, remedy=catalogue.EXTENT.cases["many"].remedy)
        if (each.surface, each.rule) == ("geometry", "extent") and each.count > _OUTSIDE * rows
        else each
        for each in findings
    ]


def stated_box(name: str, stated: Sequence[float] | None, extent: Sequence[float] | None) -> Finding | None:
    """The warning for data that reach out of the box that the file states; a box that is larger than the data hides nothing.

    Args:
        name: the geometry column.
        stated: xmin, ymin, xmax, ymax; xmin above xmax where it spans the antimeridian (GeoParquet 1.1, "bbox"). None where nothing is stated.
        extent: of the data, None where none has a place.
    """
    if stated is None or extent is None:
        return None
    west, south, east, north = stated
    room = _BOX_ROUNDING * max(1.0, *(abs(each) for each in extent))
    across = west > east
    inside = south - room <= extent[1] and extent[3] <= north + room  # false for a box of NaN
    inside = inside and (across or (west - room <= extent[0] and extent[2] <= east + room))
    if inside:
        return None
    texts = [", ".join("none" if np.isnan(each) else ordinate(each) for each in box) for box in (stated, extent)]
    return catalogue.GEO_METADATA.finding(name, case="bbox", stated=texts[0], held=texts[1])


def feature_count(contract: Contract, rows: int) -> list[Finding]:
    """`min_features`, `max_features` and `negative.max_features`: how many features a version has."""
    most = {"max_features": contract.addition("max_features")}
    most["negative.max_features"] = (contract.addition("negative") or {}).get("max_features")
    found = [
        catalogue.MAX_FEATURES.finding(clause, count=rows, most=limit, rows=rows, clause=clause)
        for clause, limit in most.items()
        if limit is not None and rows > limit
    ]
    least = contract.addition("min_features")
    if least is not None and rows < least:
        found.append(catalogue.MIN_FEATURES.finding("min_features", count=rows, least=least, rows=rows))
    return found


@dataclass(slots=True)
class DimensionTally:
    """Rows that bring Z or M where none is promised, counted batch by batch."""

    contract: Contract
    _more_z: int = 0
    _more_m: int = 0

    def add(self, scan: Scan) -> None:
        """Count a batch from what lies in its geometries, as delivered."""
        promised = self.contract.geometry.ordinates
        self._more_z += int(scan.has_z.sum()) if "z" not in promised else 0
        self._more_m += int(scan.has_m.sum()) if "m" not in promised else 0

    def findings(self) -> list[Finding]:
        """A warning where there is more than promised: it is left out."""
        name, promised = self.contract.geometry_name, self.contract.geometry.dimensions
        found = []
        if more := max(self._more_z, self._more_m):
            words = " and ".join(word for word, count in (("Z", self._more_z), ("M", self._more_m)) if count)
            delivered = "xy" + "".join(
                letter for letter, count in (("z", self._more_z), ("m", self._more_m)) if count or letter in promised
            )
            found.append(catalogue.Z_DROPPED.finding(name, count=more, promised=promised, what=words, delivered=delivered))
        return found


def edges(contract: Contract, delivered: str, *, previous: str | None = None) -> Finding | None:
    """Edges between vertices: straight in the plane or great circles (GeoParquet 1.1, `edges`).

    Args:
        contract: promises planar or spherical.
        delivered: what the file says.
        previous: what the published version says, if there is one.
    """
    promised = contract.geometry.edges
    if delivered == promised:
        return None
    change = f"; edges {previous} to {delivered}" if previous is not None and previous != delivered else ""
    return catalogue.EDGES.finding(contract.geometry_name, promised=promised, delivered=delivered, change=change)
