"""Where a file is or would be: an open directory beneath the root, and a name in it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from tools.core.openat import MAX_LINKS, OPEN_DIRECTORY, DirectoryOpener, Root, strip_root
from tools.core.protect import Guard

__all__ = ["Place", "Resolver"]

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_READ_FLAGS = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


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
        # Looked at first, because opening some devices does something; O_NONBLOCK and the second
        # look are for a pipe or device that is swapped in between.
        status = os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        _check_regular(status)
        fd = os.open(self.name, _READ_FLAGS, dir_fd=self.directory)
        try:
            _check_regular(os.fstat(fd))
        except OSError:
            os.close(fd)
            raise
        return fd

    def check_writable(self) -> None:
        """Raises EACCES if the rights of the file there forbid writing.

        Replacing it would need rights on the directory only; a read-only file is meant to stay.
        """
        if os.fstatvfs(self.directory).f_flag & os.ST_RDONLY:
            return  # Making the new file fails with the better reason.
        effective = os.access in os.supports_effective_ids
        if not os.access(self.name, os.W_OK, dir_fd=self.directory, effective_ids=effective):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


class Resolver:
    """Finds places beneath one open root.

    Args:
        root: The open root.
        guard: Judges each place.
        open_directory: How directories are resolved.
    """

    def __init__(self, root: Root, guard: Guard, open_directory: DirectoryOpener) -> None:
        self._root = root
        self._guard = guard
        self._open_directory = open_directory

    @contextlib.contextmanager
    def directory(self, path: str) -> Iterator[int]:
        """Opens a directory for reading its entries.

        Raises:
            OSError: If it cannot be opened beneath the root.
            ProtectedPathError: If it is protected.
        """
        fd = self._open_directory(self._root, path)
        try:
            self._guard.judge(self._root, fd, (), writing=False)
            yield fd
        finally:
            os.close(fd)

    def open_file(self, path: str) -> int:
        """Opens a regular file for reading.

        Raises:
            OSError: If it cannot be opened beneath the root.
            ProtectedPathError: If it is protected.
        """
        for _ in range(MAX_LINKS):
            with self._found(path, create=False) as place:
                self._guard.judge(self._root, place.directory, (place.name,), writing=False)
                try:
                    return place.open_read()
                except OSError as error:
                    # ELOOP: a link was swapped in since the place was found; find it again.
                    if error.errno != errno.ELOOP:
                        raise
        raise _endless()

    @contextlib.contextmanager
    def writable(self, path: str, *, create: bool) -> Iterator[Place]:
        """Finds the place that a write goes to.

        Args:
            path: The file; a link is followed to its target.
            create: Whether missing directories are made. Those made are removed again if the
                block raises.

        Raises:
            OSError: If there is no such place beneath the root.
            ProtectedPathError: If it is protected.
        """
        with self._found(path, create=create) as place:
            self.judge_write(place)
            yield place

    def judge_write(self, place: Place) -> None:
        """Raises ProtectedPathError or StrayDirectoryError if the place may not be written."""
        self._guard.judge(self._root, place.directory, (place.name,), writing=True)

    @contextlib.contextmanager
    def _found(self, path: str, *, create: bool) -> Iterator[Place]:
        for _ in range(MAX_LINKS):
            head, _, name = path.rpartition("/")
            if name in {"", ".", ".."}:
                os.close(self._open_directory(self._root, path))
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            with self._parent(head, name, create=create) as directory:
                target = _link_target(directory, name)
                if target is None:
                    yield Place(directory, name)
                    return
            path = self._after_link(head, target)
        raise _endless()

    def _after_link(self, head: str, target: str) -> str:
        if target.startswith("/"):
            return strip_root(target, self._root.spellings)
        return f"{head}/{target}" if head else target

    @contextlib.contextmanager
    def _parent(self, path: str, name: str, *, create: bool) -> Iterator[int]:
        """Opens the directory of a name, making what is missing of it."""
        missing: list[str] = []
        while True:
            try:
                fd = self._open_directory(self._root, path)
                break
            except FileNotFoundError:
                path, _, last = path.rpartition("/")
                # A missing directory has no parent that `..` could mean.
                if not create or last == "..":
                    raise
                if last not in {"", "."}:
                    missing.insert(0, last)
        opened, made = [fd], list[tuple[int, str]]()
        try:
            if missing:
                self._guard.judge(self._root, fd, (*missing, name), writing=True)
            for part in missing:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=opened[-1])
                    made.append((opened[-1], part))
                opened.append(os.open(part, OPEN_DIRECTORY | _NOFOLLOW, dir_fd=opened[-1]))
            yield opened[-1]
        except BaseException:
            for parent, part in reversed(made):
                with contextlib.suppress(OSError):  # Another writer may be using it by now.
                    os.rmdir(part, dir_fd=parent)
            raise
        finally:
            for fd in opened:
                os.close(fd)


def _link_target(directory: int, name: str) -> str | None:
    """Where a link points, or None if the name is no link or nothing."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.ENOENT}:
            return None
        raise


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, "not a regular file")


def _endless() -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP))
