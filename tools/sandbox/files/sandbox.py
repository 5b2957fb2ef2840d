"""Files beneath one root: the only way in which a tool touches the disk.

A path is resolved while it is opened and never before (`openat.py`, `place.py`); what was opened is
judged (`protect.py`); a write replaces the file in one step (`replace.py`). On Windows, where these
have no counterpart yet, every call is refused with UnavailableError.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from tools.core.errors import ConflictError, InvalidArgumentsError, UnavailableError
from tools.sandbox.files.listing import Listing, list_entries
from tools.sandbox.files.nofollow import read_up_to
from tools.sandbox.files.openat import (
    OPEN_DIRECTORY,
    DirectoryOpener,
    Root,
    open_beneath,
    strip_root,
)
from tools.sandbox.files.place import Resolver
from tools.sandbox.files.protect import Guard
from tools.sandbox.files.replace import WriteLocks, replace_file
from tools.sandbox.files.sandbox_errors import EXPLAINABLE, explained, explanation, refuse_notation

if TYPE_CHECKING:
    from tools.policy.places import PlaceRules

__all__ = ["FileContent", "Sandbox", "Written"]

MAX_PATH_BYTES = 4096
"""Longest path that is looked at, as PATH_MAX in Linux."""

LIST_FIRST = "Call list_directory to see what is there."

MAX_EDIT_BYTES = 10_000_000
"""Largest file that is edited in memory."""


class FileContent(NamedTuple):
    """What a bounded read found.

    Attributes:
        data: The first bytes, at most as many as were asked for.
        size: Bytes in the whole file when it was opened.
        mtime: Time of the last change, Unix seconds.
        truncated: Whether the file has more than `data`.
    """

    data: bytes
    size: int
    mtime: float
    truncated: bool


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did.

    Attributes:
        path: The file that was given, relative to the root; without `..`.
        size: Bytes in the file now.
        sha256: Digest of its content, hexadecimal.
        created: Whether the file did not exist before.
    """

    path: str
    size: int
    sha256: str
    created: bool


