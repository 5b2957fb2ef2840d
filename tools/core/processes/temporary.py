"""Temporary directories that do not stay where the server was killed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path

__all__ = ["TemporaryPlace"]

_PREFIX = "toolcrib-own-"

_NEW = 60.0
"""Seconds in which a directory may not yet be locked by who has made it."""


class TemporaryPlace:
    """A private directory, removed when it is closed, or when its process ends.

    It is locked as long as it is used: nobody who cleans up, as systemd-tmpfiles(8) does, removes
    it, and whoever makes the next one removes those that nobody has locked.

    Attributes:
        path: Where it is, links resolved.
    """

    def __init__(self) -> None:
        parent = os.path.realpath(tempfile.gettempdir())
        _remove_forgotten(Path(parent))
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        self._remove = weakref.finalize(self, _end, self.path, _locked(self.path))

    def close(self) -> None:
        """Removes it."""
        self._remove()


def _end(path: str, lock: int | None) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _remove_forgotten(parent: Path) -> None:
    for path in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or in use
            status = path.lstat()
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _NEW:
                _end(str(path), _locked(str(path)))


def _locked(path: str) -> int | None:
    """The descriptor that holds a directory's lock; None where there are no locks."""
    try:
        import fcntl  # noqa: PLC0415  # Windows has none
    except ImportError:
        return None
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(fd)
        raise
    return fd
