"""Writes a file or a folder atomically: complete, or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from storage.errors import BackupError

STALE_SECONDS = 3600
"""Age from which a temporary file counts as left by a killed writer; none runs that long."""

_TEMPORARY = re.compile(r"\.toolcrib-[0-9a-f]{16}\.tmp")
"""The temporary names of all our writers, including `tools.sandbox.files.replace`."""

_BESIDE = ("", "-journal", "-wal", "-shm")
"""Suffixes of the files that SQLite creates next to a database."""

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@contextmanager
def atomic_file(target: Path, *, replace: bool) -> Iterator[Path]:
    """Yields a new private file in the target's directory, and renames it when the block ends.

    Raises FileExistsError if the target exists and must not be replaced. After any error nothing is
    left behind.
    """
    temporary = _temporary(target)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        yield temporary
        _sync(temporary)
        if replace:
            temporary.replace(target)
        else:
            _take_name(temporary, target)
        _sync(target.parent)
    finally:
        for ending in _BESIDE:
            temporary.with_name(temporary.name + ending).unlink(missing_ok=True)


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yields a new private folder, and renames it to a missing or empty one at the end."""
    temporary = _temporary(target)
    temporary.mkdir(mode=0o700)
    try:
        yield temporary
        temporary.rename(target)  # over an empty folder, never over a full one
        _sync(target.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextmanager
def write_errors(target: Path) -> Iterator[None]:
    """Translates errors while writing a target to a BackupError with advice."""
    try:
        yield
    except FileExistsError as error:
        raise BackupError(f"{target} exists.", suggestions=("Name another place.",)) from error
    except (OSError, sqlite3.OperationalError) as error:
        raise BackupError(
            f"{target} cannot be written: {reason(error)}.",
            suggestions=("Free some space there, or name another place; nothing was left behind.",),
        ) from error


def reason(error: Exception) -> str:
    """Returns the error text of the system or SQLite, without a temporary file's name."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def is_temporary(path: Path) -> bool:
    """Returns whether it is a file that a killed writer of ours left."""
    name = path.name
    return any(_TEMPORARY.fullmatch(name.removesuffix(ending)) for ending in _BESIDE)


def free_name(path: Path, why: str) -> Path:
    """Returns a free path in the same directory: its name, the reason, and the time."""
    stem = f"{path.name}-{why}-{datetime.now():%Y%m%d-%H%M%S}"  # noqa: DTZ005  # the time on the wall
    names = [stem, *(f"{stem}-{number}" for number in range(2, 100))]
    return next(each for each in map(path.with_name, names) if not os.path.lexists(each))


def remove_stale(root: Path) -> list[Path]:
    """Removes temporary files left by killed writers in a directory and everything inside it.

    Links are not followed. Files of other users are kept, as are files so young that their writer
    may still run. Returns the removed files.
    """
    removed = []
    before = time.time() - STALE_SECONDS
    for folder, _, names, descriptor in os.fwalk(root):
        for name in names:
            if not is_temporary(Path(name)):
                continue
            with suppress(OSError):
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
                if ours and found.st_mtime < before:
                    os.unlink(name, dir_fd=descriptor)
                    removed.append(Path(folder, name))
    return removed


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary(target: Path) -> Path:
    return target.with_name(f".toolcrib-{secrets.token_hex(8)}.tmp")


def _take_name(temporary: Path, target: Path) -> None:
    """Renames a file to a name that must not exist, without a race."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):  # a file system without links, as on many USB sticks
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        temporary.rename(target)
