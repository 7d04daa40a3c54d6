"""Where the findings of a check are: every faulty row and every place of a topology breach, as a table, as a layer, and for the page.

Not here: the findings (`check`), the page (`render.findings_page`), writing rows of a dataset (`inspect.extract`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyogrio.raw
import shapely

from merestone.errors import UsageError
from merestone.gate import topology
from merestone.geometry import kernel
from merestone.inspect.extract import collection, features
from merestone.inspect.output import written_whole
from merestone.line.preparing.prepared import Prepared
from merestone.line.processing.neighbourhood import TopologyOfDelivery
from merestone.line.processing.process import Processed
from merestone.line.receiving.receive import Received
from merestone.line.receiving.row_evidence import RowEvidence
from merestone.render.findings_page import Place
from merestone.results.finding import Finding

LAYER = "findings"
SCHEMA = pa.schema(
    [
        ("finding", pa.int32()),
        ("id", pa.string()),
        ("row", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("observed", pa.string()),
        ("one", pa.int64()),
        ("other", pa.int64()),
    ]
)
"""`finding` is the number of the finding; `one` and `other` are rows of the spool of pass 2, null where there is none."""
_POSITION = re.compile(r" at (-?[0-9.e+-]+), (-?[0-9.e+-]+)$")
_DRAWN = 100  # places of a finding that a page shows with outlines
_FORMATS = (".gpkg", ".geojson", ".json")


def check_errors_path(path: str) -> None:
    """Refuse a file name that no layer can be written to, before anything is read. Raises UsageError."""
    if Path(path).suffix.lower() not in _FORMATS:
        raise UsageError(
            f"{path} has no extension that a layer can be written to", field="errors", hint=f"use one of {', '.join(_FORMATS)}"
        )


Passes = tuple[Received, Processed, TopologyOfDelivery, RowEvidence]


def places_of(prepared: Prepared | None, findings: Sequence[Finding], passes: Passes | None) -> Any:
    """Every place of every finding: pyarrow.Table of `SCHEMA`, in the order of the findings.

    Args:
        prepared: the terms of the check; None for a raster, which has no rows.
        findings: its findings.
        passes: what reading the rows found; None where they could not be read: then there are the samples only.
    """
    if passes is None or prepared is None:
        return pa.concat_tables([SCHEMA.empty_table(), *(_of_samples(at, each) for at, each in enumerate(findings))]).combine_chunks()
    received, processed, judged, evidence = passes
    rules = {each.rule: each for each in judged.breaches}
    rows = pa.concat_tables(evidence.lines) if evidence.lines else None
    number = received.candidates.row.astype(np.int64)
    parts = [SCHEMA.empty_table()]
    for at, finding in enumerate(findings):
        if finding.surface == "geometry" and not finding.per_row and finding.rule in rules:
            parts.append(_of_breach(at, rules[finding.rule], judged))
        elif (finding.per_row or finding.rule == "extent") and rows is not None and (mine := _rows_of(rows, finding)).num_rows:
            parts.append(_of_rows(at, mine, number))
        else:
            parts.append(_of_samples(at, finding))
    return _placed(pa.concat_tables(parts).combine_chunks(), prepared, processed)


def _of_breach(at: int, breach: topology.Breach, judged: TopologyOfDelivery) -> Any:
    there = breach.one >= 0
    names = judged.name(breach.one[there])
    ids, rows = np.full(len(breach), None, dtype=object), np.full(len(breach), None, dtype=object)
    ids[there], rows[there] = [each[0] for each in names], [each[1] for each in names]
    return pa.table(
        [
            pa.array(np.full(len(breach), at, np.int32)),
            pa.array(ids.tolist(), pa.string()),
            pa.array(rows.tolist(), pa.int64()),
            pa.array(breach.x, mask=~np.isfinite(breach.x)),
            pa.array(breach.y, mask=~np.isfinite(breach.y)),
            pa.array(topology.told(breach, judged.name), pa.string()),
            pa.array(breach.one, mask=breach.one < 0),
            pa.array(breach.other, mask=breach.other < 0),
        ],
        schema=SCHEMA,
    )


def _rows_of(rows: Any, finding: Finding) -> Any:
    mine = pc.and_(pc.equal(rows.column("rule"), finding.rule), pc.equal(rows.column("field"), finding.field))
    return rows.filter(pc.and_(mine, pc.equal(rows.column("expected"), finding.expected)))


def _of_rows(at: int, rows: Any, number: npt.NDArray[np.int64]) -> Any:
    size = rows.num_rows
    one = np.searchsorted(number, np.asarray(rows.column("row")))
    return pa.table(
        [
            pa.array(np.full(size, at, np.int32)),
            rows.column("feature_id"),
            rows.column("row"),
            pa.nulls(size, pa.float64()),
            pa.nulls(size, pa.float64()),
            rows.column("observed"),
            pa.array(one),
            pa.nulls(size, pa.int64()),
        ],
        schema=SCHEMA,
    )


def _of_samples(at: int, finding: Finding) -> Any:
    """The samples of a finding about the whole; one row without a place where it has none; no finding is missing from a layer."""
    samples = [(each.id, each.row, each.x, each.y, each.observed) for each in finding.features] or [
        (None, None, None, None, finding.observed)
    ]
    columns = [list(each) for each in zip(*samples, strict=True)]
    size = len(samples)
    return pa.table(
        [
            pa.array([at] * size, pa.int32()),
            *(pa.array(column, SCHEMA.field(n + 1).type) for n, column in enumerate(columns)),
            pa.nulls(size, pa.int64()),
            pa.nulls(size, pa.int64()),
        ],
        schema=SCHEMA,
    )


def _placed(table: pa.Table, prepared: Prepared, processed: Processed) -> Any:
    """The table with a position for each row of the spool: the one that a fault names, or else the middle of the feature's box."""
    x, y, one = (np.array(table.column(name).to_numpy(zero_copy_only=False), float) for name in ("x", "y", "one"))
    need = np.flatnonzero(np.isnan(x) & np.isfinite(one))
    for place, text in zip(need.tolist(), table.column("observed").take(pa.array(need)).to_pylist(), strict=True):
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
    return table.set_column(3, "x", pa.array(x, mask=nowhere)).set_column(4, "y", pa.array(y, mask=nowhere))


