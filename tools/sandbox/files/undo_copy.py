"""Saves the content of a file before it is changed, and puts it back."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol

from storage.keeping.changes.models import ABSENT, FileState
from tools.core.errors import ConflictError
from tools.sandbox.files.openat import open_file, read_up_to
from tools.sandbox.files.replace import digest_of, remove_file, replace_file
from tools.sandbox.files.resolve import Place

MOST_LOOKED_AT = 50_000_000
"""Limit on the files that are read to compare them with the expected state."""

TOO_LARGE = "too large"
UNREADABLE = "unreadable"
NO_FILE = "no regular file"
LINK = "a link"

_LARGE = "large:"


class Found(NamedTuple):
    """The state of a path."""

    state: FileState
    content: bytes | None = None


class ChangeKeeper(Protocol):
    """Saves what a call replaces, so that it can be undone."""

    @property
    def most_bytes(self) -> int:
        """Limit on the files whose content is saved."""

    def keeping(self, path: str, before: Found, after: FileState) -> AbstractContextManager[None]:
        """Records a change on disk, and discards the record if the block raises."""


@contextmanager
def keep_replaced(
    keeper: ChangeKeeper | None,
    place: Place,
    path: Callable[[], str],
    after: str,
    mode: int | None = None,
) -> Iterator[str]:
    """Saves what the block replaces, if changes are recorded and something changes.

    `path` returns the path relative to the root, without links. `after` is the digest of the new
    content, empty for none, and `mode` by default the old one. Yields why the old content is not
    saved; empty if it is.
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


def look_for(directory: int, name: str, expected: FileState) -> Found:
    """Examines a name with the same limit as the expected state was recorded with."""
    is_large = expected.state.startswith(_LARGE)
    return look(directory, name, most_bytes=0 if is_large else MOST_LOOKED_AT)


def state_of(directory: int, name: str, status: os.stat_result) -> FileState:
    """Returns the state of a name whose content is not read."""
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(os.readlink(name, dir_fd=directory))
        return FileState(f"link:{digest_of(target)}", 0, LINK)
    if stat.S_ISREG(status.st_mode):
        return FileState(f"{_LARGE}{status.st_size}:{status.st_mtime_ns}", 0, TOO_LARGE)
    return FileState("directory" if stat.S_ISDIR(status.st_mode) else "other", 0, NO_FILE)


def check_same(place: Place, path: str, expected: FileState) -> None:
    """Raises ConflictError unless a place is in the expected state."""
    now = look_for(place.directory, place.name, expected).state
    if not now.same_as(expected):
        raise ConflictError(
            f"The file {path!r} was changed meanwhile.",
            next_actions=["Look at it again before it is put back."],
        )


def put_back(place: Place, content: bytes | None, mode: int) -> None:
    """Restores a file atomically, or removes what is there.

    A link there is replaced and not followed. `content` is None if nothing was there, and `mode` 0
    if unknown.
    """
    now = look(place.directory, place.name, most_bytes=0).state
    if content is None or now.state == "directory":
        remove_file(place.directory, place.name)
    if content is not None:
        existing = place.status() if now.mode or now.state.startswith("large:") else None
        replace_file(place.directory, place.name, content, existing, mode=mode or None)
