"""Every rule, surface by surface: the one text of all findings. `make docs` writes it to docs/reference/findings.md.

Not here: the checks (each rule names its own), what a rule declares (`rule`), the words of the contract's clauses (`contract.definition`).

To add a rule: declare it here, write its check where `check` says, and name its clause in `contract.definition`. Tests find a clause without
a rule, and a rule without its check. No test finds a check that reads a clause which its rule does not name: list these in `reads`. See docs/spec/gate.md.
"""

from __future__ import annotations

from merestone.results.finding import Surface
from merestone.rules.rule import FindingWords, Rule

# --- schema: columns -------------------------------------------------------------------------------------------------------------------

MISSING = Rule(
    surface="schema",
    code="missing",
    title="Every field of the contract is delivered.",
    check="normalise.cast.plan_cast",
    scope="delivery",
    refuses="delivery",
    clauses=("schema_fields.name",),
    words=FindingWords("{wanted}", "{name} missing", "Deliver {name}, or map its delivered name under `columns` in the publication file."),
    cases={
        "alike": FindingWords(
            "{wanted}",
            "{name} missing",
            "Deliver {name}. If {meant} is the same column under another name, map it in the publication file: `columns: {{{mapping}}}`.",
        ),
        "mapped": FindingWords(
            "the column {old} that `columns` maps to {name}",
            "{old} missing",
            "Correct `columns` in the publication file, or deliver the column.",
        ),
    },
)
NO_ROWS = Rule(
    surface="schema",
    code="no_rows",
    title="A delivery that is checked has rows: where nothing is judged, nothing passes.",
    check="gate.delivery.no_rows",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "rows to judge",
        "the delivery has no rows",
        "See whether the export broke off. An empty delivery passes only where the caller allows it.",
    ),
)
REJECTED_SHARE = Rule(
    surface="schema",
    code="rejected_share",
    title="No larger share of the rows is rejected than `rejects.max_fraction` lets pass.",
    check="gate.delivery.rejected_share",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "at most {limit} of the rows rejected, as `rejects.max_fraction` says",
        "{share} of the rows rejected ({rejected:,} of {rows:,})",
        "Correct these rows at the source. Where so many are to go to quarantine, state a larger share.",
    ),
)
EXTRA = Rule(
    surface="schema",
    code="extra",
    title="Only columns of the contract are delivered.",
    check="normalise.cast.plan_cast",
    scope="delivery",
    refuses="delivery",
    clauses=("schema_fields",),
    words=FindingWords(
        "only columns of the contract",
        "{name} not in the contract",
        "Agree on {name} (a MINOR version), leave it out of the export, or set `extra_columns: warn` in the publication file.",
    ),
    cases={
        "let_pass": FindingWords(
            "only columns of the contract",
            "{name} not in the contract",
            "Agree on {name} (a MINOR version), or leave it out of the export.",
        ),
        "twice": FindingWords(
            "one column for {name}",
            "{first} and {second} both stand for {name}",
            "Map one of them to another name under `columns` in the publication file.",
        ),
    },
)
NAME_CUT = Rule(
    surface="schema",
    code="name_cut",
    title="Column names are not cut by the file format.",
    check="normalise.cast.plan_cast",
    scope="delivery",
    refuses="delivery",
    clauses=("schema_fields.name",),
    words=FindingWords(
        "the names {names}",
        "shapefile names end after 10 characters ({cut})",
        "Map them under `columns` in the publication file, or deliver a format with long names such as GeoPackage.",
    ),
)
COLUMN_TYPE = Rule(
    surface="schema",
    code="column_type",
    title="A column has a type that can be cast to the agreed one without loss.",
    check="normalise.cast.untypable_findings",
    scope="delivery",
    refuses="delivery",
    clauses=("schema_fields.type",),
    words=FindingWords("{kind}", "{name}: {why}", "Deliver the agreed type, or agree on another one (a MAJOR version)."),
)
TYPE = Rule(
    surface="schema",
    code="type",
    title="Every value can be cast to the agreed type without loss.",
    check="normalise.cast.cast_batch",
    scope="row",
    refuses="rows",
    clauses=("schema_fields.type",),
    reads=("schema_fields.time_zone",),
    columns=("field",),
    words=FindingWords("{kind}", "", "Deliver the agreed type."),
    cases={
        "cell": FindingWords(
            "{kind}",
            "",
            "Correct these values in the source: the format keeps them, but no reader can take them for what the column promises.",
        )
    },
)
_UNREADABLE = FindingWords("{expected}", "record {row}: {what}; the file was read no further", "{remedy}")
UNREADABLE = Rule(
    surface="schema",
    code="unreadable",
    title="Every value of the file can be read.",
    check="source.port.UnreadableValueError",
    scope="delivery",
    refuses="delivery",
    words=_UNREADABLE,
    cases={"unreadable": _UNREADABLE},
)
PARTIAL = Rule(
    surface="schema",
    code="partial",
    title="The delivery is whole: the file does not say of itself that it is a part.",
    check="source.whole.partial",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "a whole delivery",
        "the file says itself that it is a part: {said}",
        "Fetch all pages into one file: what is not in a delivery is removed.",
    ),
)
MEMBER_TWICE = Rule(
    surface="schema",
    code="member_twice",
    title="No member of a JSON object stands twice.",
    check="source.json_features.JsonCensus.findings",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "each member once in a JSON object (RFC 8259 section 4)",
        "the member {name} stands twice in one object: {places}",
        "Deliver each member once: which of the two is meant cannot be decided.",
    ),
)
ENCODING = Rule(
    surface="schema",
    code="encoding",
    title="Text is in the encoding that the file declares.",
    check="source.dbf.open_dbf",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "text in the declared encoding",
        "{where} is declared, but the bytes are valid UTF-8",
        "Correct the .cpg file, or state the true encoding in `source.encoding`.",
    ),
    cases={
        "unreadable": _UNREADABLE,
        "guess": FindingWords(
            "a declared encoding (.cpg)",
            "no .cpg: text read as {codec}",
            "Deliver a .cpg file, or state the encoding in `source.encoding`.",
        ),
    },
)
WIDTH = Rule(
    surface="schema",
    code="width",
    title="Text is not cut at the width of its column.",
    check="source.shapefile.ShapefileSource.late_findings",
    scope="delivery",
    refuses="nothing",
    words=FindingWords(
        "values shorter than the DBF width of {width} bytes",
        "{name}: {count} values fill the DBF width of {width} bytes exactly, they may be cut",
        "Deliver a format without a width, such as GeoPackage.",
    ),
)
DRIVER = Rule(
    surface="schema",
    code="driver",
    title="GDAL reads the file without a warning.",
    check="source.gdal.Gdal.spoken",
    scope="delivery",
    refuses="nothing",
    words=FindingWords("a {format} file that GDAL reads without remark", "{said}"),
)

