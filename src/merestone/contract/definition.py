"""The one definition of a contract's clauses; the validator, the JSON Schema and the reference page are made from it.

Not here: rules that bind several clauses (`laws`), careless but valid contracts (`lint`), checks of a delivery (`gate`).

Reference: docs/reference/contract.md. A clause added here later must have a default that changes nothing, and stands in the published
body only where an author states it: the digest of an unchanged contract never changes.

Every clause has an enforcer (`Clause.enforcer`):

- gate: a rule of `rules.catalogue` names the clause; a test fails where none does.
- form: it decides how a row is cast, stored and digested. No delivery can break it.
- words: it is said for people or machines, and asks nothing of a delivery.
- monitor: it is observed in operation, and gates nothing. A required one is published; an optional one is refused until there is a monitor.
- http: answers over HTTP keep it. It is refused until they are served.
"""

from __future__ import annotations

from collections.abc import Iterator

from merestone.contract.contract import Contract
from merestone.contract.field_type import parse_type, type_pattern
from merestone.contract.stamp import STAMP_PATTERN, Stamp
from merestone.document.forms import Choice, Clause, ColumnNames, Form, Group, Keyed, Listed, Name, Real, Scalar, Text, Truth, Whole

GEOMETRY_TYPES = (
    "point",
    "linestring",
    "polygon",
    "multipolygon",
    "raster",
    "multipoint",
    "multilinestring",
    "geometrycollection",
    "geometry",
)
DIMENSIONS = ("xy", "xyz", "xym", "xyzm", "any")
TOPOLOGY = ("none", "planar", "network", "3d_solid")

_PLACE = "it belongs in the publication file"
_WHY = "is an internal mechanism: how the data is kept may change without notice, so a contract does not promise it"
INTERNAL = {
    **dict.fromkeys(
        (
            "format",
            "file_format",
            "storage_format",
            "storage",
            "compression",
            "codec",
            "file_size",
            "files",
            "row_groups",
            "row_group_rows",
            "target_rows",
        ),
        f"{_WHY}; {_PLACE} (`files`)",
    ),
    **dict.fromkeys(
        (
            "partition",
            "partitions",
            "partitioning",
            "partition_by",
            "partition_keys",
            "partition_scheme",
            "clustering",
            "sort",
            "sort_order",
        ),
        f"{_WHY}; {_PLACE} (`partition`)",
    ),
    **dict.fromkeys(
        ("index", "indexes", "indices", "spatial_index", "primary_index", "covering"), f"{_WHY}; Merestone keeps its own indexes"
    ),
    **dict.fromkeys(("database", "db", "table", "tablespace", "db_schema", "connection", "dsn", "engine"), f"{_WHY}; {_PLACE} (`engine`)"),
    **dict.fromkeys(("bucket", "location", "destination", "path", "url", "uri"), f"{_WHY}; {_PLACE} (`destination`)"),
    **dict.fromkeys(("source", "layer", "encoding", "columns"), f"{_WHY}; {_PLACE} (`source`, `columns`)"),
    **dict.fromkeys(
        ("guard", "guards", "rejects", "retention", "mode"), f"says how the data is made, not what a consumer may rely on; {_PLACE}"
    ),
}

_PROSE = Text(free=True)
_EPSG = Whole(1, 999_999_999, hint="write the code alone, such as 25832")
_DECIMALS = Whole(0, 15, hint="the number of decimals in CRS units, such as 3 for millimetres where the unit is the metre")
_NOISE = Real(least=0, most=0.49, hint="a share of a grid step from 0 to 0.49, such as 0.05")
_DATE = Text(pattern=r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])", form="a date, YYYY-MM-DD")

DERIVED = Group(
    "derived",
    (
        Clause(
            "measure",
            Choice(("area", "length")),
            "what is measured on the geometry",
            default="unknown: treated as volatile",
            enforcer="form",
        ),
        Clause("unit", Text(), "the unit of the value", enforcer="form"),
        Clause("method", Choice(("planar", "geodesic")), "on the plane of the CRS or on its ellipsoid", default="planar", enforcer="form"),
    ),
    refused=INTERNAL,
)

