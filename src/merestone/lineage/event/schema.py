"""The event contract: `lineage_schema.yaml` compiled to Arrow, JSON Schema and Markdown, and the rules of its evolution.

Not here: the check of one event (`event`), files (`store`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from io import StringIO
from typing import Any

import pyarrow as pa
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from merestone.json_value import JsonObject

VERSION_KEY = b"merestone.lineage.schema_version"
"""Where an event file's Arrow metadata says by which version of the schema it was written."""

ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "timestamp[us, UTC]": pa.timestamp("us", "UTC"),
}
_JSON_TYPES: dict[str, JsonObject] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "minimum": -(1 << 31), "maximum": (1 << 31) - 1},
    "int64": {"type": "integer", "minimum": -(1 << 63), "maximum": (1 << 63) - 1},
    "float64": {"type": "number"},
    "timestamp[us, UTC]": {"type": "string", "format": "date-time"},
}
_SPELLINGS = {str(kind): name for name, kind in ARROW_TYPES.items()}  # as Arrow itself writes a type: timestamp[us, tz=UTC]
_WIDER = {("int32", "int64")}
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TOP = {"schema_version", "partition_keys", "fields"}
_FIELD = {"name", "type", "required", "since", "enum", "meaning"}


@dataclass(frozen=True, slots=True)
class LineageField:
    """One field of the event."""

    name: str
    type: str
    required: bool
    since: str = "1.2.0"
    enum: tuple[str, ...] = ()
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class LineageSchema:
    """A read schema file."""

    version: str
    partition_keys: tuple[str, ...]
    fields: tuple[LineageField, ...]

    def field(self, name: str) -> LineageField | None:
        """The field of that name, None where there is none."""
        return next((each for each in self.fields if each.name == name), None)

    def to_arrow(self) -> pa.Schema:
        """The pyarrow.Schema: required fields are not nullable, the metadata holds the version."""
        return pa.schema(
            [pa.field(each.name, ARROW_TYPES[each.type], nullable=not each.required) for each in self.fields],
            metadata={VERSION_KEY: self.version.encode()},
        )

    def to_json_schema(self) -> JsonObject:
        """JSON Schema (draft 2020-12) of one event as a JSON object; times are RFC 3339 in UTC."""
        properties: JsonObject = {}
        for each in self.fields:
            kind = dict(_JSON_TYPES[each.type])
            if each.enum:
                kind["enum"] = list(each.enum)
            if not each.required:
                kind["type"] = [kind["type"], "null"]
            properties[each.name] = {"description": each.meaning, **kind}
        rejected = {"properties": {"outcome": {"const": "REJECT"}}}
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"Lineage event {self.version}",
            "type": "object",
            "properties": properties,
            "required": [each.name for each in self.fields if each.required],
            "additionalProperties": False,
            "allOf": [
                {"if": {"properties": {"event_type": {"const": "REJECT"}}}, "then": rejected},
                {
                    "if": rejected,
                    "then": {"required": ["rejection_reason"], "properties": {"rejection_reason": {"type": "string", "pattern": r"\S"}}},
                },
                {"if": {"properties": {"outcome": {"const": "PASS"}}}, "then": {"properties": {"rejection_reason": {"type": "null"}}}},
            ],
        }

    def to_markdown(self) -> str:
        """The table of fields in docs/spec/lineage.md."""
        lines = [
            f"Schema version {self.version}; partition keys: {', '.join(f'`{each}`' for each in self.partition_keys)}.",
            "",
            "| field | type | required | since | values | meaning |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| `{each.name}` | {each.type} | {'yes' if each.required else 'no'} | {each.since} | {', '.join(each.enum)} | {each.meaning} |"
            for each in self.fields
        ]
        return "\n".join(lines) + "\n"


def read_schema(text: str) -> LineageSchema:
    """Read a schema file.

    Raises:
        ValueError: the file is not an event schema; the message lists every problem.
    """
    found, problems = _parse(text)
    if found is None or problems:
        raise ValueError("; ".join(problems))
    return found


