"""Where write-protected paths that programs made go: moved out of the root, not deleted."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path

from tools.sandbox.processes.protection.scan import grant_owner, open_folder

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC

_DEEPEST = 64
"""Levels of directories that are copied to another disk; what lies deeper is deleted."""


class Quarantine:
    """A directory with what was moved at one time; it is made when something is.

    Args:
        directory: Where those directories are made.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._batch: Path | None = None

    def take(self, directory: int, name: str, path: str) -> Path:
        """Moves something out of the root.

        Where that fails, as on a full disk, it is renamed: no program obeys it by that name.

        Args:
            directory: Descriptor of the directory that it is in.
            name: Its name there.
            path: Its path relative to the root.

        Returns:
            Where it is now; relative to the root where it is renamed.

        Raises:
            OSError: It can be neither moved nor renamed.
        """
        # A directory that moves to another parent is itself changed.
        grant_owner(directory, name, stat.S_IRWXU)
        try:
            return self._move(directory, name, path)
        except OSError:
            renamed = f"quarantined-{secrets.token_hex(4)}"
            os.rename(name, renamed, src_dir_fd=directory, dst_dir_fd=directory)
            return Path(path).with_name(renamed)

    def _move(self, directory: int, name: str, path: str) -> Path:
        if self._batch is None:
            moment = datetime.now(tz=UTC).strftime("%Y%m%dT%H%M%SZ")
            batch = self._directory / f"{moment}-{secrets.token_hex(4)}"
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            batch.mkdir(mode=0o700)
            self._batch = batch
        try:
            place = _made(self._batch / path)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            place = _made(self._batch / secrets.token_hex(4) / name)
        try:
            os.rename(name, place, src_dir_fd=directory)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(directory, name, place, _DEEPEST)
            _remove(directory, name)
        return place


def _made(place: Path) -> Path:
    """Makes the directory of a path; raises for a path that no system call takes."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        place.lstat()
    return place


def _copy(directory: int, name: str, place: Path, depth: int) -> None:
    """Copies files, directories and links; pipes, sockets and devices hold nothing."""
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        place.symlink_to(os.readlink(name, dir_fd=directory))
    elif stat.S_ISREG(status.st_mode):
        source = os.fdopen(os.open(name, _READ, dir_fd=directory), "rb")
        with source, place.open("xb") as target:
            shutil.copyfileobj(source, target)
    elif stat.S_ISDIR(status.st_mode) and depth:
        place.mkdir(mode=0o700)
        with open_folder(directory, name, rights=stat.S_IRWXU) as fd:
            for each in os.listdir(fd):  # noqa: PTH208  # of a descriptor
                with contextlib.suppress(FileNotFoundError):
                    _copy(fd, each, place / each, depth - 1)


def _remove(directory: int, name: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=directory)
    else:
        os.unlink(name, dir_fd=directory)
