"""A file replaced in one step, and the lock that keeps two writers apart."""

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

from tools.sandbox.files.openat import identity

LOCK_SECONDS = 10.0
"""How long a writer waits for others before it gives up."""

_POLL_SECONDS = 0.002

_OF_THE_CONTENT = frozenset({"security.capability", "security.evm", "security.ima"})
"""Extended attributes that vouch for the old content: rights of a program, and digests."""


class WriteLocks:
    """One writer a directory at a time, among threads and among processes.

    A replaced file has a new inode each time, so a lock on the file itself would guard nothing; its
    directory stays. Between processes the lock is flock(2) on the directory, where the file system
    has it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks = weakref.WeakValueDictionary[tuple[int, int], threading.Lock]()

    @contextlib.contextmanager
    def held(self, directory: int) -> Iterator[None]:
        """Holds the lock of an open directory.

        Args:
            directory: Descriptor of the directory that is written to.

        Raises:
            OSError: EBUSY, if another writer kept it for more than ten seconds.
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
        # A descriptor of our own: O_PATH cannot be locked, and closing it releases the lock.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
    except PermissionError:
        yield  # A directory that may be entered but not listed: threads alone are kept apart.
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
                break  # A file system without locks.
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
    """Puts new content in the place of a name, whole or not at all.

    The content goes to a temporary file in the same directory, to the disk, and then takes the name
    by rename(2): a reader sees the old file or the new one, a hard link elsewhere keeps the old
    content, a link swapped in is replaced and not followed. It gets its temporary name last where
    the file system can do so (O_TMPFILE, open(2)): a process killed while it writes leaves none.

    Args:
        directory: Descriptor of the directory.
        name: Name in it, without a slash.
        data: The whole new content.
        existing: Status of the file that is replaced, whose owner, mode and extended attributes the
            new one keeps, but for set-user-ID and set-group-ID.
        mode: The mode of the new file, instead; without those two bits as well.

    Raises:
        OSError: If the disk, the rights or the name refuse; nothing is left behind.
    """
    temporary = f".toolcrib-{secrets.token_hex(8)}.tmp"

    def fill(fd: int) -> None:
        _write_all(fd, data)
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
        with contextlib.suppress(OSError):  # It was not made, or the first error says more.
            os.unlink(temporary, dir_fd=directory)
        raise
    _sync_directory(directory)


def remove_file(directory: int, name: str) -> None:
    """Removes a file, a link or an empty directory, and has the disk confirm it.

    Raises:
        OSError: If the disk or the rights refuse, or the directory is not empty.
    """
    if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        os.rmdir(name, dir_fd=directory)
    else:
        os.unlink(name, dir_fd=directory)
    _sync_directory(directory)


def _make(directory: int, name: str, mode: int, fill: Callable[[int], None]) -> None:
    """Makes a file and fills it, if possible before it has a name."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):  # Not everywhere; the other way says what is wrong.
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


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _keep_owner_and_mode(fd: int, existing: os.stat_result) -> None:
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (existing.st_uid, existing.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(fd, existing.st_uid, existing.st_gid)
    # As at any write (inode(7)): new content never runs as the owner of the old.
    os.fchmod(fd, stat.S_IMODE(existing.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))


def _keep_attributes(fd: int, replaced: str) -> None:
    """Copies access control lists, labels and the user's own attributes, where Linux has them."""
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(replaced, follow_symlinks=False)
    except OSError:  # None are kept here, or the file is gone by now.
        return
    for name in names:
        if name in _OF_THE_CONTENT:
            continue
        with contextlib.suppress(OSError):  # Some only the system may give.
            os.setxattr(fd, name, os.getxattr(replaced, name, follow_symlinks=False))


def _sync_directory(directory: int) -> None:
    # The new name is already visible; a directory that cannot be synced is not a failed write.
    with contextlib.suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