def validate_schema(text: str) -> list[str]:
    """Every problem of a schema file, empty where it is good.

    Beyond the form, it has to be able to take the place of the published schema as that was at the file's version (`check_evolution`): each
    of its fields is there, unchanged; further fields are optional, and stand under a higher minor version.
    """
    found, problems = _parse(text)
    if found is None:
        return problems
    if not problems:
        known = min(_triple(found.version), _triple(SCHEMA.version))
        fields = tuple(each for each in SCHEMA.fields if _triple(each.since) <= known)
        problems += check_evolution(LineageSchema(".".join(map(str, known)), SCHEMA.partition_keys, fields), found)
        if not is_readable(found.version):
            problems.append(f"schema_version {found.version}: this version of Merestone knows {SCHEMA.version} and its minor versions")
    return problems


def is_readable(version: str) -> bool:
    """Whether events of that schema version mean what the compiled schema says: any version of its major, since minors only add."""
    return _VERSION.fullmatch(version) is not None and _triple(version)[0] == _triple(SCHEMA.version)[0]


def is_newer(version: str) -> bool:
    """Whether events of a readable version may hold fields that the compiled schema does not know."""
    return _triple(version)[:2] > _triple(SCHEMA.version)[:2]


def file_problems(found: pa.Schema) -> list[str]:
    """Why events under the Arrow schema of a file do not mean what the compiled schema says; empty where they do.

    The file's version and the compiled one have to follow each other by the rules of evolution, in whichever order they came. Whether a
    required field holds nulls is for the rows to say.
    """
    version = (found.metadata or {}).get(VERSION_KEY, b"").decode(errors="replace")
    if not is_readable(version):
        return [
            f"it is of lineage schema {version or 'unknown'}; this version of Merestone reads {SCHEMA.version} and the versions of its major number"
        ]
    names = {kind: name for name, kind in ARROW_TYPES.items()}
    known = {each.name: each.required for each in SCHEMA.fields}
    recorded = LineageSchema(
        version,
        SCHEMA.partition_keys,
        tuple(LineageField(each.name, names.get(each.type, str(each.type)), known.get(each.name, not each.nullable)) for each in found),
    )
    ours = replace(SCHEMA, fields=tuple(replace(each, enum=()) for each in SCHEMA.fields))  # Arrow does not tell values
    return check_evolution(ours, recorded) if _triple(version) > _triple(SCHEMA.version) else check_evolution(recorded, ours)


def check_evolution(old: LineageSchema, new: LineageSchema) -> list[str]:
    """Why `new` may not take the place of `old` in one store; empty where it may.

    A further optional field, a further enum value and int32 to int64 need a higher minor version. Everything else that touches a field is
    refused: files written before must stay readable, and mean the same.
    """
    problems = _breaks(old, new)
    before, after = _triple(old.version), _triple(new.version)
    grown = not _shape(new) <= _shape(old)
    if after < before:
        problems.append(f"schema_version falls from {old.version} to {new.version}")
    elif grown and after[:2] == before[:2]:
        problems.append(f"fields are new, so schema_version needs a higher minor version than {old.version}; it is {new.version}")
    elif after[0] != before[0]:
        problems.append(f"schema_version {new.version} is another major version than {old.version}: it needs a store of its own")
    return problems


def _shape(schema: LineageSchema) -> set[tuple[str, str, bool, tuple[str, ...]]]:
    return {(each.name, each.type, each.required, each.enum) for each in schema.fields}


def _breaks(old: LineageSchema, new: LineageSchema) -> list[str]:
    problems: list[str] = []
    if new.partition_keys != old.partition_keys:
        problems.append(f"partition_keys {list(new.partition_keys)}: they are {list(old.partition_keys)} and do not change")
    for field in old.fields:
        now = new.field(field.name)
        if now is None:
            problems.append(f"field {field.name} is gone (removed or renamed)")
            continue
        if now.type != field.type and (field.type, now.type) not in _WIDER:
            problems.append(f"field {field.name} turns from {field.type} to {now.type}")
        if now.required != field.required:
            problems.append(f"field {field.name} turns {'required' if now.required else 'optional'}")
        if lost := [each for each in field.enum if each not in now.enum]:
            if now.enum:
                problems.append(f"field {field.name} loses the values {', '.join(lost)}")
        elif now.enum and not field.enum:
            problems.append(f"field {field.name} becomes restricted to {', '.join(now.enum)}")
    kept = [each.name for each in new.fields if old.field(each.name) is not None]
    if kept != [each.name for each in old.fields if new.field(each.name) is not None]:
        problems.append("the order of the fields changes: new fields stand at the end")
    problems += [
        f"field {each.name} is new and required: a new field is optional"
        for each in new.fields
        if each.required and old.field(each.name) is None
    ]
    return problems