# --- schema: values --------------------------------------------------------------------------------------------------------------------

NULL = Rule(
    surface="schema",
    code="null",
    title="A field that is not nullable has a value in every row.",
    check="gate.feature.nulls",
    scope="row",
    refuses="rows",
    clauses=("schema_fields.nullable",),
    reads=("schema_fields.derived.measure",),
    columns=("field",),
    words=FindingWords(
        "null not allowed",
        "null",
        "Fill {name} at the source, or promise `nullable: true` (a MAJOR version: consumers then meet nulls).",
    ),
)
PATTERN = Rule(
    surface="schema",
    code="pattern",
    title="The whole text matches the pattern.",
    check="gate.feature.patterns",
    scope="row",
    refuses="rows",
    clauses=("schema_fields.pattern",),
    columns=("field",),
    version=2,  # RE2 decides: \w, \d, \s and \b know ASCII only
    words=FindingWords(
        "text that matches {pattern}",
        "",
        "Deliver {name} in the agreed form. Spreadsheets often lose leading zeros.",
    ),
)
RANGE = Rule(
    surface="schema",
    code="range",
    title="Values lie between the agreed least and greatest.",
    check="gate.feature.ranges",
    scope="row",
    refuses="rows",
    clauses=("schema_fields.min", "schema_fields.max"),
    reads=("schema_fields.type", "schema_fields.decimals", "schema_fields.digits"),
    columns=("field",),
    words=FindingWords("{limits}", "", "Correct the values at the source, or agree on other limits (wider ones are a MAJOR version)."),
)
LENGTH = Rule(
    surface="schema",
    code="length",
    title="Texts have as many characters as agreed.",
    check="gate.feature.sizes",
    scope="row",
    refuses="rows",
    clauses=("schema_fields.min_length", "schema_fields.max_length"),
    columns=("field",),
    words=FindingWords(
        "{limits} characters", "", "Correct the texts at the source, or agree on other lengths (wider ones are a MAJOR version)."
    ),
)
ITEMS = Rule(
    surface="schema",
    code="items",
    title="Lists have as many items as agreed.",
    check="gate.feature.sizes",
    scope="row",
    refuses="rows",
    clauses=("schema_fields.min_items", "schema_fields.max_items"),
    columns=("field",),
    words=FindingWords(
        "{limits} items", "", "Correct the lists at the source, or agree on other numbers of items (wider ones are a MAJOR version)."
    ),
)
DECIMALS = Rule(
    surface="schema",
    code="decimals",
    title="Numbers can be kept to the agreed decimals or digits.",
    check="normalise.snap.snap_numbers",
    scope="row",
    refuses="nothing",
    clauses=("schema_fields.decimals", "schema_fields.digits"),
    columns=("field",),
    words=FindingWords(
        "numbers that {grid} can hold", "", "Check the values: they are stored as delivered. Or agree on fewer than {grid}."
    ),
)
BACKFILLED = Rule(
    surface="schema",
    code="backfilled",
    title="A field that was just agreed has no values before.",
    check="line.comparing.backfill.backfill_finding",
    scope="delivery",
    refuses="nothing",
    words=FindingWords(
        "values in {names} from the first version on",
        "{count:,} of {total:,} features changed in {names} alone, which held no value in the last version",
        "Nothing, if the field was just agreed. Guards do not count these features.",
    ),
)
UNIQUE = Rule(
    surface="schema",
    code="unique",
    title="Every value of the field stands only once.",
    check="gate.delivery.repeated_values",
    scope="delivery",
    refuses="delivery",
    clauses=("schema_fields.unique",),
    columns=("field",),
    words=FindingWords(
        "every value only once",
        "{values}",
        "Correct {name} at the source, or give up the promise `unique` (a MAJOR version).",
    ),
)
HELD_ROW = Rule(
    surface="schema",
    code="held_row",
    title="A published row that stays in place of a rejected one keeps the contract in force.",
    check="line.comparing.kept_rows.judge_held",
    scope="delivery",
    refuses="delivery",
    columns=("field", "geometry"),
    words=FindingWords(
        "published rows that keep {stamp}, where they stay in place of rejected ones",
        "{rows}",
        "Correct the rejected rows of these features in the delivery, or set `rejects: {{published: remove}}`, which removes the features.",
    ),
)
MAX_FEATURES = Rule(
    surface="schema",
    code="max_features",
    title="At most as many features as promised.",
    check="gate.delivery.feature_count",
    scope="delivery",
    refuses="delivery",
    clauses=("max_features", "negative.max_features"),
    words=FindingWords(
        "at most {most:,} features",
        "{rows:,} rows",
        "See whether the export took in too much, or agree on more `{clause}` (a MAJOR version).",
    ),
)
MIN_FEATURES = Rule(
    surface="schema",
    code="min_features",
    title="At least as many features as promised.",
    check="gate.delivery.feature_count",
    scope="delivery",
    refuses="delivery",
    clauses=("min_features",),
    words=FindingWords(
        "at least {least:,} features",
        "{rows:,} rows",
        "See whether the export broke off or was filtered, or agree on fewer `min_features` (a MAJOR version).",
    ),
)

# --- schema: keys ----------------------------------------------------------------------------------------------------------------------

