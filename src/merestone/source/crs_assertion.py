"""What the publication asserts about a CRS, set against what the file says.

Not here: identifying a CRS (`reference.identity`).
"""

from __future__ import annotations

from dataclasses import replace

from merestone.errors import UsageError
from merestone.reference.identity import identify, is_system
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.source.port import GeometryColumn


def with_assertion(column: GeometryColumn, asserted: str | None) -> tuple[GeometryColumn, list[Finding]]:
    """The geometry column with the asserted CRS where the file gives none; a finding where the two disagree.

    Raises:
        UsageError: what is asserted is not a CRS.
    """
    if asserted is None:
        return column, []
    wanted = identify(asserted)
    if not wanted.name:
        raise UsageError(f"{asserted!r} is not a CRS that PROJ knows", field="source.crs", hint="use for example EPSG:28992")
    if column.crs is None:
        return replace(column, crs=asserted, asserted=True, note=f"asserted; {column.note}" if column.note else "asserted"), []
    if is_system(column.crs, wanted.code or asserted, by_parameters=not column.coded):
        return column, []
    return column, [catalogue.CRS_MISMATCH.finding("crs", case="asserted", asserted=asserted, given=identify(column.crs).name)]
