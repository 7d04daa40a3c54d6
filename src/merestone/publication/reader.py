"""The publication file, read strictly: every key known, every path absolute, what this version cannot do refused.

Not here: the values themselves (`publication`), what is made of the settings (`assembly`), the contract's clauses (`contract`), whether the
source exists (`source`).

See docs/spec/gate.md#settings-of-later-versions. A known setting of a later version is refused where ignoring it could change what is published, where, or
what is guarded (`NOT_YET`); otherwise it is accepted and named in `notices` (`NOT_IN_EFFECT`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from merestone.contract.contract import Contract
from merestone.contract.files import read_contract, read_document, refusal
from merestone.document.forms import (
    Choice,
    Clause,
    ColumnNames,
    Group,
    Keyed,
    Listed,
    Name,
    OneOf,
    Real,
    Report,
    Text,
    Whole,
)
from merestone.document.yaml_reader import Document, path_text
from merestone.document.yaml_reader import Path as KeyPath
from merestone.errors import UsageError
from merestone.identity.derived import RULES
from merestone.json_value import JsonObject
from merestone.publication.assembly import assemble, fallback_name
from merestone.publication.publication import (
    Publication,
)
from merestone.reference.identity import canonical_crs, identify
from merestone.storage.open import SCHEMES
from merestone.storage.place import local_path, parse_place

_FRACTION: Final = Real(least=0, most=1, hint="a share, such as 0.2 for 20 %")
_DURATION: Final = Text(
    pattern=r"P(?!$)(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+W)?(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?",
    form="an ISO 8601 duration",
    hint="such as PT24H or P6Y",
)
_STRATEGIES: Final = ("best", "grid", "ballpark")


def _known_crs(text: str) -> str:
    if not identify(text).name:
        raise ValueError(f"{text[:60]!r} is not a CRS that PROJ knows")
    return text


SOURCE: Final = Group(
    "source",
    (
        Clause("path", Text(form="a path"), "the delivery: a file, or a folder for formats that are folders", required=True),
        Clause("layer", Name("a layer"), "the layer, where a file has several"),
        Clause(
            "crs", Text(form="a CRS", parse=_known_crs, hint="such as EPSG:28992"), "the CRS, asserted where the file states none; recorded"
        ),
        Clause("encoding", Text(form="an encoding"), "the encoding of text, asserted where the file states none; recorded"),
        Clause("geometry", Name("a column"), "the geometry column, where a file has several or none says so"),
        Clause(
            "feature_id",
            Name("a column"),
            "the column to make of the ids that GeoJSON gives its features beside their properties; without it they are not a column",
        ),
        Clause("x", Name("a column"), "the column of x in a CSV file"),
        Clause("y", Name("a column"), "the column of y in a CSV file"),
        Clause("wkt", Name("a column"), "the column of WKT in a CSV file"),
    ),
)

_TARGET_ROWS: Final = Whole(1)
PUBLICATION: Final = Group(
    "a publication",
    (
        Clause("name", Text(), "the dataset's name", default="the contract's"),
        Clause("contract", Text(form="a contract's file, or a stamp"), "the contract: a file, or a stamp in a registry", required=True),
        Clause("source", OneOf(text=Text(form="a path"), mapping=SOURCE), "the delivery", required=True),
        Clause(
            "columns",
            Keyed(Name("a name in the contract"), "a column of the source"),
            "source names to contract names",
            default="the same names",
        ),
        Clause(
            "key",
            OneOf(
                text=ColumnNames(),
                listed=ColumnNames(),
                mapping=Group(
                    "a derived key",
                    (
                        Clause("derive", Choice(tuple(RULES)), "the named rule", required=True),
                        Clause("from", ColumnNames(), "the immutable attributes it is made from", required=True),
                    ),
                ),
            ),
            "the column or columns that identify a feature",
            default="the contract's",
        ),
        Clause("key_migration", Text(form="a file, or renumber"), "old and new keys where the key rule changed", default="no migration"),
        Clause("destination", Text(form="a folder or URL"), "where the dataset is published", required=True),
        Clause(
            "partition",
            OneOf(
                text=Choice(("none",)),
                mapping=Group(
                    "partition",
                    (
                        Clause("by", Choice(("kdtree", "column", "none", "quadkey", "h3")), "the scheme", default="kdtree"),
                        Clause("column", Name("a column"), "the column of `by: column`"),
                        Clause("target_rows", _TARGET_ROWS, "rows of a leaf of `by: kdtree`", default="50000"),
                        Clause("level", Whole(1, 30), "the level of `by: quadkey`"),
                        Clause("resolution", Whole(0, 15), "the resolution of `by: h3`"),
                    ),
                ),
            ),
            "how files are cut",
            default="by: kdtree, target_rows: 50000",
        ),
        Clause("mode", Choice(("incremental", "append", "rebuild")), "the mode of the product", default="incremental"),
        Clause(
            "files",
            Group(
                "files",
                (
                    Clause("target_rows", _TARGET_ROWS, "rows of a data file", default="100000"),
                    Clause("row_group_rows", Whole(1), "rows of a row group", default="10000"),
                ),
            ),
            "the size of files",
        ),
        Clause(
            "crs",
            Group(
                "crs",
                (
                    Clause(
                        "strategies",
                        Listed(Choice(_STRATEGIES)),
                        "the fallbacks of the coordinate operation, in order",
                        default="best, grid, ballpark",
                    ),
                    Clause("missing_grids", Choice(("refuse", "fallback")), "what happens where PROJ lacks a grid", default="refuse"),
                    Clause("grids", Text(form="a folder"), "a folder with PROJ grids", default="PROJ's own"),
                    Clause(
                        "accept",
                        Listed(Text(form="a CRS", parse=canonical_crs, hint="such as EPSG:4258")),
                        "other CRSs that may be delivered; they are transformed into the contract's",
                        default="none",
                    ),
                ),
            ),
            "how coordinates are transformed",
        ),
        Clause("extra_columns", Choice(("refuse", "warn")), "what happens to delivered columns outside the contract", default="refuse"),
        Clause(
            "guard",
            Group(
                "guard",
                (
                    Clause(
                        "max_changed_fraction",
                        Real(
                            least=0, most=10, hint="a share of the features there were: 0.2 is 20 %, above 1 for a dataset that grows fast"
                        ),
                        "share of features that may be added, changed or removed",
                        default="0.2",
                    ),
                    Clause("max_removed_fraction", _FRACTION, "share of features that may be removed", default="not guarded"),
                    Clause("max_moved_fraction", _FRACTION, "share of features that may go to another partition", default="not guarded"),
                    Clause(
                        "max_withdrawn_fraction",
                        _FRACTION,
                        "share of a change that a roll-back took back, which may be delivered again",
                        default="0.5",
                    ),
                    Clause("min_key_survival", _FRACTION, "share of keys that must be delivered again", default="not guarded"),
                    Clause(
                        "max_null_geometry_fraction",
                        _FRACTION,
                        "share of delivered rows that may be without geometry (null or empty)",
                        default="not guarded",
                    ),
                    Clause(
                        "max_extent_shift",
                        Real(least=0, hint="a share of the diagonal of the last extent, such as 0.1"),
                        "how far a side of the extent may move, as a share of the diagonal of the last one",
                        default="not guarded",
                    ),
                    Clause(
                        "max_column_changed_fraction",
                        _FRACTION,
                        "share of the values of any one column that may change, of features in both versions",
                        default="not guarded",
                    ),
                    Clause(
                        "min_touched",
                        Whole(0, 1_000_000),
                        "below so many features a limit on a share of features stops only above a half",
                        default="20",
                    ),
                ),
            ),
            "limits beyond which a change stops for a person's word",
        ),
        Clause(
            "rejects",
            Group(
                "rejects",
                (
                    Clause("max_fraction", _FRACTION, "share of rows that may be rejected before the delivery is", default="0"),
                    Clause(
                        "published",
                        Choice(("hold", "remove")),
                        "what becomes of the last accepted row of a rejected feature",
                        default="hold",
                    ),
                ),
            ),
            "what happens to rows with findings",
        ),
        Clause(
            "retention",
            Group(
                "retention",
                (
                    Clause("versions", Whole(1), "versions that are kept"),
                    Clause("grace", _DURATION, "how long a superseded file is kept at least"),
                ),
            ),
            "how long old versions are kept",
        ),
        Clause(
            "lineage",
            Group(
                "lineage",
                (
                    Clause("audit_tag", Text(), "carried in every lineage event"),
                    Clause(
                        "retention",
                        Group(
                            "lineage.retention",
                            (
                                Clause("window", _DURATION, "how long lineage is kept", required=True),
                                Clause("basis", Text(free=True), "the legal basis", required=True),
                            ),
                        ),
                        "how long lineage is kept, and why",
                    ),
                ),
            ),
            "the record of every move",
        ),
        Clause("engine", Choice(("local", "spark")), "where tasks run", default="local"),
    ),
)


@dataclass(frozen=True, slots=True)
class Later:
    """A setting of a later version: at `path`, where `applies` says so of its value."""

    path: KeyPath
    words: str
    applies: Callable[[Any], bool] = lambda _value: True


def _is(*options: str) -> Callable[[Any], bool]:
    return lambda value: value in options


def _elsewhere(value: Any) -> bool:
    """Whether a text is a place, and not one of this machine."""
    try:
        return isinstance(value, str) and not parse_place(value).is_local
    except UsageError:
        return False


def _without_store(value: Any) -> bool:
    return _elsewhere(value) and parse_place(value).scheme not in SCHEMES


_STAMP = re.compile(r"(?:.*[:/@])?v[0-9]+\.[0-9]+\.[0-9]+-crs:EPSG:.*")

# What is refused today. An entry goes when its feature comes.
NOT_YET: Final = (
    Later(("contract",), "a contract by its stamp in a registry", lambda value: _STAMP.fullmatch(value) is not None),
    Later(("contract",), "a contract behind a URL", _elsewhere),
    Later(("source",), "a source behind a URL", _elsewhere),
    Later(("source", "path"), "a source behind a URL", _elsewhere),
    Later(("source", "x"), "CSV with x and y columns"),
    Later(("source", "y"), "CSV with x and y columns"),
    Later(("source", "wkt"), "CSV with WKT"),
    Later(("destination",), "a destination in an object store", _without_store),
    Later(("key_migration",), "a key migration behind a URL", _elsewhere),
    Later(("crs", "grids"), "grids behind a URL", _elsewhere),
    Later(("partition", "by"), "partitions by quadkey or h3", _is("quadkey", "h3")),
    Later(("mode",), "the modes append and rebuild", _is("append", "rebuild")),
    Later(("engine",), "the engine spark", _is("spark")),
)

# Every key that holds a place: a path or a URL (`storage.place`).
PLACES: Final[tuple[KeyPath, ...]] = (
    ("contract",),
    ("source",),
    ("source", "path"),
    ("destination",),
    ("key_migration",),
    ("crs", "grids"),
)

# What is accepted without effect today: nothing that is published, nor where, nor what is guarded depends on it.
NOT_IN_EFFECT: Final = (Later(("retention",), "old versions are kept until a version that can reclaim them"),)


def read_publication(path: str, contract: Contract | None = None, document: Document | None = None) -> Publication:
    """Read a publication file and what it takes from its contract.

    Args:
        path: the publication file.
        contract: the contract, where the caller has read it; otherwise it is read from the file that the publication names.
        document: the publication file, where the caller has read it.

    Raises:
        UsageError: the file or its contract is missing or broken (all problems are reported), a setting is not in this version, no
            key, or file and contract disagree on name or key.
    """
    return _read(path, contract, document)[0]


def read_destination(path: str, document: Document) -> str:
    """Where a publication publishes to: what a question about the dataset asks of the file, whatever has become of its contract.

    Raises:
        UsageError: as `read_publication`, but for what is wrong with the contract.
    """
    return _settings(path, document)[1][("destination",)]


def read_publication_and_contract(path: str) -> tuple[Publication, Contract]:
    """Read a publication file together with its contract.

    Raises:
        UsageError: see `read_publication`.
    """
    return _read(path, None)


def with_source(publication: Publication, path: str) -> Publication:
    """The publication with another delivery (`source`); layer, CRS and encoding assertions stay. `path` is relative to the work folder.

    Raises:
        UsageError: the path means no file of this machine.
    """
    return replace(publication, source=replace(publication.source, path=local_path(path, field="source", what="a source")))


def place_of(path: str) -> tuple[str, str] | None:
    """Name and destination of a publication file that may be broken elsewhere; None where it names no destination that can be reached."""
    tree = _tree(path)
    destination = _named(tree, path).get(("destination",))
    name = tree.get("name")
    return None if destination is None else (name if isinstance(name, str) and name.strip() else fallback_name(path), destination)


def named_places(path: str) -> dict[KeyPath, str]:
    """The places that a publication file names and this version reaches, by key; what is broken or elsewhere is left out."""
    return _named(_tree(path), path)


def _tree(path: str) -> JsonObject:
    try:
        return read_document(path, what="publication").tree
    except UsageError:
        return {}  # whoever needs the whole file reads it again, and says what is wrong with it


def _named(tree: JsonObject, path: str) -> dict[KeyPath, str]:
    found: dict[KeyPath, str] = {}
    for key in PLACES:
        value = _at(tree, key)
        try:
            place = parse_place(value, base=_folder(path)) if isinstance(value, str) else None
            if place is not None and (place.is_local or (key == ("destination",) and place.scheme in SCHEMES)):
                found[key] = place.address
        except UsageError:
            continue  # as above
    return found


def _read(path: str, contract: Contract | None, document: Document | None = None) -> tuple[Publication, Contract]:
    values, places = _settings(path, document or read_document(path, what="publication"))
    if contract is None:
        contract = read_contract(places[("contract",)])
    notices = tuple(
        f"{path_text(later.path)} is not yet in effect: {later.words}" for later in NOT_IN_EFFECT if _at(values, later.path) is not None
    )
    return assemble(path, places, values, contract, notices), contract


def _settings(path: str, document: Document) -> tuple[JsonObject, dict[tuple[str | int, ...], str]]:
    report = Report(document)
    values = PUBLICATION.read(document.tree, (), report)
    _laws(values, report)
    places = _places(values, _folder(path), report)
    for later in NOT_YET:
        value = _at(values, later.path)
        if value is not None and later.applies(value):
            report.add(later.path, f"not in this version: {later.words}", "remove it, or use a later version of Merestone")
    if report.problems:
        raise refusal(path, "publication", sorted(report.problems, key=lambda problem: problem.line or 0))
    return values, places


def _folder(path: str) -> str:
    """The folder that a publication file's relative places begin at."""
    return os.path.dirname(local_path(path))  # noqa: PTH120 - a text, as all places are


