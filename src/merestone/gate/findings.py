"""Faults of rows, batch after batch, gathered into findings with counts, samples and one sentence each.

Not here: the checks that find the faults (`feature`, `delivery`, `normalise.cast`), their layout on a screen (`render.text`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.table_shape import TableColumn, TableShape
from merestone.results.finding import SAMPLES, Finding, RowFaults, Sample, Severity, Surface
from merestone.rules.catalogue import rule_of
from merestone.rules.rule import Rule
from merestone.words import called, listed

NAMED = 5
"""How many values or features a sentence names; the samples carry more."""
_DISTINCT = 1_000
"""How many different values are counted apart per rule; beyond it only their number of rows is kept."""


class FindingLines(TableShape):
    """The lines of `_findings/` (docs/spec/changes.md): one for each row and rule."""

    feature_id = TableColumn(pa.string())
    key = TableColumn(pa.binary())
    row = TableColumn(pa.int64())
    surface = TableColumn(pa.string())
    field = TableColumn(pa.string())
    rule = TableColumn(pa.string())
    severity = TableColumn(pa.string())
    expected = TableColumn(pa.string())
    observed = TableColumn(pa.string())
    held = TableColumn(pa.bool_())


@dataclass(slots=True)
class _Family:
    """The rows of one (surface, field, rule, severity, expected) so far."""

    remedy: str
    count: int = 0
    samples: list[Sample] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)
    uncounted: int = 0


class FindingTally:
    """Merges the `RowFaults` of many batches into `Finding`s. Memory is bounded: samples and distinct values per rule are."""

    def __init__(self) -> None:
        self._families: dict[tuple[Surface, str, str, Severity, str], _Family] = {}

    def __bool__(self) -> bool:
        return bool(self._families)

    def add(
        self,
        faults: Iterable[RowFaults],
        *,
        rows: npt.NDArray[np.int64],
        ids: pa.Array | None = None,
        bounds: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Take in the faults of one batch.

        Args:
            faults: what the checks said; `faults.rows` are positions in this batch.
            rows: (n,) row of each position in the delivery, counted from 1; 0 where it is not known.
            ids: pyarrow string array (n), the feature ids; None where rows have no key yet.
            bounds: (n, 4) xmin, ymin, xmax, ymax in the contract's CRS; a sample shows the middle of its box.
        """
        for each in faults:
            if not len(each.rows):
                continue
            name = each.surface, each.field, each.rule, each.severity, each.expected
            family = self._families.setdefault(name, _Family(each.remedy))
            family.count += len(each.rows)
            self._count_values(family, each)
            room = SAMPLES - len(family.samples)
            if room > 0:
                family.samples.extend(_samples(each, room, rows, ids, bounds))

    @staticmethod
    def _count_values(family: _Family, faults: RowFaults) -> None:
        if rule_of(faults.surface, faults.rule).shows == "feature":
            return
        counts = pc.value_counts(faults.observed)
        for value, count in zip(counts.field("values").to_pylist()[:_DISTINCT], counts.field("counts").to_pylist(), strict=False):
            text = "null" if value is None else str(value)
            if text in family.values or len(family.values) < _DISTINCT:
                family.values[text] = family.values.get(text, 0) + count
        family.uncounted = family.count - sum(family.values.values())

    def findings(self) -> tuple[Finding, ...]:
        """One finding per rule and field, errors first, each in the order in which it was first met."""
        found = [
            _gathered(rule_of(surface, code), column, severity, expected, family)
            for (surface, column, code, severity, expected), family in self._families.items()
        ]
        return tuple(sorted(found, key=lambda each: each.severity != "error"))


def _gathered(rule: Rule, column: str, severity: Severity, expected: str, family: _Family) -> Finding:
    observed = _by_feature(family) if rule.shows == "feature" else _by_value(family)
    return rule.gathered(column, severity, expected, observed, family.count, tuple(family.samples), family.remedy)


def rejected(faults: Iterable[RowFaults], length: int) -> npt.NDArray[np.bool_]:
    """(length,) True for the positions of a batch that break a rule with severity error."""
    mask = np.zeros(length, dtype=np.bool_)
    for each in faults:
        if each.severity == "error":
            mask[each.rows] = True
    return mask


def reasons(faults: Iterable[RowFaults], length: int, *, severity: Severity | None = None) -> pa.Array:
    """Why each position of a batch is faulty, as a pyarrow string array (length); null where it is not.

    A text reads "land_use enum: mixed_use, expected one of residential, commercial"; several faults of one row are joined by "; ".
    """
    said = pa.nulls(length, pa.string())
    for each in faults:
        if not len(each.rows) or (severity is not None and each.severity != severity):
            continue
        texts = pc.binary_join_element_wise(
            f"{each.field} {each.rule}: ",
            each.observed.cast(pa.string()),
            f", expected {each.expected}",
            "",
            null_handling="replace",
            null_replacement="null",
        )
        place = np.full(length, -1, dtype=np.int64)
        place[each.rows] = np.arange(len(each.rows))
        more = texts.take(pa.array(place, mask=place < 0))
        said = pc.coalesce(pc.binary_join_element_wise(said, more, "; "), said, more)
    return said