FIELD = Group(
    "a schema field",
    (
        Clause("name", Name("the name of the column"), "the column's name in what is published; unique after NFC", required=True),
        Clause(
            "type",
            Text(form="a type", parse=parse_type, shape=type_pattern(), hint="see the grammar of types on the reference page"),
            "string, integer, number, boolean, date, time, timestamp (an instant; a value without a zone is refused unless the format "
            "fixes UTC), timestamp_local, decimal(p,s), binary, `list<string>`, `struct<k: integer>`, or geometry (a second one)",
            required=True,
        ),
        Clause("nullable", Truth(), "whether a value may be missing", default="true"),
        Clause("unit", Text(), "the unit of the values, or `none`", default="none", empty=True),
        Clause("unique", Truth(), "whether every value is different from every other", default="false"),
        Clause(
            "pattern",
            Text(form="a regular expression", free=True),
            "a regular expression of RE2 that every text value matches as a whole; it has no look-around and no back references, and no value can "
            "stop a run; `\\w`, `\\d`, `\\s` and `\\b` know ASCII only, `\\p{L}` is any letter",
        ),
        Clause("min", Scalar(), "the least value of a number, date or timestamp"),
        Clause("max", Scalar(), "the greatest value of a number, date or timestamp"),
        Clause("min_length", Whole(0), "the least number of characters of a text"),
        Clause("max_length", Whole(0), "the greatest number of characters of a text"),
        Clause("min_items", Whole(0), "the least number of items of a list"),
        Clause("max_items", Whole(0), "the greatest number of items of a list"),
        Clause(
            "time_zone",
            Text(pattern=r"[A-Za-z][A-Za-z0-9_+\-]*(?:/[A-Za-z0-9_+\-]+)*", form="an IANA time zone", hint="such as Europe/Amsterdam"),
            "the zone in which a local time was taken, as an IANA name",
            enforcer="form",
        ),
        Clause("description", _PROSE, "words for people", enforcer="words"),
        Clause("deprecated", Truth(), "whether the field will be removed in a later major version", default="false", enforcer="words"),
        Clause(
            "volatile",
            Truth(),
            "whether the value changes on every export without meaning: stored as of the feature's last rewrite, never a change",
            default="false",
            enforcer="form",
        ),
        Clause("derived", DERIVED, "recomputed from the geometry and therefore never compared"),
        Clause("crs_epsg", _EPSG, "the CRS of a second geometry"),
        Clause("coordinate_precision", _DECIMALS, "the decimals of a second geometry"),
        Clause(
            "decimals",
            Whole(0, 15, hint="the number of decimals to which values are kept, such as 2"),
            "number: the decimals to which values are stored, judged and compared",
            enforcer="form",
        ),
        Clause(
            "digits",
            Whole(1, 15, hint="the number of significant digits to which values are kept, such as 6"),
            "number: the significant digits to which values are stored, judged and compared, for columns of wide range",
            enforcer="form",
        ),
        Clause(
            "noise",
            _NOISE,
            "number: a delivered value within half a step and this share of a step of the published one is not a change",
            default="0.05, where `decimals` or `digits` stands",
            enforcer="form",
        ),
    ),
    refused=INTERNAL,
    conditions=(
        {
            "if": {"properties": {"type": {"const": "geometry"}}, "required": ["type"]},
            "then": {"required": ["crs_epsg", "coordinate_precision"]},
            "else": {"properties": {"crs_epsg": False, "coordinate_precision": False}},
        },
        {
            "if": {"anyOf": [{"required": ["decimals"]}, {"required": ["digits"]}]},
            "then": {"properties": {"type": {"const": "number"}}},
            "else": {"properties": {"noise": False}},
        },
        {"not": {"required": ["decimals", "digits"]}},
        {
            "if": {"anyOf": [{"required": [name]} for name in ("pattern", "min_length", "max_length")]},
            "then": {"properties": {"type": {"const": "string"}}},
        },
        {
            "if": {"anyOf": [{"required": [name]} for name in ("min_items", "max_items")]},
            "then": {"properties": {"type": {"pattern": "^list<"}}},
        },
        {
            "if": {"anyOf": [{"required": [name]} for name in ("min", "max")]},
            "then": {"properties": {"type": {"pattern": "^(?:integer|number|decimal.*|date|timestamp|timestamp_local)$"}}},
        },
    ),
)

SEMANTICS = Group(
    "the semantics of a field",
    (
        Clause("enum", Listed(Scalar(), ordered=False), "every value that the field may have, of the field's type"),
        Clause("open", Truth(), "whether values beyond `enum` may come: they are announced and allowed", default="false", enforcer="form"),
        Clause(
            "null_means", _PROSE, "what a missing value means; null is then the only way to say it: no blank, N/A or -9999 in its place"
        ),
        Clause("meaning", _PROSE, "what the values mean", enforcer="words"),
    ),
    refused=INTERNAL,
)

