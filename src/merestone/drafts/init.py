"""A delivery to a draft of its contract and its publication file, which publish at once.

Not here: what the rows say (`gate.infer`), the text of the drafts (`contract.draft`).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np

from merestone.contract.contract import Contract, FieldType
from merestone.contract.parse import parse
from merestone.document.yaml_reader import read_yaml
from merestone.drafts.extent import positions, with_extent
from merestone.drafts.infer import Comparison, Drift, Inference, Inferred, KeyCandidate, code_lists, with_previous
from merestone.drafts.text import (
    ContractFacts,
    FieldFacts,
    Note,
    PublicationFacts,
    draft_contract,
    draft_publication,
    possible_precision,
)
from merestone.errors import InternalError, SourceError, StoreError, UsageError
from merestone.gate.feature import DEGREES, check_rows
from merestone.gate.findings import FindingTally, rejected
from merestone.gate.fineness import COARSE_SHARE, JUDGED_ORDINATES
from merestone.geometry import kernel
from merestone.inspect.output import check_outputs
from merestone.line import environment
from merestone.normalise.cast import cast_batch, misfit_faults, plan_cast
from merestone.normalise.snap import snap
from merestone.reference.ground import metres_per_unit
from merestone.reference.identity import identify
from merestone.reference.systems import horizontal, of_code
from merestone.results.finding import Finding
from merestone.scratch.read_once import ReadOnce
from merestone.source.open import open_source
from merestone.source.port import Delivery, GeometryColumn, Source, SourceSpec
from merestone.storage.place import local_path
from merestone.words import listed, percent

_USUAL = {True: 7, False: 3}  # decimals where the coordinates show none: about a centimetre in degrees, a millimetre in metres
_FINEST = {True: 9, False: 5}  # measured decimals beyond these are the noise of a computation, not a grid


@dataclass(frozen=True, slots=True)
class InitResult:
    """The files written (contract, publication), and what a person should know."""

    contract: Path
    publication: Path
    notes: tuple[str, ...]

    @property
    def paths(self) -> tuple[Path, Path]:
        """Both files."""
        return self.contract, self.publication


@dataclass(frozen=True, slots=True)
class Drafted:
    """The text of a contract; the key; the CRS that had to be asserted; what a person should know; rows seen, and rows it would reject."""

    text: str
    key: tuple[str, ...]
    asserted: str | None
    notes: tuple[str, ...]
    rows: int
    lost: int


def init(
    source_path: str,
    *,
    layer: str | None = None,
    crs: str | None = None,
    key: Sequence[str] = (),
    previous: str | None = None,
    owner: str | None = None,
    out: str | None = None,
) -> InitResult:
    """Draft a contract and a publication for a delivery.

    Args:
        source_path: the delivery.
        layer: the layer, where the file has several.
        crs: the CRS to assert, such as EPSG:28992, where the file states none.
        key: the key columns; found where none is named.
        previous: an older delivery of the same kind: shows which columns change without meaning and which keys come back.
        owner: e-mail of the steward.
        out: the folder for the two files; the current folder by default.

    Raises:
        UsageError: the drafts are there already, no column can be the key, the delivery's CRS has no EPSG code or is not the asserted
            one.
        SourceError: a delivery cannot be read.
        StoreError: the drafts cannot be written.
    """
    folder = Path(local_path(out if out is not None else ".", field="out", what="a folder")).resolve()
    source_path = local_path(source_path, what="a delivery")
    name = _name(source_path, layer)
    contract_path, publication_path = folder / f"{name}.contract.yaml", folder / f"{name}.yaml"
    check_outputs({"the contract's draft": str(contract_path), "the publication's draft": str(publication_path)})
    for path in (contract_path, publication_path):
        if path.exists():
            raise UsageError(
                f"{path} is there already; nothing is overwritten", field=str(path), hint="move it away, or name another folder: «out=DIR»"
            )
    made = draft(source_path, layer=layer, crs=crs, key=key, previous=previous, owner=owner)
    notes, lost = list(made.notes), made.lost
    allowed = None
    if lost:
        allowed = min(1.0, math.ceil(lost / made.rows * 150) / 100)
        notes.append(f"rejects.max_fraction is drafted as {allowed:g}; these rows go to quarantine; 0 would refuse the delivery")
    publication_text = draft_publication(
        PublicationFacts(
            contract=contract_path.name,
            source=Path(os.path.relpath(source_path, folder)).as_posix(),
            destination=f"./published/{name}",
            layer=layer,
            crs=made.asserted,
            key=made.key,
            max_rejected=allowed,
            notes=_publication_notes(made.asserted if crs is None else None, allowed, lost, made.rows),
        )
    )
    _write(folder, {contract_path: made.text, publication_path: publication_text})
    return InitResult(contract_path, publication_path, tuple(notes))


def draft(
    source_path: str,
    *,
    layer: str | None = None,
    crs: str | None = None,
    key: Sequence[str] = (),
    previous: str | None = None,
    owner: str | None = None,
) -> Drafted:
    """The contract that a delivery keeps, from its header and its data; guesses are marked `# confirm`. Each delivery is read once.

    Args, Raises: as `init`, which writes it.
    """

    def opened(path: str, name: str, field: str | None = None) -> ReadOnce:
        return ReadOnce(open_source(SourceSpec(local_path(path, field=field, what="a delivery"), layer, crs)), folder, name)

    with environment.scratch() as folder:
        source = opened(source_path, "newer-rows")
        older = None if previous is None else opened(previous, "older-rows", "previous")
        return _draft(source_path, source, older, layer=layer, crs=crs, key=key, owner=owner)


def _draft(
    source_path: str, source: Source, older: Source | None, *, layer: str | None, crs: str | None, key: Sequence[str], owner: str | None
) -> Drafted:
    delivery = source.delivery
    contradicted = next((each for each in delivery.findings if each.severity == "error"), None)
    if contradicted is not None and crs is None:
        raise SourceError(f"{delivery.path}: {contradicted.observed}", field=contradicted.field, hint=contradicted.remedy)
    if contradicted is not None:
        raise UsageError(
            f"{delivery.path}: {contradicted.observed}, and {crs} is asserted",
            field="crs",
            hint="leave out «crs»: it may only fill in what the file does not say",
        )

    inferred = infer(source, key)
    if not inferred.rows or not inferred.columns:
        raise UsageError(
            f"{delivery.path} has no {'rows' if inferred.columns else 'attribute columns'}; nothing can be drafted",
            field=delivery.path,
            hint="name a delivery with features and a column that identifies them",
        )
    before = None if older is None else infer(older, key)
    if before is not None:
        inferred = with_previous(inferred, before)
    notes: list[str] = []
    drift, columns = settle_key(source, older, inferred, before, key, notes)

    facts, asserted = _facts(_name(source_path, layer), source_path, delivery, inferred, columns, drift, owner, notes)
    contract_text = draft_contract(facts)
    contract = _read_back(contract_text)
    lost, findings = _would_be_rejected(source, contract, columns)
    if inferred.geometry is not None:
        facts = with_extent(facts, positions(source, contract), inferred.geometry.bounds, notes)
        contract_text = draft_contract(facts)
    if lost:
        notes.append(
            f"{lost:,} of {inferred.rows:,} rows would be rejected: "
            + "; ".join(f"{each.rule}: {each.observed}" for each in findings if each.severity == "error")
        )
    if before is None:
        notes.append(
            "no older delivery was compared: columns that change in every export and keys that do not come back were not looked for"
        )
    notes += code_lists(inferred)[:3]
    return Drafted(contract_text, tuple(columns), asserted, tuple(notes), inferred.rows, lost)


# --- the delivery ----------------------------------------------------------------------------------------------------------------------


def infer(source: Source, key: Sequence[str]) -> Inferred:
    """What the rows of a delivery say; columns named as key are followed to the end."""
    inference = Inference(source.delivery, asked=key)
    for batch in source.batches():
        inference.add(batch)
    return inference.result()


def _would_be_rejected(source: Source, contract: Contract, key: Sequence[str]) -> tuple[int, tuple[Finding, ...]]:
    """How many rows the drafted contract rejects, and why: the very checks of publish."""
    plan = plan_cast(contract, source.delivery, {}, key, None, "warn")
    tally, lost, first = FindingTally(), 0, 1
    limits = DEGREES if _geographic(contract.crs_epsg) else None
    for batch in source.batches():
        cast, miscast = cast_batch(batch, plan)
        miscast += misfit_faults(plan, source.delivery, first, batch.num_rows)
        wkb = cast.column(contract.geometry_name)
        stored, faults, _ = snap(wkb, contract)
        found = check_rows(
            cast,
            contract,
            delivered=kernel.scan(wkb),
            stored=kernel.scan(stored),
            canonical=stored,
            limits=limits,
            skip=rejected(faults, cast.num_rows),
            miscast=miscast,
        )
        faults = [*miscast, *faults, *found]
        lost += int(rejected(faults, cast.num_rows).sum())
        tally.add(faults, rows=np.arange(first, first + cast.num_rows))
        first += cast.num_rows
    return lost, tally.findings()


# --- the key ---------------------------------------------------------------------------------------------------------------------------


def settle_key(
    source: Source, older: Source | None, inferred: Inferred, before: Inferred | None, asked: Sequence[str], notes: list[str]
) -> tuple[Drift | None, tuple[str, ...]]:
    """The key columns, why those (into `notes`), and what the previous delivery says under them.

    Raises:
        UsageError: a column that was asked for is not there, or no column can be the key.
    """
    candidates = [each for each in inferred.keys if not each.why_not]
    by_name = {each.name: each for each in inferred.keys}
    if asked:
        unknown = [each for each in asked if each not in by_name]
        if unknown:
            raise UsageError(
                f"{source.delivery.path} has no column {unknown[0]}", field=unknown[0], hint=f"its columns are {', '.join(by_name)}"
            )
        if len(asked) == 1 and by_name[asked[0]].why_not:
            facts = inferred.column(asked[0])
            refused = "; publish will refuse the delivery and name the rows" if facts and (facts.nulls or facts.duplicates) else ""
            notes.append(f"{asked[0]} is not a clean key: {by_name[asked[0]].why_not}{refused}")
        elif len(asked) == 1 and by_name[asked[0]].doubt:
            notes.append(by_name[asked[0]].doubt)
        return _compare(source, older, inferred, before, asked), tuple(asked)
    if not candidates:
        nearly = [f"{each.name} ({each.why_not})" for each in inferred.keys if each.rank != 3] or [each.name for each in inferred.keys[:5]]
        raise UsageError(
            f"no column of {source.delivery.path} can be the key: {listed(nearly[:5], len(nearly))}",
            field="key",
            hint="repair one of them, or name columns that identify a feature together: «key=COLUMNS»",
        )
    for each in candidates:
        drift = _compare(source, older, inferred, before, (each.name,))
        if drift is None or not drift.renumbered:
            notes += _why(each, inferred)
            return drift, (each.name,)
        notes.append(f"{each.name} is not the key: nearly every feature has other content under it than before, so it is dealt out anew")
    notes.append(f"no column keeps its meaning from export to export; {candidates[0].name} is drafted as the key and needs another")
    return None, (candidates[0].name,)


def _why(chosen: KeyCandidate, inferred: Inferred) -> list[str]:
    said = [f"key: {chosen.name}, unique and never null in {inferred.rows:,} rows"]
    if chosen.doubt:
        said.append(chosen.doubt)
    others = [each for each in inferred.keys if each.name != chosen.name and (each.rank < 3 or (each.doubt and not each.why_not))]
    said += [
        f"not the key: {each.name}, {each.why_not or each.doubt or 'unique too; name it as the key if it is the better one'}"
        for each in others[:5]
    ]
    return said


def _compare(source: Source, older: Source | None, inferred: Inferred, before: Inferred | None, key: Sequence[str]) -> Drift | None:
    if older is None or before is None or any(before.column(each) is None for each in key):
        return None
    kinds = {each.name: each.kind for each in before.columns}
    common = [each.name for each in inferred.columns if kinds.get(each.name) == each.kind and each.name != source.delivery.fid_column]
    places = tuple(each.geometry.name if each.geometry else None for each in (source.delivery, older.delivery))
    comparison = Comparison(key, common, (places[0], places[1]), max(inferred.rows, before.rows))
    for side, one in ((False, source), (True, older)):
        for batch in one.batches():
            comparison.add(batch, before=side)
    return comparison.result()


# --- the drafts ------------------------------------------------------------------------------------------------------------------------


def _facts(
    name: str,
    source_path: str,
    delivery: Delivery,
    inferred: Inferred,
    key: tuple[str, ...],
    drift: Drift | None,
    owner: str | None,
    notes: list[str],
) -> tuple[ContractFacts, str | None]:
    geometry = inferred.geometry
    if delivery.geometry is None or geometry is None:
        raise UsageError(
            f"{delivery.path} has no geometry column", field="geometry", hint="name a spatial file, or its layer: «layer=NAME»"
        )
    epsg, asserted = epsg_of(delivery.geometry, geometry.bounds, delivery.path)
    if asserted is not None and not delivery.geometry.asserted:
        notes.append(f"the file states no CRS ({delivery.geometry.note}); {asserted} fits the coordinates and is asserted, to be confirmed")
    precision, why = precision_of(epsg, geometry.decimals, geometry.ordinates)
    coarse = geometry.coarse[precision - 1] if 0 < precision <= len(geometry.coarse) and geometry.ordinates >= JUDGED_ORDINATES else 0.0
    if coarse > COARSE_SHARE:
        part = f"{percent(coarse)} of the features have {precision - 1} decimals or fewer in all ordinates"
        why += f"; {part}"
        notes.append(f"precision: {part}: a coarser survey, or features that were rounded")
    volatile = dict(drift.changed) if drift is not None else {}
    doubt = next((each.doubt for each in inferred.keys if (each.name,) == key), "")
    fields = []
    for each in inferred.columns:
        if each.name == delivery.fid_column and each.name not in key:
            continue
        note = Note(each.note, confirm=True) if each.note else None
        is_key = each.name in key
        kind = FieldType("integer") if is_key and each.integral else each.kind
        moves = drift is not None and each.name in drift.volatile and not is_key
        if moves and drift is not None:
            note = Note(f"differs for {volatile[each.name]:,} of {drift.compared:,} features from the previous export", confirm=True)
            notes.append(f"volatile: {each.name} differs for {volatile[each.name]:,} of {drift.compared:,} features, most columns do not")
        fields.append(FieldFacts(each.name, kind, nullable=not is_key, volatile=moves, note=note))
    for other in delivery.other_geometries:
        code = (
            epsg if other.crs is None else epsg_of(other, (math.nan,) * 4, delivery.path)[0]
        )  # one file states a CRS for all, or for none
        fields.append(
            FieldFacts(
                other.name,
                FieldType("geometry"),
                crs_epsg=code,
                coordinate_precision=possible_precision(code, _USUAL[_geographic(code)]),
                note=Note("precision is a guess", confirm=True),
            )
        )
    marks = {
        "key": Note(
            doubt or "found in the data" if drift is None else f"{percent(drift.survived)} of the previous keys come back", confirm=True
        ),
        "coordinate_precision": Note(why, confirm=True),
        "geometry_type": Note("what the rows hold", confirm=True),
    }
    if geometry.nulls or geometry.empty or geometry.dimensions != "xy":
        marks["geometry"] = Note(f"{geometry.nulls:,} rows without geometry, {geometry.empty:,} with an empty one", confirm=True)
        notes.append(f"geometry: {geometry.nulls:,} rows without, {geometry.empty:,} with an empty one")
    fine = 3 if "z" in geometry.dimensions else None
    return ContractFacts(
        name=name,
        product_id=str(uuid4()),
        epsg=epsg,
        axis_order="lon_lat",
        geometry_type=geometry.type,
        coordinate_precision=precision,
        fields=tuple(fields),
        key=key,
        owner=owner,
        dimensions=geometry.dimensions,
        z_precision=fine,
        m_precision=3 if "m" in geometry.dimensions else None,
        null_geometry=geometry.nulls > 0,
        empty_geometry=geometry.empty > 0,
        spherical=delivery.geometry.edges == "spherical",
        drafted_from=os.path.basename(source_path),  # noqa: PTH119 - a name, no path
        notes=marks,
    ), asserted


def epsg_of(column: GeometryColumn, bounds: tuple[float, ...], path: str) -> tuple[int, str | None]:
    """The EPSG code of a geometry column, and the CRS to assert where the file states none."""
    if column.crs is None:
        inside = bounds[0] >= -180 and bounds[1] >= -90 and bounds[2] <= 180 and bounds[3] <= 90
        if not inside:
            raise UsageError(
                f"{path} states no CRS for {column.name} ({column.note}), and its coordinates are not degrees",
                field="crs",
                hint="export it with its CRS (a .prj file, an SRS id), or assert it: «crs=EPSG:CODE», source.crs in a publication file",
            )
        return 4326, "EPSG:4326"
    found = identify(column.crs)
    code = (found.code or "").removeprefix("EPSG:")
    if not code.isdigit():
        raise UsageError(
            f"the CRS of {column.name} in {path} has no EPSG code: {found.name}{f' ({found.reason})' if found.reason else ''}",
            field="crs",
            hint="have it exported in a CRS with an EPSG code, since a contract names one",
        )
    return int(code), f"EPSG:{code}" if column.asserted else None


def precision_of(epsg: int, measured: int, ordinates: int) -> tuple[int, str]:
    """The decimals to draft for coordinates whose decimals were measured, and why."""
    degrees = _geographic(epsg)
    usual = _USUAL[degrees]
    if measured > _FINEST[degrees]:
        return possible_precision(epsg, usual), f"the coordinates lie on no grid; this is about {_ground(epsg, usual)} on the ground"
    if ordinates < JUDGED_ORDINATES:
        wanted = possible_precision(epsg, max(usual, measured))
        return wanted, f"a guess: {ordinates:,} ordinates are too few to measure"
    return possible_precision(epsg, measured), f"measured: 99 % of {ordinates:,} ordinates have {measured} decimals or fewer"


def _publication_notes(guessed: str | None, allowed: float | None, lost: int, rows: int) -> dict[str, Note]:
    notes = {}
    if guessed is not None:
        notes["source"] = Note("the file states no CRS; this one fits the coordinates", confirm=True)
    if allowed is not None:
        notes["rejects"] = Note(f"{lost:,} of {rows:,} rows are faulty today", confirm=True)
    return notes


def _ground(epsg: int, decimals: int) -> str:
    size = metres_per_unit(of_code(epsg)) / 10.0**decimals
    return f"{size * 100:.2g} cm" if size >= 0.01 else f"{size * 1000:.2g} mm"


def _geographic(epsg: int) -> bool:
    return bool(horizontal(of_code(epsg)).is_geographic)


def _read_back(text: str) -> Contract:
    contract = parse(read_yaml(text.encode(), "the drafted contract"))
    if not isinstance(contract, Contract):
        raise InternalError(f"the drafted contract does not read back: {contract[0]}", hint="report this, with the columns of the file")
    return contract


def _name(source_path: str, layer: str | None) -> str:
    """The name of the dataset: the file's without its endings, safe as a file name."""
    stem = os.path.basename(source_path.rstrip("/\\"))  # noqa: PTH119 - a name, no path
    stem = layer if layer is not None else re.sub(r"(\.[A-Za-z0-9]{1,8}){1,2}$", "", stem) or stem
    return re.sub(r"[^\w\-]+", "_", stem).strip("_") or "dataset"


def new_file(path: str, text: str) -> None:
    """Write a text to a file that is not there yet.

    Raises:
        UsageError: the file is there already.
        StoreError: it cannot be written.
    """
    target = Path(local_path(path, field="out", what="a contract")).resolve()
    if target.exists():
        raise UsageError(f"{path} is there already; nothing is overwritten", field=path, hint="move it away, or name another file")
    _write(target.parent, {target: text})


def _write(folder: Path, texts: dict[Path, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except OSError as fault:
        raise StoreError(
            f"the drafts cannot be written to {folder}: {fault.strerror}",
            field=str(folder),
            hint="name a folder that you may write to: «out=DIR»",
        ) from fault