class Sandbox:
    """Files beneath one root.

    Paths are relative to the root, or absolute and spelled as beneath it. Every method raises
    OutsideSandboxError for a path that leads out, NotFoundError, InvalidArgumentsError for a path
    that is malformed or names the wrong kind of file, PermissionDeniedError for what the system or
    the protection refuses, and UnavailableError for a disk that is full, read-only or failing.

    Args:
        root: The directory; it has to exist when a path is opened.
        protected: Paths closed to reads and writes even inside the root.
        read_only: Paths closed to writes.
        open_directory: How directories are resolved.
    """

    def __init__(
        self,
        root: Path,
        *,
        protected: Sequence[Path] = (),
        read_only: Sequence[Path] = (),
        open_directory: DirectoryOpener = open_beneath,
    ) -> None:
        self._root = Path(os.path.abspath(root))  # noqa: PTH100  # the root's own links stay as given
        self._spelled = str(self._root)
        # Both names of a root that is a link; used to compare spellings, never to open.
        self._spellings = (self._spelled, os.path.realpath(root))
        self._guard = Guard(protected, read_only)
        self._open_directory = open_directory
        self._locks = WriteLocks()
        self._rules: PlaceRules | None = None

    @property
    def root(self) -> Path:
        """The root as given, absolute."""
        return self._root

    def ruled(self, rules: PlaceRules) -> Sandbox:
        """Returns the same files, each of which is also judged by rules when it is opened."""
        ruled = copy(self)
        ruled._rules = rules  # noqa: SLF001  # it is of this very class
        return ruled

    def relative(self, path: str) -> str:
        """The path relative to the root, as it is spelled; nothing is opened.

        Args:
            path: Relative to the root, or absolute and beneath it.

        Raises:
            InvalidArgumentsError: If it is empty, too long or not a path.
            OutsideSandboxError: If it is spelled as leading out of the root.
        """
        with explained(path, self._root):
            spelled = os.path.normpath(self._beneath(path))
            if spelled == ".." or spelled.startswith("../"):
                raise OSError(errno.EXDEV, "the path leads out of the root")
            return spelled

    def read(self, path: str, *, max_bytes: int) -> FileContent:
        """Reads a file, at most `max_bytes` of it; a sparse or growing file costs no more."""
        try:
            fd, status = self._open_file(path)
            try:
                data = read_up_to(fd, max_bytes + 1, status.st_size)
            finally:
                os.close(fd)
        except EXPLAINABLE as error:
            raise explanation(error, path, self._root) from error
        cut = len(data) > max_bytes
        return FileContent(
            data[:max_bytes] if cut else data, status.st_size, status.st_mtime, truncated=cut
        )

    def open_read(self, path: str) -> BinaryIO:
        """Opens a regular file for reading, unbuffered."""
        with explained(path, self._root):
            return os.fdopen(self._open_file(path)[0], "rb", buffering=0)

    def open_directory(self, path: str = ".") -> int:
        """Opens a directory, for a program that works in it; the caller closes the descriptor.

        On Linux it has O_PATH: one may change to it and open what is in it, but not read its
        entries.
        """
        with explained(path, self._root), self._resolver() as resolver:
            return resolver.open_directory(self._beneath(path))

    def closed(self) -> frozenset[tuple[int, int]]:
        """Device and inode of each place that is closed to reads, for a walk to pass over."""
        return self._guard.identities()

    def hides(self, path: str) -> bool:
        """Whether a listing or a search leaves a place out: protected, denied, or not there."""
        with explained(path, self._root), self._resolver() as resolver:
            try:
                return resolver.hides(self._beneath(path))
            except OSError:
                return True

    def write(self, path: str, data: bytes, *, expected_sha256: str | None = None) -> Written:
        """Replaces a file's content in one step, or creates the file and its directories.

        Args:
            path: The file; a link inside the root is followed to its target.
            data: The whole new content.
            expected_sha256: Digest of the present content, hexadecimal, or its beginning.

        Raises:
            ConflictError: If the present content has another digest.
        """
        return self._replace(path, lambda _old: data, expected_sha256, whole=True)

    def edit(
        self,
        path: str,
        function: Callable[[bytes], bytes],
        *,
        expected_sha256: str | None = None,
    ) -> Written:
        """Replaces a file's content by a function of it; no edit made meanwhile is lost.

        Args:
            path: The file, which has to exist.
            function: Makes the new content from the present one; if it raises, nothing changes.
            expected_sha256: Digest of the present content, hexadecimal, or its beginning.

        Raises:
            ConflictError: If the present content has another digest.
        """
        return self._replace(path, function, expected_sha256, whole=False)

    def list_directory(self, path: str = ".", *, depth: int = 1, limit: int = 1000) -> Listing:
        """Lists a directory, `depth` levels of it and `limit` entries, without following links."""
        with explained(path, self._root), self._resolver() as resolver:
            relative = self._beneath(path)
            fd = resolver.open_directory(relative)
            try:
                return list_entries(
                    fd,
                    os.path.normpath(relative),
                    depth=depth,
                    limit=limit,
                    hides=self._guard.hides,
                    leaves_out=resolver.leaves_out(fd),
                )
            finally:
                os.close(fd)

    def _replace(
        self,
        path: str,
        function: Callable[[bytes], bytes],
        expected_sha256: str | None,
        *,
        whole: bool,
    ) -> Written:
        with (
            explained(path, self._root),
            self._resolver() as resolver,
            resolver.writable(self._beneath(path), create=whole) as place,
            self._locks.held(place.directory),
        ):
            reads = not whole or expected_sha256 is not None
            if reads:
                resolver.judge_read(place)  # What is found is told, be it as a digest.
            existing = place.status()
            old: bytes | None = None
            if existing is not None:
                place.check_writable()
                if reads:
                    old = _whole(place.open_read(), path)
            elif not whole:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            _expect(path, old, expected_sha256)
            data = function(old or b"")
            resolver.judge_write(place)  # Again: waiting and editing took time.
            # What lies above a link's target is not what its spelling says.
            above = ".." in path.split("/")
            told = resolver.real_path(place) if above else self.relative(path)
            replace_file(place.directory, place.name, data, existing)
            digest = hashlib.sha256(data).hexdigest()
            return Written(told, len(data), digest, existing is None)

    def _beneath(self, path: str) -> str:
        """The path relative to the root, checked in form only."""
        if not path:
            raise InvalidArgumentsError(
                "The path is empty.", next_actions=["Give a path relative to the root."]
            )
        if "\0" in path:
            raise InvalidArgumentsError(
                f"The path {path!r} contains a NUL character.", next_actions=[LIST_FIRST]
            )
        try:
            length = len(os.fsencode(path))
        except UnicodeEncodeError:
            raise InvalidArgumentsError(
                f"The path {path!r} is not valid Unicode.", next_actions=[LIST_FIRST]
            ) from None
        if length > MAX_PATH_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        if path.startswith("/"):
            return strip_root(path, self._spellings)
        if path[0] in "~$fF":
            refuse_notation(path, self._spellings)
        return path

    def _open_file(self, path: str) -> tuple[int, os.stat_result]:
        """Opens a regular file for reading; the descriptor is the caller's."""
        beneath = self._beneath(path)
        fd = self._open_root()
        try:
            return self._resolver_at(fd).open_file(beneath)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _resolver(self) -> Iterator[Resolver]:
        fd = self._open_root()
        try:
            yield self._resolver_at(fd)
        finally:
            os.close(fd)

    def _resolver_at(self, fd: int) -> Resolver:
        root = Root(fd, self._spellings)
        return Resolver(root, self._guard, self._open_directory, self._rules)

    def _open_root(self) -> int:
        if os.name != "posix":
            raise UnavailableError(
                "File tools do not work on this system yet.",
                next_actions=["Run the server on Linux or macOS, or in WSL."],
            )
        try:
            return os.open(self._spelled, OPEN_DIRECTORY)
        except OSError as error:
            raise UnavailableError(
                f"The root {self._spelled!r} cannot be opened: {error.strerror}.",
                next_actions=["Ask the user to create it or to configure another root."],
            ) from error


def _whole(fd: int, path: str) -> bytes:
    try:
        data = read_up_to(fd, MAX_EDIT_BYTES + 1, os.fstat(fd).st_size)
    finally:
        os.close(fd)
    if len(data) > MAX_EDIT_BYTES:
        raise InvalidArgumentsError(
            f"The file {path!r} is larger than {MAX_EDIT_BYTES} bytes, too large to be edited.",
            next_actions=["Write a new file, or split this one first."],
        )
    return data


def _expect(path: str, old: bytes | None, expected_sha256: str | None) -> None:
    if expected_sha256 is None:
        return
    actual = None if old is None else hashlib.sha256(old).hexdigest()
    if actual is not None and actual.startswith(expected_sha256.lower()):
        return
    found = "does not exist" if actual is None else f"has the digest {actual[:12]}"
    raise ConflictError(
        f"The file {path!r} {found}, not the expected {expected_sha256}.",
        next_actions=["Read the file again and base the change on what it holds now."],
    )
