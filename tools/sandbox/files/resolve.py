"""Places: an open directory inside the root, with the name of a file; and the states of files."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from storage.keeping.changes.models import ABSENT, FileState
from tools.sandbox.files.openat import (
    MAX_LINKS,
    OPEN_DIRECTORY,
    DirectoryOpener,
    Root,
    open_file,
    path_beneath,
    read_up_to,
    strip_root,
)
from tools.sandbox.files.protect import Guard, ProtectedPathError, StrayDirectoryError

if TYPE_CHECKING:
    from tools.policy.matching import PlaceRules
    from tools.sandbox.files.protect import Name

TOO_LARGE = "too large"
UNREADABLE = "unreadable"
NO_FILE = "no regular file"
LINK = "a link"

LARGE = "large:"

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_NAMES = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Place:
    """An open directory and a name in it that was not a link when checked."""

    directory: int
    name: str  # a name in it, without a slash

    def status(self) -> os.stat_result | None:
        """Returns the status of the regular file, or None if nothing is there.

        Raises EISDIR or ENXIO if it is not a regular file.
        """
        try:
            status = os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        _check_regular(status)
        return status

    def open_read(self) -> int:
        """Opens the regular file.

        Raises ELOOP if a link has been swapped in; ENOENT, EISDIR, ENXIO, EACCES.
        """
        opened = _open_regular(self.directory, self.name)
        if opened is None:
            raise _endless()
        return opened[0]

    def check_writable(self) -> None:
        """Raises EACCES if the file's permissions forbid writing.

        Replacing the file would only need permissions on the directory; this keeps read-only files.
        """
        if os.fstatvfs(self.directory).f_flag & os.ST_RDONLY:
            return  # creating the new file fails with a better reason
        effective = os.access in os.supports_effective_ids
        if not os.access(self.name, os.W_OK, dir_fd=self.directory, effective_ids=effective):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def check_takes_names(self) -> None:
        """Raises EROFS or EACCES if no file can be created in the directory."""
        effective = os.access in os.supports_effective_ids
        rights = os.W_OK | os.X_OK
        if not os.access(".", rights, dir_fd=self.directory, effective_ids=effective):
            is_read_only = os.fstatvfs(self.directory).f_flag & os.ST_RDONLY
            code = errno.EROFS if is_read_only else errno.EACCES
            raise OSError(code, os.strerror(code))


def _open_regular(directory: int, name: str) -> tuple[int, os.stat_result] | None:
    """Opens a regular file for reading; returns None for a link."""
    # Checked first, because opening some devices has side effects.
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return None
    _check_regular(status)
    try:
        return open_file(name, directory)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise


class Resolver:
    """Finds places inside one open root.

    All methods that open, find or check a place raise OSError if the path cannot be opened inside
    the root, PermissionDeniedError if a rule denies it, ProtectedPathError if it is protected, and
    StrayDirectoryError if it was moved out of the root.
    """

    def __init__(
        self,
        root: Root,
        guard: Guard,
        open_directory: DirectoryOpener,
        rules: PlaceRules | None = None,
    ) -> None:
        self._root = root
        self._guard = guard
        self._open_directory = open_directory
        self._rules = rules

    def open_directory(self, path: str) -> int:
        """Opens a directory for reading its entries."""
        fd = self._open_directory(self._root, path)
        with _closed_on_error(fd):
            self._guard.judge_read(self._root, fd)
            self._check(fd, (), writing=False)
        return fd

    def hides(self, path: str) -> bool:
        """Returns whether a place is protected, or hidden by a rule."""
        head, _, name = path.rpartition("/")
        if name in _NO_NAMES:
            head, name = path, ""
        directory = self._open_directory(self._root, head)
        try:
            found = None
            if name:
                with contextlib.suppress(OSError):  # it is missing
                    found = os.stat(name, dir_fd=directory)
            self._guard.judge_read(self._root, directory, name, found)
            if self._rules is None:
                return False
            return self._rules.hides(self._spelled(directory, (name,) if name else ()))
        except (ProtectedPathError, StrayDirectoryError):
            return True
        finally:
            os.close(directory)

    def leaves_out(self, directory: int) -> Callable[[str], bool]:
        """Returns whether a rule hides a path below a directory in listings."""
        if self._rules is None:
            return lambda _path: False
        rules, top = self._rules, path_beneath(self._root, directory)
        return lambda path: rules.hides(path if top == "." else f"{top}/{path}")

    def open_file(self, path: str) -> tuple[int, os.stat_result]:
        """Opens a regular file for reading; returns its descriptor and status."""
        for _ in range(MAX_LINKS):
            head, _, name = path.rpartition("/")
            self._refuse_directory(path, name)
            directory = self._open_directory(self._root, head)
            try:
                opened = _open_regular(directory, name)
                if opened is not None:
                    with _closed_on_error(opened[0]):
                        self._guard.judge_read(self._root, directory, name, opened[1])
                        self._check(directory, (name,), writing=False)
                    return opened
                target = _link_target(directory, name)
            finally:
                os.close(directory)
            if target is not None:
                path = self._after_link(head, target)
        raise _endless()

    @contextlib.contextmanager
    def writable(self, path: str, *, create: bool) -> Iterator[Place]:
        """Finds the place that a write goes to.

        Links are followed. With `create`, missing directories are created, and removed again if the
        block raises.
        """
        with self._find(path, create=create) as place:
            spelled = os.path.normpath(path)
            if self._permits(spelled) and self.real_path(place) != spelled:
                raise ProtectedPathError(f"a link on the way to {spelled}")
            self.judge_write(place)
            yield place

    def check_write(self, path: str) -> None:
        """Raises the error that a write would raise, without creating anything."""
        with self._find(path, create=True, make=False) as place:
            self.judge_write(place)
            if place.status() is not None:
                place.check_writable()
            place.check_takes_names()

    @contextlib.contextmanager
    def exact(self, path: str, *, create: bool) -> Iterator[Place]:
        """Finds the place of a path without links, for a write that follows none.

        The path is one that `real_path` returned; raises ELOOP if a directory on the way has become
        a link.
        """
        head, _, name = path.rpartition("/")
        self._refuse_directory(path, name)
        self._guard.judge_names(path.split("/"))
        with self._within(head, name, create=create) as place:
            if self.real_path(place) != path:
                raise _endless()
            self.judge_write(place)
            yield place

    def real_path(self, place: Place) -> str:
        """Returns the real path of a place, relative to the root.

        Raises EXDEV if it has left the root, and ENOTSUP if the system cannot report it.
        """
        return self._spelled(place.directory, (place.name,))

    def judge_read(self, place: Place) -> None:
        """Raises PermissionDeniedError if a rule denies reading the place."""
        self._check(place.directory, (place.name,), writing=False)

    def judge_write(self, place: Place, *below: str) -> None:
        """Raises an error if the place, or the file that names below it lead to, is closed."""
        directory, names = place.directory, (place.name, *below)
        # Without rules, the real path is not needed.
        permitted = self._permits(self._spelled(directory, names)) if self._rules else ()
        self._guard.judge_write(self._root, directory, names, permitted)
        self._check(directory, names, writing=True)

    def permitted(self, place: Place) -> str:
        """Returns the real path of a protected place that this call may write; else empty."""
        path = self.real_path(place) if self._rules else ""
        return path if path and self._permits(path) else ""

    def _permits(self, path: str) -> Collection[Name]:
        return () if self._rules is None else self._rules.permits(path)

    def _check(self, directory: int, names: Sequence[str], *, writing: bool) -> None:
        """Checks the rules for the real path, not the given one."""
        if self._rules is not None:
            self._rules.check(self._spelled(directory, names), writing=writing)

    def _spelled(self, directory: int, names: Sequence[str]) -> str:
        top = path_beneath(self._root, directory)
        return "/".join(names if names and top == "." else (top, *names))

    def _refuse_directory(self, path: str, name: str) -> None:
        if name in _NO_NAMES:
            os.close(self._open_directory(self._root, path))
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))

    @contextlib.contextmanager
    def _find(self, path: str, *, create: bool, make: bool = True) -> Iterator[Place]:
        for _ in range(MAX_LINKS):
            head, _, name = path.rpartition("/")
            self._refuse_directory(path, name)
            # Checks the given path too: a protected name may be a link to another place.
            spelled = os.path.normpath(path)
            self._guard.judge_names(spelled.split("/"), self._permits(spelled))
            with self._within(head, name, create=create, make=make) as place:
                target = _link_target(place.directory, place.name)
                if target is None:
                    yield place
                    return
            path = self._after_link(head, target)
        raise _endless()

    def _after_link(self, head: str, target: str) -> str:
        if target.startswith("/"):
            return strip_root(target, self._root.spellings)
        return f"{head}/{target}" if head else target

    @contextlib.contextmanager
    def _within(self, path: str, name: str, *, create: bool, make: bool = True) -> Iterator[Place]:
        """Opens the parent directory of a name, creating missing ones.

        Without `make`, nothing is created, and the place is that of the first missing directory.
        """
        fd, missing = self._deepest(path, create=create)
        opened, made = [fd], list[tuple[int, str]]()
        try:
            if missing:
                self.judge_write(Place(fd, missing[0]), *missing[1:], name)
                if not make:
                    name, missing = missing[0], []
            for part in missing:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=opened[-1])
                    made.append((opened[-1], part))
                opened.append(os.open(part, OPEN_DIRECTORY | _NOFOLLOW, dir_fd=opened[-1]))
            yield Place(opened[-1], name)
        except BaseException:
            for parent, part in reversed(made):
                with contextlib.suppress(OSError):  # another writer may be using it
                    os.rmdir(part, dir_fd=parent)
            raise
        finally:
            for fd in opened:
                os.close(fd)

    def _deepest(self, path: str, *, create: bool) -> tuple[int, list[str]]:
        """Opens the deepest existing directory; returns it with the missing names below."""
        missing: list[str] = []
        while True:
            try:
                return self._open_directory(self._root, path), missing
            except FileNotFoundError:
                path, _, last = path.rpartition("/")
                # A missing directory has no parent, so `..` has no meaning.
                if not create or last == "..":
                    raise
                if last not in {"", "."}:
                    missing.insert(0, last)


def _link_target(directory: int, name: str) -> str | None:
    """Returns the target of a link, or None if the name is not a link."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.ENOENT}:
            return None
        raise


