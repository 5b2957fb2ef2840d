"""Temporary directories that are removed even if the server is killed."""

from __future__ import annotations

import fcntl
import os
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from tools.sandbox.processes.scratch import remove_scratch

_PREFIX = "toolcrib-own-"


class PrivateDirectory:
    """A private directory, removed on close or when its process ends.

    It is locked while in use, which makes systemd-tmpfiles(8) and the like leave it alone. Creating
    one removes all unlocked ones with their contents.
    """

    def __init__(self) -> None:
        parent = os.path.realpath(tempfile.gettempdir())
        for path in Path(parent).glob(f"{_PREFIX}*"):
            with suppress(OSError):  # another user's, or in use
                _remove_abandoned(str(path))
        self.path, lock = _create(parent)
        self._remove = weakref.finalize(self, _end, self.path, lock)

    def close(self) -> None:
        """Removes it."""
        self._remove()


def _create(parent: str) -> tuple[str, int]:
    """Creates and locks a directory; retries if it was removed before it was locked."""
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        with suppress(FileNotFoundError, BlockingIOError):
            lock = _locked(path)
            if os.access(path, os.F_OK):
                return path, lock
            _end(path, lock)


def _remove_abandoned(path: str) -> None:
    lock = _locked(path)
    if os.fstat(lock).st_uid == os.geteuid():
        _end(path, lock)
    else:
        os.close(lock)


def _end(path: str, lock: int) -> None:
    remove_scratch(os.fsencode(path))
    os.close(lock)


def _locked(path: str) -> int:
    """Locks a directory; returns the descriptor with the lock."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(fd)
        raise
    return fd
