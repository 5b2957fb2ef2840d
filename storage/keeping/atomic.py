"""A file or a folder that takes its place at the end, whole or not at all."""

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
"""Age from which a temporary file was left by a writer that was killed: none works so long."""

_TEMPORARY = re.compile(r"\.toolcrib-[0-9a-f]{16}\.tmp")
"""The names that every writer of ours gives, those of `tools.sandbox.files.replace` too."""

_BESIDE = ("", "-journal", "-wal", "-shm")
"""What SQLite may put beside a file."""

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@contextmanager
def atomic_file(target: Path, *, replace: bool) -> Iterator[Path]:
    """A new private file beside the target, which takes the target's name when the block ends.

    Args:
        target: The name it is to have.
        replace: Whether it may take the place of a file that has the name already.

    Raises:
        FileExistsError: If the name is taken and may not be.
        OSError: If the disk or the rights refuse; nothing is left behind.
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
    """A new private folder beside the target, which takes its name when the block ends.

    Args:
        target: The name it is to have, which nothing or an empty folder has.

    Raises:
        OSError: If the disk or the rights refuse, or the name is taken; nothing is left behind.
    """
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
    """Turns what the disk of a target refuses into an error with advice."""
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
    """What the system or SQLite says, without the name of a temporary file."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def is_temporary(path: Path) -> bool:
    """Whether it is what a writer of ours leaves when it is killed."""
    name = path.name
    return any(_TEMPORARY.fullmatch(name.removesuffix(ending)) for ending in _BESIDE)


def free_name(path: Path, why: str) -> Path:
    """A name beside a path that nothing has: its own, why it is moved there, and the time."""
    stem = f"{path.name}-{why}-{datetime.now():%Y%m%d-%H%M%S}"  # noqa: DTZ005  # the time on the wall
    names = [stem, *(f"{stem}-{number}" for number in range(2, 100))]
    return next(each for each in map(path.with_name, names) if not os.path.lexists(each))


def remove_stale(root: Path) -> list[Path]:
    """Removes what killed writers of ours left in a directory and all beneath it.

    Links are not followed, and no file is removed that is another user's, or young enough that its
    writer may be at work.

    Returns:
        What was removed.
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
    """Has a file or a folder written to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary(target: Path) -> Path:
    return target.with_name(f".toolcrib-{secrets.token_hex(8)}.tmp")


def _take_name(temporary: Path, target: Path) -> None:
    """Gives a file a name that nothing has, not even by now."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):  # a file system without links, as on many USB sticks
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        temporary.rename(target)
