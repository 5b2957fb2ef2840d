"""Takes snapshots of the write-protected paths of a root, and moves away what programs created."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tools.sandbox.files.open_nofollow import open_file
from tools.sandbox.processes.protection.scan import (
    DEEPEST,
    READABLE,
    Scan,
    grant_owner,
    is_settled,
    open_folder,
    outermost_protected,
)

MOST_BYTES = 262_144  # limit on the files whose content is remembered
MOST_REMEMBERED = 67_108_864  # limit on the content remembered for one root


@dataclass(frozen=True, slots=True)
class Entry:
    """A write-protected file, directory or link."""

    folder: str  # the directory with the write-protected entry, relative to the root
    mode: int
    signature: tuple[int, ...]  # changes with the file
    is_settled: bool
    content: bytes | None  # the content of a file, or the target of a link; None if too long

    @property
    def is_folder(self) -> bool:
        """True for a directory."""
        return stat.S_ISDIR(self.mode)

    def same_as(self, other: Entry) -> bool:
        """Returns whether nothing relevant differs."""
        if self.is_folder:
            return self.mode == other.mode
        if self.mode != other.mode or self.content != other.content:
            return False
        return self.content is not None or self.signature == other.signature


def take_snapshot(
    root: int, found: Scan, known: Mapping[str, Entry], *, is_after: bool = False
) -> dict[str, Entry]:
    """Reads the write-protected paths.

    `is_after`: whether programs have run since, as in `scan`. New directories are then listed
    without their contents, except for hooks, which git creates.

    Returns:
        The entries by path relative to the root; directories come before their contents.
    """
    reading = _Snapshot(known, is_after=is_after)
    for folder, name in found.protected():
        with contextlib.suppress(OSError), open_folder(root, folder) as fd:
            is_hooks = name == "hooks" and found.folders[folder].is_git
            reading.add(fd, folder, f"{folder}/" if folder else "", name, is_hooks=is_hooks)
    return reading.entries


def accepted(root: int, path: str, content: bytes, known: Mapping[str, Entry]) -> dict[str, Entry]:
    """Returns the entries of a file written with approval, and of directories created for it.

    `content`: the written content; a program may have changed it since.
    """
    parts = path.split("/")
    top = outermost_protected(parts)
    entries: dict[str, Entry] = {}
    if top is None:
        return entries
    for count in range(top + 1, len(parts) + 1):
        each, is_file = "/".join(parts[:count]), count == len(parts)
        if not is_file and each in known:
            continue
        with open_folder(root, "/".join(parts[: count - 1])) as fd:
            status = os.stat(parts[count - 1], dir_fd=fd, follow_symlinks=False)
        entries[each] = Entry(
            folder="/".join(parts[:top]),
            mode=status.st_mode,
            signature=_signature(status),
            is_settled=False,
            content=content if is_file else b"",
        )
    return entries


class _Snapshot:
    def __init__(self, known: Mapping[str, Entry], *, is_after: bool) -> None:
        self.entries: dict[str, Entry] = {}
        self._known = known
        self._is_after = is_after
        self._left = MOST_REMEMBERED

    def add(
        self, directory: int, folder: str, prefix: str, name: str, *, is_hooks: bool, depth: int = 0
    ) -> None:
        """Adds a path and everything below it; skips git's sample hooks, which are never run."""
        path = prefix + name
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if is_hooks and name.endswith(".sample") and stat.S_ISREG(status.st_mode):
                return
            self.entries[path] = entry = self._entry(directory, name, folder, path, status)
        except OSError:
            return  # removed meanwhile
        is_new = self._is_after and path not in self._known
        if not entry.is_folder or depth >= DEEPEST or (is_new and not is_hooks):
            return
        rights = READABLE if self._is_after else 0
        with contextlib.suppress(OSError), open_folder(directory, name, rights=rights) as fd:
            for each in sorted(os.listdir(fd)):  # noqa: PTH208  # on a descriptor
                self.add(fd, folder, f"{path}/", each, is_hooks=is_hooks, depth=depth + 1)

    def _entry(
        self, directory: int, name: str, folder: str, path: str, status: os.stat_result
    ) -> Entry:
        known = self._known.get(path)
        signature = _signature(status)
        if known is not None and known.is_settled and known.signature == signature:
            entry = known
        else:
            content: bytes | None = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.fsencode(os.readlink(name, dir_fd=directory))
            elif stat.S_ISREG(status.st_mode):
                # Remembered content is always compared, however much else there is now.
                is_read = self._left > 0 if known is None else known.content is not None
                content = _content(directory, name) if is_read else None
            entry = Entry(folder, status.st_mode, signature, is_settled(status), content)
        self._left -= len(entry.content or b"")
        return entry


def _content(directory: int, name: str) -> bytes | None:
    try:
        fd, _ = open_file(name, directory)
        with os.fdopen(fd, "rb", buffering=0) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError:
        return None
    return content if len(content) <= MOST_BYTES else None


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


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
