"""The epoch of coordinates: whether it is known where it counts, and whether it stays what it was.

Not here: transforming with it (`transform`), reading it from a file (`source`).
Clauses: ISO 19111, 6.2.9 (coordinates in a dynamic reference system need an epoch); GeoParquet 1.1, `epoch`.
"""

from __future__ import annotations

from pyproj.exceptions import CRSError

from merestone.json_value import JsonObject
from merestone.reference.systems import is_dynamic, may_move, of_code, system
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.source.port import GeometryColumn


def stored_epoch(column: GeometryColumn | None, epsg: int) -> float | None:
    """The epoch of what is published, in decimal years: the delivered one where the contract's system moves over the ground, else none."""
    return column.epoch if column is not None and may_move(of_code(epsg)) else None


def check_epoch(column: GeometryColumn, before: JsonObject | None, version: str) -> list[Finding]:
    """What is to be said of the epoch of a delivery.

    Args:
        column: the delivered geometry.
        before: the `crs` and `epoch` that the last version was delivered with; None on a first publish.
        version: what that version is called.

    Returns:
        An error where the epoch of a dynamic system was known and is gone; a warning where it was never known, or is another one.
    """
    try:
        dynamic = column.crs is not None and is_dynamic(system(column.crs))
    except CRSError:  # `check_crs` says so
        return []
    known = before.get("epoch") if before is not None else None
    if column.epoch is None and not dynamic:
        return []
    if column.epoch is None:
        name = system(str(column.crs)).name
        if known is None:
            return [catalogue.EPOCH_MISSING.finding("crs", severity="warning", name=name)]
        return [catalogue.EPOCH_MISSING.finding("crs", case="gone", name=name, version=version, known=known)]
    if known is None or known == column.epoch:
        return []
    return [catalogue.EPOCH_CHANGED.finding("crs", known=known, version=version, epoch=column.epoch)]