KEY_NULL = Rule(
    surface="schema",
    code="key_null",
    title="Every row has a key.",
    check="gate.delivery.null_keys",
    scope="delivery",
    refuses="delivery",
    clauses=("key",),
    columns=("key",),
    words=FindingWords(
        "a key in every row",
        "{count:,} {what} ({rows} of the file)",
        "Fill the key at the source, or name another column as `key`.",
    ),
)
KEY_BLANK = Rule(
    surface="schema",
    code="key_blank",
    title="A key is a text that names something: not empty, not blank, without NUL.",
    check="gate.delivery.blank_keys",
    scope="delivery",
    refuses="delivery",
    clauses=("key",),
    columns=("key",),
    words=FindingWords(
        "a key of characters that can be seen in every row",
        "{count:,} {what} empty, blank or with a NUL ({rows} of the file)",
        "Fill the key at the source, or name another column as `key`.",
    ),
)
KEY_TYPE = Rule(
    surface="schema",
    code="key_type",
    title="Keys are of an exact type, the same in every version.",
    check="gate.delivery.unfit_keys",
    scope="delivery",
    refuses="delivery",
    clauses=("key",),
    columns=("key",),
    words=FindingWords(
        "a key of the agreed type in every row",
        "{count:,} {what} that cannot be read as such ({rows} of the file)",
        "Correct the keys at the source. A key that is cut or rounded is the key of another feature.",
    ),
    cases={
        "inexact": FindingWords(
            "a key of text, integer, date or boolean type",
            "{name} is {kind}",
            "Give the key an exact type in the contract: integer for 12.0, string for codes.",
        ),
        "changed": FindingWords(
            "{name} is {was}, as it was published",
            "{name} is {kind}",
            "Deliver the key in its type. A key of another type is another key.",
        ),
    },
)
KEY_DUPLICATE = Rule(
    surface="schema",
    code="key_duplicate",
    title="A key stands only once.",
    check="gate.delivery.duplicate_keys",
    scope="delivery",
    refuses="delivery",
    clauses=("key",),
    columns=("key",),
    words=FindingWords(
        "a key only once",
        "{keys}",
        "Correct the keys at the source, or name a column, or a list of columns, that is unique.",
    ),
)
KEY_TWIN = Rule(
    surface="schema",
    code="key_twin",
    title="Keys differ in more than blanks or case.",
    check="gate.delivery.twin_keys",
    scope="delivery",
    refuses="nothing",
    columns=("key",),
    words=FindingWords(
        "keys that differ in more than blanks or case",
        "{keys}",
        "Keys are compared exactly, so each of these is a feature of its own. If they mean one object, deliver it under one key.",
    ),
)
KEY_MIGRATION = Rule(
    surface="schema",
    code="key_migration",
    title="Keys change only by a migration that the publication names.",
    check="line.comparing.key_migration.migration_findings",
    scope="delivery",
    refuses="delivery",
    columns=("key",),
    words=FindingWords(
        "a delivery without rejected rows while keys change",
        "{count:,} rows were rejected",
        "Correct the rows first. Under a new key nothing says which published features they are.",
    ),
    cases={
        "done": FindingWords(
            "keys that last",
            "{rule}{count:,} of {total:,} features were found again under another key{edited}",
            "Nothing, if this is meant. `key_migration` has done its work; remove it from the publication file.",
        ),
    },
)
PARTITION_TYPE = Rule(
    surface="schema",
    code="partition_type",
    title="A partition column is of an exact type.",
    check="line.preparing.key_rule.exact_types",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "a partition column of text, integer, date or boolean type",
        "{name} is {kind}",
        "Partition by a column of codes, or by kdtree.",
    ),
)

# --- CRS and axis order ----------------------------------------------------------------------------------------------------------------

