"""The kinds of value that a document may hold; each gives its check, its JSON Schema and its words from one object.

Not here: which keys a contract has (`contract.definition`), which a publication has (`publication.reader`), YAML (`yaml_reader`).
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from merestone.document.yaml_reader import Document, Path, path_text
from merestone.json_value import Json, JsonObject

SHOWN_PROBLEMS: Final = 20
_SHOWN_TEXT: Final = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a document: where, what, and the next step."""

    path: str
    message: str
    hint: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}, " if self.line else ""
        return f"{place}{self.path or 'document'}: {self.message}"


class _Broken:
    """The answer of a form that has reported a problem instead of a value."""


BROKEN: Final = _Broken()


@dataclass(slots=True)
class Report:
    """Collects every problem of one document, and reports all of them at once."""

    document: Document | None = None
    problems: list[Problem] = field(default_factory=list)

    def add(self, path: Path, message: str, hint: str = "") -> _Broken:
        """Note a problem; answers BROKEN, for a form to return."""
        line = self.document.line(path) if self.document else None
        self.problems.append(Problem(path_text(path), message, hint, line))
        return BROKEN

    def kind(self, path: Path, value: Json) -> str:
        """What stands there, in words: `1.20 is a number`."""
        written = self.document.written(path) if self.document else None
        shown = shorten(written if written is not None else repr(value))
        match value:
            case None:
                return "it is empty (null)" if not shown or shown == "None" else f"{shown} is read as null"
            case bool():
                return f"{shown if written else str(value).lower()} is a truth value"
            case int() | float():
                return f"{shown} is a number"
            case str():
                return f"{shorten(value)!r} is text"
            case list():
                return "it is a list"
            case dict():
                return "it is a mapping of keys"
            case _:
                return f"it is a {type(value).__name__}"


def shorten(text: str) -> str:
    """Text cut for a message."""
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 3] + "..."


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that a misspelt one most likely means."""
    folded = {each.lower().replace("-", "_"): each for each in known}
    found = difflib.get_close_matches(word.lower().replace("-", "_"), list(folded), n=1, cutoff=0.7)
    return folded[found[0]] if found else None


class Form(ABC):
    """A kind of value."""

    @abstractmethod
    def read(self, value: Json, path: Path, report: Report) -> Json:
        """The value in canonical form, or BROKEN after reporting what is wrong.

        Collections keep what is valid: a mapping leaves broken entries out, a list holds BROKEN in their place, which lets laws
        still judge the rest.
        """

    @abstractmethod
    def schema(self) -> JsonObject:
        """The JSON Schema (draft 2020-12) of the value."""

    @abstractmethod
    def words(self) -> str:
        """The form in a few words, for the reference page."""


@dataclass(frozen=True, slots=True)
class Text(Form):
    """Text, in NFC and without surrounding blanks or control characters.

    `pattern` must match the whole text (only constructs that ECMA 262 and Python share); `parse` turns it into a value and raises
    ValueError with words, and `shape` is then the pattern that the JSON Schema gives; `free` allows line breaks, for prose.
    """

    pattern: str | None = None
    shape: str | None = None
    form: str = "text"
    parse: Callable[[str], Json] | None = None
    free: bool = False
    hint: str = ""
    format: str | None = None

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if not isinstance(value, str):
            return report.add(
                path,
                f"{report.kind(path, value)}, not {self.form}",
                self.hint or ("put it in quotes" if isinstance(value, int | float) else "write text"),
            )
        text = unicodedata.normalize("NFC", value)
        if not text.strip():
            return report.add(path, f"is blank, not {self.form}", self.hint or "write text, or leave the key out")
        if not self.free and any(unicodedata.category(each) == "Cc" for each in text):
            return report.add(path, f"{shorten(text)!r} holds a control character", "remove it")
        if self.pattern is not None and re.fullmatch(self.pattern, text) is None:
            return report.add(path, f"{shorten(text)!r} is not {self.form}", self.hint or f"write {self.form}")
        if self.parse is None:
            return text
        try:
            return self.parse(text)
        except ValueError as fault:
            return report.add(path, str(fault), self.hint or f"write {self.form}")

    def schema(self) -> JsonObject:
        """See Form."""
        out: JsonObject = {"type": "string", "minLength": 1}
        if self.pattern or self.shape:
            out["pattern"] = f"^(?:{self.pattern or self.shape})$"
        elif not self.free:
            out["pattern"] = r"\S"
        if self.format is not None:
            out["format"] = self.format
        return out

    def words(self) -> str:
        """See Form."""
        return self.form


@dataclass(frozen=True, slots=True)
class Name(Form):
    """The name of a field or column, in NFC; any characters, as sources have them."""

    what: str = "a name"

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if not isinstance(value, str):
            return report.add(path, f"{report.kind(path, value)}, not {self.what}", "put the name in quotes")
        if not value:
            return report.add(path, f"is empty, not {self.what}", "write the name as the source has it")
        return unicodedata.normalize("NFC", value)

    def schema(self) -> JsonObject:
        """See Form."""
        return {"type": "string", "minLength": 1}

    def words(self) -> str:
        """See Form."""
        return self.what


@dataclass(frozen=True, slots=True)
class Whole(Form):
    """An integer within bounds; 7.0 counts as 7, as in JSON Schema."""

    least: int | None = None
    most: int | None = None
    hint: str = ""

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return report.add(path, f"{report.kind(path, value)}, not {self.words()}", self.hint or f"write {self.words()}, without quotes")
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            return report.add(path, f"{value} is not {self.words()}", self.hint or f"write {self.words()}")
        return value

    def schema(self) -> JsonObject:
        """See Form."""
        return {"type": "integer"} | _bounds(minimum=self.least, maximum=self.most)

    def words(self) -> str:
        """See Form."""
        if self.least is not None and self.most is not None:
            return f"an integer from {self.least} to {self.most}"
        if self.least is not None:
            return f"an integer of at least {self.least}"
        return "an integer"


@dataclass(frozen=True, slots=True)
class Real(Form):
    """A finite number within bounds."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    hint: str = ""

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return report.add(path, f"{report.kind(path, value)}, not {self.words()}", self.hint or f"write {self.words()}, without quotes")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        inside = (
            math.isfinite(number)
            and (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.above is None or number > self.above)
        )
        return number if inside else report.add(path, f"{value} is not {self.words()}", self.hint or f"write {self.words()}")

    def schema(self) -> JsonObject:
        """See Form."""
        return {"type": "number"} | _bounds(minimum=self.least, maximum=self.most, exclusiveMinimum=self.above)

    def words(self) -> str:
        """See Form."""
        parts = [
            f"above {self.above:g}" if self.above is not None else "",
            f"at least {self.least:g}" if self.least is not None else "",
            f"at most {self.most:g}" if self.most is not None else "",
        ]
        return " ".join(["a number", " and ".join(each for each in parts if each)]).strip()