GEOMETRY = Group(
    "geometry",
    (
        Clause("nullable", Truth(), "whether a feature may be without geometry", default="false"),
        Clause("empty", Truth(), "whether a geometry may be empty", default="false"),
        Clause(
            "dimensions",
            Choice(DIMENSIONS),
            "the ordinates that every position has; others that are delivered are left out, with a warning. any: each has what it has",
            default="xy",
        ),
        Clause("z_precision", _DECIMALS, "the decimals of Z", default="the coordinate precision", enforcer="form"),
        Clause("m_precision", _DECIMALS, "the decimals of M", default="the coordinate precision", enforcer="form"),
        Clause("edges", Choice(("planar", "spherical")), "how two positions are joined", default="planar"),
        Clause(
            "direction",
            Choice(("significant", "irrelevant")),
            "whether a line drawn the other way is another line",
            default="significant",
            enforcer="form",
        ),
        Clause(
            "noise",
            _NOISE,
            "a delivered ordinate within half a grid step and this share of a step of the published one is not a change; 0: the digest alone decides",
            default="0.05, and 0 under topology rules",
            enforcer="form",
        ),
        Clause(
            "max_vertex_loss",
            Real(least=0, most=1, hint="a share from 0 to 1, such as 0.5 for half of the vertices"),
            "the share of vertices, for the size of the shapes, that may be lost against the last version: more is decimated geometry",
            default="0.5",
        ),
        Clause(
            "name",
            Name("the name of the geometry column"),
            "the name of the geometry column in what is published",
            default="geometry, or the first of geom, shape, geometry_primary that no field has",
            enforcer="words",
        ),
    ),
    refused=INTERNAL,
)

