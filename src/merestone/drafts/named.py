"""The name of a drafted dataset, from the name of its file: without endings, and without the date of a dated export.

Not here: where the drafts are written (`init`).
"""

from __future__ import annotations

import os
import re

_YEAR, _MONTH, _DAY = r"(?:19[5-9]\d|20[0-4]\d)", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[T_.\-]?(?:[01]\d|2[0-3])[-_:h]?[0-5]\d(?:[-_:]?[0-5]\d)?(?:Z|[+-]\d\d:?\d\d)?)"
_DATES = (
    rf"{_YEAR}[-_.]?{_MONTH}[-_.]?{_DAY}{_TIME}?",
    rf"{_DAY}[-_.]{_MONTH}[-_.]{_YEAR}",
    rf"{_DAY}{_MONTH}{_YEAR}",
    rf"{_YEAR}[-_.]?(?:[QqHh][1-4]|[Ww](?:0[1-9]|[1-4]\d|5[0-3])|[Kk][Ww]\d\d)",
    rf"{_YEAR}[-_.]?{_MONTH}",
    rf"{_YEAR}",
)
_DATED = re.compile(rf"(?:^|[-_. ])(?:{'|'.join(_DATES)})(?=$|[-_. ])")


def dataset_name(source_path: str, layer: str | None = None) -> str:
    """What a dataset is called: its layer, or its file without endings, else the folder of a file that is called by its date alone."""
    path = source_path.rstrip("/\\")
    names = [layer] if layer is not None else [_stem(path), os.path.basename(os.path.dirname(os.path.abspath(path)))]  # noqa: PTH100, PTH119, PTH120 - a name, no path
    found = (_safe(_DATED.sub("", each)) for each in names)
    return next((each for each in found if each), _safe(names[0]) or "dataset")


def after_folder(source_path: str, layer: str | None = None) -> bool:
    """Whether a dataset is called after its folder, since its file is called by its date alone."""
    return layer is None and not _safe(_DATED.sub("", _stem(source_path.rstrip("/\\"))))


def _stem(path: str) -> str:
    file = os.path.basename(path)  # noqa: PTH119 - a name, no path
    return re.sub(r"(\.[A-Za-z][A-Za-z0-9]{0,9}){1,2}$", "", file) or file


def _safe(text: str) -> str:
    return re.sub(r"[^\w\-]+", "_", text).strip("_-")