CRS_MISSING = Rule(
    surface="crs",
    code="crs_missing",
    title="The delivery states its CRS.",
    check="normalise.agreed_crs.check_crs",
    scope="delivery",
    refuses="delivery",
    clauses=("crs_epsg", "schema_fields.crs_epsg"),
    words=FindingWords(
        "{agreed} is agreed",
        "CRS {what}",
        "State the CRS in the file, or assert it with `source.crs` in the publication file (it is recorded as asserted).",
    ),
)
CRS_MISMATCH = Rule(
    surface="crs",
    code="crs_mismatch",
    title="The delivered CRS is the agreed one.",
    check="normalise.agreed_crs.check_crs",
    scope="delivery",
    refuses="delivery",
    clauses=("crs_epsg", "schema_fields.crs_epsg"),
    words=FindingWords("{agreed} is agreed", "{what}", "Deliver {agreed}."),
    cases={
        "acceptable": FindingWords(
            "{agreed} is agreed",
            "{what}",
            "Deliver {agreed}, or accept it with `crs: {{accept: [{code}]}}` in the publication file: it is then transformed.",
        ),
        "transformed": FindingWords(
            "{agreed} is agreed",
            "{delivered} is delivered, which the publication accepts",
            "It is transformed by {way}. This warning comes back when the delivered CRS changes.",
        ),
        "asserted": FindingWords(
            "{asserted} as `source.crs` asserts",
            "the file itself says {given}",
            "Leave out `source.crs`: it may only fill in what the file does not say.",
        ),
        "mark": FindingWords(
            "geometries in {layer}, as their layer says",
            "{count:,} geometries say {stated} (rows {rows})",
            "Transform these rows into the layer's reference system in the export, or write the true srs_id into them.",
        ),
        "ewkb": FindingWords(
            "geometries in {agreed}, as is said of the column",
            "geometries say {stated} (rows {rows})",
            "Write WKB without a mark, or in the reference system of the column.",
        ),
        "types": FindingWords(
            "one reference system and one kind of edges for a column",
            "the geo metadata say {metadata}, the Parquet type of the column says {type}",
            "Export it again with a writer that writes both from one system, or without one of them.",
        ),
        "marks": FindingWords(
            "geometries in {most}, as most of their layer",
            "{count:,} geometries say {stated}: {places}",
            "Export all features of a layer in one reference system.",
        ),
    },
)
EPOCH_MISSING = Rule(
    surface="crs",
    code="epoch_missing",
    title="Coordinates in a dynamic reference system state their epoch.",
    check="normalise.epochs.check_epoch",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "the epoch of coordinates in {name}, a dynamic reference system",
        "no epoch is stated",
        "State the coordinate epoch in the file (`epoch` in GeoParquet, and in gpkg_spatial_ref_sys of a GeoPackage).",
    ),
    cases={
        "gone": FindingWords(
            "the epoch of coordinates in {name}, a dynamic reference system; {version} was delivered with epoch {known:g}",
            "no epoch is stated",
            "State the coordinate epoch in the file (`epoch` in GeoParquet, and in gpkg_spatial_ref_sys of a GeoPackage).",
        ),
        "needed": FindingWords(
            "the epoch of coordinates in {label} ({name}), a dynamic reference system",
            "no epoch is stated, and {operation} depends on it",
            "State the coordinate epoch in the file (`epoch` in GeoParquet), or deliver the agreed CRS.",
        ),
    },
)
EPOCH_CHANGED = Rule(
    surface="crs",
    code="epoch_changed",
    title="The epoch of the coordinates stays what it was.",
    check="normalise.epochs.check_epoch",
    scope="delivery",
    refuses="nothing",
    words=FindingWords(
        "epoch {known:g}, as {version} was delivered with",
        "epoch {epoch:g}",
        "Check that the coordinates are of that time: every position is read, and transformed, as of the new epoch.",
    ),
)
NO_OPERATION = Rule(
    surface="crs",
    code="no_operation",
    title="A coordinate operation with the required accuracy leads to the agreed CRS.",
    check="reference.operation.choose_operation",
    scope="delivery",
    refuses="delivery",
    clauses=("required_accuracy_m",),
    reads=("crs_epsg", "axis_order", "extent"),
    words=FindingWords(
        "{way}",
        "{what}",
        "Install the grid, deliver the agreed CRS, or agree on another accuracy.",
    ),
)
NO_TRANSFORM = Rule(
    surface="crs",
    code="no_transform",
    title="Every position can be expressed in the agreed CRS.",
    check="normalise.transform.no_transform_faults",
    scope="row",
    refuses="rows",
    reads=("crs_epsg", "axis_order", "extent", "required_accuracy_m"),
    columns=("geometry",),
    shows="feature",
    words=FindingWords("positions that {target} can express", "", "Cut the feature to the area of use, or leave it out."),
)
AXIS_ORDER = Rule(
    surface="crs",
    code="axis_order",
    title="The ordinates stand in the agreed order.",
    check="gate.whereabouts.decide",
    scope="delivery",
    refuses="delivery",
    clauses=("axis_order",),
    reads=("crs_epsg", "extent", "schema_fields.crs_epsg"),
    columns=("geometry",),
    shows="feature",
    words=FindingWords(
        "{order} in {crs}",
        "x and y are swapped: {evidence}",
        "Exchange x and y at the source, or agree on the order in `axis_order` (what is stored is x, y in either case).",
    ),
    cases={
        "last": FindingWords(
            "{order} in {crs}",
            "x and y are swapped: {evidence}",
            "Exchange x and y at the source, or agree on the order in `axis_order` (what is stored is x, y in either case). If {version} is the one that is "
            "swapped, state in the contract the `extent` in which positions lie, raise its stamp, publish again, and confirm the change.",
        ),
        "undecidable": FindingWords(
            "positions that show which ordinate is x in {crs}",
            "undecidable whether x and y are swapped: {evidence}. Positions are {ways}, read as x y",
            "State in the contract the `extent` in which positions lie, as xmin, ymin, xmax, ymax: without it a first publish stops.",
        ),
    },
)
UNITS = Rule(
    surface="crs",
    code="units",
    title="The ordinates are in the unit of the CRS.",
    check="gate.whereabouts.decide",
    scope="delivery",
    refuses="delivery",
    clauses=("crs_epsg", "schema_fields.crs_epsg"),
    reads=("extent",),
    columns=("geometry",),
    words=FindingWords(
        "degrees of {crs}",
        "the ordinates are not degrees: {extent}{fit}",
        "State the CRS that the coordinates are in: they are metres or feet.",
    ),
    cases={
        "degrees": FindingWords(
            "the unit of {crs}",
            "the ordinates read as degrees: {extent}; {evidence}",
            "State the CRS that the coordinates are in: they are degrees.",
        )
    },
)
ROW_UNITS = Rule(
    surface="crs",
    code="row_units",
    title="The ordinates of every row are in the unit of the CRS.",
    check="gate.whereabouts.faults",
    scope="delivery",
    refuses="rows",
    clauses=("crs_epsg", "schema_fields.crs_epsg"),
    reads=("extent",),
    columns=("geometry",),
    shows="feature",
    words=FindingWords("{unit} of {crs}", "", "Deliver every row in the declared CRS."),
)
CRS_POSITION = Rule(
    surface="crs",
    code="crs_position",
    title="The positions lie where the declared CRS is used.",
    check="gate.whereabouts.decide",
    scope="delivery",
    refuses="delivery",
    clauses=("crs_epsg", "schema_fields.crs_epsg"),
    reads=("extent",),
    columns=("geometry",),
    words=FindingWords(
        "positions near the area of use of {crs} ({area})",
        "{count:,} of {total:,} rows lie far from it, between {extent}{fit}",
        "State the CRS that the coordinates are in; it is not the declared one.",
    ),
    cases={
        "agreed": FindingWords(
            "positions in the area of use of {crs}, or in that of {agreed}",
            "{count:,} of {total:,} rows lie in neither as {crs}; read as {agreed} they lie in its area of use",
            "State the CRS that the coordinates are in: probably {agreed}, not {crs}.",
        )
    },
)

# --- geometry --------------------------------------------------------------------------------------------------------------------------

