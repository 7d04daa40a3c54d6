"""The public fingerprint functions: digests of a GeoDataFrame or an Arrow table, without a contract.

Not here: digests under a contract, which the pipeline makes (`digest`), diffs between two sets of digests (`change`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merestone.columnar.unicode import nfc
from merestone.geometry.kernel_values import Grid, Shape
from merestone.identity.digest import DigestField, Layout, digest_batch
from merestone.identity.grid import decimals_of_grid
from merestone.identity.key import key_values

SAMPLES = 20


def fingerprint_table(
    table: pa.Table, key_column: str, *, geometry_column: str = "geometry", grid: float, attributes: Sequence[str]
) -> Any:
    """Digest each feature of an Arrow table.

    Args:
        table: pyarrow.Table or RecordBatch.
        key_column: the column that names a feature: integers or text, each once.
        geometry_column: the column with WKB (binary), in any dialect.
        grid: the storage grid in units of the coordinates, a power of ten such as 1e-7. Z and M are put on the same grid.
        attributes: the names of the columns that count; their order does not matter. Tags come from the Arrow types.

    Returns:
        pyarrow.Table with the key column as it was given and `digest`, fixed_size_binary(16), in the order of the rows.

    Raises:
        KeyError: the key column, the geometry column or an attribute is missing.
        ValueError: null or duplicate keys, keys that are floating-point numbers, a grid that is not a power of ten, an attribute of a type
            that has no digest.

    Source: docs/spec/fingerprint.md, layout 2.
    """
    layout = _layout(grid, attributes)
    if key_column not in table.schema.names:
        raise KeyError(f"key column {key_column!r} is not among {', '.join(table.schema.names)}")
    keys = table.column(key_column)
    _check_keys(key_values(keys, key_column), key_column)
    digests = digest_batch(table, layout, geometry_column)
    return pa.table([keys, digests], schema=pa.schema([table.schema.field(key_column), pa.field("digest", digests.type)]))


def fingerprint_frame(frame: Any, key_column: str, *, grid: float, attributes: Sequence[str]) -> dict[str, str]:
    """Digest each feature of a GeoDataFrame.

    Args:
        frame: geopandas.GeoDataFrame; its active geometry counts.
        key_column: the column that names a feature: integers or text, each once.
        grid: the storage grid in units of the coordinates, a power of ten such as 1e-7. Z and M are put on the same grid.
        attributes: the names of the columns that count; their order does not matter.

    Returns:
        The key as text to the digest in hexadecimal (32 digits). The digests are those of `fingerprint_table`.

    Raises:
        KeyError: the key column or an attribute is missing.
        ValueError: null or duplicate keys, two keys with one text (1 and "1"), keys that are floating-point numbers, a grid that is not
            a power of ten, an attribute of mixed types or of a type that has no digest.
    """
    layout = _layout(grid, attributes)
    if key_column not in frame.columns:
        raise KeyError(f"key column {key_column!r} is not among {', '.join(map(str, frame.columns))}")
    texts = _key_texts(frame[key_column], key_column)
    geometry = frame.geometry.name
    columns, names = [pa.array(_wkb(frame.geometry), pa.binary())], [geometry]
    for name in dict.fromkeys(attributes):
        if name not in frame.columns:
            raise KeyError(f"attribute {name!r} is not among {', '.join(map(str, frame.columns))}")
        if name != geometry:
            columns.append(_series(frame[name], name))
            names.append(name)
    digests = digest_batch(pa.table(columns, names=names), layout, geometry)
    return dict(zip(texts, (value.hex() for value in digests.to_pylist()), strict=True))


def _layout(grid: float, attributes: Sequence[str]) -> Layout:
    if isinstance(attributes, str):
        raise TypeError(f"attributes is a sequence of names, not the text {attributes!r}")
    return Layout(tuple(DigestField(name) for name in dict.fromkeys(attributes)), Grid(decimals_of_grid(grid)), Shape())


def _check_keys(keys: Any, name: str) -> None:
    """Refuse null and duplicate keys; text compares as NFC."""
    if keys.null_count:
        rows = np.flatnonzero(np.asarray(keys.is_null()))
        raise ValueError(f"key column {name!r} is null in {keys.null_count} rows (rows counted from 1: {_some(rows + 1)})")
    if pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type):
        keys = nfc(keys)
    if _distinct(keys):
        return
    counts = pc.value_counts(keys)
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    raise ValueError(f"key column {name!r} has duplicate keys: {len(twice)} occur more than once ({_some(twice.to_pylist())})")


def _distinct(keys: Any) -> bool:
    if pa.types.is_integer(keys.type):  # sorting numbers is several times quicker than hashing them
        values = np.sort(keys.to_numpy(zero_copy_only=False))
        return bool((values[1:] != values[:-1]).all())
    return bool(pc.count_distinct(keys).as_py() == len(keys))


def _some(values: Any) -> str:
    shown = [str(each) for each in list(values[:SAMPLES])]
    return ", ".join(shown) + (", ..." if len(values) > SAMPLES else "")


def _key_texts(series: Any, name: str) -> list[str]:
    """Each key as text; keys that differ only in type would be one text, and are refused."""
    missing = np.flatnonzero(np.asarray(series.isna()))
    if len(missing):
        raise ValueError(f"key column {name!r} is null in {len(missing)} rows (rows counted from 1: {_some(missing + 1)})")
    try:
        keys = key_values(pa.array(series), name)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # an object column of several types
        return _mixed_texts(list(series), name)
    _check_keys(keys, name)
    texts: list[str] = nfc(keys.cast(pa.string())).to_pylist()
    return texts


def _mixed_texts(values: list[Any], name: str) -> list[str]:
    if any(isinstance(value, (float, np.floating)) for value in values):
        raise ValueError(f"key column {name!r} holds floating-point numbers; a key is an integer or a text")
    texts: list[str] = nfc(pa.array([str(value) for value in values], pa.string())).to_pylist()
    twice = [text for text, count in Counter(texts).items() if count > 1]
    if twice:
        raise ValueError(f"key column {name!r} has keys that are one text but not one value or one row: {_some(twice)}")
    return texts


def _wkb(geometry: Any) -> Any:
    import shapely  # noqa: PLC0415 - only those who bring a GeoDataFrame need it

    return shapely.to_wkb(np.asarray(geometry.array, dtype=object))


def _series(series: Any, name: str) -> Any:
    if getattr(series.dtype, "name", "") == "geometry":
        return pa.array(_wkb(series), pa.binary())
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        raise ValueError(f"attribute {name!r} holds values of several types or of one that Arrow does not know: {error}") from error
