"""Compare two sides, follow the changes of a dataset, and replay them onto a copy.

Not here: how two sides are compared (`compare`), how a feed is folded (`dataset.feed`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as File

from merestone.api.answers import ChangesResult
from merestone.api.places import AnyDataset, Path, keep_apart, text_of, whole
from merestone.compare import step
from merestone.compare.apply import apply as replay
from merestone.compare.diff import compared
from merestone.compare.terms import ComparisonSettings
from merestone.dataset.manifest import Box
from merestone.dataset.version import Dataset
from merestone.errors import UsageError
from merestone.inspect import extract, filtered, show, text_crs
from merestone.inspect.output import written_whole
from merestone.render.map import ChangeMap, page
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
        tuple(key), None if contract is None else os.fspath(contract), precision, tuple(ignore), layer, with_keys=keys, progress=progress
    )
    with compared(os.fspath(older), os.fspath(newer), settings) as found:
        result = found.result
        if result.refused:
            return result
        if out is not None:
            found.write(os.fspath(out))
        drawn = found.page() if html is not None else None
        if html is not None and drawn is not None:
            _draw(drawn, html)
    return replace(result, html=None if html is None else os.fspath(html), out=None if out is None else os.fspath(out))


def changes(
    dataset: AnyDataset,
    *,
    from_version: int | None = None,
    to_version: int | None = None,
    bbox: Box | None = None,
    polygon: Path | None = None,
    where: str | None = None,
    keys: bool = False,
    html: Path | None = None,
    out: Path | None = None,
    attribution: str = "",
) -> ChangesResult:
    """Show what changed between two versions; by default in the last step.

    Several steps are folded: a feature that comes back to what it was is not in the answer. With a filter the answer is that of somebody
    who sees only those features: a feature that moves out of the filter is removed, one that moves into it is added.

    Args:
        dataset: a folder, a URL, a publication file, or an opened dataset.
        from_version: the older version, 0 for nothing; by default the one before `to_version`. The first version has none before it, and
            changes from nothing are shown where they are asked for: a night after it that was `unchanged` has no changes.
        to_version: the newer version; by default the current one.
        bbox: only features whose box meets this one: xmin, ymin, xmax, ymax in the CRS of the dataset.
        polygon: only features that meet the polygons of this file, in any CRS.
        where: only features for which these conditions hold, such as `owner = 'Smith' and rank >= 3`.
        keys: list the keys of each class.
        html: write a page with a map of before and after to this file.
        out: write every change with its rows before and after to this file (.parquet, .geojsons or .geojsonl).
        attribution: whose data this is, for the page.

    Raises:
        UsageError: no such version exists, or a condition does not fit.
        CorruptError: a change log or a data file is damaged.

    Example:
        >>> change = merestone.changes("parcels.yaml", keys=True)
        >>> change.keys["changed"]
        ('p2',)
    """
    keep_apart({"html": html, "out": out}, [dataset, polygon])
    opened = whole(dataset)
    first = from_version is None and opened.manifest(to_version).parent is None
    if first:
        from_version = opened.manifest(to_version).version
    wanted = filtered.filter_of(opened.version(to_version), bbox=bbox, polygon=None if polygon is None else os.fspath(polygon), where=where)
    if wanted:
        change, result = filtered.changes(opened, from_version, to_version, wanted, with_keys=keys)
    else:
        change, result = show.changes(opened, from_version, to_version, with_rows=out is not None, with_keys=keys)
    if out is not None:
        # What a filter left out cannot be replayed onto a copy of the whole.
        extract.changes_file(opened.version(change.to_version), change, os.fspath(out), None if wanted else step.about(opened, change))
    if html is not None:
        _draw(show.change_map(opened, change, attribution), html)
    notices = [text_crs.said(opened.version(change.to_version).columns.epsg, os.fspath(out))] if out is not None else []
    notices += [f"v{change.to_version} is the first version: ask for the changes from 0 to see its features as added"] if first else []
    return ChangesResult(
        name=opened.manifest(change.to_version).name,
        start=change.from_version,
        end=change.to_version,
        delta=result.delta,
        unchanged=result.unchanged,
        changed=result.changed,
        keys=result.keys,
        findings=result.findings,
        html=None if html is None else os.fspath(html),
        out=None if out is None else os.fspath(out),
        notice="\n".join(each for each in notices if each is not None) or None,
        feed=change,
        seconds=result.seconds,
    )


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


def _draw(drawn: ChangeMap, path: Path) -> None:
    shown = page(drawn)
    with written_whole(os.fspath(path), "html") as place:
        File(place).write_text(shown, encoding="utf-8")