GEOMETRY_TYPE = Rule(
    surface="geometry",
    code="geometry_type",
    title="Every geometry is of the agreed type.",
    check="normalise.snap.snap",
    scope="row",
    refuses="rows",
    clauses=("geometry_type",),
    columns=("geometry",),
    shows="feature",
    words=FindingWords("{agreed}", "", "Deliver the agreed type, or agree on another one (a MAJOR version)."),
)
NULL_GEOMETRY = Rule(
    surface="geometry",
    code="null_geometry",
    title="Every row has a geometry.",
    check="gate.feature.presence",
    scope="row",
    refuses="rows",
    clauses=("geometry.nullable",),
    columns=("geometry",),
    shows="feature",
    words=FindingWords("a geometry in every row", "null", "Deliver the geometry, or promise `geometry: {{nullable: true}}`."),
)
EMPTY_GEOMETRY = Rule(
    surface="geometry",
    code="empty_geometry",
    title="A geometry is not empty.",
    check="gate.feature.presence",
    scope="row",
    refuses="rows",
    clauses=("geometry.empty",),
    columns=("geometry",),
    shows="feature",
    words=FindingWords("a geometry that is not empty", "empty", "Deliver the geometry, or promise `geometry: {{empty: true}}`."),
)
GEO_METADATA = Rule(
    surface="geometry",
    code="geo_metadata",
    title="The `geo` metadata of a Parquet file describes its data.",
    check="source.geo_metadata.no_geo",
    scope="delivery",
    refuses="nothing",
    columns=("geometry",),
    words=FindingWords(
        "geometry_types {listed}, as the geo metadata says",
        "the column holds {held}; the data decide",
        "Write geometry_types that the column has, or an empty list.",
    ),
    cases={
        "none": FindingWords(
            "GeoParquet, or a geometry column that the publication names",
            "{file} is plain Parquet: no geo metadata says which column is a geometry ({names} hold bytes)",
            "Deliver GeoParquet, or assert both: `source: {{geometry: {name}, crs: EPSG:CODE}}`.",
        ),
        "bbox": FindingWords(
            "bbox {stated}, as the geo metadata says",
            "the data reach {held}; the data decide",
            "Write the bbox of the data, or none: programs that trust it leave rows out.",
        ),
    },
)
CUT_VALUE = Rule(
    surface="geometry",
    code="cut_value",
    title="A geometry ends where its bytes end.",
    check="gate.feature.left_over",
    scope="row",
    refuses="rows",
    columns=("geometry",),
    shows="feature",
    words=FindingWords(
        "a geometry that ends where its bytes end",
        "bytes behind the end of the geometry",
        "Write these geometries anew: nothing reads what stands behind the end.",
    ),
)
LINK = Rule(
    surface="geometry",
    code="link",
    title="A geometry of a GML file is written out, not linked.",
    check="source.xml_features.XmlCensus.findings",
    scope="delivery",
    refuses="delivery",
    columns=("geometry",),
    words=FindingWords(
        "geometries that are written out",
        "{count:,} parts of geometries are links, which are not followed: {places}",
        "Export geometries by value: a linked curve or surface written out in each feature that has it.",
    ),
)
POSITION = Rule(
    surface="geometry",
    code="position",
    title="Every position of an XML file can be read.",
    check="source.xml_features.XmlCensus.findings",
    scope="delivery",
    refuses="delivery",
    columns=("geometry",),
    words=FindingWords(
        "positions of two or more numbers", "{count:,} positions cannot be read: {places}", "Correct the coordinates in the export."
    ),
)
ORDINATE = Rule(
    surface="geometry",
    code="ordinate",
    title="Ordinates are numbers that the CRS and the grid can hold.",
    check="gate.feature.ordinates",
    scope="row",
    refuses="rows",
    clauses=("coordinate_precision", "schema_fields.coordinate_precision"),
    reads=("crs_epsg", "geometry.z_precision", "geometry.m_precision", "schema_fields.crs_epsg"),
    columns=("geometry",),
    shows="feature",
    words=FindingWords("numbers as coordinates", "{what}", "Look for a transform that failed where the export was made."),
    cases={
        "range": FindingWords(
            "{axis} within {low:g}..{high:g}",
            "",
            "See whether the axes are swapped. A geometry across the antimeridian is cut there (RFC 7946 section 3.1.9).",
        ),
        "grid": FindingWords(
            "ordinates that a grid of {step} can hold",
            "an ordinate is beyond what the grid can hold",
            "Check the CRS and the units of the delivery.",
        ),
        "second": FindingWords("a geometry that the grid can hold", "cannot be stored", "Correct the geometry at the source."),
    },
)
Z_DROPPED = Rule(
    surface="geometry",
    code="z_dropped",
    title="No Z or M is delivered beyond what is promised.",
    check="gate.delivery.DimensionTally.findings",
    scope="delivery",
    refuses="nothing",
    clauses=("geometry.dimensions",),
    columns=("geometry",),
    shows="feature",
    words=FindingWords(
        "{promised} positions",
        "{what} in {count:,} rows, left out",
        "Nothing, if {promised} is what consumers need; else promise `geometry: {{dimensions: {delivered}}}` (a MAJOR version).",
    ),
    cases={
        "row": FindingWords("geometry with dimensions {promised}", "", "Nothing, or agree on other dimensions in the `geometry` clause.")
    },
)
Z_MISSING = Rule(
    surface="geometry",
    code="z_missing",
    title="Every position has the Z and M that are promised.",
    check="gate.feature.dimensions",
    scope="row",
    refuses="rows",
    clauses=("geometry.dimensions",),
    columns=("geometry",),
    shows="feature",
    words=FindingWords(
        "{promised} positions",
        "",
        "Deliver {letters}, or promise `geometry: {{dimensions: any}}` (a MAJOR version) where only some have it.",
    ),
)
COLLAPSE = Rule(
    surface="geometry",
    code="collapse",
    title="A shape survives the storage grid.",
    check="normalise.snap.snap",
    scope="row",
    refuses="rows",
    clauses=("coordinate_precision",),
    reads=("geometry_type",),
    columns=("geometry",),
    shows="feature",
    words=FindingWords(
        "a shape that survives the grid of {step}",
        "collapses on the grid of {step}",
        "Leave the feature out, or agree on a finer `coordinate_precision`.",
    ),
    cases={
        "delivered": FindingWords(
            "a shape with a length or an area",
            "has none as delivered: a line whose positions are all the same, or a ring of fewer than three",
            "Correct the shape at the source, or leave it out. It has collapsed before it is rounded.",
        )
    },
)
VALIDITY = Rule(
    surface="geometry",
    code="validity",
    title="Lines and areas are valid (OGC Simple Features).",
    check="gate.feature.validity",
    scope="row",
    refuses="rows",
    reads=("geometry_type", "topology_rule_set", "coordinate_precision"),
    columns=("geometry",),
    shows="feature",
    words=FindingWords(
        "a valid geometry",
        "{what}",
        "Correct the geometry at the place named. It is never corrected here without a word.",
    ),
    cases={
        "rounded": FindingWords(
            "a geometry that is still valid when it is rounded to {precision} decimals",
            "{what}",
            "It is valid as delivered: agree on a larger `coordinate_precision`, or deliver it rounded and repaired.",
        )
    },
)
EXTENT = Rule(
    surface="geometry",
    code="extent",
    title="Every position lies within the agreed extent. More than 1 % of the rows outside refuse the delivery.",
    check="gate.feature.outside",
    scope="row",
    refuses="rows",
    clauses=("extent",),
    reads=("coordinate_precision",),
    columns=("geometry",),
    shows="feature",
    words=FindingWords(
        "positions within {box}",
        "",
        "See whether these rows belong to the product, or agree on a larger `extent`.",
    ),
    cases={
        "many": FindingWords(
            "positions within {box}",
            "",
            "See whether this is the right export, and the right CRS. If these rows belong to the product, agree on a larger `extent`.",
        )
    },
)
ANTIMERIDIAN = Rule(
    surface="geometry",
    code="antimeridian",
    title="No part is wider than half the globe.",
    check="gate.feature.wide",
    scope="row",
    refuses="rows",
    clauses=("negative.antimeridian",),
    reads=("crs_epsg",),
    columns=("geometry",),
    shows="feature",
    words=FindingWords(
        "parts at most {half:g} degrees wide",
        "wider than {half:g} degrees",
        "If it crosses the antimeridian, cut it there (RFC 7946 section 3.1.9).",
    ),
)
EDGES = Rule(
    surface="geometry",
    code="edges",
    title="Edges are joined as promised: straight in the plane, or along great circles.",
    check="gate.delivery.edges",
    scope="delivery",
    refuses="delivery",
    clauses=("geometry.edges",),
    words=FindingWords(
        "{promised} edges",
        "{delivered} edges{change}",
        "Deliver {promised} edges (lines over long distances need intermediate points), or promise "
        "`geometry: {{edges: {delivered}}}` in the contract.",
    ),
)
PRECISION = Rule(
    surface="geometry",
    code="precision",
    title="Coordinates are as fine as promised.",
    check="gate.fineness.precision",
    scope="delivery",
    refuses="delivery",
    clauses=("coordinate_precision", "schema_fields.coordinate_precision"),
    columns=("geometry",),
    words=FindingWords(
        "{promised} decimals",
        "99 % of {ordinates:,} ordinates have {measured} decimals or fewer",
        "Export full coordinates, or promise `coordinate_precision: {measured}` in the contract.",
    ),
    cases={
        "undecided": FindingWords(
            "{promised} decimals",
            "undecided: 99 % of {ordinates:,} ordinates have {measured} decimals or fewer, judged from {enough:,} ordinates up",
        ),
        "axis": FindingWords(
            "{promised} decimals along both axes",
            "99 % of {ordinates:,} ordinates along {axis} have {measured} decimals or fewer; {before}",
            "Where the survey is like that, nothing is lost: the finer axis needs the promised grid. Otherwise export full coordinates.",
        ),
        "axis_lost": FindingWords(
            "{promised} decimals along both axes",
            "99 % of {ordinates:,} ordinates along {axis} have {measured} decimals or fewer; {before}",
            "Export full coordinates. Where the survey is as coarse as that, promise `coordinate_precision: {measured}` (a MAJOR version).",
        ),
        "features": FindingWords(
            "{promised} decimals in every feature",
            "{count:,} of {rows:,} features ({share}) have {coarser} decimals or fewer in all ordinates; {before}",
            "Export full coordinates. Where the survey is as coarse as that, promise `coordinate_precision: {coarser}` (a MAJOR version).",
        ),
        "features_first": FindingWords(
            "{promised} decimals in every feature",
            "{count:,} of {rows:,} features ({share}) have {coarser} decimals or fewer in all ordinates; {before}",
            "Export full coordinates. Where the survey is as coarse as that, promise `coordinate_precision: {coarser}` before the first version.",
        ),
    },
)
VERTEX_LOSS = Rule(
    surface="geometry",
    code="vertex_loss",
    title="Shapes keep the vertices that they had.",
    check="gate.fineness.vertex_loss",
    scope="delivery",
    refuses="delivery",
    clauses=("geometry.max_vertex_loss",),
    columns=("geometry",),
    words=FindingWords(
        "at most {most} of the vertices lost",
        "{lost} lost for the size of the shapes: {vertices:,} vertices, {before:,} in {version}",
        "Export the shapes as they were surveyed. If they are meant to be simpler, agree on another `geometry.max_vertex_loss` (a MAJOR version).",
    ),
)

