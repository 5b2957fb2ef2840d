"""Replaces files atomically, locks out other writers, and saves what is replaced for undo."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from storage.keeping.changes.models import ABSENT, FileState
from tools.core.errors import ConflictError, InvalidArgumentsError
from tools.sandbox.files.openat import identity, read_up_to
from tools.sandbox.files.resolve import LARGE, Found, Place, digest_of, look

EXPECT_ABSENT = "absent"  # expected instead of a digest if the file must not exist
MAX_EDIT_BYTES = 10_000_000  # limit on the size of an edited file
MOST_LOOKED_AT = 50_000_000
"""Limit on the files that are read to compare them with the expected state."""

LOCK_SECONDS = 10.0  # time limit for waiting on other writers
_POLL_SECONDS = 0.002

_OF_THE_CONTENT = frozenset({"security.capability", "security.evm", "security.ima"})
"""Extended attributes tied to the old content: capabilities and digests."""


class WriteLocks:
    """Allows one writer per directory at a time, among threads and processes.

    A lock on the file would not help, as a replaced file has a new inode each time; its directory
    stays. Between processes the lock is flock(2) on the directory, if the file system supports it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks = weakref.WeakValueDictionary[tuple[int, int], threading.Lock]()

    @contextlib.contextmanager
    def hold(self, directory: int) -> Iterator[None]:
        """Holds the lock of an open directory.

        Raises EBUSY if another writer held it for more than ten seconds.
        """
        deadline = time.monotonic() + LOCK_SECONDS
        key = identity(os.fstat(directory))
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        if not lock.acquire(timeout=LOCK_SECONDS):
            raise _busy()
        try:
            with _flocked(directory, deadline):
                yield
        finally:
            lock.release()


@contextlib.contextmanager
def _flocked(directory: int, deadline: float) -> Iterator[None]:
    import fcntl  # not on Windows

    try:
        # A separate descriptor: O_PATH cannot be locked, and closing releases the lock.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
    except PermissionError:
        yield  # it may be entered but not listed, so only threads are kept apart
        return
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise _busy() from None
                time.sleep(_POLL_SECONDS)
            except OSError:
                break  # the file system has no locks
        yield
    finally:
        os.close(fd)


def _busy() -> OSError:
    return OSError(errno.EBUSY, "another program keeps its directory locked")


def replace_file(
    directory: int,
    name: str,
    data: bytes,
    existing: os.stat_result | None,
    *,
    mode: int | None = None,
) -> None:
    """Replaces a file's content atomically.

    The content goes to a temporary file in the same directory and to disk, and then takes the name
    by rename(2). A reader sees the old file or the new one, a hard link elsewhere keeps the old
    content, and a link swapped in is replaced instead of followed. If the file system supports
    O_TMPFILE (open(2)), the temporary file is named last: a process killed while writing leaves
    nothing behind.

    The new file keeps the owner, mode and extended attributes of `existing`, except for set-user-ID
    and set-group-ID; `mode` replaces its mode, also without those two bits. If it raises OSError,
    nothing is left behind.
    """
    temporary = f".toolcrib-{secrets.token_hex(8)}.tmp"

    def fill(fd: int) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        if existing is not None:
            _keep_owner_and_mode(fd, existing)
            _keep_attributes(fd, f"/proc/self/fd/{directory}/{name}")
        if mode is not None:
            os.fchmod(fd, stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))
        os.fsync(fd)

    try:
        _make(directory, temporary, 0o666 if existing is None else 0o600, fill)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):  # not created, or the first error is more useful
            os.unlink(temporary, dir_fd=directory)
        raise
    _sync_directory(directory)


def remove_file(directory: int, name: str) -> None:
    """Removes a file, a link or an empty directory, and syncs the removal to disk."""
    if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        os.rmdir(name, dir_fd=directory)
    else:
        os.unlink(name, dir_fd=directory)
    _sync_directory(directory)


def _make(directory: int, name: str, mode: int, fill: Callable[[int], None]) -> None:
    """Creates a file and fills it, if possible before it has a name."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):  # not supported everywhere; the fallback reports errors
            fd = os.open(".", os.O_WRONLY | os.O_TMPFILE, mode, dir_fd=directory)
            try:
                fill(fd)
                os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=directory)
            finally:
                os.close(fd)
            return
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=directory)
    try:
        fill(fd)
    finally:
        os.close(fd)


def _keep_owner_and_mode(fd: int, existing: os.stat_result) -> None:
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (existing.st_uid, existing.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(fd, existing.st_uid, existing.st_gid)
    # As for any write (inode(7)): new content must not run as the owner of the old.
    os.fchmod(fd, stat.S_IMODE(existing.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))


def _keep_attributes(fd: int, replaced: str) -> None:
    """Copies access control lists, labels and user attributes, where Linux supports them."""
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(replaced, follow_symlinks=False)
    except OSError:  # unsupported, or the file has disappeared
        return
    for name in names:
        if name in _OF_THE_CONTENT:
            continue
        with contextlib.suppress(OSError):  # only the system may set some of them
            os.setxattr(fd, name, os.getxattr(replaced, name, follow_symlinks=False))


def _sync_directory(directory: int) -> None:
    # The new name is already visible, so a failure to sync the directory is not a failed write.
    with contextlib.suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def whole_content(fd: int, path: str) -> bytes:
    """Reads an open file and closes it."""
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


def check_expected(path: str, old: bytes | None, expected_sha256: str | None) -> None:
    """Raises ConflictError unless the content, or its absence, is as expected."""
    if expected_sha256 is None:
        return
    actual = None if old is None else digest_of(old)
    if expected_sha256 == EXPECT_ABSENT:
        if actual is None:
            return
        raise ConflictError(
            f"The file {path!r} is there already.",
            next_actions=["Give another path, or have it replaced."],
        )
    if actual is not None and actual.startswith(expected_sha256.lower()):
        return
    found = "does not exist" if actual is None else f"has the digest {actual[:12]}"
    raise ConflictError(
        f"The file {path!r} {found}, not the expected {expected_sha256}.",
        next_actions=["Read the file again and base the change on what it holds now."],
    )


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


def look_for(directory: int, name: str, expected: FileState) -> Found:
    """Examines a name with the same limit as the expected state was recorded with."""
    is_large = expected.state.startswith(LARGE)
    return look(directory, name, most_bytes=0 if is_large else MOST_LOOKED_AT)


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
        existing = place.status() if now.mode or now.state.startswith(LARGE) else None
        replace_file(place.directory, place.name, content, existing, mode=mode or None)