def findings_table(
    faults: Sequence[RowFaults], *, rows: npt.NDArray[np.int64], ids: pa.Array, keys: pa.Array, held: npt.NDArray[np.bool_] | None = None
) -> FindingLines:
    """The lines of `_findings/` for one batch, by rule and then by row.

    Args:
        faults: the faults of the batch.
        rows: (n,) row of each position in the delivery, from 1.
        ids: pyarrow string array (n), feature ids.
        keys: pyarrow binary array (n), canonical key bytes.
        held: (n,) True where the last accepted row of the key stays published.
    """
    parts = []
    for each in faults:
        at = pa.array(each.rows, pa.int64())
        size = len(each.rows)
        parts.append(
            FindingLines.of(
                {
                    FindingLines.feature_id: ids.take(at),
                    FindingLines.key: keys.take(at).cast(pa.binary()),
                    FindingLines.row: pa.array(rows[each.rows]),
                    FindingLines.surface: _alike(each.surface, size),
                    FindingLines.field: _alike(each.field, size),
                    FindingLines.rule: _alike(each.rule, size),
                    FindingLines.severity: _alike(each.severity, size),
                    FindingLines.expected: _alike(each.expected, size),
                    FindingLines.observed: each.observed.cast(pa.string()),
                    FindingLines.held: pa.array(np.zeros(size, np.bool_) if held is None else held[each.rows]),
                }
            )
        )
    return FindingLines.concat(parts)


def _alike(text: str, size: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), size)


def faults_of(lines: FindingLines) -> list[RowFaults]:
    """The lines of `_findings/` as faults again, positions being those of the lines."""
    families: dict[tuple[str, ...], list[int]] = {}
    columns = (lines.surface, lines.field, lines.rule, lines.severity, lines.expected)
    for at, family in enumerate(zip(*(each.to_pylist() for each in columns), strict=True)):
        families.setdefault(family, []).append(at)
    observed = lines.observed.combine_chunks()
    return [
        rule_of(surface, code).recorded(column, severity, expected, np.array(at, np.int64), observed.take(pa.array(at)))  # type: ignore[arg-type]  # as it was written
        for (surface, column, code, severity, expected), at in families.items()
    ]


def name_rows(samples: Sequence[Sample], count: int) -> str:
    """How a sentence names rows: "row b", "rows b and d", "rows 2 and 5 of the file", "rows with key 7 and 9", "... and 12 more"."""
    shown = samples[:NAMED]
    ids = [each.id for each in shown]
    if any(name is None for name in ids):
        words, tail = [str(each.row) for each in shown], " of the file"
    else:
        words, tail = [str(name) for name in ids], ""
    # A bare number reads as a row number, so numeric keys say what they are.
    keyed = not tail and any(word.lstrip("-").isdigit() for word in words)
    noun = ("row" if count == 1 else "rows") + (" with key" if keyed else "")
    return f"{noun} {listed(words, count)}{tail}"


def _samples(
    faults: RowFaults, room: int, rows: npt.NDArray[np.int64], ids: pa.Array | None, bounds: npt.NDArray[np.float64] | None
) -> list[Sample]:
    at = faults.rows[:room]
    names = [None] * len(at) if ids is None else ids.take(pa.array(at, pa.int64())).to_pylist()
    seen = faults.observed.slice(0, len(at)).to_pylist()
    out = []
    for position, name, observed in zip(at.tolist(), names, seen, strict=True):
        x = y = None
        if bounds is not None:
            box = bounds[position]
            if np.isfinite(box).all():
                x, y = float(box[0] + box[2]) / 2, float(box[1] + box[3]) / 2
        out.append(Sample(name, int(rows[position]) or None, x, y, observed))
    return out


def _by_feature(family: _Family) -> str:
    """What is said of each: "i2 NaN, i3 infinite and 4 more"."""
    words = []
    for each in family.samples[:NAMED]:
        name = called(each.id, each.row)
        apart = ":" if each.id is not None and name != each.id else ""  # "key 49: ring self-intersection" is not a count
        words.append(f"{name}{apart} {each.observed}")
    return listed(words, family.count)


def _by_value(family: _Family) -> str:
    """Each value and where it stands: "mixed_use (row b)", "null in 2 rows (rows b and d)", "x in 31 rows and 4 other values"."""
    ranked = sorted(family.values.items(), key=lambda pair: -pair[1])
    more = len(ranked) - NAMED
    if len(ranked) == 1 and not family.uncounted:
        value, count = ranked[0]
        much = "" if count == 1 else f" in {count:,} rows"
        return f"{value}{much} ({name_rows(family.samples, family.count)})"
    if len(family.samples) == family.count and len(ranked) <= NAMED:
        parts = []
        for value, count in ranked:
            of_value = [each for each in family.samples if ("null" if each.observed is None else each.observed) == value]
            parts.append(f"{value} ({name_rows(of_value, count)})")
        return ", ".join(parts)
    words = [f"{value} in {count:,} row{'' if count == 1 else 's'}" for value, count in ranked[:NAMED]]
    rest = f" and {more:,}{' or more' if family.uncounted else ''} other values" if more > 0 else ""
    return ", ".join(words) + rest + f", first in {name_rows(family.samples[:1], 1)}"
