"""Removes directories that programs have written to; loaded by zygotes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_scratch(path: bytes) -> None:
    """Removes a directory and its contents, as far as the system allows.

    Links are removed, never followed. Directories are moved to the top before they are emptied, so
    neither depth nor permissions (the user owns them) prevent it. The path is absolute, and must no
    longer be in use.
    """
    with suppress(OSError):
        change_mode(path, 0o700)
        top = os.open(path, _OPEN)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(path)  # noqa: PTH106  # names are bytes


def change_mode(path: bytes | str, mode: int, *, directory: int | None = None) -> None:
    """Changes the permissions of a directory, even an unreadable one; follows no links."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(path, mode, dir_fd=directory, follow_symlinks=False)
        return
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    held = os.open(path, flags, dir_fd=directory)
    try:
        os.chmod(f"/proc/self/fd/{held}", mode)  # noqa: PTH101  # fchmod() does not accept O_PATH
    finally:
        os.close(held)


def _empty(top: int) -> None:
    token = os.urandom(8).hex()  # unknown to all programs
    fresh = (f"{token}-{number}" for number in itertools.count())
    pending = os.listdir(top)  # on a descriptor
    while pending:
        name = pending.pop()
        if _unlink(top, name):
            continue
        with suppress(OSError):
            pending += _empty_one(top, name, fresh)
            os.rmdir(name, dir_fd=top)


def _empty_one(top: int, name: str, fresh: Iterator[str]) -> list[str]:
    """Empties a directory; moves its subdirectories to the top, and returns their new names."""
    moved = []
    os.chmod(name, 0o700, dir_fd=top)  # a directory, so no link is followed
    directory = os.open(name, _OPEN, dir_fd=top)
    try:
        for inner in os.listdir(directory):  # noqa: PTH208  # on a descriptor
            if _unlink(directory, inner):
                continue
            with suppress(OSError):
                os.chmod(inner, 0o700, dir_fd=directory)
                os.rename(inner, moving := next(fresh), src_dir_fd=directory, dst_dir_fd=top)
                moved.append(moving)
    finally:
        os.close(directory)
    return moved


def _unlink(directory: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:  # EISDIR, or EPERM on macOS: it is a directory
        return False
    return True
