"""Bytes of a YAML 1.2 (or JSON) document to a plain tree, strictly and within fixed limits, with the line of every value.

Not here: files (`contract.files`), what the keys of a contract mean (`contract.definition`, `contract.parse`), what those of a publication mean (`line`).

Only the YAML 1.2 core schema gives a plain scalar a type: null, true and false, decimal, 0o and 0x integers, decimal floats. So NO, on,
12:30 and 2024-01-01 are text, while 012 is the number 12 and 1e3 the number 1000; whoever wants those as text puts them in quotes.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from merestone.document.tabs import TabScanner
from merestone.errors import UsageError
from merestone.json_value import JsonObject

MAX_BYTES = 512 * 1024  # a contract of 5,000 fields fits; the scanner needs about a second for it
MAX_VALUES = 60_000  # keys, values and collections, aliases expanded
MAX_CHARACTERS = 2 * MAX_BYTES  # of all keys and values, aliases expanded
MAX_DEPTH = 24
MAX_NUMBER = 64  # characters of a number; longer ones would be read in quadratic time

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_PLAIN_KEY = re.compile(r"[^\s.\[\]\"']+")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_CONFIRM = re.compile(r"(?:^|(?<=\s))#\s*confirm\b(?P<words>[^\n\r\x85\u2028\u2029]*)")

Path = tuple[str | int, ...]


def path_text(path: Path) -> str:
    """A path as people read it: `schema_fields[2].type`; keys that hold dots, blanks or brackets stand in brackets and quotes."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            out += f".{step}" if out else step
        else:
            out += f"[{json.dumps(step, ensure_ascii=False)}]"
    return out


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(frozen=True, slots=True)
class Position:
    """Where a value stands (line and column from 1), how a plain scalar was written, whether `# confirm` stands beside it and with which words."""

    line: int
    column: int
    written: str | None = None
    confirm: bool = False
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A read document: `tree` of dict, list, str, int, float, bool and None; `positions` by path text; `where` names the file."""

    where: str
    tree: JsonObject
    positions: Mapping[str, Position] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of a value, or of the nearest value around it; None where the document has no lines."""
        found = (self.positions.get(path_text(path[:length])) for length in range(len(path), -1, -1))
        return next((position.line for position in found if position is not None), None)

    def written(self, path: Path) -> str | None:
        """How a plain scalar was written, None for quoted text and collections."""
        position = self.positions.get(path_text(path))
        return position.written if position else None

    @property
    def confirm(self) -> tuple[str, ...]:
        """The paths marked `# confirm`, in order of the document."""
        return tuple(path for path, position in self.positions.items() if position.confirm)


_HEAD = 4096
"""Files of other kinds (databases, archives, pictures) show by a NUL in so many of their first bytes that they hold something else."""


def read_yaml(data: bytes, where: str) -> Document:
    """Read one document whose root is a mapping.

    Args:
        data: UTF-8, with or without a byte order mark, or UTF-16 with one.
        where: how messages name the document, usually its file name.

    Raises:
        UsageError: the document is too large, too deep, not YAML 1.2, empty, in another encoding, holds a tag, a duplicate key, a key
            that is not text, more than one document, or aliases that expand beyond the limits. Names line and path.
    """
    if len(data) > MAX_BYTES:
        if b"\0" in data[:_HEAD] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise UsageError(
                f"{where} is not a document: it holds bytes, not text", field=where, hint="name a contract or a publication file (YAML)"
            )
        raise UsageError(
            f"{where}: document too large: more than {MAX_BYTES:,} bytes",
            field=where,
            hint="a contract or publication describes one dataset; check that this is the right file",
        )
    text = _decode(data, where)
    root = _Builder(where).build(text)
    positions: dict[str, Position] = {}
    entries: list[_Entry] = []
    tree = _expand(root, (), None, positions, entries)
    for path, remark in _confirmed(text, root, entries):
        positions[path] = replace(positions[path], confirm=True, remark=remark)
    return Document(where, tree, positions)


