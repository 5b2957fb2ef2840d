"""What is at a name in an open directory, kept before it is changed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol

from storage.keeping.changes.models import ABSENT, FileState
from tools.sandbox.files.nofollow import open_file, read_up_to
from tools.sandbox.files.place import Place

MOST_LOOKED_AT = 50_000_000
"""Bytes of the largest file that is read to know whether it is the one expected."""

TOO_LARGE = "too large"
UNREADABLE = "unreadable"
NO_FILE = "no regular file"
LINK = "a link"

_LARGE = "large:"


class Found(NamedTuple):
    """What is at a path.

    Attributes:
        state: What it is.
        content: Of a file whose content was read; else None.
    """

    state: FileState
    content: bytes | None = None


class ChangeKeeper(Protocol):
    """Keeps what a call replaces, so that it can be taken back."""

    @property
    def most_bytes(self) -> int:
        """Bytes of the largest file whose content is kept."""

    def keeping(self, path: str, before: Found, after: FileState) -> AbstractContextManager[None]:
        """Keeps a change on the disk, and removes it again if the block raises.

        Args:
            path: Relative to the root, without links.
            before: What is replaced.
            after: What takes its place.
        """


@contextmanager
def kept(
    keeper: ChangeKeeper | None,
    place: Place,
    path: Callable[[], str],
    after: str,
    mode: int | None = None,
) -> Iterator[str]:
    """Keeps what the block replaces, where changes are kept and it is one.

    Args:
        keeper: Keeps it.
        place: Where.
        path: Tells the path relative to the root, without links.
        after: The digest of what takes its place; empty for nothing.
        mode: The mode of that; that of what is replaced by default.

    Yields:
        Why what is there is not kept; empty where it is.
    """
    if keeper is None:
        yield ""
        return
    before = look(place.directory, place.name, most_bytes=keeper.most_bytes)
    mode = before.state.mode if mode is None else mode
    new = FileState(after, mode & ~(stat.S_ISUID | stat.S_ISGID)) if after else ABSENT
    if before.state.same_as(new):
        yield ""
        return
    with keeper.keeping(path(), before, new):
        yield before.state.why


def look(directory: int, name: str, *, most_bytes: int) -> Found:
    """Looks at a name, without following a link or waiting for a pipe.

    Args:
        directory: Descriptor of the directory.
        name: Name in it, without a slash.
        most_bytes: Bytes of the largest file that is read.

    Raises:
        OSError: If it cannot be looked at.
    """
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
    if len(content) > most_bytes:  # it grew
        return Found(state_of(directory, name, status))
    return Found(FileState(digest_of(content), status.st_mode), content)


def look_for(directory: int, name: str, expected: FileState) -> Found:
    """Looks at a name in the way in which an earlier look found what is expected there.

    Raises:
        OSError: If it cannot be looked at.
    """
    is_large = expected.state.startswith(_LARGE)
    return look(directory, name, most_bytes=0 if is_large else MOST_LOOKED_AT)


def state_of(directory: int, name: str, status: os.stat_result) -> FileState:
    """What is said of a name whose content is not read.

    Raises:
        OSError: If a link is gone by now.
    """
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(os.readlink(name, dir_fd=directory))
        return FileState(f"link:{digest_of(target)}", 0, LINK)
    if stat.S_ISREG(status.st_mode):
        return FileState(f"{_LARGE}{status.st_size}:{status.st_mtime_ns}", 0, TOO_LARGE)
    return FileState("directory" if stat.S_ISDIR(status.st_mode) else "other", 0, NO_FILE)


def digest_of(content: bytes) -> str:
    """The SHA-256 of a content, hexadecimal."""
    return hashlib.sha256(content).hexdigest()
