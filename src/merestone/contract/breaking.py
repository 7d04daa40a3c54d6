"""Whether a contract may follow another over the same dataset, or files of both would contradict each other.

Not here: the classification of every difference for consumers and producers (PATCH, MINOR, MAJOR with reasons).

What is listed here is MAJOR whatever else may be: files are carried forward from version to version, so each of them would stay in a dataset
whose newest files contradict it (docs/adr/0012-settings-that-cannot-follow.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from merestone.contract.contract import Contract, Field
from merestone.reference.units import canonical_unit


def breaks(before: Contract, after: Contract) -> list[str]:
    """Why `after` cannot follow `before` without a new major: one sentence each, in the order of the document; empty where it can."""
    return [*_whole(before, after), *_geometry(before, after), *_fields(before, after)]


def _whole(before: Contract, after: Contract) -> Iterator[str]:
    for name in ("product_id", "crs_epsg", "axis_order", "geometry_type"):
        was, now = getattr(before, name), getattr(after, name)
        if was != now:
            yield f"{name} is {now}, was {was}"
    if after.coordinate_precision < before.coordinate_precision:
        yield f"coordinate_precision is {after.coordinate_precision}, coarser than {before.coordinate_precision}"


def _geometry(before: Contract, after: Contract) -> Iterator[str]:
    for name in ("dimensions", "edges", "direction"):
        was, now = getattr(before.geometry, name), getattr(after.geometry, name)
        if was != now:
            yield f"geometry.{name} is {now}, was {was}"
    for name in ("z_precision", "m_precision"):
        if getattr(before.geometry, name) is getattr(after.geometry, name) is None:
            continue  # both follow the coordinate precision
        was, now = (_own(each, name) for each in (before, after))
        if now < was:
            yield f"geometry.{name} is {now}, coarser than {was}"
    for name in ("nullable", "empty"):
        if getattr(after.geometry, name) and not getattr(before.geometry, name):
            yield f"geometry.{name} is true, was false"
    if after.noise > before.noise:
        yield f"geometry.noise is {after.noise:g}, was {before.noise:g}"
    if after.max_vertex_loss > before.max_vertex_loss:
        yield f"geometry.max_vertex_loss is {after.max_vertex_loss:g}, was {before.max_vertex_loss:g}"
    if after.geometry_name != before.geometry_name:
        yield f"the geometry column is called {after.geometry_name}, was {before.geometry_name}"


def _own(contract: Contract, name: str) -> int:
    stated = getattr(contract.geometry, name)
    return contract.coordinate_precision if stated is None else int(stated)


def _fields(before: Contract, after: Contract) -> Iterator[str]:
    there = {each.name: each for each in after.schema_fields}
    for old in before.schema_fields:
        new = there.get(old.name)
        if new is None:
            yield f"the field {old.name} is gone"
        else:
            yield from _field(old, new)
    known = {each.name for each in before.schema_fields}
    for new in after.schema_fields:
        if new.name not in known and not new.nullable:
            yield f"the new field {new.name} is not nullable, and no published row has a value for it"


def _field(old: Field, new: Field) -> Iterator[str]:
    if str(new.type) != str(old.type):
        yield f"{old.name} is {new.type}, was {old.type}"
    if canonical_unit(new.unit) != canonical_unit(old.unit):
        yield f"the unit of {old.name} is {new.unit or 'none'}, was {old.unit or 'none'}"
    if new.nullable and not old.nullable:
        yield f"{old.name} is nullable, was not"
    if new.crs_epsg != old.crs_epsg:
        yield f"crs_epsg of {old.name} is {new.crs_epsg}, was {old.crs_epsg}"
    if (new.coordinate_precision or 0) < (old.coordinate_precision or 0):
        yield f"coordinate_precision of {old.name} is {new.coordinate_precision}, coarser than {old.coordinate_precision}"
    for name in ("decimals", "digits"):
        was, now = getattr(old, name), getattr(new, name)
        if now is not None and (was is None or now < was):
            yield f"{name} of {old.name} is {now}, was {'all that a number holds' if was is None else was}"
    if old.number_grid is not None and new.number_grid is not None and new.number_noise > old.number_noise:
        yield f"noise of {old.name} is {new.number_noise:g}, was {old.number_noise:g}"
