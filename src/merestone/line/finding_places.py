"""Where the findings of a check are: every faulty row and every place of a topology breach, as a table, as a layer, and for the page.

Not here: the findings (`check`), the page (`render.findings_page`), writing rows of a dataset (`inspect.extract`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.table_shape import TableColumn, TableShape
from merestone.errors import UsageError
from merestone.gate.findings import FindingLines
from merestone.geometry import kernel
from merestone.inspect.extract import collection, features
from merestone.inspect.output import written_whole
from merestone.later import later
from merestone.line.preparing.prepared import Prepared
from merestone.line.processing.neighbourhood import TopologyOfDelivery
from merestone.line.processing.process import Processed
from merestone.line.receiving.receive import Received
from merestone.line.receiving.row_evidence import RowEvidence
from merestone.render.findings_page import ShownPlace
from merestone.results.finding import Finding

if TYPE_CHECKING:
    import shapely
    from pyogrio import raw

    from merestone.gate import topology
else:
    topology = later("merestone.gate.topology")
    raw = later("pyogrio.raw")
    shapely = later("shapely")

LAYER = "findings"
_NO_ROWS = np.zeros(0, np.int64)
_POSITION = re.compile(r" at (-?[0-9.e+-]+), (-?[0-9.e+-]+)$")
_DRAWN = 100  # places of a finding that a page shows with outlines
_FORMATS = (".gpkg", ".geojson", ".json")


class Places(TableShape):
    """`finding` is the number of the finding; `one` and `other` are rows of the spool of pass 2, null where there is none."""

    finding = TableColumn(pa.int32())
    id = TableColumn(pa.string())
    row = TableColumn(pa.int64())
    x = TableColumn(pa.float64())
    y = TableColumn(pa.float64())
    observed = TableColumn(pa.string())
    one = TableColumn(pa.int64())
    other = TableColumn(pa.int64())


def check_errors_path(path: str) -> None:
    """Refuse a file name that no layer can be written to, before anything is read. Raises UsageError."""
    if Path(path).suffix.lower() not in _FORMATS:
        raise UsageError(
            f"{path} has no extension that a layer can be written to", field="errors", hint=f"use one of {', '.join(_FORMATS)}"
        )


Passes = tuple[Received, Processed, TopologyOfDelivery, RowEvidence]


def places_of(prepared: Prepared | None, findings: Sequence[Finding], passes: Passes | None) -> Places:
    """Every place of every finding, in the order of the findings.

    Args:
        prepared: the terms of the check; None for a raster, which has no rows.
        findings: its findings.
        passes: what reading the rows found; None where they could not be read: then there are the samples only.
    """
    if passes is None or prepared is None:
        return _joined([_of_samples(at, each, _NO_ROWS) for at, each in enumerate(findings)])
    received, processed, judged, evidence = passes
    rules = {each.rule: each for each in judged.breaches}
    lines = FindingLines.concat(evidence.lines)
    number = received.candidates.row.astype(np.int64)
    parts = []
    for at, finding in enumerate(findings):
        if finding.surface == "geometry" and not finding.per_row and finding.rule in rules:
            parts.append(_of_breach(at, rules[finding.rule], judged))
        elif (finding.per_row or finding.rule == "extent") and len(mine := _lines_of(lines, finding)):
            parts.append(_of_lines(at, mine, number))
        else:
            parts.append(_of_samples(at, finding, number))
    return _placed(_joined(parts), prepared, processed)


def _joined(parts: Sequence[Places]) -> Places:
    return Places(Places.concat(parts).table.combine_chunks())


def _of_breach(at: int, breach: topology.Breach, judged: TopologyOfDelivery) -> Places:
    there = breach.one >= 0
    names = judged.name(breach.one[there])
    ids, rows = np.full(len(breach), None, dtype=object), np.full(len(breach), None, dtype=object)
    ids[there], rows[there] = [each[0] for each in names], [each[1] for each in names]
    return Places.of(
        {
            Places.finding: pa.array(np.full(len(breach), at, np.int32)),
            Places.id: pa.array(ids.tolist(), pa.string()),
            Places.row: pa.array(rows.tolist(), pa.int64()),
            Places.x: pa.array(breach.x, mask=~np.isfinite(breach.x)),
            Places.y: pa.array(breach.y, mask=~np.isfinite(breach.y)),
            Places.observed: pa.array(topology.in_words(breach, judged.name), pa.string()),
            Places.one: pa.array(breach.one, mask=breach.one < 0),
            Places.other: pa.array(breach.other, mask=breach.other < 0),
        }
    )


def _lines_of(lines: FindingLines, finding: Finding) -> FindingLines:
    mine = pc.and_(pc.equal(lines.rule, finding.rule), pc.equal(lines.field, finding.field))
    return lines.filter(pc.and_(mine, pc.equal(lines.expected, finding.expected)))


def _of_lines(at: int, lines: FindingLines, number: npt.NDArray[np.int64]) -> Places:
    size = len(lines)
    return Places.of(
        {
            Places.finding: pa.array(np.full(size, at, np.int32)),
            Places.id: lines.feature_id,
            Places.row: lines.row,
            Places.x: pa.nulls(size, pa.float64()),
            Places.y: pa.nulls(size, pa.float64()),
            Places.observed: lines.observed,
            Places.one: pa.array(np.searchsorted(number, np.asarray(lines.row))),
            Places.other: pa.nulls(size, pa.int64()),
        }
    )


def _of_samples(at: int, finding: Finding, number: npt.NDArray[np.int64]) -> Places:
    """The samples of a finding about the whole; one row without a place where it has none; no finding is missing from a layer.

    A sample that names a row of the spool (whose rows are `number`, ascending) is where that row is.
    """
    samples = [(each.id, each.row, each.x, each.y, each.observed) for each in finding.features] or [
        (None, None, None, None, finding.observed)
    ]
    ids, rows, x, y, observed = zip(*samples, strict=True)
    size, named = len(samples), np.array([-1 if each is None else each for each in rows], np.int64)
    return Places.of(
        {
            Places.finding: pa.array([at] * size, pa.int32()),
            Places.id: pa.array(ids, pa.string()),
            Places.row: pa.array(rows, pa.int64()),
            Places.x: pa.array(x, pa.float64()),
            Places.y: pa.array(y, pa.float64()),
            Places.observed: pa.array(observed, pa.string()),
            Places.one: pa.array(np.searchsorted(number, named), mask=~np.isin(named, number)),
            Places.other: pa.nulls(size, pa.int64()),
        }
    )


def _placed(places: Places, prepared: Prepared, processed: Processed) -> Places:
    """The places with a position for each row of the spool: the one that a fault names, or else the middle of the feature's box."""
    x, y, one = (np.array(each.to_numpy(zero_copy_only=False), float) for each in (places.x, places.y, places.one))
    need = np.flatnonzero(np.isnan(x) & np.isfinite(one))
    for place, text in zip(need.tolist(), places.observed.take(pa.array(need)).to_pylist(), strict=True):
        found = _POSITION.search(text or "")
        if found is not None:
            x[place], y[place] = float(found[1]), float(found[2])
    need = need[np.isnan(x[need])]
    begin = 0
    for batch in processed.spool.batches():
        here = need[(one[need] >= begin) & (one[need] < begin + batch.num_rows)]
        if len(here):
            box = kernel.scan(batch.column(prepared.geometry).take(pa.array(one[here].astype(np.int64) - begin))).bounds
            x[here], y[here] = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
        begin += batch.num_rows
    nowhere = ~(np.isfinite(x) & np.isfinite(y))
    return places.with_column(Places.x, pa.array(x, mask=nowhere)).with_column(Places.y, pa.array(y, mask=nowhere))