def _bounds(**limits: float | None) -> dict[str, float]:
    return {name: limit for name, limit in limits.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class Truth(Form):
    """true or false."""

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if isinstance(value, bool):
            return value
        return report.add(path, f"{report.kind(path, value)}, not true or false", "write true or false, without quotes")

    def schema(self) -> JsonObject:
        """See Form."""
        return {"type": "boolean"}

    def words(self) -> str:
        """See Form."""
        return "true or false"


@dataclass(frozen=True, slots=True)
class Choice(Form):
    """One of a few words."""

    options: tuple[str, ...]

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if value in self.options and isinstance(value, str):
            return value
        close = nearest(value, self.options) if isinstance(value, str) else None
        said = f"{shorten(value)!r} is not" if isinstance(value, str) else f"{report.kind(path, value)}, not"
        return report.add(
            path, f"{said} one of {', '.join(self.options)}", f"did you mean {close}?" if close else f"write {self.options[0]}, for example"
        )

    def schema(self) -> JsonObject:
        """See Form."""
        return {"enum": list(self.options)}

    def words(self) -> str:
        """See Form."""
        return " or ".join(self.options) if len(self.options) < 3 else ", ".join(self.options)


@dataclass(frozen=True, slots=True)
class Listed(Form):
    """A list of one form; `ordered` is False where the order of entries says nothing."""

    item: Form
    least: int = 1
    most: int | None = None
    ordered: bool = True

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if not isinstance(value, list):
            return report.add(path, f"{report.kind(path, value)}, not a list", "write [a, b], or one `- ` entry a line")
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            return report.add(path, f"has {len(value)} entries, not {self._count()}", "add or remove entries")
        return [self.item.read(each, (*path, place), report) for place, each in enumerate(value)]

    def _count(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def schema(self) -> JsonObject:
        """See Form."""
        return {"type": "array", "items": self.item.schema()} | _bounds(minItems=self.least or None, maxItems=self.most)

    def words(self) -> str:
        """See Form."""
        return f"a list of {self._count() + ' ' if self.most is not None else ''}entries: {self.item.words()}"


@dataclass(frozen=True, slots=True)
class Keyed(Form):
    """A mapping whose keys are names of the author's own."""

    item: Form
    keys: str = "a name"

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if not isinstance(value, dict):
            return report.add(path, f"{report.kind(path, value)}, not a mapping from {self.keys}", "write `key: value` entries")
        read = {unicodedata.normalize("NFC", key): self.item.read(each, (*path, key), report) for key, each in value.items()}
        return {key: each for key, each in read.items() if each is not BROKEN}

    def schema(self) -> JsonObject:
        """See Form."""
        return {"type": "object", "additionalProperties": self.item.schema()}

    def words(self) -> str:
        """See Form."""
        return f"from {self.keys} to {self.item.words()}"


@dataclass(frozen=True, slots=True)
class ColumnNames(Form):
    """One name or a list of different names; always a list in canonical form."""

    what: str = "a column"

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if isinstance(value, str):
            name = Name(self.what).read(value, path, report)
            return name if name is BROKEN else [name]
        if not isinstance(value, list):
            return report.add(path, f"{report.kind(path, value)}, not {self.words()}", "write the name, or [a, b]")
        names = Listed(Name(self.what)).read(value, path, report)
        if names is BROKEN or any(name is BROKEN for name in names):
            return BROKEN
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        return report.add(path, f"names {twice[0]} twice", "name each column once") if twice else names

    def schema(self) -> JsonObject:
        """See Form."""
        return {"anyOf": [Name().schema(), Listed(Name()).schema() | {"uniqueItems": True}]}

    def words(self) -> str:
        """See Form."""
        return f"{self.what} or a list of them"


@dataclass(frozen=True, slots=True)
class Scalar(Form):
    """Text, a finite number or a truth value. Null is let through to the law that knows the field, and refused there."""

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        if isinstance(value, str):
            return unicodedata.normalize("NFC", value)
        if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        return report.add(
            path, f"{report.kind(path, value)}, not a value", "write one value; put text that looks like null or a number in quotes"
        )

    def schema(self) -> JsonObject:
        """See Form."""
        return {"type": ["string", "number", "boolean"]}

    def words(self) -> str:
        """See Form."""
        return "a value"


@dataclass(frozen=True, slots=True)
class OneOf(Form):
    """One of several forms, distinguished by the kind of value: text, a list, a mapping."""

    text: Form | None = None
    listed: Form | None = None
    mapping: Form | None = None

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """See Form."""
        form = (
            self.text
            if isinstance(value, str)
            else self.listed
            if isinstance(value, list)
            else self.mapping
            if isinstance(value, dict)
            else None
        )
        if form is None:
            return report.add(path, f"{report.kind(path, value)}, not {self.words()}", "see the reference page for the forms of this key")
        return form.read(value, path, report)

    def _forms(self) -> list[Form]:
        return [form for form in (self.text, self.listed, self.mapping) if form is not None]

    def schema(self) -> JsonObject:
        """See Form."""
        return {"anyOf": [form.schema() for form in self._forms()]}

    def words(self) -> str:
        """See Form."""
        return "; or ".join(form.words() for form in self._forms())


@dataclass(frozen=True, slots=True)
class Clause:
    """One key of a mapping.

    `words` say what it promises. `default` is what its absence means, in words. `empty` allows null, meaning left out. `enforcer` is who
    holds a product to it; the document's own definition says which there are. `idle` are values that ask for nothing.
    """

    name: str
    form: Form
    words: str
    required: bool = False
    default: str = ""
    empty: bool = False
    enforcer: str = "gate"
    idle: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Group(Form):
    """A mapping with known keys; every other key is refused with its path and the likeliest meaning.

    `what` names the mapping in messages. `refused` maps further keys to the reason why they have no place here. `conditions` are JSON
    Schema fragments (`if` / `then`) for laws that a schema can express.
    """

    what: str
    clauses: tuple[Clause, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[JsonObject, ...] = ()

    def read(self, value: Json, path: Path, report: Report) -> Json:
        """The canonical values of the clauses that are present and valid."""
        if not isinstance(value, dict):
            return report.add(
                path,
                f"{report.kind(path, value)}, not {self.what}",
                f"write the keys {', '.join(each.name for each in self.clauses[:3])} ...",
            )
        known = {clause.name: clause for clause in self.clauses}
        out: JsonObject = {}
        for key, each in value.items():
            if key not in known:
                self._unknown(key, (*path, key), value, report)
            elif not (each is None and known[key].empty):
                out[key] = known[key].form.read(each, (*path, key), report)
        for clause in self.clauses:
            if clause.required and clause.name not in value:
                report.add((*path, clause.name), "is missing", f"add `{clause.name}`: {clause.form.words()}; {clause.words}")
        return {key: each for key, each in out.items() if each is not BROKEN}

    def _unknown(self, key: str, path: Path, value: JsonObject, report: Report) -> None:
        folded = key.lower().replace("-", "_")
        if folded in self.refused:
            report.add(path, self.refused[folded], "remove it here")
            return
        close = nearest(key, [clause.name for clause in self.clauses if clause.name not in value])
        names = ", ".join(clause.name for clause in self.clauses)
        report.add(path, f"is not a key of {self.what}", f"did you mean {close}?" if close else f"known keys: {names}")

    def schema(self) -> JsonObject:
        """See Form."""
        properties: JsonObject = {}
        for clause in self.clauses:
            each = clause.form.schema()
            if clause.empty:
                each = {"anyOf": [each, {"type": "null"}]}
            properties[clause.name] = {"description": clause.words, **each}
        out: JsonObject = {"type": "object", "additionalProperties": False, "properties": properties}
        required = [clause.name for clause in self.clauses if clause.required]
        if required:
            out["required"] = required
        if self.conditions:
            out["allOf"] = list(self.conditions)
        return out

    def words(self) -> str:
        """See Form."""
        return "{" + ", ".join(clause.name for clause in self.clauses) + "}"
