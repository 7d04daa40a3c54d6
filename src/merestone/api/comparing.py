"""Compare two sides, and replay a change onto a copy.

Not here: what changed between versions (`changes`), how two sides are compared (`compare`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as File

from merestone.api.changes import draw
from merestone.api.places import AnyDataset, Path, keep_apart, text_of, whole
from merestone.compare import step
from merestone.compare.apply import apply as replay
from merestone.compare.diff import compared
from merestone.compare.terms import ComparisonSettings
from merestone.dataset.version import Dataset
from merestone.errors import UsageError
from merestone.given import names_of
from merestone.inspect import extract
from merestone.results.progress import Watch, nobody
from merestone.results.result import ApplyResult, DiffResult
from merestone.storage.place import parse_place

_FEEDS = (".parquet", ".geoparquet", ".geojsons", ".geojsonl")


def diff(
    older: Path,
    newer: Path,
    *,
    key: Sequence[str] = (),
    contract: Path | None = None,
    precision: int | None = None,
    ignore: Sequence[str] = (),
    layer: str | None = None,
    keys: bool = False,
    html: Path | None = None,
    out: Path | None = None,
    progress: Watch = nobody,
) -> DiffResult:
    """Compare two files or dataset versions, and publish nothing.

    Without a contract the key and the grid are found in the data, and the result says what was assumed. The second side is brought into
    the CRS of the first.

    Args:
        older: a file in any format that can be delivered, or a version of a dataset (`parcels.yaml@1`).
        newer: the same.
        key: the columns that identify a feature.
        contract: compare under this contract: its types, grid, key, and the columns that it calls volatile.
        precision: decimals of the coordinates that count, in units of the CRS.
        ignore: columns that do not count.
        layer: the layer, for files that have several.
        keys: list the keys of each class.
        html: write a page with a map of before and after to this file.
        out: write every change with its rows before and after to this file (.parquet, .geojsons or .geojsonl).
        progress: called as the comparison goes on, with how far it is.

    Returns:
        The difference. `refused` is true where the two cannot be compared.

    Raises:
        UsageError: a column or contract does not fit.
        SourceError: a side cannot be read.
        CorruptError: a published file is damaged.

    Example:
        >>> merestone.diff("sunday.geojson", "monday.geojson", key=["parcel_id"]).delta.changed
        1
    """
    keep_apart({"html": html, "out": out}, [older, newer, contract])
    if out is not None:
        extract.check_changes_path(os.fspath(out))
    settings = ComparisonSettings(
        names_of(key, "key"),
        None if contract is None else os.fspath(contract),
        precision,
        names_of(ignore, "ignore"),
        layer,
        with_keys=keys,
        progress=progress,
    )
    with compared(os.fspath(older), os.fspath(newer), settings) as found:
        result = found.result
        if result.refused:
            return result
        if out is not None:
            found.write(os.fspath(out))
        drawn = found.page() if html is not None else None
        if html is not None and drawn is not None:
            draw(drawn, html)
    return replace(result, html=None if html is None else os.fspath(html), out=None if out is None else os.fspath(out))


def apply(
    dataset: AnyDataset,
    *,
    onto: Path,
    from_version: int | None = None,
    to_version: int | None = None,
    progress: Watch = nobody,
) -> ApplyResult:
    """Replay changes onto a copy, and prove that it arrived.

    The copy must hold exactly the version that the change starts from, whatever its format and row order: the digest of all its features
    decides. It is replaced only when the new one reads back as exactly the version that the change leads to.

    Args:
        dataset: a dataset, or a feed file that `changes` wrote (.parquet).
        onto: the copy: a file, or a dataset's folder.
        from_version: the version that the copy holds, 0 for nothing; by default the one before `to_version`.
        to_version: the version to arrive at; by default the current one.
        progress: called as rows are read and written, with how far it is.

    Returns:
        Whether the copy arrived. `refused` is true where it holds another version; it stays as it is then.

    Raises:
        UsageError: the copy or the feed does not fit.
        SourceError: the copy or the feed cannot be read.

    Example:
        >>> merestone.apply("parcels.yaml", onto="copy.gpkg", from_version=0).status
        'applied'
    """
    named = text_of(dataset)
    if not File(parse_place(os.fspath(onto), field="onto").path).is_dir():  # a dataset is written by its publisher
        keep_apart({"onto": onto}, [dataset])
    if not isinstance(dataset, Dataset) and File(named).suffix.lower() in _FEEDS:
        if from_version is not None or to_version is not None:
            raise UsageError(
                "a feed file names its versions itself",
                field="from_version" if from_version is not None else "to_version",
                hint="leave out «from_version» and «to_version»",
            )
        taken = step.of_file(named)
    else:
        taken = step.of_dataset(whole(dataset), from_version, to_version)
    return replay(taken, os.fspath(onto), progress)
