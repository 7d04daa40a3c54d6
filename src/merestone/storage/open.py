"""From a path or URL to its store.

Not here: the stores themselves (`local`), what they must offer (`port`).
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from merestone.errors import UsageError
from merestone.storage.local import LocalStore
from merestone.storage.port import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def open_store(url_or_path: str | os.PathLike[str]) -> Store:
    """The store at a local path, a `file://` URL or a store's own `url`. Nothing is read or written.

    Raises:
        UsageError: a URL of another scheme.
    """
    text = os.fspath(url_or_path)
    found = _SCHEME.match(text)
    if found is None:
        return LocalStore(text)
    scheme = found[1].lower()
    if scheme != "file":
        raise UsageError(
            f"{text}: destinations of scheme {scheme}:// are not in this version", field="destination", hint="give a local folder"
        )
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise UsageError(f"{text}: a file URL names a folder of this machine", field="destination", hint="write file:///folder/of/dataset")
    return LocalStore(unquote(parts.path))
