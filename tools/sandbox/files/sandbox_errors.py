"""What the system says about a path, in the words of the tools' errors."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    PermissionDeniedError,
    ToolError,
    UnavailableError,
)
from tools.sandbox.files.protect import ProtectedPathError, StrayDirectoryError

__all__ = ["EXPLAINABLE", "explained", "explanation"]

EXPLAINABLE = (ProtectedPathError, StrayDirectoryError, OSError)
"""What looking up, judging and using a place raises."""

_FULL = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {errno.EACCES, errno.EPERM}
_NOT_REGULAR = {errno.ENXIO, errno.EOPNOTSUPP}


@contextlib.contextmanager
def explained(path: str, root: Path) -> Iterator[None]:
    """Turns what the system raises into an error that names the path and what to do.

    Args:
        path: The path as the caller gave it.
        root: The root that it was looked up in.

    Raises:
        ToolError: Of the kind that fits.
    """
    try:
        yield
    except EXPLAINABLE as error:
        raise explanation(error, path, root) from error


def explanation(error: Exception, path: str, root: Path) -> ToolError:
    """The error that names the path and what to do, for one that `EXPLAINABLE` has."""
    if isinstance(error, ProtectedPathError):
        return PermissionDeniedError(
            f"The path {path!r} is protected ({error}); tools may not use it this way.",
            next_actions=["Ask the user to make this change."],
        )
    if isinstance(error, OSError):
        return _translated(error, path, root)
    return _outside(path, root)


def _translated(error: OSError, path: str, root: Path) -> ToolError:
    code = error.errno
    make = _KINDS.get(code or 0)
    if make is not None:
        return make(path, root)
    if code in _REFUSED:
        return PermissionDeniedError(
            f"The system refuses access to {path!r}: {error.strerror}.",
            next_actions=["Ask the user to change the file's permissions, or use another path."],
        )
    if code in _NOT_REGULAR:
        return InvalidArgumentsError(
            f"{path!r} is not a regular file (a pipe, socket or device).",
            next_actions=["Give the path of a regular file."],
        )
    if code in _FULL:
        return UnavailableError(
            f"The disk is full; {path!r} was not changed.",
            next_actions=["Ask the user to free space, then try again."],
        )
    return UnavailableError(
        f"The path {path!r} cannot be used now: {error.strerror or error}.",
        next_actions=[f"Check the disk and the root {str(root)!r}, then try again."],
    )


def _outside(path: str, root: Path) -> ToolError:
    return OutsideSandboxError(
        f"The path {path!r} leads out of the root {str(root)!r}.",
        next_actions=["Give a path inside the root, relative to it."],
    )


def _missing(path: str, root: Path) -> ToolError:
    return NotFoundError(
        f"There is nothing at {path!r} in the root {str(root)!r}.",
        next_actions=["Call list_directory to see what is there."],
    )


def _is_directory(path: str, _root: Path) -> ToolError:
    return InvalidArgumentsError(
        f"{path!r} names a directory, not a file.",
        next_actions=["Call list_directory for its entries, or give the path of a file."],
    )


def _not_directory(path: str, _root: Path) -> ToolError:
    return InvalidArgumentsError(
        f"A part of {path!r} that should be a directory is not one.",
        next_actions=["Call list_directory on the part that exists."],
    )


def _loop(path: str, _root: Path) -> ToolError:
    return InvalidArgumentsError(
        f"The links on {path!r} do not end.", next_actions=["Give the path of the file itself."]
    )


def _too_long(path: str, _root: Path) -> ToolError:
    return InvalidArgumentsError(
        f"The path is too long ({len(path)} characters): {path[:80]!r}….",
        next_actions=["Give a path of at most 4096 bytes with names of at most 255."],
    )


def _read_only(path: str, _root: Path) -> ToolError:
    return UnavailableError(
        f"The disk that holds {path!r} is read-only.",
        next_actions=["Write to another place, or ask the user to mount it writable."],
    )


def _too_large(path: str, _root: Path) -> ToolError:
    return UnavailableError(
        f"The file {path!r} would exceed the largest size the system allows; it was not changed.",
        next_actions=["Write less, or into several files."],
    )


_KINDS: dict[int, Callable[[str, Path], ToolError]] = {
    errno.EXDEV: _outside,
    errno.ENOENT: _missing,
    errno.EISDIR: _is_directory,
    errno.ENOTDIR: _not_directory,
    errno.ELOOP: _loop,
    errno.ENAMETOOLONG: _too_long,
    errno.EROFS: _read_only,
    errno.EFBIG: _too_large,
}
