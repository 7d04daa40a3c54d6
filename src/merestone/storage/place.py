"""A place as people write it, path or URL, parsed once for every door: destinations, sources, contracts, grids, folders, command lines.

Not here: what is at the place (`storage.open` for stores, `source` for deliveries), which part of a URL is a secret (`masking`).

One text means one place wherever it is written:

- A path is relative to `base`; `~` and `~/x` begin at the home folder; `..` is taken away by text, links are not followed.
- `file:///x/a%20b`, `file:/x/a%20b` and `file://localhost/x/a%20b` are the path `/x/a b` (RFC 8089). Another host is another machine.
- Any other URL is understood and kept with its parts; whether a store or a reader of its scheme exists is for the caller to say.
- `${NAME}` is the environment's NAME, in paths and URLs alike.
- Refused: blank text, control characters, text that is not UTF-8, Windows paths, GDAL's own names (`/vsicurl/...`, `PG:...`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, unquote_to_bytes

from merestone.errors import UsageError
from merestone.masking import masked

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # two letters at least: C: is a drive
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}?")
_BARE: Final = re.compile(
    r"(?:^|/)(\$[A-Za-z_][A-Za-z0-9_]*|%[A-Za-z_][A-Za-z0-9_]*%)(?=/|$)"
)  # a whole name of a path that a shell would replace
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DRIVE: Final = re.compile(r"/?[A-Za-z]:(?:[\\/]|$)")
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_WINDOWS: Final = ("looks like a Windows path", "write it as this system does, with / between folders")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Schemes that are never the beginning of a file's name, though no `//` follows; the second group names databases, as GDAL and drivers write it.
_ADDRESSES: Final = frozenset(
    {"http", "https", "ftp", "ftps", "sftp", "s3", "s3a", "gs", "gcs", "az", "adl", "abfs", "abfss", "wasb", "wasbs"}
)
_DATABASES: Final = frozenset(
    {"pg", "pgeo", "postgres", "postgresql", "mysql", "mariadb", "mssql", "oci", "odbc", "jdbc", "sqlite", "duckdb", "mongodb", "mongodbv3"}
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is.

    `scheme` is in lower case, `file` for every path; `path` is decoded, for `file` absolute and normal. `shown` is what messages and
    records may hold: it has no secret. The other parts may have one, so `repr` leaves them out.
    """

    scheme: str
    path: str = field(repr=False)
    authority: str = field(default="", repr=False)
    query: str = field(default="", repr=False)
    shown: str = field(default="", compare=False)

    @property
    def is_local(self) -> bool:
        """Whether this is a file or folder of this machine."""
        return self.scheme == "file"

    @property
    def address(self) -> str:
        """What means this place again: a path of this machine, or a URL. It may hold a secret."""
        if self.is_local:
            return self.path
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.authority}/{quote(self.path)}".rstrip("/") + query


