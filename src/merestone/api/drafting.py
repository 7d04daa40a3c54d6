"""Draft a contract and a publication file from a delivery.

Not here: what the rows say and how a draft is worded (`draft`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from merestone.api.answers import DraftResult, InferResult
from merestone.api.places import Path, keep_apart
from merestone.drafts import init as drafts
from merestone.given import names_of


def draft(
    source: Path,
    *,
    layer: str | None = None,
    crs: str | None = None,
    key: Sequence[str] = (),
    previous: Path | None = None,
    owner: str | None = None,
    out: Path | None = None,
) -> DraftResult:
    """Draft a contract and a publication file from a delivery. Guesses are marked `# confirm`. Both publish at once, but for what is `unsettled`.

    Args:
        source: the delivery.
        layer: the layer, where the source has several.
        crs: the CRS, such as EPSG:28992, where the file states none.
        key: the columns of the key; by default the best candidate is found in the data.
        previous: an older delivery: it shows which key joins the two, which columns each export makes anew, and what differs. The drafts
            fit both.
        owner: the mail address of whoever answers for the product.
        out: the folder of the two files; by default the current one.

    Raises:
        UsageError: the files are there already, or no column can be the key, or the CRS has no EPSG code.
        SourceError: a delivery cannot be read.
        StoreError: the files cannot be written.

    Example:
        >>> made = merestone.draft("monday.geojson", owner="you@example.org", out="drafts")
        >>> made.contract.name
        'monday.contract.yaml'
    """
    made = drafts.init(
        os.fspath(source),
        layer=layer,
        crs=crs,
        key=names_of(key, "key"),
        previous=None if previous is None else os.fspath(previous),
        owner=owner,
        out=None if out is None else os.fspath(out),
    )
    return DraftResult(made.contract, made.publication, made.notes, made.unsettled)


def infer(
    source: Path,
    *,
    layer: str | None = None,
    crs: str | None = None,
    key: Sequence[str] = (),
    previous: Path | None = None,
    owner: str | None = None,
    out: Path | None = None,
) -> InferResult:
    """Draft only the contract, from the header and the rows of a delivery. Arguments and errors are those of `draft`.

    Args:
        source: the delivery.
        layer: the layer, where the source has several.
        crs: the CRS, where the file states none.
        key: the columns of the key.
        previous: an older delivery.
        owner: the mail address of whoever answers for the product.
        out: write the contract to this new file.

    Example:
        >>> merestone.infer("monday.geojson").key
        ('parcel_id',)
    """
    keep_apart({"out": out}, [source, previous])
    made = drafts.draft(
        os.fspath(source),
        layer=layer,
        crs=crs,
        key=names_of(key, "key"),
        previous=None if previous is None else os.fspath(previous),
        owner=owner,
    )
    if out is not None:
        drafts.new_file(os.fspath(out), made.text)
    return InferResult(None if out is None else os.fspath(out), made.text, made.key, made.notes, made.unsettled)