# --- geometry: topology ----------------------------------------------------------------------------------------------------------------

TOPOLOGY = Rule(
    surface="geometry",
    code="topology",
    title="Every geometry can be judged by the topology rules.",
    check="gate.topology.judge",
    scope="neighbourhood",
    refuses="delivery",
    clauses=("topology_rule_set",),
    columns=("geometry",),
    words=FindingWords(
        "{rule_set} topology judged on {kinds}", "{places}", "Deliver the agreed geometry, or agree on another `topology_rule_set`."
    ),
)
OVERLAP = Rule(
    surface="geometry",
    code="overlap",
    title="planar: no ground is covered twice.",
    check="gate.topology.judge",
    scope="neighbourhood",
    refuses="delivery",
    clauses=("topology_rule_set", "topology_parameters.tolerance"),
    columns=("geometry",),
    words=FindingWords("no ground covered twice", "{places}", "Cut one of each pair back to the common border."),
)
GAP = Rule(
    surface="geometry",
    code="gap",
    title="planar: no ground between features is left uncovered.",
    check="gate.topology.judge",
    scope="neighbourhood",
    refuses="delivery",
    clauses=("topology_rule_set", "topology_parameters.gap_width", "topology_parameters.tolerance"),
    columns=("geometry",),
    words=FindingWords(
        "no uncovered ground between features",
        "{places}",
        "Close the gaps, or, where wide ones are meant, agree on `topology_parameters: {{gap_width: ...}}`.",
    ),
    cases={"narrow": FindingWords("no gap narrower than {width:g} between features", "{places}", "Close the gaps.")},
)
MISMATCHED_EDGE = Rule(
    surface="geometry",
    code="mismatched_edge",
    title="planar: both sides of a border have the same vertices.",
    check="gate.topology.judge",
    scope="neighbourhood",
    refuses="delivery",
    clauses=("topology_rule_set", "topology_parameters.tolerance"),
    columns=("geometry",),
    words=FindingWords(
        "borders with the same vertices on both sides",
        "{places}",
        "Add each vertex to the neighbour's border, or agree on `topology_parameters: {{tolerance: ...}}`.",
    ),
)
DANGLE = Rule(
    surface="geometry",
    code="dangle",
    title="network: no line ends loose.",
    check="gate.topology.judge",
    scope="neighbourhood",
    refuses="delivery",
    clauses=("topology_rule_set", "topology_parameters.dangle_length", "topology_parameters.tolerance"),
    reads=("contract_version",),
    columns=("geometry",),
    words=FindingWords(
        "every end at another line",
        "{places}",
        "Connect them, or, where dead ends are meant, agree on `topology_parameters: {{dangle_length: ...}}`.",
    ),
    cases={"short": FindingWords("lines longer than {near:g} where an end is loose", "{places}", "Connect or remove them.")},
)
UNCONNECTED_END = Rule(
    surface="geometry",
    code="unconnected_end",
    title="network: an end meets another line at one of its vertices.",
    check="gate.topology.judge",
    scope="neighbourhood",
    refuses="delivery",
    clauses=("topology_rule_set", "topology_parameters.dangle_length", "topology_parameters.tolerance"),
    reads=("contract_version",),
    columns=("geometry",),
    words=FindingWords(
        "ends that meet a line at one of its vertices", "{places}", "Join them: both lines need a vertex at the same place."
    ),
)
DUPLICATE_EDGE = Rule(
    surface="geometry",
    code="duplicate_edge",
    title="network: every stretch of line stands only once.",
    check="gate.topology.judge",
    scope="neighbourhood",
    refuses="delivery",
    clauses=("topology_rule_set", "topology_parameters.tolerance"),
    columns=("geometry",),
    words=FindingWords("every stretch of line only once", "{places}", "Remove one of each pair."),
)
OPEN_SHELL = Rule(
    surface="geometry",
    code="open_shell",
    title="3d_solid: shells are closed.",
    check="gate.topology.judge",
    scope="neighbourhood",
    refuses="delivery",
    clauses=("topology_rule_set",),
    reads=("geometry.z_precision",),
    columns=("geometry",),
    words=FindingWords(
        "closed shells: every edge of a face borders exactly one other face",
        "{places}",
        "Close the shell at the place named.",
    ),
)

