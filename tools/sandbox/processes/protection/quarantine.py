"""Moves away what programs created under protected or denied names."""

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

_DEEPEST = 64  # limit on the depth of directories copied to another disk; deeper ones are deleted


class Quarantine:
    """A directory for the files moved at one time, created on first use."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._batch: Path | None = None

    def take(self, directory: int, name: str, path: str) -> Path:
        """Moves a file or directory out of the root; returns its new path.

        If that fails, as on a full disk, renames it: programs do not obey it under the new name,
        which is then relative to the root.
        """
        # Moving a directory to another parent modifies it.
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
            place = _make_parent(self._batch / path)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            place = _make_parent(self._batch / secrets.token_hex(4) / name)
        try:
            os.rename(name, place, src_dir_fd=directory)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(directory, name, place, _DEEPEST)
            if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=directory)
            else:
                os.unlink(name, dir_fd=directory)
        return place


def _make_parent(place: Path) -> Path:
    """Creates the parent directory of a path; raises an error for paths that are too long."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        place.lstat()
    return place


def _copy(directory: int, name: str, place: Path, depth: int) -> None:
    """Copies files, directories and links; skips pipes, sockets and devices."""
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
            for each in os.listdir(fd):  # noqa: PTH208  # on a descriptor
                with contextlib.suppress(FileNotFoundError):
                    _copy(fd, each, place / each, depth - 1)
