"""Check a delivery against its contract, and find its first fault. Nothing is published.

Not here: the check itself (`line.check`), its reports as text (`render`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib.metadata import version
from pathlib import Path as File

from merestone.api.places import Path, as_typed, keep_apart, read_contract, read_publication
from merestone.compare.sides import DiffSide, in_order, published_side
from merestone.errors import InternalError, MerestoneError, UsageError
from merestone.given import moment_of
from merestone.inspect.output import written_whole
from merestone.line import check as line
from merestone.line.finding_places import check_errors_path
from merestone.line.settings import CheckSettings
from merestone.publication.publication import Publication
from merestone.publication.reader import with_source
from merestone.render import ci
from merestone.results.diagnosis import DiagnoseResult, Promised, walk
from merestone.results.progress import Watch, nobody
from merestone.results.result import CheckResult

_PUBLICATIONS = (".yaml", ".yml", ".json")


def check(
    target: Path,
    *,
    contract: Path | None = None,
    layer: str | None = None,
    source: Path | None = None,
    now: datetime | None = None,
    allow_empty: bool = False,
    errors: Path | None = None,
    html: Path | None = None,
    junit: Path | None = None,
    sarif: Path | None = None,
    progress: Watch = nobody,
) -> CheckResult:
    """Check every row of a delivery as `publish` would, and publish nothing.

    Args:
        target: a delivery, with `contract`; a dataset (a folder, a URL or a publication file, with or without @VERSION), with the `contract`
            that a consumer relies on; or a publication file alone, whose source, key and column mapping then hold.
        contract: the contract to check a delivery against.
        layer: the layer of a delivery that has several.
        source: the delivery, in place of the one that the publication file names.
        now: the time at which the age of the data is judged, with a time zone; by default the time of the check.
        allow_empty: accept a delivery without rows; by default it does not pass, since there is nothing to judge.
        errors: write every place of every finding as a layer of points to this file (.gpkg or .geojson).
        html: write a page with the findings and a map of their places to this file.
        junit: write the result as JUnit XML to this file.
        sarif: write the result as SARIF 2.1.0 to this file.
        progress: is called as the check goes on.

    Returns:
        The findings. `refused` is true unless the delivery passes.

    Raises:
        MerestoneError: the delivery could not be checked. JUnit and SARIF files say so.

    Example:
        >>> merestone.check("monday.geojson", contract="parcels.contract.yaml").status
        'pass'
    """
    now = moment_of(now, "now")
    keep_apart({"errors": errors, "html": html, "junit": junit, "sarif": sarif}, [target, contract, source])
    if errors is not None:
        check_errors_path(os.fspath(errors))
    published = published_side(os.fspath(target)) if contract is not None and source is None else None
    publication, delivery, named = _what(target, contract, layer, source) if published is None else _published(published, contract)
    reports: dict[Path | None, Callable[[CheckResult], str]] = {
        junit: ci.junit,
        sarif: lambda result: ci.sarif(result, version=version("merestone")),
    }
    settings = CheckSettings(
        delivery,
        named,
        None if errors is None else os.fspath(errors),
        page=html is not None,
        now=now,
        allow_empty=allow_empty,
        progress=progress,
    )
    try:
        result, page = line.check(publication, settings, source=in_order(published, read_contract(named)) if published else None)
    except MerestoneError as fault:  # a build that reads a report has to see that there was no answer
        _write(reports, CheckResult(delivery, named, "error", 0, errors=(fault.message,)))
        raise
    _write({**reports, html: lambda _: page or ""}, result)
    return result


def diagnose(delivery: Path, *, contract: Path, layer: str | None = None, allow_empty: bool = False) -> DiagnoseResult:
    """Find the first fault of a delivery, surface by surface, and its remedy.

    The surfaces come in a fixed order: version pin, schema, CRS and axis order, precision, geometry, semantics, idempotency, service
    level. The walk ends at the first fault, which may be the cause of what follows.

    Args:
        delivery: the delivery.
        contract: the contract to check it against.
        layer: the layer of a delivery that has several.
        allow_empty: accept a delivery without rows.

    Raises:
        MerestoneError: the delivery could not be checked.

    Example:
        >>> merestone.diagnose("monday.geojson", contract="parcels.contract.yaml").status
        'pass'
    """
    publication = line.of_contract(os.fspath(delivery), os.fspath(contract), layer)
    result, _ = line.check(publication, CheckSettings(os.fspath(delivery), os.fspath(contract), allow_empty=allow_empty))
    made = read_contract(contract)
    promised = Promised(str(made.contract_version), made.coordinate_precision, made.geometry_type == "raster", bool(made.semantics))
    return walk(result, promised)


def _what(target: Path, contract: Path | None, layer: str | None, source: Path | None) -> tuple[Publication, str, str]:
    """How the delivery is read, and what to call it and its contract."""
    shown = os.fspath(target)
    if contract is not None:
        if source is not None:
            raise UsageError(
                "a delivery with its contract, or a publication file with another source: not both",
                field="source",
                hint="leave out «contract» or «source»",
            )
        return line.of_contract(shown, os.fspath(contract), layer), shown, os.fspath(contract)
    if File(shown).suffix.lower() not in _PUBLICATIONS:
        raise UsageError(
            f"{shown} is not a publication file, and no contract is named to check it against",
            field="target",
            hint="name the contract: «contract=FILE»",
        )
    if layer is not None:
        raise UsageError(
            "a publication file names its layer itself",
            field="layer",
            hint="write it in the publication file: source: {path: ..., layer: ...}",
        )
    publication = read_publication(target)
    if source is not None:
        publication = with_source(publication, os.fspath(source))
    return publication, os.fspath(source) if source is not None else as_typed(publication.source.path), as_typed(publication.contract)


def _published(side: DiffSide, contract: Path | None) -> tuple[Publication, str, str]:
    """How a published version is read, and what to call it and the contract that it is held to."""
    if side.version is None or contract is None:
        raise InternalError("only a published version is held to a consumer's contract")
    named = os.fspath(contract)
    return line.of_version(side.version, side.shown, named), side.shown, named


def _write(reports: Mapping[Path | None, Callable[[CheckResult], str]], result: CheckResult) -> None:
    """Write each report to its file; None is a report that nobody asked for."""
    for path, made in reports.items():
        if path is not None:
            with written_whole(os.fspath(path)) as place:
                File(place).write_text(made(result), encoding="utf-8")