CONTRACT = Group(
    "a contract",
    (
        Clause(
            "contract_version",
            Text(
                form="a contract version",
                parse=Stamp.parse,
                shape=STAMP_PATTERN,
                hint='write v<major>.<minor>.<patch>-crs:EPSG:<code>-res:<resolution> in quotes, e.g. "v1.2.0-crs:EPSG:4326-res:10m"',
            ),
            "the stamp of this version: SemVer, the CRS (equal to `crs_epsg`) and the nominal ground resolution of the content",
            required=True,
            enforcer="words",
        ),
        Clause(
            "product_id",
            Text(
                pattern="[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
                form="a UUID",
                parse=str.lower,
                format="uuid",
                hint="«draft(SOURCE)» mints one; or use `python -m uuid`",
            ),
            "what the product is called by machines; it never changes",
            required=True,
            enforcer="words",
        ),
        Clause("crs_epsg", _EPSG, "the EPSG code of the CRS of what is published; a code that PROJ knows", required=True),
        Clause(
            "axis_order",
            Choice(("lon_lat", "lat_lon")),
            "the order of the ordinates at the delivery boundary (easting first, northing first for "
            "projected systems), after GDAL's own mapping; what is stored is always x, y",
            required=True,
        ),
        Clause("geometry_type", Choice(GEOMETRY_TYPES), "the type of every geometry; `geometry` is any", required=True),
        Clause("coordinate_precision", _DECIMALS, "decimals in CRS units to which coordinates are kept", required=True),
        Clause("schema_fields", Listed(FIELD), "the attributes, in the order in which they are published", required=True),
        Clause("freshness_sla_minutes", Whole(0), "how old the content may be, in minutes", required=True),
        Clause(
            "availability_target",
            Real(above=0, most=1, hint="a share, such as 0.999 for 99.9 %"),
            "the promised share of time in which it can be read",
            required=True,
            enforcer="monitor",
        ),
        Clause(
            "product_owner_id",
            Text(pattern=r"[^@\s]+@[^@\s]+", form="an e-mail address", format="email", hint="the address of an accountable steward"),
            "the e-mail address of the accountable steward",
            required=True,
            enforcer="words",
        ),
        Clause(
            "topology_rule_set",
            Choice(TOPOLOGY),
            "planar: no overlaps, gaps or mismatched edges; network: no dangles, unconnected ends or duplicate edges; 3d_solid: closed shells",
            default="none",
        ),
        Clause(
            "topology_parameters",
            Group(
                "topology_parameters",
                (
                    Clause(
                        "gap_width",
                        Real(least=0),
                        "planar: gaps narrower than this are faults, open ones too; without it all ground that features enclose, in CRS units",
                    ),
                    Clause(
                        "dangle_length",
                        Real(least=0),
                        "network: loose ends on lines shorter than this, or this near to another line, are faults; without it all, in CRS units",
                    ),
                    Clause("tolerance", Real(least=0), "what is narrower or nearer than this is forgiven, in CRS units"),
                ),
                refused=INTERNAL,
            ),
            "the figures of the topology rules",
        ),
        Clause("semantics", Keyed(SEMANTICS, "a field's name"), "what the values of a field mean"),
        Clause("geometry", GEOMETRY, "what holds for the geometry beyond its type"),
        Clause("name", Text(), "the product's short name", enforcer="words"),
        Clause("description", _PROSE, "words for people", enforcer="words"),
        Clause("key", ColumnNames("a field"), "the field or fields that identify a feature over all versions"),
        Clause("min_features", Whole(0), "never fewer features than this in a version"),
        Clause("max_features", Whole(1), "never more features than this in a version"),
        Clause(
            "extent",
            Listed(Real(), 4, 4),
            "xmin, ymin, xmax, ymax in the CRS of the contract, within which every position lies; in degrees xmin above xmax crosses the antimeridian",
        ),
        Clause("required_accuracy_m", Real(above=0), "the horizontal accuracy that a coordinate operation must have, in metres"),
        Clause(
            "freshness_from",
            Name("a field, or delivered_at"),
            "the field from which freshness is measured, or `delivered_at`",
            default="judged from delivery time",
        ),
        Clause(
            "latency",
            Group(
                "latency",
                (
                    Clause("p50_ms", Real(above=0), "half of all requests are answered within this, in milliseconds", enforcer="monitor"),
                    Clause("p95_ms", Real(above=0), "95 % of all requests are answered within this, in milliseconds", enforcer="monitor"),
                    Clause("p99_ms", Real(above=0), "99 % of all requests are answered within this, in milliseconds", enforcer="monitor"),
                ),
                refused=INTERNAL,
            ),
            "how fast it answers",
        ),
        Clause(
            "bands",
            Listed(
                Group(
                    "a band",
                    (
                        Clause("name", Name("the name of the band"), "the band's name", required=True),
                        Clause(
                            "type",
                            Choice(("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64")),
                            "the type of its pixels",
                            required=True,
                        ),
                        Clause("nodata", Real(), "the value that means no data"),
                        Clause("unit", Text(), "the unit of the values, or `none`", empty=True, enforcer="words"),
                        Clause("description", _PROSE, "words for people", enforcer="words"),
                    ),
                    refused=INTERNAL,
                )
            ),
            "the bands of a raster, in order",
        ),
        Clause(
            "pixel",
            Group(
                "pixel",
                (
                    Clause("size", Listed(Real(above=0), 2, 2), "width and height in CRS units"),
                    Clause("overviews", Listed(Whole(2)), "the factors of the overviews"),
                ),
                refused=INTERNAL,
            ),
            "the grid of a raster",
        ),
        Clause(
            "negative",
            Group(
                "negative",
                (
                    Clause(
                        "feature_order",
                        Choice(("unspecified", "key")),
                        "unspecified: the order of features will change",
                        enforcer="http",
                        idle=("unspecified",),
                    ),
                    Clause("max_features", Whole(1), "never more features than this"),
                    Clause(
                        "antimeridian",
                        Choice(("split", "crossing", "none")),
                        "geometries at the antimeridian are split, cross it, or do not occur",
                    ),
                    Clause(
                        "empty_result",
                        Choice(("empty", "error")),
                        "empty: a question without an answer gives no features and no error",
                        enforcer="http",
                    ),
                    Clause("statements", Listed(_PROSE), "further things not to rely on", enforcer="words"),
                ),
                refused=INTERNAL,
            ),
            "what a consumer must not rely on",
        ),
        Clause(
            "degradation",
            Group(
                "degradation",
                (
                    Clause(
                        "when_late",
                        Choice(("previous", "nothing")),
                        "what is served when the product is late",
                        required=True,
                        enforcer="http",
                    ),
                    Clause(
                        "when_unavailable",
                        Choice(("previous", "nothing")),
                        "what is served when the product cannot be made",
                        enforcer="http",
                    ),
                    Clause("label", Text(), "how the substitute is labelled", enforcer="http"),
                    Clause("hold_minutes", Whole(0), "how long the previous version is held, in minutes", enforcer="http"),
                ),
                refused=INTERNAL,
            ),
            "what a consumer gets when the product is late or unavailable",
        ),
        Clause(
            "deprecation",
            Group(
                "deprecation",
                (
                    Clause("since", _DATE, "from when the product is deprecated", required=True, enforcer="words"),
                    Clause("until", _DATE, "until when it stays readable", enforcer="words"),
                    Clause("replaced_by", Text(), "the stamp or product that replaces it", enforcer="words"),
                    Clause("reason", _PROSE, "words for people", enforcer="words"),
                ),
                refused=INTERNAL,
            ),
            "since when and until when the product is deprecated",
        ),
    ),
    refused=INTERNAL,
)

# Clauses that are kept as written: they have no attribute of their own on the value.
EXTRA = tuple(clause.name for clause in CONTRACT.clauses if clause.name not in Contract.__dataclass_fields__)


def _clauses(form: Form, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Clause]]:
    match form:
        case Group(clauses=found):
            for each in found:
                yield ".".join((*path, each.name)), each
                yield from _clauses(each.form, (*path, each.name))
        case Listed(item=item) | Keyed(item=item):
            yield from _clauses(item, path)


CLAUSES = dict(_clauses(CONTRACT))
"""Every clause by its path, such as "schema_fields.nullable"; those that only hold others are among them."""


def is_container(clause: Clause) -> bool:
    """Whether a clause only holds others, which are enforced one by one."""
    form = clause.form
    return isinstance(form.item if isinstance(form, Listed | Keyed) else form, Group)