def layer(table: Any, findings: Sequence[Finding]) -> Any:
    """The places as rows of a layer: what the finding says, the feature, and a point as WKB (null without a position)."""
    at = table.column("finding").combine_chunks()
    said = {
        name: pa.array([getattr(each, name) for each in findings], pa.string()).take(at)
        for name in ("surface", "field", "rule", "severity", "expected", "remedy")
    }
    x, y = (table.column(name).to_numpy(zero_copy_only=False) for name in ("x", "y"))
    points = np.where(np.isfinite(x), shapely.points(np.nan_to_num(x), np.nan_to_num(y)), None)
    return pa.table(
        {
            "surface": said["surface"],
            "field": said["field"],
            "rule": said["rule"],
            "severity": said["severity"],
            "feature": table.column("id"),
            "row": table.column("row"),
            "observed": table.column("observed"),
            "expected": said["expected"],
            "remedy": said["remedy"],
            "geometry": pa.array(shapely.to_wkb(points), pa.binary()),
        }
    )


def write_layer(rows: Any, path: str, epsg: int) -> None:
    """Write a layer of points, GeoPackage or GeoJSON by the extension, in the CRS of the contract.

    Raises:
        StoreError: the file cannot be written.
    """
    with written_whole(path) as place:
        if Path(path).suffix.lower() == ".gpkg":
            pyogrio.raw.write_arrow(
                rows, place, layer=LAYER, driver="GPKG", geometry_name="geometry", geometry_type="Point", crs=f"EPSG:{epsg}"
            )
        else:
            texts = features(rows.to_batches(max_chunksize=10_000), "geometry", ("no id",), rows.schema.names)
            with Path(place).open("w", encoding="utf-8") as file:
                file.writelines(collection(texts, epsg, {"name": LAYER}))


def shown(table: Any, prepared: Prepared | None, passes: Passes | None) -> list[Place]:
    """The places for the page, the first 100 of each finding with the outlines of the features concerned."""
    finding = np.asarray(table.column("finding"))
    first = np.searchsorted(finding, finding)  # places stand in the order of the findings
    drawn = np.flatnonzero(np.arange(len(finding)) - first < _DRAWN)
    ends = [table.column(name).to_numpy(zero_copy_only=False).astype(float) for name in ("one", "other")]
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
    for at, row in enumerate(table.select(["finding", "id", "row", "x", "y", "observed"]).to_pylist()):
        both = [int(side[at]) for side in ends if np.isfinite(side[at])] if at - first[at] < _DRAWN else []
        out.append(Place(**row, shapes=tuple(outlines[each] for each in both if each in outlines)))
    return out
