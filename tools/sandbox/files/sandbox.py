"""Files inside one root: the only way for a tool to access the disk.

A path is resolved while it is opened and never before (`openat.py`, `resolve.py`). The opened file
is then checked (`protect.py`). A write replaces the file atomically (`replace.py`). Windows is
refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from storage.keeping.changes.models import ABSENT, FileState
from tools.core.errors import Action, InvalidArgumentsError, UnavailableError
from tools.sandbox.files.listing import Listing, list_entries
from tools.sandbox.files.openat import (
    DirectoryOpener,
    HeldRoot,
    Root,
    open_beneath,
    read_up_to,
    strip_root,
)
from tools.sandbox.files.protect import Guard
from tools.sandbox.files.replace import (
    ChangeKeeper,
    WriteLocks,
    check_expected,
    check_same,
    keep_replaced,
    look_for,
    put_back,
    replace_file,
    whole_content,
)
from tools.sandbox.files.resolve import Found, Resolver, digest_of
from tools.sandbox.files.sandbox_errors import EXPLAINABLE, explained, explanation, refuse_notation

if TYPE_CHECKING:
    from tools.policy.matching import PlaceRules

MAX_PATH_BYTES = 4096  # limit on the length of a path, like PATH_MAX in Linux
LIST_FIRST = Action("Call {} to see what is there.", "list_directory")

Accepting = Callable[[str, bytes], contextlib.AbstractContextManager[None]]


class FileContent(NamedTuple):
    """The result of a bounded read."""

    data: bytes
    size: int  # size of the whole file when opened
    mtime: float  # time of the last change, Unix seconds
    truncated: bool


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write."""

    path: str  # the given file, relative to the root and without `..`
    size: int
    sha256: str
    created: bool
    lost: str = ""  # why the old content was not saved, if changes are recorded; empty if it was