# --- rasters ---------------------------------------------------------------------------------------------------------------------------

RESOLUTION = Rule(
    surface="geometry",
    code="resolution",
    title="Pixels have a place, and the agreed size.",
    check="gate.raster.resolution",
    scope="delivery",
    refuses="delivery",
    clauses=("pixel.size",),
    words=FindingWords(
        "pixels of {size}",
        "pixels of {delivered}",
        "Deliver the agreed grid of {crs}, or agree on another `pixel.size`.",
    ),
    cases={
        "nowhere": FindingWords("pixels with a place", "the file states no place for its pixels", "Export a georeferenced raster."),
        "turned": FindingWords("rows from west to east", "the grid is turned", "Resample it to the axes of the CRS."),
    },
)
RASTER_EXTENT = Rule(
    surface="geometry",
    code="raster_extent",
    title="Every pixel lies within the agreed extent.",
    check="gate.raster.extent",
    scope="delivery",
    refuses="delivery",
    clauses=("extent",),
    words=FindingWords("within {box}", "{delivered}", "Look at the CRS and the axis order first, then agree on the `extent`."),
)
BANDS = Rule(
    surface="schema",
    code="bands",
    title="The agreed bands are there, in their order.",
    check="gate.raster.bands",
    scope="delivery",
    refuses="delivery",
    clauses=("bands", "bands.name"),
    words=FindingWords("{agreed}", "{delivered}", "Deliver the agreed bands in their order."),
)
BAND_TYPE = Rule(
    surface="schema",
    code="band_type",
    title="The pixels of a band are of the agreed type.",
    check="gate.raster.bands",
    scope="delivery",
    refuses="delivery",
    clauses=("bands.type",),
    words=FindingWords("{agreed}", "{delivered}", "Deliver the agreed type of pixels."),
)
NODATA = Rule(
    surface="semantics",
    code="nodata",
    title="A band states the agreed value for no data.",
    check="gate.raster.bands",
    scope="delivery",
    refuses="delivery",
    clauses=("bands.nodata",),
    words=FindingWords("{agreed}", "{delivered}", "State the agreed value. Without it, pixels without data are read as values."),
)
OVERVIEWS = Rule(
    surface="geometry",
    code="overviews",
    title="Every band has the agreed overviews.",
    check="gate.raster.overviews",
    scope="delivery",
    refuses="delivery",
    clauses=("pixel.overviews",),
    words=FindingWords("overviews {agreed} in every band", "{delivered}", "Build them with gdaladdo."),
)

# --- service levels --------------------------------------------------------------------------------------------------------------------

FRESHNESS = Rule(
    surface="service",
    code="freshness",
    title="The content is at most as old as promised.",
    check="gate.freshness.freshness",
    scope="delivery",
    refuses="delivery",
    clauses=("freshness_sla_minutes", "freshness_from"),
    reads=("schema_fields.time_zone",),
    columns=("field",),
    words=FindingWords(
        "at most {promised:,} minutes old",
        "{minutes:,.0f} minutes old: {moment}{label}",
        "Deliver newer data, or agree on another `freshness_sla_minutes`.",
    ),
    cases={
        "unknown": FindingWords(
            "at most {promised:,} minutes old",
            "no row holds a time",
            "Fill {name} at the source, or name another field in `freshness_from`.",
        ),
        "early": FindingWords(
            "at most {promised:,} minutes old",
            "no row holds a time that has come",
            "Correct {name} at the source, or name another field in `freshness_from`.",
        ),
        "older": FindingWords(
            "{name} no older than in {version}: {published}",
            "older than what is published: {moment}",
            "Deliver the newest export. If the newest features are gone from the source, publish stops once, and a token confirms it.",
        ),
    },
)
FUTURE = Rule(
    surface="service",
    code="future",
    title="Times that freshness is read from have come. Others count for nothing, and above 5 % of the rows refuse the delivery.",
    check="gate.freshness.early_faults",
    scope="delivery",
    refuses="delivery",
    clauses=("freshness_from",),
    reads=("schema_fields.time_zone",),
    columns=("field",),
    words=FindingWords("times up to {latest}", "", "Correct the time at the source. It counts for nothing in the age of the data."),
    cases={
        "many": FindingWords(
            "times up to {latest}",
            "",
            "Correct the times at the source, or name another field in `freshness_from`: a planned time does not say how old the data are.",
        )
    },
)

# --- semantics -------------------------------------------------------------------------------------------------------------------------

ENUM = Rule(
    surface="semantics",
    code="enum",
    title="Every value is in the code list.",
    check="gate.feature.code_lists",
    scope="row",
    refuses="rows",
    clauses=("semantics.enum",),
    reads=("semantics.open",),
    columns=("field",),
    words=FindingWords(
        "{allowed}",
        "",
        "Deliver one of the agreed values, or add the value to semantics.{name}.enum (a MAJOR version: consumers then meet values "
        "that they do not know).",
    ),
    cases={
        "open": FindingWords(
            "{allowed}; the list is open",
            "",
            "Nothing, if the value is meant: the list is open, and readers reckon with new values. Add it to semantics.{name}.enum (a MINOR version).",
        )
    },
)
NULL_CONVENTION = Rule(
    surface="semantics",
    code="null_convention",
    title="A missing value is null, never a text or number that stands for it.",
    check="gate.feature.substitutes",
    scope="row",
    refuses="rows",
    clauses=("semantics.null_means",),
    reads=("semantics.enum",),
    columns=("field",),
    words=FindingWords(
        "null where it means {means!r}",
        "",
        "Deliver null, or add the value to semantics.{name}.enum if it means something else.",
    ),
)
UNIT = Rule(
    surface="semantics",
    code="unit",
    title="Numbers are in the agreed unit.",
    check="gate.quantities.decide",
    scope="delivery",
    refuses="delivery",
    clauses=("schema_fields.unit",),
    columns=("field", "geometry"),
    words=FindingWords(
        "{name} in {unit}",
        "{count:,} values of {name} are {factor:g} times {against}: {reads} where {unit} is agreed",
        "Deliver {unit}, or agree on another unit for {name} (a MAJOR version).",
    ),
)
ROW_UNIT = Rule(
    surface="semantics",
    code="row_unit",
    title="The number of every row is in the agreed unit.",
    check="gate.quantities.faults",
    scope="delivery",
    refuses="rows",
    clauses=("schema_fields.unit",),
    columns=("field", "geometry"),
    shows="feature",
    words=FindingWords("{name} in {unit}", "", "Deliver {name} in {unit} in every row."),
)
BLANKS = Rule(
    surface="semantics",
    code="blanks",
    title="Text that changes differs in more than blanks at its end.",
    check="line.comparing.comparison_warnings.comparison_warnings",
    scope="delivery",
    refuses="nothing",
    words=FindingWords(
        "an edit that can be seen",
        "{names} {differ} only in blanks at the end",
        "Formats such as DBF lose trailing blanks. Trim the text at the source, or keep one format.",
    ),
)

