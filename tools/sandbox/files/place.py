"""Where a file is or would be: an open directory beneath the root, and a name in it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.sandbox.files.nofollow import open_file
from tools.sandbox.files.openat import (
    MAX_LINKS,
    OPEN_DIRECTORY,
    DirectoryOpener,
    Root,
    path_beneath,
    strip_root,
)
from tools.sandbox.files.protect import Guard, ProtectedPathError, StrayDirectoryError

if TYPE_CHECKING:
    from tools.policy.places import PlaceRules
    from tools.sandbox.files.protected_names import Name

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_NAMES = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Place:
    """An open directory and a name in it that was no link when it was looked at.

    Attributes:
        directory: Descriptor of the directory.
        name: Name in it, without a slash.
    """

    directory: int
    name: str

    def status(self) -> os.stat_result | None:
        """The status of the regular file there, or None where nothing is.

        Raises:
            OSError: EISDIR or ENXIO if something else than a regular file is there.
        """
        try:
            status = os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        _check_regular(status)
        return status

    def open_read(self) -> int:
        """Opens the regular file there.

        Raises:
            OSError: ELOOP if a link is there by now; ENOENT, EISDIR, ENXIO, EACCES.
        """
        opened = _open_regular(self.directory, self.name)
        if opened is None:
            raise _endless()
        return opened[0]

    def check_writable(self) -> None:
        """Raises EACCES if the rights of the file there forbid writing.

        Replacing it would need rights on the directory only; a read-only file is meant to stay.
        """
        if os.fstatvfs(self.directory).f_flag & os.ST_RDONLY:
            return  # Making the new file fails with the better reason.
        effective = os.access in os.supports_effective_ids
        if not os.access(self.name, os.W_OK, dir_fd=self.directory, effective_ids=effective):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def check_takes_names(self) -> None:
        """Raises EROFS or EACCES if no file can be made beside it."""
        effective = os.access in os.supports_effective_ids
        rights = os.W_OK | os.X_OK
        if not os.access(".", rights, dir_fd=self.directory, effective_ids=effective):
            is_read_only = os.fstatvfs(self.directory).f_flag & os.ST_RDONLY
            code = errno.EROFS if is_read_only else errno.EACCES
            raise OSError(code, os.strerror(code))


def _open_regular(directory: int, name: str) -> tuple[int, os.stat_result] | None:
    """Opens a regular file for reading; returns None if a link is there."""
    # Looked at first, because opening some devices does something.
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
    """Finds places beneath one open root.

    What opens, finds or judges a place raises OSError if the path cannot be opened beneath the
    root, PermissionDeniedError if a rule denies it, ProtectedPathError if it is protected and
    StrayDirectoryError if it was moved out of the root.

    Args:
        root: The open root.
        guard: Judges each place.
        open_directory: How directories are resolved.
        rules: What else is said of each place; None where nothing is.
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
        try:
            self._guard.judge_read(self._root, fd)
            self._check(fd, (), writing=False)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def hides(self, path: str) -> bool:
        """Whether a place is protected, or left out by a rule."""
        head, _, name = path.rpartition("/")
        if name in _NO_NAMES:
            head, name = path, ""
        directory = self._open_directory(self._root, head)
        try:
            found = _status_of(name, directory) if name else None
            self._guard.judge_read(self._root, directory, name, found)
            if self._rules is None:
                return False
            return self._rules.hides(self._spelled(directory, (name,) if name else ()))
        except (ProtectedPathError, StrayDirectoryError):
            return True
        finally:
            os.close(directory)

    def leaves_out(self, directory: int) -> Callable[[str], bool] | None:
        """Which paths below an open directory a rule leaves out of a listing; None if none."""
        if self._rules is None:
            return None
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
                    self._judge_read(directory, name, *opened)
                    return opened
                target = _link_target(directory, name)
            finally:
                os.close(directory)
            if target is not None:
                path = self._after_link(head, target)
        raise _endless()

    def _judge_read(self, directory: int, name: str, fd: int, status: os.stat_result) -> None:
        """Closes a file that was opened, if it may not be read."""
        try:
            self._guard.judge_read(self._root, directory, name, status)
            self._check(directory, (name,), writing=False)
        except BaseException:
            os.close(fd)
            raise

    @contextlib.contextmanager
    def writable(self, path: str, *, create: bool) -> Iterator[Place]:
        """Finds the place that a write goes to.

        Args:
            path: The file; a link is followed to its target.
            create: Whether missing directories are made; they are removed again if the block
                raises.
        """
        with self._found(path, create=create) as place:
            spelled = os.path.normpath(path)
            if self._permits(spelled) and self.real_path(place) != spelled:
                raise ProtectedPathError(f"a link on the way to {spelled}")
            self.judge_write(place)
            yield place

    def check_write(self, path: str) -> None:
        """Raises what keeps a write from the place that it goes to; makes nothing."""
        with self._found(path, create=True, make=False) as place:
            self.judge_write(place)
            if place.status() is not None:
                place.check_writable()
            place.check_takes_names()

    @contextlib.contextmanager
    def exact(self, path: str, *, create: bool) -> Iterator[Place]:
        """Finds the place of a path that had no links in it, for a write that follows none.

        Args:
            path: Relative to the root, as `real_path` said it.
            create: As for `writable`.

        Raises:
            OSError: ELOOP if a directory on the way is a link by now.
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
        """Where a place really is, relative to the root.

        Raises:
            OSError: EXDEV if it left the root meanwhile, ENOTSUP where the system does not tell.
        """
        return self._spelled(place.directory, (place.name,))

    def judge_read(self, place: Place) -> None:
        """Raises PermissionDeniedError if a rule denies that the place is read."""
        self._check(place.directory, (place.name,), writing=False)

    def judge_write(self, place: Place) -> None:
        """Raises if the place may not be written."""
        self._judge_write(place.directory, (place.name,))

    def permitted(self, place: Place) -> str:
        """Where a place really is, if it is closed to writes and open to this one; else empty."""
        if self._rules is None:
            return ""
        path = self.real_path(place)
        return path if self._permits(path) else ""

    def _permits(self, path: str) -> Collection[Name]:
        return () if self._rules is None else self._rules.permits(path)

    def _judge_write(self, directory: int, names: Sequence[str]) -> None:
        # Where nothing is ruled, where it is need not be asked.
        permitted = self._permits(self._spelled(directory, names)) if self._rules else ()
        self._guard.judge_write(self._root, directory, names, permitted)
        self._check(directory, names, writing=True)

    def _check(self, directory: int, names: Sequence[str], *, writing: bool) -> None:
        """Asks the rules about what is really there, not about the way that led to it."""
        if self._rules is not None:
            self._rules.check(self._spelled(directory, names), writing=writing)

    def _spelled(self, directory: int, names: Sequence[str]) -> str:
        top = path_beneath(self._root, directory)
        return "/".join(names if names and top == "." else (top, *names))

    def _refuse_directory(self, path: str, name: str) -> None:
        """Raises if a path can only mean a directory."""
        if name in _NO_NAMES:
            os.close(self._open_directory(self._root, path))
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))

    @contextlib.contextmanager
    def _found(self, path: str, *, create: bool, make: bool = True) -> Iterator[Place]:
        for _ in range(MAX_LINKS):
            head, _, name = path.rpartition("/")
            self._refuse_directory(path, name)
            # As it is spelled too: a closed name may be a link to another place.
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
        """Opens the directory of a name, making what is missing of it.

        Without `make`, what is missing may be made, and the place is that of its first directory.
        """
        fd, missing = self._deepest(path, create=create)
        opened, made = [fd], list[tuple[int, str]]()
        try:
            if missing:
                self._judge_write(fd, (*missing, name))
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
                with contextlib.suppress(OSError):  # Another writer may be using it by now.
                    os.rmdir(part, dir_fd=parent)
            raise
        finally:
            for fd in opened:
                os.close(fd)

    def _deepest(self, path: str, *, create: bool) -> tuple[int, list[str]]:
        """Opens the deepest directory that is there; with the names missing below, to be made."""
        missing: list[str] = []
        while True:
            try:
                return self._open_directory(self._root, path), missing
            except FileNotFoundError:
                path, _, last = path.rpartition("/")
                # A missing directory has no parent that `..` could mean.
                if not create or last == "..":
                    raise
                if last not in {"", "."}:
                    missing.insert(0, last)


def _link_target(directory: int, name: str) -> str | None:
    """Where a link points, or None if the name is no link or nothing."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.ENOENT}:
            return None
        raise


def _status_of(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory)
    except OSError:
        return None


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, "not a regular file")


def _endless() -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP))