@contextlib.contextmanager
def _closed_on_error(fd: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        os.close(fd)
        raise


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, "not a regular file")


def _endless() -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP))


class Found(NamedTuple):
    """The state of a path."""

    state: FileState
    content: bytes | None = None


def digest_of(content: bytes) -> str:
    """Returns the SHA-256 of a content in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def look(directory: int, name: str, *, most_bytes: int) -> Found:
    """Examines a name without following a link or blocking on a pipe."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return Found(ABSENT)
    if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
        return Found(state_of(directory, name, status))
    try:
        fd, status = open_file(name, directory)
    except PermissionError:
        return Found(FileState("other", status.st_mode, UNREADABLE))
    try:
        content = read_up_to(fd, most_bytes + 1, status.st_size)
    finally:
        os.close(fd)
    if len(content) > most_bytes:  # it grew meanwhile
        return Found(state_of(directory, name, status))
    return Found(FileState(digest_of(content), status.st_mode), content)


def state_of(directory: int, name: str, status: os.stat_result) -> FileState:
    """Returns the state of a name whose content is not read."""
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(os.readlink(name, dir_fd=directory))
        return FileState(f"link:{digest_of(target)}", 0, LINK)
    if stat.S_ISREG(status.st_mode):
        return FileState(f"{LARGE}{status.st_size}:{status.st_mtime_ns}", 0, TOO_LARGE)
    return FileState("directory" if stat.S_ISDIR(status.st_mode) else "other", 0, NO_FILE)