# --- guards: a person may confirm them -------------------------------------------------------------------------------------------------

_MEANT = "If this is meant, confirm it with the token."
CHANGED = Rule(
    surface="guard",
    code="changed",
    title="`max_changed_fraction`: not too many features are added, changed or removed.",
    check="change.guards.changed_fraction",
    scope="delivery",
    refuses="delivery",
    words=FindingWords("at most {limit} changed", "{much} changed{why}", _MEANT),
    cases={
        "sampled": FindingWords(
            "at most {limit} changed",
            "at least {much} changed, by a sample of {sample:,} of {candidates:,} features that may have{why}",
            _MEANT,
        ),
        "beyond": FindingWords(
            "at most {limit} changed",
            "{much:,} features were added, changed or removed where there were {published:,}{why}",
            _MEANT,
        ),
    },
)
REMOVED = Rule(
    surface="guard",
    code="removed",
    title="`max_removed_fraction`: not too many features are removed.",
    check="change.guards.removed_fraction",
    scope="delivery",
    refuses="delivery",
    words=FindingWords("at most {limit} removed", "{much} removed{why}", _MEANT),
)
MOVED = Rule(
    surface="guard",
    code="moved",
    title="`max_moved_fraction`: not too many features change their partition.",
    check="change.guards.moved_fraction",
    scope="delivery",
    refuses="delivery",
    words=FindingWords("at most {limit} in another partition", "{much} moved{why}", _MEANT),
)
KEY_SURVIVAL = Rule(
    surface="guard",
    code="key_survival",
    title="`min_key_survival`: enough published keys are delivered again.",
    check="change.guards.key_survival",
    scope="delivery",
    refuses="delivery",
    words=FindingWords("at least {limit} of the published keys delivered again", "{much} of the keys survive{why}", _MEANT),
)
NO_GEOMETRY = Rule(
    surface="guard",
    code="null_geometry",
    title="`max_null_geometry_fraction`: not too many rows are without geometry.",
    check="change.guards.null_geometry_fraction",
    scope="delivery",
    refuses="delivery",
    words=FindingWords("at most {limit} of the rows without geometry", "{much} of the rows are without geometry{why}", _MEANT),
)
ORDER_UNSEEN = Rule(
    surface="guard",
    code="axis_order",
    title="The axis order of a first version is measured, or stated by an `extent`.",
    check="change.guards.axis_order",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "a first version whose axis order is measured, or stated by an `extent` in the contract",
        "undecidable whether x and y are swapped: {evidence}",
        "State the `extent` in the contract. If the order is right as delivered, confirm it with the token.",
    ),
)
OLDER = Rule(
    surface="guard",
    code="older",
    title="A delivery is not older than what is published, by `freshness_from`.",
    check="change.guards.older",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "{name} no older than in {version}: {published}",
        "older than what is published: {moment}",
        "See whether this is an older export. If the newest features are gone from the source, confirm it with the token.",
    ),
)
EXTENT_SHIFT = Rule(
    surface="guard",
    code="extent_shift",
    title="`max_extent_shift`: the extent stays where it was.",
    check="change.guards.extent_shift",
    scope="delivery",
    refuses="delivery",
    words=FindingWords("an extent whose sides move by at most {limit} of its diagonal", "{what}{why}", _MEANT),
)
COLUMN_CHANGED = Rule(
    surface="guard",
    code="column_changed",
    title="`max_column_changed_fraction`: not too many values of one column change.",
    check="change.guards.column_changed",
    scope="delivery",
    refuses="delivery",
    words=FindingWords("at most {limit} of the values of a column changed", "{much} of the values of {name} changed{why}", _MEANT),
)
WITHDRAWN = Rule(
    surface="guard",
    code="withdrawn",
    title="A delivery that a roll-back withdrew does not come back by itself.",
    check="change.guards.withdrawn",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "a delivery other than the one that was rolled back",
        "exactly the delivery {digest} that a roll-back withdrew",
        "Deliver a corrected export. If it is meant, confirm it with the token.",
    ),
)
WITHDRAWN_CHANGE = Rule(
    surface="guard",
    code="withdrawn_change",
    title="A change that a roll-back withdrew does not come back by itself, also beside other edits.",
    check="change.guards.withdrawn_features",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "at most {limit} of a withdrawn change",
        "{back} of the {entries} features that a roll-back took back come back as they were",
        _MEANT,
    ),
)
WITHDRAWN_NAMED = Rule(
    surface="guard",
    code="withdrawn_named",
    title="A feature that a roll-back named as wrong does not come back by itself.",
    check="change.guards.withdrawn_features",
    scope="delivery",
    refuses="delivery",
    words=FindingWords("no feature that a roll-back named as wrong", "{back} come back as they were: {named}", _MEANT),
)
EMPTIED = Rule(
    surface="guard",
    code="empty",
    title="An empty delivery neither empties a dataset nor begins one.",
    check="change.guards.emptied",
    scope="delivery",
    refuses="delivery",
    words=FindingWords(
        "a delivery for {published:,} published features",
        "an empty delivery",
        "See whether the export broke off. If it is meant, confirm it with the token.",
    ),
    cases={
        "first": FindingWords(
            "a first delivery with features",
            "an empty delivery",
            "See whether the export broke off. If a version without features is meant, confirm it with the token.",
        ),
    },
)

RULES: tuple[Rule, ...] = tuple(each for each in globals().values() if isinstance(each, Rule))
"""Every rule, in the order of this page."""
_BY_NAME = {(each.surface, each.code): each for each in RULES}


def rule_of(surface: Surface, code: str) -> Rule:
    """The rule of a finding. Raises KeyError where there is none of that name."""
    return _BY_NAME[surface, code]


def enforcers(clause: str) -> tuple[Rule, ...]:
    """The rules that enforce a clause, named by its path such as "schema_fields.nullable"."""
    return tuple(each for each in RULES if clause in each.clauses)
