r"""Regular expressions that users write, in the syntax of RE2: whether one can be used, and which texts it matches as a whole.

RE2 meets any text in time that grows with its length: no pattern and no value can stop a run. It has therefore no look-around and no back
references. `\w`, `\d`, `\s` and `\b` know ASCII only; `\p{L}` is any letter, `\p{Nd}` any digit.
Not here: which clauses hold patterns (`contract.definition`), what is said of a text that does not match (`gate.feature`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_AROUND: Final = "write what the whole text may be, such as [0-9]{4}[A-Z]{2}, and list single values in an `enum`"
_BACK: Final = "write the texts that are meant one by one, such as AA|BB|CC"
_GREED: Final = "leave the `+` or `?>` out: matching takes no longer without it"
_FLAG: Final = "leave the flag out: \\w, \\d, \\s and \\b know ASCII, \\p{L} is any letter and \\p{Nd} any digit"
_CHARACTER: Final = "write the character itself, or its number such as \\x{E9}"
_LACKS: Final = (
    (("(?=", "(?!"), "looks ahead", _AROUND),
    (("(?<=", "(?<!"), "looks behind", _AROUND),
    (("\\1", "\\2", "\\3", "\\4", "\\5", "\\6", "\\7", "\\8", "\\9", "\\g", "\\k", "(?P"), "refers back to a group", _BACK),
    (("(?>", "++", "*+", "?+"), "has an atomic group or a possessive repetition", _GREED),
    (("(?(",), "has a condition", "write both cases, such as (A[0-9]+|B[a-z]+)"),
    (("(?#", "(?x"), "has a comment, or the flag for comments", "leave it out; the field's `description` has room for words"),
    (("(?a", "(?u", "(?L"), "has a flag that RE2 lacks", _FLAG),
    (("\\Z", "\\G"), "has an anchor that RE2 lacks", "leave it out: the whole text has to match in any case"),
    (("\\u", "\\U", "\\N"), "has an escape that RE2 lacks", _CHARACTER),
)  # fmt: skip
_SIZE: Final = ("repeats more than 1,000 times", "repeat at most 1,000 times; `max_length` limits a length")


@dataclass(frozen=True, slots=True)
class PatternFault:
    """Why a pattern cannot be used, in words that follow its name, and what to write instead."""

    words: str
    instead: str


def fault_of(pattern: str) -> PatternFault | None:
    """What keeps a pattern from being used, None where it can be."""
    for form in (pattern, _whole(pattern)):  # "a)|(b" is valid only between brackets, "\Qa" only without
        try:
            pc.match_substring_regex(pa.array([""]), form)
        except pa.ArrowInvalid as fault:
            return _fault(str(fault).removeprefix("Invalid regular expression: "), pattern)
    return None


def matches(texts: Any, pattern: str) -> Any:
    """Which texts match as a whole: a pyarrow boolean array, null where the text is.

    Raises:
        pyarrow.ArrowInvalid: the pattern has a fault (`fault_of` says which).
    """
    return pc.match_substring_regex(texts, _whole(pattern))


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def _fault(said: str, pattern: str) -> PatternFault:
    kind, _, construct = said.partition(": ")
    if kind == "invalid repetition size":
        return PatternFault(f"{_SIZE[0]}: {construct}", _SIZE[1])
    for starts, words, instead in _LACKS:
        if construct.startswith(starts):
            return PatternFault(f"{words}: {construct}", instead)
    at = f": {construct}" if len(construct) < len(pattern) else ""
    return PatternFault(f"is not a regular expression: {kind}{at}", "use the syntax of RE2")