def _decode(data: bytes, where: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding, data = ("utf-16-le" if data[0] == 0xFF else "utf-16-be"), data[2:]
    else:
        encoding, data = "utf-8", data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise UsageError(
            f"{where} line {line}: encoding: byte 0x{data[fault.start]:02X} is not {encoding.upper()}",
            field=where,
            hint="save the file as UTF-8",
        ) from fault


@dataclass(slots=True)
class _Node:
    """A value before aliases are expanded. `size` and `weight` count values and characters with aliases expanded."""

    value: Any  # a scalar; list[_Node]; list[tuple[_Node, _Node]]
    kind: str  # scalar, list, map
    line: int
    column: int
    start: int
    end: int
    end_line: int
    written: str | None = None
    size: int = 1
    weight: int = 0
    height: int = 0


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been seen. `label` is its step in the path, for messages."""

    node: _Node
    anchor: str | None
    label: str | int | None
    key: _Node | None = None
    seen: dict[str, int] = field(default_factory=dict)


class _Builder:
    """Events to nodes, without recursion; every limit is judged at the event that exceeds it."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.stack: list[_Open] = []
        self.anchors: dict[str, _Node | None] = {}  # None while the anchored collection is still open
        self.root: _Node | None = None
        self.count = 0

    def build(self, text: str) -> _Node:
        documents = 0
        for event in self._events(text):
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._fail(event.start_mark.line, "more than one document in the file", hint="keep one document: no second `---`")
                if event.version is not None and tuple(event.version) != (1, 2):
                    self._fail(
                        event.start_mark.line,
                        f"%YAML {event.version[0]}.{event.version[1]} is not read, only YAML 1.2",
                        hint="remove the %YAML line",
                    )
            elif isinstance(event, AliasEvent | ScalarEvent | MappingStartEvent | SequenceStartEvent):
                self._begin(event)
            elif isinstance(event, MappingEndEvent | SequenceEndEvent):
                self._close(event)
        if self.root is None or (self.root.kind == "scalar" and self.root.value is None):
            raise UsageError(f"{self.where}: empty document", field=self.where, hint="«draft(SOURCE)» drafts a document to start from")
        if self.root.kind != "map":
            self._fail(self.root.line - 1, "the document must be a mapping of keys to values", hint="begin with a key, such as `name: ...`")
        return self.root

    def _events(self, text: str) -> Iterator[Any]:
        """Events of the scanner, its faults in our words. The parser keeps no document: its own memory stays small."""
        try:
            yaml = YAML(typ="safe", pure=True, plug_ins=[])  # plug-ins are looked for on the disk, each time
            yaml.Scanner = TabScanner
            yield from yaml.parse(text)
        except MarkedYAMLError as fault:
            mark = fault.problem_mark or fault.context_mark
            words = ", ".join(str(each) for each in (fault.context, fault.problem) if each)
            self._fail(
                mark.line if mark else 0,
                f"not valid YAML: {words}",
                hint="check the indentation, quotes and brackets on and above this line",
            )
        except ReaderError as fault:
            line = len(_BREAK.findall(text, 0, fault.position))
            self._fail(line, f"not valid YAML: control character U+{int(fault.character):04X}", hint='write it as "\\xNN" in double quotes')
        except (YAMLError, ValueError, IndexError, AttributeError, KeyError, TypeError, AssertionError) as fault:
            # The scanner answers some malformed input with a bare Python error; none of them is ours to pass on.
            raise UsageError(
                f"{self.where}: not valid YAML: {fault}", field=self.where, hint="check the document with a YAML linter"
            ) from fault

    def _begin(self, event: Any) -> None:
        self.count += 1
        line = event.start_mark.line
        if self.count > MAX_VALUES:
            self._fail(line, f"document too large: more than {MAX_VALUES:,} values", hint="a contract or publication describes one dataset")
        if isinstance(event, AliasEvent):
            self._add(self._alias(event), event)
            return
        if event.tag is not None:
            self._fail(
                line,
                f"tag {_short(str(event.tag).replace('tag:yaml.org,2002:', '!!'))} not allowed",
                hint="write the plain value without a tag",
            )
        if isinstance(event, ScalarEvent):
            node = self._scalar(event)
            if event.anchor is not None:
                self.anchors[event.anchor] = node
            self._add(node, event)
            return
        if len(self.stack) >= MAX_DEPTH:
            self._fail(line, f"nesting deeper than {MAX_DEPTH} levels", hint="no clause needs that; check for a missing bracket")
        is_map = isinstance(event, MappingStartEvent)
        parent = self.stack[-1] if self.stack else None
        if parent is not None and parent.node.kind == "map" and parent.key is None:
            self._fail(line, "a key must be text, not a collection", hint="write the key as plain text")
        label = None if parent is None else parent.key.value if parent.key is not None else len(parent.node.value)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        start = event.start_mark
        node = _Node([], "map" if is_map else "list", start.line + 1, start.column + 1, start.index, start.index, start.line)
        self.stack.append(_Open(node, event.anchor, label))

    def _alias(self, event: Any) -> _Node:
        mark = event.start_mark
        if event.anchor not in self.anchors:
            self._fail(mark.line, f"alias *{_short(event.anchor)} has no anchor", hint="define its anchor (&) above it, or quote the text")
        target = self.anchors[event.anchor]
        if target is None:
            self._fail(mark.line, f"alias *{_short(event.anchor)} holds itself: aliases must not be recursive", hint="write the value out")
        if len(self.stack) + target.height > MAX_DEPTH:
            self._fail(mark.line, f"nesting deeper than {MAX_DEPTH} levels, aliases expanded", hint="write the values out")
        end = event.end_mark
        return _Node(
            target.value,
            target.kind,
            mark.line + 1,
            mark.column + 1,
            mark.index,
            end.index,
            end.line,
            target.written,
            target.size,
            target.weight,
            target.height,
        )

    def _scalar(self, event: Any) -> _Node:
        start, end = event.start_mark, event.end_mark
        value: Any = event.value
        written = None
        if event.style is None:
            written = event.value
            value = self._plain(written, start.line)
        if isinstance(value, str) and not value.isascii():
            try:  # JSON writes characters beyond the basic plane as a pair of escapes
                value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
            except UnicodeDecodeError:
                self._fail(start.line, "half a surrogate pair is not a character", hint="write the character itself")
        return _Node(value, "scalar", start.line + 1, start.column + 1, start.index, end.index, end.line, written, weight=len(event.value))

    def _plain(self, text: str, line: int) -> str | int | float | bool | None:
        if _NULL.fullmatch(text):
            return None
        if _TRUE.fullmatch(text):
            return True
        if _FALSE.fullmatch(text):
            return False
        if _SPECIAL.fullmatch(text):
            return float(text.replace(".", "", 1))
        whole, based = _DECIMAL.fullmatch(text), _BASED.fullmatch(text)
        if whole or based or _FLOAT.fullmatch(text):
            if len(text) > MAX_NUMBER:
                self._fail(line, f"a number of {len(text)} characters", hint="put it in quotes if it is text")
            return int(text) if whole else int(text, 0) if based else float(text)
        return text

    def _add(self, node: _Node, event: Any) -> None:
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        if top.node.kind == "list":
            top.node.value.append(node)
        elif top.key is None:
            top.key = self._key(node, event)
            return
        else:
            top.node.value.append((top.key, node))
            top.key = None
        self._grow(top, node)

    def _key(self, node: _Node, event: Any) -> _Node:
        top, line = self.stack[-1], event.start_mark.line
        if node.kind != "scalar" or not isinstance(node.value, str):
            shown = _short(node.written) if node.written else "nothing"
            self._fail(line, f"the key {shown} is not text", hint="put the key in quotes")
        if node.value == "<<" and node.written == "<<":
            self._fail(line, "merge keys (<<) are not part of YAML 1.2", hint="write the keys out")
        name = unicodedata.normalize("NFC", node.value)
        if name in top.seen:
            self._fail(line, f"the key {_short(name)} is written twice, first on line {top.seen[name]}", name, hint="remove one of the two")
        top.seen[name] = line + 1
        self._grow(top, node)
        return node

    def _close(self, event: Any) -> None:
        done = self.stack.pop()
        done.node.end, done.node.end_line = event.end_mark.index, event.end_mark.line
        done.node.height += 1
        if done.anchor is not None:
            self.anchors[done.anchor] = done.node
        self._add(done.node, event)

    def _grow(self, top: _Open, node: _Node) -> None:
        top.node.size += node.size
        top.node.weight += node.weight
        top.node.height = max(top.node.height, node.height)
        if top.node.size > MAX_VALUES or top.node.weight > MAX_CHARACTERS:
            self._fail(
                node.line - 1,
                f"aliases expand the document beyond {MAX_VALUES:,} values or {MAX_CHARACTERS:,} characters",
                hint="write the values out, without aliases",
            )

    def _fail(self, line: int, message: str, key: str | None = None, *, hint: str) -> NoReturn:
        path: Path = tuple(each.label for each in self.stack if each.label is not None)
        if key is not None:
            path = (*path, key)
        named = f" {path_text(path)}:" if path else ""
        raise UsageError(f"{self.where} line {line + 1}:{named} {message}", field=path_text(path) or self.where, hint=hint)


@dataclass(frozen=True, slots=True)
class _Entry:
    """The text range of one entry (from its key on), to say which one a comment stands beside."""

    path: str
    depth: int
    first_line: int
    last_line: int


def _expand(node: _Node, path: Path, key: _Node | None, positions: dict[str, Position], entries: list[_Entry]) -> Any:
    """The plain tree, aliases expanded; recursion is bounded by MAX_DEPTH."""
    shown = path_text(path)
    at = key or node
    positions[shown] = Position(at.line, at.column, node.written)
    if path:
        entries.append(_Entry(shown, len(path), at.line, node.end_line + 1))
    if node.kind == "list":
        return [_expand(each, (*path, place), None, positions, entries) for place, each in enumerate(node.value)]
    if node.kind == "map":
        return {
            unicodedata.normalize("NFC", name.value): _expand(
                each, (*path, unicodedata.normalize("NFC", name.value)), name, positions, entries
            )
            for name, each in node.value
        }
    return node.value


def _confirmed(text: str, root: _Node, entries: list[_Entry]) -> Iterator[tuple[str, str]]:
    """The paths beside which `# confirm` stands, on the same line or alone on the line above, each with the words after it.

    On one line, the outermost entry that lies wholly on it is meant (`- {name: a, type: string}  # confirm` marks the field); otherwise
    the innermost that begins there (`- name: a  # confirm` in a longer entry marks the name).
    """
    marks = list(_CONFIRM.finditer(text))
    if not marks:
        return
    quoted = sorted(_text_spans(root))
    starts = [start for start, _ in quoted]
    breaks = [each.end() for each in _BREAK.finditer(text)]
    by_line: dict[int, list[_Entry]] = {}
    for entry in entries:
        by_line.setdefault(entry.first_line, []).append(entry)
    lines = sorted(by_line)
    for mark in marks:
        at = mark.start()
        span = bisect_right(starts, at) - 1
        if span >= 0 and at < quoted[span][1]:
            continue  # part of a text, not a comment
        line = bisect_right(breaks, at) + 1
        following = bisect_left(lines, line)
        if following == len(lines):
            continue  # below the last entry
        here = by_line[lines[following]]
        whole = [entry for entry in here if entry.last_line == lines[following]]
        yield min(whole, key=lambda entry: entry.depth).path if whole else here[-1].path, mark["words"].strip(" :\t")


def _text_spans(node: _Node) -> Iterator[tuple[int, int]]:
    if node.kind == "list":
        for each in node.value:
            yield from _text_spans(each)
    elif node.kind == "map":
        for name, each in node.value:
            yield name.start, name.end
            yield from _text_spans(each)
    else:
        yield node.start, node.end
