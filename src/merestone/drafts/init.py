"""A delivery to a draft of its contract and its publication file, which publish at once.

Not here: what the rows say (`infer`, `previous`, `join`), which column is the key (`keys`), the text of the drafts (`text`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from merestone.contract.contract import Contract, FieldType
from merestone.contract.parse import parse
from merestone.document.yaml_reader import read_yaml
from merestone.drafts.extent import box_of_both, positions, with_extent
from merestone.drafts.infer import ColumnFacts, GeometryFacts, Inference, Inferred, code_lists
from merestone.drafts.keys import Chosen, asked_key, first_key, in_words, joining_key
from merestone.drafts.named import after_folder, dataset_name
from merestone.drafts.previous import Both, Loose, both, compared_as, crs_of, exports_of, measured, unmeasured
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
from merestone.reference.area import Box
from merestone.reference.ground import metres_per_unit
from merestone.reference.identity import identify
from merestone.reference.systems import horizontal, of_code
from merestone.results.finding import Finding
from merestone.rules import catalogue
from merestone.scratch.read_once import ReadOnce
from merestone.source.open import open_source
from merestone.source.port import Delivery, GeometryColumn, Source, SourceSpec
from merestone.storage.place import local_path
from merestone.words import listed, percent, plural

_USUAL = {True: 7, False: 3}  # decimals where the coordinates show none: about a centimetre in degrees, a millimetre in metres
_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""What `rejects.max_fraction` is drafted as."""
_FINEST = {True: 9, False: 5}  # measured decimals beyond these are the noise of a computation, not a grid


@dataclass(frozen=True, slots=True)
class InitResult:
    """The files written (contract, publication), what a person should know, and the clauses without which a first publish stops."""

    contract: Path
    publication: Path
    notes: tuple[str, ...]
    unsettled: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[Path, Path]:
        """Both files."""
        return self.contract, self.publication


@dataclass(frozen=True, slots=True)
class Drafted:
    """The text of a contract; the key; the CRS that had to be asserted; what a person should know.

    lost: the share of rows that the contract rejects, of the export of which it rejects more. others: an export has other columns.
    unsettled: clauses that a person has to state, or a first publish stops.
    """

    text: str
    key: tuple[str, ...]
    asserted: str | None
    notes: tuple[str, ...]
    lost: float
    others: bool
    unsettled: tuple[str, ...] = ()


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
        previous: an older delivery of the same kind: shows which key joins the two, which columns each export makes anew, and what
            differs; the draft accepts both.
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
    name = dataset_name(source_path, layer)
    contract_path, publication_path = folder / f"{name}.contract.yaml", folder / f"{name}.yaml"
    check_outputs({"the contract's draft": str(contract_path), "the publication's draft": str(publication_path)})
    for path in (contract_path, publication_path):
        if path.exists():
            raise UsageError(
                f"{path} is there already; nothing is overwritten", field=str(path), hint="move it away, or name another folder: «out=DIR»"
            )
    made = draft(source_path, layer=layer, crs=crs, key=key, previous=previous, owner=owner)
    notes, allowed = list(made.notes), allowed_rejects(made.lost)
    if after_folder(source_path, layer):
        words = f"the dataset is called {name} after its folder, since the file is called by its date alone: change `name` in the contract where it is another"
        notes.insert(0, words)
    if allowed is not None:
        notes.append(_rejects_note(made.lost, allowed))
    publication_text = draft_publication(
        PublicationFacts(
            contract=contract_path.name,
            source=Path(os.path.relpath(source_path, folder)).as_posix(),
            destination=f"./published/{name}",
            layer=layer,
            crs=made.asserted,
            key=made.key,
            max_rejected=allowed,
            extra_columns=made.others,
            notes=_publication_notes(made, allowed, guessed=crs is None),
        )
    )
    _write(folder, {contract_path: made.text, publication_path: publication_text})
    return InitResult(contract_path, publication_path, tuple(notes), made.unsettled)


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
    notes: list[str] = []
    found = _look(source, older, inferred, key)
    notes += [*found.chosen.said, *found.loose.said]
    facts, asserted = _facts(dataset_name(source_path, layer), source_path, delivery, found, owner, notes)
    contract_text = draft_contract(facts)
    contract = _read_back(contract_text)
    exports = [(source, ""), *([(older, " of the older export")] if older is not None and not found.apart else [])]
    outcomes = [_would_be_rejected(each, contract, found.chosen.columns) for each, _ in exports]
    if any(each.broken for each in outcomes):
        facts, contract, outcomes = _finer(facts, contract, outcomes, [each for each, _ in exports], found, notes)
        contract_text = draft_contract(facts)
    for each, (_, said) in zip(outcomes, exports, strict=True):
        notes += _fates(each, said, contract, found.chosen.columns)
    lost = max((each.count - each.broken) / max(each.rows, 1) for each in outcomes)
    if found.inferred.geometry is not None:
        decided, box = positions(source, contract), found.inferred.geometry.bounds
        if older is not None and found.before is not None:
            box = box_of_both(box, found.before, (decided[0], positions(older, contract)[0]), notes)
        facts = with_extent(facts, decided, box, notes)
        contract_text = draft_contract(facts)
    if older is None:
        notes.append(
            "no older delivery was compared: which key joins two exports, and which columns each one makes anew, was not looked for"
        )
    notes += code_lists(inferred)[:3]
    others = bool(found.aside) or (found.both is not None and bool(found.both.gone))
    if found.apart:
        notes.append("publish refuses the older export, whose key is of another type")
    unsettled = ("extent",) if facts.extents else ()
    return Drafted(contract_text, found.chosen.columns, asserted, tuple(notes), lost, others, unsettled)