def layer(places: Places, findings: Sequence[Finding]) -> pa.Table:
    """The places as rows of a layer: what the finding says, the feature, and a point as WKB (null without a position)."""
    at = places.finding.combine_chunks()
    said = {
        name: pa.array([getattr(each, name) for each in findings], pa.string()).take(at)
        for name in ("surface", "field", "rule", "severity", "expected", "remedy")
    }
    x, y = (each.to_numpy(zero_copy_only=False) for each in (places.x, places.y))
    points = np.where(np.isfinite(x), shapely.points(np.nan_to_num(x), np.nan_to_num(y)), None)
    return pa.table(
        {
            "surface": said["surface"],
            "field": said["field"],
            "rule": said["rule"],
            "severity": said["severity"],
            "feature": places.id,
            "row": places.row,
            "observed": places.observed,
            "expected": said["expected"],
            "remedy": said["remedy"],
            "geometry": pa.array(shapely.to_wkb(points), pa.binary()),
        }
    )


def write_layer(rows: pa.Table, path: str, epsg: int) -> None:
    """Write a layer of points, GeoPackage or GeoJSON by the extension, in the CRS of the contract.

    Raises:
        StoreError: the file cannot be written.
    """
    with written_whole(path) as place:
        if Path(path).suffix.lower() == ".gpkg":
            raw.write_arrow(rows, place, layer=LAYER, driver="GPKG", geometry_name="geometry", geometry_type="Point", crs=f"EPSG:{epsg}")
        else:
            texts = features(rows.to_batches(max_chunksize=10_000), "geometry", ("no id",), rows.schema.names)
            with Path(place).open("w", encoding="utf-8") as file:
                file.writelines(collection(texts, epsg, {"name": LAYER}))


def shown(places: Places, prepared: Prepared | None, passes: Passes | None) -> list[ShownPlace]:
    """The places for the page, the first 100 of each finding with the outlines of the features concerned."""
    finding = np.asarray(places.finding)
    first = np.searchsorted(finding, finding)  # places stand in the order of the findings
    drawn = np.flatnonzero(np.arange(len(finding)) - first < _DRAWN)
    ends = [each.to_numpy(zero_copy_only=False).astype(float) for each in (places.one, places.other)]
    asked = np.unique(np.concatenate([side[drawn] for side in ends]))
    asked = asked[np.isfinite(asked)].astype(np.int64)
    outlines: dict[int, bytes] = {}
    geometry = prepared.geometry if prepared else ""
    begin = 0
    for batch in passes[1].spool.batches() if passes and prepared else ():
        here = asked[(asked >= begin) & (asked < begin + batch.num_rows)]
        shapes = batch.column(geometry).take(pa.array(here - begin)).to_pylist()
        outlines.update({row: shape for row, shape in zip(here.tolist(), shapes, strict=True) if shape is not None})
        begin += batch.num_rows
    out = []
    for at, row in enumerate(places.table.select(["finding", "id", "row", "x", "y", "observed"]).to_pylist()):
        both = [int(side[at]) for side in ends if np.isfinite(side[at])] if at - first[at] < _DRAWN else []
        out.append(ShownPlace(**row, shapes=tuple(outlines[each] for each in both if each in outlines)))
    return out
