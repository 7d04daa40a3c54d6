"""What the publication asserts about a CRS, set against what the file says.

Not here: identifying a CRS (`normalise.crs`).
"""

from __future__ import annotations

from dataclasses import replace

from pyproj import CRS
from pyproj.exceptions import CRSError

from merestone.errors import UsageError
from merestone.results.finding import Finding
from merestone.source.port import GeometryColumn


def with_assertion(column: GeometryColumn, asserted: str | None) -> tuple[GeometryColumn, list[Finding]]:
    """The geometry column with the asserted CRS where the file gives none; a finding where the two disagree.

    Raises:
        UsageError: what is asserted is no CRS.
    """
    if asserted is None:
        return column, []
    try:
        wanted = CRS.from_user_input(asserted)
    except CRSError:
        raise UsageError(f"{asserted!r} is no CRS", field="source.crs", hint="use for example EPSG:28992") from None
    if column.crs is None:
        return replace(column, crs=asserted, asserted=True, note=f"asserted; {column.note}" if column.note else "asserted"), []
    given = CRS.from_user_input(column.crs)
    code = given.to_authority(min_confidence=70)
    if given.equals(wanted, ignore_axis_order=True) or (code is not None and code == wanted.to_authority(min_confidence=70)):
        return column, []
    return column, [
        Finding(
            "crs", "crs", "crs_mismatch", "error", f"{asserted} as source.crs asserts", f"the file itself says {given.name}", 1,
            remedy="leave out source.crs: it may only fill in what the file does not say",
        )
    ]  # fmt: skip
