"""Replaces a client's file atomically, with backups next to it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from tools.sandbox.files.replace import remove_file, replace_file

KEPT_BACKUPS = 3
"""Backups kept next to each file, in addition to the one that an undo restores."""

_TIME = re.compile(r"(\d{8}-\d{6})(?:-(\d+))?")


def back_up(path: Path, content: bytes) -> str:
    """Writes a private copy with the time in its name next to a file; returns the name."""
    stem = f"{path.name}.toolcrib-{datetime.now():%Y%m%d-%H%M%S}"  # noqa: DTZ005  # the time on the wall
    number = 1
    while True:
        name = f"{stem}{f'-{number}' * (number > 1)}.bak"
        with suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(path.with_name(name), flags, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return name
        number += 1


def backups_of(path: Path) -> list[Path]:
    """Returns the backups of a file, oldest first."""
    start = f"{path.name}.toolcrib-"
    found: list[tuple[str, int, Path]] = []
    for each in path.parent.glob("*.bak"):
        time = _TIME.fullmatch(each.name.removeprefix(start).removesuffix(".bak"))
        if each.name.startswith(start) and time is not None:
            found.append((time[1], int(time[2] or 1), each))
    return [each for *_, each in sorted(found)]


def prune(path: Path, needed: str) -> None:
    """Removes old backups of a file, except one that is needed."""
    for each in backups_of(path)[:-KEPT_BACKUPS]:
        if each.name != needed:
            with suppress(OSError):
                each.unlink()


def replace(path: Path, content: bytes) -> None:
    """Replaces a file's content, or creates it; keeps owner, mode and attributes."""
    with _folder(path) as directory:
        try:
            existing = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            existing = None
        replace_file(directory, path.name, content, existing)


def remove(path: Path) -> None:
    """Removes a file."""
    with _folder(path) as directory:
        remove_file(directory, path.name)


def make_folders(folder: Path) -> list[str]:
    """Creates a folder with those above it; returns what was made, outermost first."""
    made: list[Path] = []
    while not folder.exists():
        made.insert(0, folder)
        folder = folder.parent
    for each in made:
        each.mkdir(mode=0o700)
    return [str(each) for each in made]


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield directory
    finally:
        os.close(directory)