class Sandbox:
    """Files inside one root.

    Paths are relative to the root, or absolute paths inside it. Every method raises
    OutsideSandboxError for a path that leads out, NotFoundError, InvalidArgumentsError for a path
    that is malformed or names the wrong kind of file, PermissionDeniedError for what the system or
    the protection refuses, and UnavailableError for a disk that is full, read-only or failing.

    Even inside the root, `protected` paths are closed to reads and writes, and `read_only` ones to
    writes. `expected` is the required device and inode of the root; None accepts any. `held` is the
    root itself, even if its path is later redirected.
    """

    def __init__(
        self,
        root: Path,
        *,
        protected: Sequence[Path] = (),
        read_only: Sequence[Path] = (),
        open_directory: DirectoryOpener = open_beneath,
        expected: tuple[int, int] | None = None,
    ) -> None:
        self._root = Path(os.path.abspath(root))  # noqa: PTH100  # links in the root's path are kept
        self._spelled = str(self._root)
        self.held = HeldRoot(self._spelled, expected)
        # Both spellings of a root that is a link; used to compare paths, never to open them.
        self._spellings = (self._spelled, os.path.realpath(root))
        self._guard = Guard(protected, read_only)
        self._open_directory = open_directory
        self._locks = WriteLocks()
        self._rules: PlaceRules | None = None
        self._keeper: ChangeKeeper | None = None
        self._accept: Accepting | None = None
        self._above: tuple[Sandbox, str] | None = None

    @property
    def root(self) -> Path:
        """The root as given, absolute."""
        return self._root

    def ruled(self, rules: PlaceRules, accept: Accepting | None = None) -> Sandbox:
        """Returns the same files, with additional rules checked on each opening.

        `accept` is held while a protected file is written, with its path and content.
        """
        ruled = copy(self)
        ruled._rules, ruled._accept = rules, accept  # noqa: SLF001  # an instance of the same class
        return ruled

    def recorded(self, keeper: ChangeKeeper) -> Sandbox:
        """Returns the same files, with replaced content saved first."""
        recorded = copy(self)
        recorded._keeper = keeper  # noqa: SLF001  # an instance of the same class
        return recorded

    def within(self, path: str) -> Sandbox:
        """Returns the files inside one directory, which links cannot lead out of."""
        inner = copy(self)
        inner._above = (self, path)  # noqa: SLF001  # an instance of the same class
        inner._root = self._root / path  # noqa: SLF001  # the same
        inner._spelled = str(inner._root)  # noqa: SLF001  # the same
        inner._spellings = (inner._spelled, inner._spelled)  # noqa: SLF001  # the same
        return inner

    def relative(self, path: str) -> str:
        """Returns the path relative to the root, without opening anything or resolving links."""
        with explained(path, self._root):
            spelled = os.path.normpath(self._beneath(path))
            if spelled == ".." or spelled.startswith("../"):
                raise OSError(errno.EXDEV, "the path leads out of the root")
            return spelled

    def read(self, path: str, *, max_bytes: int) -> FileContent:
        """Reads at most `max_bytes` of a file; sparse and growing files cost no more."""
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
        """Opens a directory as a program's working directory; the caller closes the descriptor.

        On Linux it is opened with O_PATH: it can be entered and its files opened, but it cannot be
        listed.
        """
        with self._resolving(path) as resolver:
            return resolver.open_directory(self._beneath(path))

    def closed(self) -> frozenset[tuple[int, int]]:
        """Returns device and inode of each place closed to reads, for walks to skip."""
        return self._guard.identities()

    def hides(self, path: str) -> bool:
        """Returns whether listings and searches omit a place: protected, denied or missing."""
        with self._resolving(path) as resolver:
            try:
                return resolver.hides(self._beneath(path))
            except OSError:
                return True

    def closes(self, path: str) -> bool:
        """Returns whether a rule denies reading a path, even if its file has moved."""
        return self._rules is not None and self._rules.hides(path)

    def write(self, path: str, data: bytes, *, expected_sha256: str | None = None) -> Written:
        """Replaces a file's content atomically, or creates the file and its directories.

        Links inside the root are followed. `expected_sha256` is the digest of the current content
        or a prefix of it, or EXPECT_ABSENT for no file.
        """
        return self._replace(path, lambda _old: data, expected_sha256, whole=True)

    def check_write(self, path: str) -> None:
        """Raises the error that any write would raise now; the write itself checks again."""
        with self._resolving(path) as resolver:
            resolver.check_write(self._beneath(path))

    def edit(
        self, path: str, function: Callable[[bytes], bytes], *, expected_sha256: str | None = None
    ) -> Written:
        """Edits a file's content atomically; no concurrent edit is lost.

        `function` computes the new content from the current one; if it raises, nothing changes.
        `expected_sha256` is as for `write`.
        """
        return self._replace(path, function, expected_sha256, whole=False)

    def examine(self, path: str, expected: FileState) -> Found:
        """Returns the state of a path without links, examined like the expected state."""
        with self._resolving(path) as resolver:
            if self._rules is not None:
                self._rules.check(path, writing=False)  # also if the file no longer exists
            try:
                with resolver.exact(path, create=False) as place:
                    return look_for(place.directory, place.name, expected)
            except FileNotFoundError:
                return Found(ABSENT)

    def restore(self, path: str, content: bytes | None, mode: int, *, expected: FileState) -> None:
        """Restores a path to a former state atomically, or removes what is there.

        A link there is replaced and never followed. `content` is None if nothing was there.
        """
        with (
            self._resolving(path) as resolver,
            resolver.exact(path, create=content is not None) as place,
            self._locks.hold(place.directory),
        ):
            check_same(place, path, expected)
            after = "" if content is None else digest_of(content)
            with keep_replaced(self._keeper, place, lambda: path, after, mode):
                resolver.judge_write(place)  # again, as waiting took time
                put_back(place, content, mode)

    def list_directory(self, path: str = ".", *, depth: int = 1, limit: int = 1000) -> Listing:
        """Lists a directory, `depth` levels of it and `limit` entries, without following links."""
        with self._resolving(path) as resolver:
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
            self._resolving(path) as resolver,
            resolver.writable(self._beneath(path), create=whole) as place,
            self._locks.hold(place.directory),
        ):
            reads = not whole or expected_sha256 is not None
            if reads:
                resolver.judge_read(place)  # the result reveals the content, if only as a digest
            existing = place.status()
            old: bytes | None = None
            if existing is not None:
                place.check_writable()
                if reads:
                    old = whole_content(place.open_read(), path)
            elif not whole:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            check_expected(path, old, expected_sha256)
            data = function(old or b"")
            # The parent of a link's target differs from what the path says.
            above = ".." in path.split("/")
            shown = resolver.real_path(place) if above else self.relative(path)
            after = digest_of(data)
            obeyed = resolver.permitted(place)
            with (
                self._accept(obeyed, data) if self._accept and obeyed else contextlib.nullcontext(),
                keep_replaced(
                    self._keeper, place, lambda: resolver.real_path(place), after
                ) as lost,
            ):
                resolver.judge_write(place)  # again, as waiting and editing took time
                replace_file(place.directory, place.name, data, existing)
            return Written(shown, len(data), after, existing is None, lost)

    def _beneath(self, path: str) -> str:
        """Returns the path relative to the root, checking only its form."""
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
        with self._opened_root() as root:
            return self._resolver(root).open_file(self._beneath(path))

    @contextlib.contextmanager
    def _resolving(self, path: str) -> Iterator[Resolver]:
        """Opens the root to resolve a path, and explains errors about it."""
        try:
            with self._opened_root() as fd:
                yield self._resolver(fd)
        except EXPLAINABLE as error:
            raise explanation(error, path, self._root) from error

    def _resolver(self, root: int) -> Resolver:
        return Resolver(Root(root, self._spellings), self._guard, self._open_directory, self._rules)

    @contextlib.contextmanager
    def _opened_root(self) -> Iterator[int]:
        if os.name != "posix":
            raise UnavailableError(
                "File tools do not work on this system yet.",
                next_actions=["Run the server on Linux or macOS, or in WSL."],
            )
        if self._above is None:
            yield self.held.check()
            return
        outer, path = self._above
        fd = outer.open_directory(path)
        try:
            yield fd
        finally:
            os.close(fd)