@dataclass(frozen=True, slots=True)
class _Found:
    """What the rows say: facts, the key, columns that are not compared, and what two exports have in common.

    before: the box of the older export, where it is in the same CRS.
    """

    inferred: Inferred
    chosen: Chosen
    loose: Loose
    both: Both | None = None
    before: Box | None = None

    @property
    def apart(self) -> bool:
        """Whether the older export cannot fit the draft, whatever it says of the columns: its key is of another type."""
        return self.both is not None and bool(set(self.chosen.columns) & set(self.both.torn))

    @property
    def columns(self) -> tuple[ColumnFacts, ...]:
        """The columns that are drafted, as far as possible those that both exports have in one type."""
        if self.both is None or self.apart:
            return (*self.inferred.columns, *(self.both.came if self.both else ()))
        return tuple(each for each in self.inferred.columns if each.name not in self.both.torn)

    @property
    def aside(self) -> tuple[ColumnFacts, ...]:
        """Columns of the newer export that stand in the draft as comments, so as to fit the older one."""
        if self.both is None or self.apart:
            return ()
        return (*(each for each in self.inferred.columns if each.name in self.both.torn), *self.both.came)


def _look(source: Source, older: Source | None, inferred: Inferred, key: Sequence[str]) -> _Found:
    """Look at one export, or at two.

    Raises:
        UsageError: a column that was asked for is not there, or no column can be the key.
    """
    delivery = source.delivery
    if older is None:
        chosen = asked_key(key, inferred, None, delivery.path) if key else first_key(inferred, source)
        return _Found(inferred, chosen, unmeasured(inferred, chosen.columns, delivery.fid_column))
    before = infer(older, key)
    if not before.rows:
        alone = _look(source, None, inferred, key)
        words = "the older export has no rows: nothing was compared"
        return replace(alone, chosen=replace(alone.chosen, said=(*alone.chosen.said, words)))
    shared = both(inferred, before, (delivery, older.delivery), key)
    names = [each.name for each in shared.inferred.columns if before.column(each.name) is not None]
    crs = [crs_of(each.delivery) for each in (source, older)]
    said = list(shared.said)
    if crs[0] != crs[1]:
        said.append(f"the CRS is {crs[0] or 'not stated'} now and was {crs[1] or 'not stated'} before")
    exports = exports_of((source, older), (inferred, before), names, compared_as(inferred, before))
    if not key:
        chosen = joining_key(shared.inferred, exports, (source, older))
    else:
        chosen = asked_key(key, shared.inferred, exports if set(key) <= set(names) else None, delivery.path)
    loose = (
        unmeasured(shared.inferred, chosen.columns, delivery.fid_column)
        if chosen.joined is None
        else measured(shared.inferred, chosen.columns, exports, chosen.dealt_out, delivery.fid_column)
    )
    box = before.geometry.bounds if before.geometry is not None and crs[0] == crs[1] else None
    return _Found(shared.inferred, replace(chosen, said=(*chosen.said, *said)), loose, shared, box)


