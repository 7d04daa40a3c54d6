r"""Derived keys: named rules that make one text of several attributes which together never change.

    join    the values as text, with / between them; a / or \\ in a value is written \/ or \\; no two rows share a text by chance
    hash    the BLAKE2b digest (16 bytes, 32 hex digits) of the canonical key bytes of the attributes: as long whatever they hold

Rows of which an attribute is null have no key. The rules never change: keys that they made stand in published datasets.

Not here: canonical key bytes (`key`), which rule a dataset has (the publication says).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar import hashing
from merestone.columnar.arrays import plain
from merestone.identity.key import as_text, key_bytes
from merestone.identity.text import hexadecimal

COLUMN = "key"
"""The name under which a derived key is published."""


def derived_key(rule: str, data: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """The key of each row (pyarrow string array, null where an attribute is null).

    Args:
        rule: a name in `RULES`.
        data: pyarrow.RecordBatch or Table.
        columns: the attributes, in the order of the rule.

    Raises:
        ValueError: an attribute is of a type that cannot be part of a key.
    """
    return RULES[rule](data, columns)


def _join(data: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    parts = []
    for name in columns:
        text = as_text(plain(data.column(name)))
        parts.append(pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), "/", "\\/"))
    joined: pa.Array = pc.binary_join_element_wise(*parts, "/")
    return joined


def _hash(data: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    return hexadecimal(hashing.blake2b16(key_bytes(data, columns)[0]))


RULES: dict[str, Callable[[pa.RecordBatch, Sequence[str]], pa.Array]] = {"join": _join, "hash": _hash}
