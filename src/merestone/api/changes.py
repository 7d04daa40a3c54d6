"""What changed between two versions of a dataset, as counts, keys, a page with a map, and rows in a file.

Not here: changes between files and copies (`comparing`), folding change logs (`dataset.feed`).
"""

from __future__ import annotations

import os
from pathlib import Path as File

from merestone.api.answers import ChangesResult
from merestone.api.places import AnyDataset, Path, keep_apart, whole
from merestone.compare import step
from merestone.dataset.manifest import Box
from merestone.inspect import extract, filtered, show, text_crs
from merestone.inspect.output import written_whole
from merestone.render.map import ChangeMap, page


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
        draw(show.change_map(opened, change, attribution), html)
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


def draw(drawn: ChangeMap, path: Path) -> None:
    """Write the page of a change."""
    shown = page(drawn)
    with written_whole(os.fspath(path), "html") as place:
        File(place).write_text(shown, encoding="utf-8")