# --- the delivery ----------------------------------------------------------------------------------------------------------------------


def infer(source: Source, key: Sequence[str]) -> Inferred:
    """What the rows of a delivery say; columns named as key are followed to the end."""
    inference = Inference(source.delivery, asked=key)
    for batch in source.batches():
        inference.add(batch)
    return inference.result()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How many rows the drafted contract rejects, of how many, and why.

    broken: rows that the drafted grid alone makes wrong. nameless: rows without a whole key, which refuse the delivery and are not among the rejected.
    """

    count: int
    broken: int
    rows: int
    findings: tuple[Finding, ...]
    nameless: int = 0

    @property
    def words(self) -> str:
        return "; ".join(f"{one.rule}: {one.observed}" for one in self.findings if one.severity == "error")


def _fates(found: _Outcome, said: str, contract: Contract, key: Sequence[str]) -> Iterator[str]:
    """What becomes of the rows of one export, in words; `said` names the export."""
    if found.count:
        yield f"{found.count:,} of {found.rows:,} rows{said} would be rejected: {found.words}"
    if found.nameless and len(key) > 1:  # of one column it is said with the key
        has = "has" if found.nameless == 1 else "have"
        yield f"{plural(found.nameless, 'row')}{said} {has} a null in {listed(key, len(key))}: publish refuses the delivery and names the rows"
    if found.broken:
        yield (
            f"{found.broken:,} of them{said} hold as delivered and break on the grid that is drafted, {contract.coordinate_precision} decimals, "
            "and on finer ones: publish refuses them until `coordinate_precision` is one that keeps them"
        )


def _finer(
    facts: ContractFacts, contract: Contract, outcomes: list[_Outcome], sources: list[Source], found: _Found, notes: list[str]
) -> tuple[ContractFacts, Contract, list[_Outcome]]:
    """The draft with one or two decimals more, where rows of the exports break on the drafted grid and hold on that one."""
    epsg, drafted, geometry = contract.crs_epsg, contract.coordinate_precision, found.inferred.geometry
    for decimals in (drafted + 1, drafted + 2):
        # The gate refuses coordinates that are coarser than promised.
        coarse = geometry is not None and geometry.decimals < decimals and geometry.ordinates >= JUDGED_ORDINATES
        if coarse or possible_precision(epsg, decimals) != decimals:
            break
        wanted = replace(contract, coordinate_precision=decimals)
        tried = [_would_be_rejected(each, wanted, found.chosen.columns) for each in sources]
        if not any(each.broken for each in tried):
            worst = max(outcomes, key=lambda each: each.broken)
            why = f"on {drafted} decimals {worst.broken:,} of {worst.rows:,} rows would break, on {decimals} none"
            notes.append(f"coordinate_precision is drafted as {decimals}: {why} ({worst.words})")
            said = facts.notes["coordinate_precision"].text
            marks = {**facts.notes, "coordinate_precision": Note(f"{said}; {why}", confirm=True)}
            facts = replace(facts, coordinate_precision=decimals, notes=marks)
            return facts, _read_back(draft_contract(facts)), tried
    return facts, contract, outcomes


def _would_be_rejected(source: Source, contract: Contract, key: Sequence[str]) -> _Outcome:
    """What becomes of the rows under the drafted contract: the very checks of publish."""
    plan = plan_cast(contract, source.delivery, {}, key, None, "warn")
    tally, lost, broken, nameless, first = FindingTally(), 0, 0, 0, 1
    limits = DEGREES if _geographic(contract.crs_epsg) else None
    for batch in source.batches():
        cast, miscast = cast_batch(batch, plan)
        miscast += misfit_faults(plan, source.delivery, first, batch.num_rows)
        wkb = cast.column(contract.geometry_name)
        stored, faults, _ = snap(wkb, contract)
        unstorable = [each for each in faults if each.rule != catalogue.COLLAPSE.code]  # a curve: none of the grid's doing
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
        bad = rejected(faults, cast.num_rows)
        keyless = np.zeros(cast.num_rows, bool)
        for name in key:
            keyless |= np.asarray(cast.column(name).is_null())
        bad &= ~keyless  # such a row refuses the delivery, whatever share of rejects is tolerated
        nameless += int(keyless.sum())
        lost += int(bad.sum())
        doubtful = bad & ~rejected([*miscast, *unstorable], cast.num_rows)
        if doubtful.any():
            rows = cast.filter(pa.array(doubtful))
            wkb = rows.column(contract.geometry_name)
            scan = kernel.scan(wkb)
            given = check_rows(rows, contract, delivered=scan, stored=scan, canonical=wkb, limits=limits)
            broken += int((~rejected(given, rows.num_rows)).sum())
        tally.add(faults, rows=np.arange(first, first + cast.num_rows))
        first += cast.num_rows
    return _Outcome(lost, broken, first - 1, tally.findings(), nameless)


# --- the drafts ------------------------------------------------------------------------------------------------------------------------


def _facts(
    name: str, source_path: str, delivery: Delivery, found: _Found, owner: str | None, notes: list[str]
) -> tuple[ContractFacts, str | None]:
    inferred, key = found.inferred, found.chosen.columns
    geometry = inferred.geometry
    if delivery.geometry is None or geometry is None:
        raise UsageError(
            f"{delivery.path} has no geometry column", field="geometry", hint="name a spatial file, or its layer: «layer=NAME»"
        )
    epsg, asserted = epsg_of(delivery.geometry, geometry.bounds, delivery.path)
    if asserted is not None and not delivery.geometry.asserted:
        notes.append(f"the file states no CRS ({delivery.geometry.note}); {asserted} fits the coordinates and is asserted, to be confirmed")
    precision, why = precision_of(epsg, geometry)
    coarse = geometry.coarse[precision - 1] if 0 < precision <= len(geometry.coarse) and geometry.ordinates >= JUDGED_ORDINATES else 0.0
    if coarse > COARSE_SHARE:
        part = f"{percent(coarse)} of the features have {precision - 1} decimals or fewer in all ordinates"
        why += f"; {part}"
        notes.append(f"precision: {part}: a coarser survey, or features that were rounded")
    aside = found.aside
    fields = [_field(each, found) for each in found.columns if each.name != delivery.fid_column or each.name in key]
    came = [_field(each, found) for each in aside if each.name != delivery.fid_column]
    if came:
        names = [each.name for each in came]
        notes.append(
            f"both exports fit the draft, which has {listed(names, len(names))} as {'a comment' if len(names) == 1 else 'comments'}"
        )
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
    joined = found.chosen.joined
    marks = {
        "key": Note(in_words(joined) if joined is not None else found.chosen.doubt or "found in the data", confirm=True),
        "coordinate_precision": Note(why, confirm=True),
        "geometry_type": Note("what the rows hold", confirm=True),
    }
    if geometry.nulls or geometry.empty or geometry.dimensions != "xy":
        marks["geometry"] = Note(f"{geometry.nulls:,} rows without geometry, {geometry.empty:,} with an empty one", confirm=True)
        notes.append(f"geometry: {geometry.nulls:,} rows without, {geometry.empty:,} with an empty one")
    fine = 3 if "z" in geometry.dimensions else None
    return ContractFacts(
        name=name,
        product_id=environment.new_uuid(),
        epsg=epsg,
        axis_order="lon_lat",
        geometry_type=geometry.type,
        coordinate_precision=precision,
        fields=tuple(fields),
        came=tuple(came),
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


def _field(each: ColumnFacts, found: _Found) -> FieldFacts:
    """One column as a field."""
    is_key = each.name in found.chosen.columns
    why = found.loose.volatile.get(each.name, "")
    rounded = dict([found.loose.rounded[each.name]]) if each.name in found.loose.rounded else {}
    note = why or ("the two exports differ in its last digits" if rounded else found.loose.doubted.get(each.name) or each.note)
    return FieldFacts(
        each.name,
        FieldType("integer") if is_key and each.integral else each.kind,
        nullable=not is_key,
        volatile=bool(why),
        decimals=rounded.get("decimals"),
        digits=rounded.get("digits"),
        note=Note(note, confirm=True) if note else None,
    )


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


def precision_of(epsg: int, geometry: GeometryFacts) -> tuple[int, str]:
    """The decimals to draft for coordinates whose decimals were measured, and why."""
    degrees, ordinates = _geographic(epsg), geometry.ordinates
    usual = _USUAL[degrees]
    if geometry.single:
        wanted = possible_precision(epsg, min(usual, geometry.decimals))
        return wanted, f"the coordinates are 32-bit floats, which hold about {_ground(epsg, wanted)} here"
    measured = max((each for each in geometry.axes if each <= _FINEST[degrees]), default=0)
    if geometry.decimals > _FINEST[degrees]:
        wanted = possible_precision(epsg, max(usual, measured))
        return wanted, f"the coordinates lie on no grid; this is about {_ground(epsg, wanted)} on the ground"
    if ordinates < JUDGED_ORDINATES:
        wanted = possible_precision(epsg, max(usual, measured))
        return wanted, f"a guess: {ordinates:,} ordinates are too few to measure"
    if len(set(geometry.axes)) == 1:
        return possible_precision(epsg, measured), f"measured: 99 % of {ordinates:,} ordinates have {measured} decimals or fewer"
    each_axis = " and ".join(f"{each} along {axis}" for each, axis in zip(geometry.axes, "xy", strict=True))
    return possible_precision(epsg, measured), f"measured: 99 % of the ordinates of each axis have so many decimals or fewer: {each_axis}"


def allowed_rejects(lost: float) -> float | None:
    """The share of rejected rows to draft: the next round figure, and never more than a twentieth; None where no row is rejected."""
    return next((each for each in _SHARES if lost <= each), _SHARES[-1]) if lost else None


def _rejects_note(lost: float, allowed: float) -> str:
    if lost <= allowed:
        return f"rejects.max_fraction is drafted as {allowed:g}: up to that share of rows goes to quarantine, and more refuses a delivery"
    return (
        f"{percent(lost)} of the rows would be rejected; rejects.max_fraction is drafted as {allowed:g} and not more, so publish refuses this "
        "delivery: have the rows corrected, change the clause that rejects them, or state a larger share"
    )


def _publication_notes(made: Drafted, allowed: float | None, *, guessed: bool) -> dict[str, Note]:
    notes = {}
    if guessed and made.asserted is not None:
        notes["source"] = Note("the file states no CRS; this one fits the coordinates", confirm=True)
    if allowed is not None:
        more = "" if made.lost <= allowed else ", which is more than a draft allows: is the data wrong, or the contract?"
        notes["rejects"] = Note(f"{percent(made.lost)} of the rows are rejected today{more}", confirm=True)
    if made.others:
        notes["extra_columns"] = Note("the two exports have other columns; refuse, once all have the same", confirm=True)
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
