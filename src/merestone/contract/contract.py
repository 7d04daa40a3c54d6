"""The contract as a value: every clause of a spatial data contract, typed and frozen.

Not here: reading YAML (`document.yaml_reader`), judging a document (`lint`), JSON Schema (`schema`), storage of versions (`contract.files`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from merestone.columnar.rounding import NumberGrid
from merestone.contract.stamp import Stamp
from merestone.json_value import Json

AxisOrder = Literal["lon_lat", "lat_lon"]
GeometryType = Literal[
    "point",
    "linestring",
    "polygon",
    "multipolygon",
    "raster",
    "multipoint",
    "multilinestring",
    "geometrycollection",
    "geometry",
]
USUAL_NOISE = 0.05  # of a grid step, where a contract states no noise
USUAL_VERTEX_LOSS = 0.5  # the share of vertices that may go, where a contract states none

Dimensions = Literal["xy", "xyz", "xym", "xyzm", "any"]
Ordinates = Literal["xy", "xyz", "xym", "xyzm"]


@dataclass(frozen=True, slots=True)
class FieldType:
    """A parsed field type.

    `kind` is one of string, integer, number, boolean, date, time, timestamp, timestamp_local, decimal, binary, list, struct, geometry.
    `precision` and `scale` belong to decimal; `members` to struct (name, type) and list (one entry named "item").
    """

    kind: str
    precision: int = 0
    scale: int = 0
    members: tuple[tuple[str, FieldType], ...] = ()

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.kind == "list":
            return f"list<{self.members[0][1]}>"
        if self.kind == "struct":
            return "struct<" + ", ".join(f"{name}: {kind}" for name, kind in self.members) + ">"
        return self.kind


@dataclass(frozen=True, slots=True)
class Derived:
    """A value recomputed from the geometry: never compared, treated as volatile where no measure is named."""

    measure: Literal["area", "length"] | None = None
    unit: str | None = None
    method: Literal["planar", "geodesic"] = "planar"


@dataclass(frozen=True, slots=True)
class Field:
    """One entry of `schema_fields`. `name` is NFC. `crs_epsg` and `coordinate_precision` belong to a second geometry.

    `min` and `max` are as written: numbers, or ISO 8601 text. `decimals` or `digits` (significant) say to what a number is kept, `noise` how
    far beyond half a step of it a delivered value may lie.
    """

    name: str
    type: FieldType
    nullable: bool = True
    unit: str | None = None
    unique: bool = False
    pattern: str | None = None
    time_zone: str | None = None
    description: str | None = None
    deprecated: bool = False
    volatile: bool = False
    derived: Derived | None = None
    crs_epsg: int | None = None
    coordinate_precision: int | None = None
    decimals: int | None = None
    digits: int | None = None
    noise: float | None = None
    min: Json = None
    max: Json = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None

    @property
    def number_grid(self) -> NumberGrid | None:
        """To what its numbers are kept, None where they keep all their bits."""
        return None if self.decimals is None and self.digits is None else NumberGrid(self.decimals, self.digits)

    @property
    def number_noise(self) -> float:
        """How far beyond half a step a delivered number may lie from the published one, in steps."""
        return USUAL_NOISE if self.noise is None else self.noise

    @property
    def compared(self) -> bool:
        """Whether a change of this field is a change of the feature."""
        return not self.volatile and self.derived is None


@dataclass(frozen=True, slots=True)
class Semantics:
    """What the values of one field mean. `open`: values beyond `enum` are announced and allowed."""

    enum: tuple[Json, ...] | None = None
    open: bool = False
    null_means: str | None = None
    meaning: str | None = None


@dataclass(frozen=True, slots=True)
class GeometryClause:
    """The `geometry` clause. `name` is the column's name in what is published ("geometry" unless a field already has that name)."""

    nullable: bool = False
    empty: bool = False
    dimensions: Dimensions = "xy"
    z_precision: int | None = None
    m_precision: int | None = None
    edges: Literal["planar", "spherical"] = "planar"
    direction: Literal["significant", "irrelevant"] = "significant"
    noise: float | None = None
    max_vertex_loss: float | None = None
    name: str | None = None

    @property
    def ordinates(self) -> Ordinates:
        """The ordinates that are stored where a position has them: all of them under `dimensions: any`."""
        return "xyzm" if self.dimensions == "any" else self.dimensions


@dataclass(frozen=True, slots=True)
class Contract:
    """A spatial data contract, as agreed. Field names are those of the document (docs/reference/contract.md)."""

    contract_version: Stamp
    product_id: str
    crs_epsg: int
    axis_order: AxisOrder
    geometry_type: GeometryType
    coordinate_precision: int
    schema_fields: tuple[Field, ...]
    freshness_sla_minutes: int
    availability_target: float
    product_owner_id: str
    topology_rule_set: str = "none"
    topology_parameters: tuple[tuple[str, float], ...] = ()
    semantics: tuple[tuple[str, Semantics], ...] = ()
    geometry: GeometryClause = GeometryClause()
    name: str | None = None
    key: tuple[str, ...] = ()
    extent: tuple[float, float, float, float] | None = None
    required_accuracy_m: float | None = None
    freshness_from: str | None = None
    extra: tuple[tuple[str, Json], ...] = ()  # further additions, kept as written
    digest: str = ""  # sha256 of the published body (canonical JSON), hex
    confirm: tuple[str, ...] = ()  # paths that the author marked `# confirm`

    def field(self, name: str) -> Field | None:
        """The schema field of this name, if the contract has it."""
        return next((each for each in self.schema_fields if each.name == name), None)

    def meaning(self, name: str) -> Semantics | None:
        """The semantics of one field, if the contract states any."""
        return dict(self.semantics).get(name)

    def addition(self, name: str) -> Json:
        """A further clause as it was written, None where the contract has none of that name."""
        return dict(self.extra).get(name)

    @property
    def noise(self) -> float:
        """How far beyond half a grid step a delivered ordinate may lie from the published one and be noise, in steps; 0: the digest alone decides.

        Under topology rules 0 unless stated: what is held feature by feature would tear shared vertices apart.
        """
        if self.geometry.noise is not None:
            return self.geometry.noise
        return USUAL_NOISE if self.topology_rule_set == "none" else 0.0

    @property
    def max_vertex_loss(self) -> float:
        """The share of vertices, for the size of the shapes, that may be lost from one version to the next."""
        stated = self.geometry.max_vertex_loss
        return USUAL_VERTEX_LOSS if stated is None else stated

    @property
    def geometry_name(self) -> str:
        """The name of the primary geometry column in what is published."""
        if self.geometry.name:
            return self.geometry.name
        taken = {each.name for each in self.schema_fields}
        return next(name for name in ("geometry", "geom", "shape", "geometry_primary") if name not in taken)