def _triple(version: str) -> tuple[int, int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ValueError(f"{version!r} is not a version of the form 1.2.0")
    return int(found[1]), int(found[2]), int(found[3])


def _parse(text: str) -> tuple[LineageSchema | None, list[str]]:
    yaml = YAML(typ="safe", pure=True, plug_ins=[])  # as in `document.yaml_reader`
    try:
        doc = yaml.load(StringIO(text))
    except YAMLError as fault:
        return None, [f"no readable YAML: {' '.join(str(fault).split())}"]
    if not isinstance(doc, dict):
        return None, ["the file is not a mapping with schema_version, partition_keys and fields"]
    problems = [f"unknown key {each!r}" for each in doc if each not in _TOP]
    problems += [f"key {each} is missing" for each in sorted(_TOP - doc.keys())]
    version = doc.get("schema_version", "")
    if "schema_version" in doc and not (isinstance(version, str) and _VERSION.fullmatch(version)):
        problems.append(f"schema_version {version!r} is not a version of the form 1.2.0")
    listed = doc.get("fields", [])
    if not isinstance(listed, list) or ("fields" in doc and not listed):
        return None, [*problems, "fields is not a list of fields"]
    read: list[LineageField] = []
    for place, entry in enumerate(listed, 1):
        faults = list(_field_faults(entry, place))
        problems += faults
        if not faults:
            read.append(
                LineageField(
                    entry["name"],
                    _spelled(entry["type"]),
                    entry["required"],
                    entry.get("since", "1.2.0"),
                    tuple(entry.get("enum", ())),
                    entry.get("meaning", ""),
                )
            )
    names = [each.name for each in read]
    problems += [f"field {each} stands there twice" for each in sorted({n for n in names if names.count(n) > 1})]
    keys = doc.get("partition_keys", [])
    if not isinstance(keys, list) or not all(isinstance(each, str) for each in keys):
        problems.append("partition_keys is not a list of field names")
        keys = []
    problems += [f"partition key {each} is not a field" for each in keys if each not in names]
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        return None, problems
    return LineageSchema(version, tuple(keys), tuple(read)), problems


def _spelled(kind: Any) -> Any:
    """A type by the name that it has here, however it is spelled."""
    if not isinstance(kind, str):
        return kind
    plain = re.sub(
        r"^timestamp\[\s*us\s*,\s*(?:tz\s*=\s*)?(?:Etc/)?(?:UTC|Z|\+00:00)\s*\]$", "timestamp[us, UTC]", kind.strip(), flags=re.IGNORECASE
    )
    return _SPELLINGS.get(plain, plain)


def _field_faults(entry: object, place: int) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield f"field {place} is not a mapping"
        return
    name = entry.get("name")
    where = f"field {name if isinstance(name, str) else place}"
    yield from (f"{where}: unknown key {each!r}" for each in entry if each not in _FIELD)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"{where}: name {name!r} is not lower-case letters, digits and _"
    if (kind := _spelled(entry.get("type"))) not in ARROW_TYPES:
        yield f"{where}: type {kind!r} is none of {', '.join(ARROW_TYPES)}"
    if not isinstance(entry.get("required"), bool):
        yield f"{where}: required is neither true nor false"
    since = entry.get("since", "1.2.0")
    if not isinstance(since, str) or not _VERSION.fullmatch(since):
        yield f"{where}: since {since!r} is not a version of the form 1.2.0"
    enum = entry.get("enum", [])
    if not isinstance(enum, list) or not all(isinstance(each, str) and each for each in enum):
        yield f"{where}: enum is not a list of texts"
    if not isinstance(entry.get("meaning", ""), str):
        yield f"{where}: meaning is not text"


def schema_text() -> str:
    """The text of the shipped `lineage_schema.yaml`."""
    return files("merestone.lineage.event").joinpath("lineage_schema.yaml").read_text(encoding="utf-8")


SCHEMA: LineageSchema = read_schema(schema_text())
LINEAGE_ARROW_SCHEMA: pa.Schema = SCHEMA.to_arrow()