def _places(values: JsonObject, base: str, report: Report) -> dict[KeyPath, str]:
    """The absolute path of every place that the file names, by key. What is not a place is reported; what is elsewhere is left to `NOT_YET`."""
    found: dict[KeyPath, str] = {}
    for key in PLACES:
        value = _at(values, key)
        if not isinstance(value, str):
            continue
        try:
            place = parse_place(value, base=base, field="destination" if key == ("destination",) else None)
        except UsageError as fault:
            report.add(key, fault.message, fault.hint or "")
        else:
            found[key] = place.address
    return found


def _at(values: Any, path: KeyPath) -> Any:
    for step in path:
        values = values.get(step) if isinstance(values, dict) else None
    return values


def _laws(values: JsonObject, report: Report) -> None:
    """Rules that bind several keys."""
    partition = values.get("partition")
    if isinstance(partition, dict):
        by = partition.get("by", "kdtree")
        owners = {"column": "column", "target_rows": "kdtree", "level": "quadkey", "resolution": "h3"}
        for key, owner in owners.items():
            if key in partition and by != owner:
                report.add(("partition", key), f"has no meaning for by: {by}", f"it belongs to by: {owner}")
        for key in ("column", "level", "resolution"):
            if by == owners[key] and key not in partition:
                report.add(("partition", key), f"is missing: by: {by} needs it", f"add `{key}`")
    seen: dict[str, str] = {}
    for source, target in values.get("columns", {}).items():
        if target in seen:
            report.add(("columns", source), f"{target} is already the target of {seen[target]}", "map each contract name once")
        seen.setdefault(target, source)
    strategies = values.get("crs", {}).get("strategies", [])
    if len(set(map(str, strategies))) < len(strategies):
        report.add(("crs", "strategies"), "names a strategy twice", "name each once, in order of preference")