def parse_place(
    text: str | os.PathLike[str],
    *,
    base: str | os.PathLike[str] = ".",
    field: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Place:
    """What a text means as a place. Nothing is looked up on disk or in the network.

    Args:
        text: a path or a URL.
        base: the folder that relative paths begin at: the publication file's, or the work folder.
        field: the key or option that holds the text, for errors.
        environ: where `${NAME}` and the home folder are looked up; the process's environment by default.

    Raises:
        UsageError: it means no place, or an environment variable that it names is not set. The message has no secret.
    """
    environ = os.environ if environ is None else environ  # noqa: TID251 - places name variables: ${NAME}
    typed = os.fspath(text)
    refused = _Refusal(_shown(typed), field)
    _check_text(typed, refused)
    written, named = _expanded(typed, environ, refused)
    if named:
        _check_text(written, refused)
    found = _SCHEME.match(written)
    scheme = found[1].lower() if found is not None else ""
    if scheme == "file":
        path = _of_file_url(written[len("file:") :], refused)
    elif found is not None and (written.startswith("//", found.end()) or scheme in _ADDRESSES | _DATABASES):
        # What a variable held may be a secret, and only its name is shown.
        return _of_url(scheme, written[found.end() :], masked(typed), refused)
    else:
        path = _home(written, environ, refused)
    if _DRIVE.match(path):
        raise refused(*_WINDOWS)
    if re.match(r"/+vsi[a-z0-9_]+[/?]", path):
        raise refused("is a name of GDAL's virtual file systems, not a file", "name the file itself; .zip and .gz are unpacked")
    # normpath() keeps two leading slashes.
    path = "/" + os.path.normpath(Path(os.path.abspath(base)) / path).lstrip("/")  # noqa: PTH100 - resolve() would follow links
    _check_text(path, refused)  # the base belongs to it, and a place that is parsed again must mean the same
    if "\\" in path:
        raise refused(*_WINDOWS)
    if "${" in path:
        raise refused("holds ${ once its variables are replaced", "rename the folder, or set the variable to a plain path")
    return Place("file", path, shown=masked(path))


def local_path(
    text: str | os.PathLike[str],
    *,
    base: str | os.PathLike[str] = ".",
    field: str | None = None,
    what: str = "a file",
    environ: Mapping[str, str] | None = None,
) -> str:
    """The absolute path of a place on this machine.

    Args:
        text: as `parse_place`, as are `base`, `field` and `environ`.
        base: see `parse_place`.
        field: see `parse_place`.
        what: what is meant to be there, for errors: "a delivery", "a contract".
        environ: see `parse_place`.

    Raises:
        UsageError: as `parse_place`, or it is a URL of another scheme.
    """
    place = parse_place(text, base=base, field=field, environ=environ)
    if not place.is_local:
        raise not_in_this_version(place, what, field)
    return place.path


def not_in_this_version(place: Place, what: str, field: str | None) -> UsageError:
    """The error for a place that is understood and cannot be reached by this version."""
    where = "in a database" if place.scheme in _DATABASES else "behind a URL"
    return UsageError(
        f"{place.shown}: not in this version: {what} {where}",
        field=field or place.shown,
        hint="give a path of this machine, or a file:// URL",
    )


def file_url(path: str) -> str:
    """The URL of an absolute path, which `parse_place` reads back."""
    return f"file://{quote(path)}"


def place_name(url: str) -> str:
    """The last name of a store's `url`: what a dataset is called that says nothing of itself."""
    place = parse_place(url)
    return place.path.rpartition("/")[2] or unquote(place.authority)


def shown_place(url: str) -> str:
    """A store's `url` as messages have it: a path of this machine as people write it, any other URL without its secrets."""
    return parse_place(url).shown


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Makes the errors of one text."""

    shown: str
    field: str | None

    def __call__(self, why: str, hint: str) -> UsageError:
        return UsageError(f"{self.shown} {why}", field=self.field or self.shown, hint=hint)


def _shown(text: str) -> str:
    """A text for messages: without secrets, control characters escaped; blank text in quotes."""
    visible = "".join(each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode() for each in masked(text))
    return visible if visible.strip() else f"{visible!r}"


def _check_text(text: str, refused: _Refusal) -> None:
    if not text.strip():
        raise refused("is blank, not a path or URL", "write a path or a URL")
    if _CONTROL.search(text):
        raise refused("holds a control character", "remove it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refused("is not UTF-8", "rename the file or folder") from None


def _expanded(text: str, environ: Mapping[str, str], refused: _Refusal) -> tuple[str, bool]:
    """The text with its variables replaced, and whether there were any. What a variable holds is not expanded again."""
    named = False

    def value(found: re.Match[str]) -> str:
        nonlocal named
        named = True
        name = found[1]
        if not found[0].endswith("}") or not _NAME.fullmatch(name):
            raise refused(f"holds {found[0]}, which names no environment variable", "write ${NAME}, with letters, digits and _")
        held = environ.get(name)
        if not held:
            state = "not set" if held is None else "empty"
            raise refused(f"names the environment variable {name}, which is {state}", f"set it: export {name}=...")
        return held

    bare = _BARE.search(text) if refused.field == "destination" else None  # it would be made as a folder
    if bare is not None:
        raise refused(
            f"holds {bare[1]}, which stays as it is", f"write ${{{bare[1].strip('$%')}}} for the environment variable, or another name"
        )
    return _VARIABLE.sub(value, text), named


def _of_file_url(rest: str, refused: _Refusal) -> str:
    """The path of a file URL, `rest` being what follows `file:`."""
    if not rest.startswith("/"):
        raise refused("is a file URL without an absolute path", "write file:///folder/name, or a plain path")
    host = ""
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        rest = slash + path
    if host.lower() not in ("", "localhost"):
        raise refused("is a file URL of another machine", "write file:///folder/name: three slashes, and no host")
    if rest.startswith("//"):
        raise refused("is a file URL of a network share", "mount the share and give its path")
    if not rest:
        raise refused("is a file URL without a path", "write file:///folder/name")
    for mark, code in (("?", "%3F"), ("#", "%23")):
        if mark in rest:
            raise refused(f"is a file URL with a {mark}, which would end its path", f"write {code} for a {mark} in a name")
    return _decoded(rest, refused)


def _decoded(path: str, refused: _Refusal) -> str:
    if _BAD_PERCENT.search(path):
        raise refused("holds a % that two hex digits do not follow", "write %25 for a % in a URL")
    if re.search(r"%2[Ff]", path):
        raise refused("holds %2F, and a name cannot hold a /", "write / between folders")
    try:
        decoded = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        raise refused("does not decode to UTF-8", "encode names as UTF-8 before percent-encoding them") from None
    if _CONTROL.search(decoded):
        raise refused("holds a control character", "remove it")
    return decoded


def _of_url(scheme: str, rest: str, shown: str, refused: _Refusal) -> Place:
    """A URL of another scheme, `rest` being what follows the colon."""
    if scheme in _DATABASES and not rest.startswith("//"):
        return Place(scheme, rest, shown=shown)
    if not rest.startswith("//"):
        raise refused(f"begins with {scheme}: and not with {scheme}://", f"write {scheme}://...")
    authority, tail = re.split(r"(?=[/?#]|$)", rest[2:], maxsplit=1)
    path, _, query = tail.partition("#")[0].partition("?")
    if not authority and scheme not in _DATABASES:
        raise refused(f"names no host or bucket after {scheme}://", f"write {scheme}://NAME/...")
    return Place(scheme, _decoded(path, refused).strip("/"), authority, query, shown)


def _home(text: str, environ: Mapping[str, str], refused: _Refusal) -> str:
    """A path with a leading `~` replaced; `~name` is a name like any other, as editors write it."""
    if text != "~" and not text.startswith("~/"):
        return text
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111, TID251 - it answers `~` where nobody has a home, and does not raise
    if not home.startswith("/"):
        raise refused("begins at the home folder, and this user has none", "set HOME, or write the whole path")
    return home + text[1:]
