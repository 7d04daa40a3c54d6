"""A store on a local disk: create-only files by hard link, compare-and-swap under a lock, everything synced before it can be seen.

Not here: what the bytes mean (`dataset`), other stores, the choice between them (`open`).

What the disk must offer (POSIX): hard links, atomic rename within a folder, `flock`, and fsync of folders. An object appears under its
name only when its bytes are on the disk, so a process that is killed leaves at most a hidden temporary file.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from merestone.errors import StoreError
from merestone.storage.names import check_name, check_prefix
from merestone.storage.place import file_url
from merestone.storage.port import BusyError, ObjectFile

_COPY_BYTES = 1 << 20
_counter = itertools.count()
_HINTS = {
    errno.ENOSPC: "free space on the disk of {folder}, then repeat",
    errno.EDQUOT: "raise the disk quota for {folder} or free space there, then repeat",
    errno.EFBIG: "raise the file size limit (ulimit -f) or free space for {folder}, then repeat",
    errno.EACCES: "give this user write permission for {folder}, then repeat",
    errno.EPERM: "give this user write permission for {folder}, then repeat",
    errno.EROFS: "{folder} is on a read-only file system: remount it or choose another destination",
    errno.ENAMETOOLONG: "a name below {folder} is longer than the file system allows (usually 255 bytes)",
    errno.ENOTDIR: "a part of {folder} is a file: move it away or choose another destination",
}
_BUSY = {errno.EAGAIN, errno.EBUSY, errno.ESTALE}  # what a disk in the network answers while it fails over
_REPEATABLE = {"read", "list", "delete"}  # of a write that fails so it is not known how far it came
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV}


class LocalStore:
    """Objects as files below `root`, an absolute folder (created with the first object).

    Names are relative, "/" separates. A name that leaves the root, or meets a symbolic link below it, raises StoreError: a link could lead
    a write out of the dataset. The root itself may be reached through links.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links and hide from messages the name the user gave
        self.url = file_url(str(self.root))

    def get(self, name: str) -> bytes:
        """All bytes of an object. Raises FileNotFoundError where there is none."""
        path = self._path(name)
        with self._faults("read", name), self._opened(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()

    def open(self, name: str) -> ObjectFile:
        """A seekable pyarrow.NativeFile. Raises FileNotFoundError where there is none."""
        path = self._path(name)
        with self._faults("read", name):
            return pa.OSFile(str(path), "r")

    def buffer(self, name: str) -> memoryview:
        """All bytes of an object, mapped. Raises FileNotFoundError where there is none."""
        path = self._path(name)
        with self._faults("read", name):
            if path.is_file() and not path.stat().st_size:  # what is empty cannot be mapped
                return memoryview(b"")
            with pa.memory_map(str(path), "r") as mapped:
                return memoryview(mapped.read_buffer())

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """The bytes from `start` on, at most `length`. Raises FileNotFoundError where the object does not exist."""
        path = self._path(name)
        with self._faults("read", name), self._opened(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
            file.seek(start)
            return file.read(length)

    def create(self, name: str, data: bytes) -> str | None:
        """Write an object that must not exist, durably. A disk keeps no mark. Raises FileExistsError where it exists."""
        self._create(name, lambda descriptor: _write(descriptor, data))
        return None

    def create_from(self, name: str, local_path: str) -> str | None:
        """As `create`, with the bytes of a local file."""
        self._create(name, lambda descriptor: _copy(descriptor, local_path))
        return None

    def swap(self, name: str, expected: bytes | None, data: bytes) -> bool:
        """Replace an object's bytes if it still holds `expected`, else return False."""
        path = self._path(name)
        with self._faults("write", name):
            self._make_folder(path.parent)
            with self._locked(path):
                try:
                    found: bytes | None = self.get(name)
                except FileNotFoundError:
                    found = None
                if found != expected:
                    return False
                with self._temporary(path.parent, lambda descriptor: _write(descriptor, data)) as temporary:
                    os.replace(temporary, path)  # noqa: PTH105 - the same call layer as link and fsync: their order can be tested
                _sync_folder(path.parent)
        return True

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Names and sizes below a folder ("" for all), in the order of the names' bytes; links and temporary files never appear."""
        check_prefix(prefix, str(self.root))
        folder = self._path(prefix[:-1]) if prefix else self.root
        with self._faults("list", prefix or "."):
            yield from _walk(folder, prefix)

    def delete(self, name: str) -> None:
        """Remove an object; no error where there is none."""
        path = self._path(name)
        with self._faults("delete", name):
            try:
                os.unlink(path)  # noqa: PTH108 - see swap
            except FileNotFoundError:
                return
            _sync_folder(path.parent)

    def size(self, name: str) -> int | None:
        """The size of an object in bytes, None where there is none."""
        path = self._path(name)
        with self._faults("read", name):
            try:
                found = os.lstat(path)
            except FileNotFoundError:
                return None
            return found.st_size if stat.S_ISREG(found.st_mode) else None

    def location(self, name: str) -> str:
        """The absolute path of an object."""
        return str(self._path(name))

    def strays(self, prefix: str) -> Iterator[str]:
        """Folders below a prefix without a file in them."""
        check_prefix(prefix, str(self.root))
        for folder, _, files in os.walk(self.root / prefix):
            if not files and Path(folder) != self.root / prefix:
                yield Path(folder).relative_to(self.root).as_posix()

    def _create(self, name: str, fill: Callable[[int], None]) -> None:
        path = self._path(name)
        with self._faults("write", name):
            self._make_folder(path.parent)
            with self._temporary(path.parent, fill) as temporary:
                try:
                    # link, not rename: it fails where the name is taken, also against another process.
                    os.link(temporary, path)  # noqa: TID251 - this is the store
                except OSError as fault:
                    if fault.errno in _NO_LINKS:
                        raise StoreError(
                            f"cannot write {name}: the file system of {self.root} refuses hard links ({fault.strerror})",
                            field=name,
                            hint="choose a destination on a disk with hard links (ext4, XFS, APFS, NFS)",
                        ) from fault
                    raise
            # The temporary name is gone by now: one sync makes both true.
            _sync_folder(path.parent)

    @contextmanager
    def _temporary(self, folder: Path, fill: Callable[[int], None]) -> Iterator[Path]:
        """A synced, hidden file with the bytes that `fill` writes; gone at the end unless it was renamed."""
        descriptor, temporary = _new_file(folder)
        try:
            try:
                fill(descriptor)
                os.fsync(descriptor)  # noqa: TID251 - this is the store
            finally:
                os.close(descriptor)
            yield temporary
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)  # noqa: PTH108 - see swap

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        """Alone among all processes that swap this object. The lock file stays: removing it would let two in at once."""
        lock = path.with_name(f".{path.name}.lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)  # noqa: TID251 - this is the store
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _opened(self, path: Path) -> Iterator[int]:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)  # noqa: TID251 - this is the store
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder and what is missing above it; each new name is synced, or a crash could take the whole branch away."""
        if folder.is_dir():
            return
        if folder != folder.parent:
            self._make_folder(folder.parent)
        try:
            os.mkdir(folder)  # noqa: PTH102 - see swap
        except FileExistsError:
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
            return
        _sync_folder(folder.parent)

    def _path(self, name: str) -> Path:
        parts = check_name(name, str(self.root))
        path = self.root
        for part in parts:
            path = path / part
            with self._faults("name", name):  # a part may be longer than the disk's names
                linked = path.is_symlink()
            if linked:
                raise StoreError(
                    f"{path} is a symbolic link; links inside a dataset are not followed",
                    field=name,
                    hint="replace the link by the file or folder that it points to",
                )
        return path

    @contextmanager
    def _faults(self, verb: str, name: str) -> Iterator[None]:
        """Turn what the operating system says into StoreError; absence and presence stay what they are."""
        try:
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError as fault:
            if fault.errno in _BUSY and verb in _REPEATABLE:
                raise BusyError(
                    f"cannot {verb} {name} in {self.root} now: {fault.strerror}", field=name, hint="repeat the command"
                ) from fault
            folder = (self.root / name).parent
            if fault.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                folder = _nearest(folder)  # what is not there yet is not at fault
            hint = _HINTS.get(fault.errno or 0, "look at the disk of {folder}, then repeat").format(folder=folder)
            raise StoreError(f"cannot {verb} {name} in {self.root}: {fault.strerror or fault}", field=name, hint=hint) from fault


def _nearest(folder: Path) -> Path:
    """A folder, or the nearest one above it that exists."""
    return next((each for each in (folder, *folder.parents) if os.path.isdir(each)), folder)  # noqa: PTH112 - False where nobody may look


def _new_file(folder: Path) -> tuple[int, Path]:
    while True:
        # The process id distinguishes running processes; O_EXCL settles what is left over from dead ones or from another host.
        path = folder / f".{os.getpid()}-{next(_counter)}.tmp"  # noqa: TID251 - this is the store
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), path  # noqa: TID251 - this is the store
        except FileExistsError:
            continue


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _copy(descriptor: int, local_path: str) -> None:
    with Path(local_path).open("rb") as source:
        while block := source.read(_COPY_BYTES):
            _write(descriptor, block)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # noqa: TID251 - this is the store
    try:
        os.fsync(descriptor)  # noqa: TID251 - this is the store
    except OSError as fault:
        # Some network file systems have no sync of folders; there the rename itself is all that can be had.
        if fault.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, int]]:
    try:
        with os.scandir(folder) as scan:
            entries = [(entry.name + ("/" if entry.is_dir(follow_symlinks=False) else ""), entry) for entry in scan]
    except FileNotFoundError:
        return
    # A folder sorts as "name/", so the walk comes out in the order of whole names.
    for name, entry in sorted(entries, key=lambda each: os.fsencode(each[0])):
        if name.endswith("/"):
            yield from _walk(folder / entry.name, prefix + name)
        elif not (name.startswith(".") and name.endswith((".tmp", ".lock"))):
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # deleted while we looked
            if stat.S_ISREG(found.st_mode):
                yield prefix + name, found.st_size
