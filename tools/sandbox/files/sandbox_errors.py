"""Converts system errors about a path to tool errors that name the path and what to do."""

from __future__ import annotations

import contextlib
import errno
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.core.errors import (
    Action,
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    PermissionDeniedError,
    ToolError,
    UnavailableError,
)
from tools.sandbox.files.openat import strip_root
from tools.sandbox.files.protect import ProtectedPathError, StrayDirectoryError

EXPLAINABLE = (ProtectedPathError, StrayDirectoryError, OSError)
"""The errors of resolving, checking and using a path."""

_FULL = (
    UnavailableError,
    "The disk is full; {path!r} was not changed.",
    "Ask the user to free space, then try again.",
)
_REFUSED = (
    PermissionDeniedError,
    "The system refuses access to {path!r}: {reason}.",
    "Ask the user to change the file's permissions, or use another path.",
)
_NOT_REGULAR = (
    InvalidArgumentsError,
    "{path!r} is not a regular file (a pipe, socket or device).",
    "Give the path of a regular file.",
)
_OTHERWISE = (
    UnavailableError,
    "The path {path!r} in the root {root!r} cannot be used now: {reason}.",
    "Check the disk and the root, then try again.",
)
_ERRORS: dict[int, tuple[type[ToolError], str, str]] = {
    errno.EXDEV: (
        OutsideSandboxError,
        "The path {path!r} leads out of the root {root!r}.",
        "Give a path inside the root, relative to it.",
    ),
    errno.ENOENT: (
        NotFoundError,
        "There is nothing at {path!r} in the root {root!r}.",
        Action("Call {} to see what is there.", "list_directory"),
    ),
    errno.EISDIR: (
        InvalidArgumentsError,
        "{path!r} names a directory, not a file.",
        Action("Call {} for its entries, or give the path of a file.", "list_directory"),
    ),
    errno.ENOTDIR: (
        InvalidArgumentsError,
        "A part of {path!r} that should be a directory is not one.",
        Action("Call {} on the part that exists.", "list_directory"),
    ),
    errno.ELOOP: (
        InvalidArgumentsError,
        "The links on {path!r} do not end.",
        "Give the path of the file itself.",
    ),
    errno.ENAMETOOLONG: (
        InvalidArgumentsError,
        "The path is too long ({length} characters): {path!r:.80}….",
        "Give a path of at most 4096 bytes with names of at most 255.",
    ),
    errno.EROFS: (
        UnavailableError,
        "The disk that holds {path!r} is read-only.",
        "Write to another place, or ask the user to mount it writable.",
    ),
    errno.EFBIG: (
        UnavailableError,
        "The file {path!r} would exceed the largest size the system allows; it was not changed.",
        "Write less, or into several files.",
    ),
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _REFUSED,
    errno.EPERM: _REFUSED,
    errno.ENXIO: _NOT_REGULAR,
    errno.EOPNOTSUPP: _NOT_REGULAR,
}


_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(?=/|$)")
"""Expressions that a shell expands to the home directory; for a file of that name, use `./~`."""

_FILE_URL = re.compile(r"file:(?://(?:localhost(?=/))?)?(?=/)", re.IGNORECASE)


def refuse_notation(path: str, spellings: Sequence[str]) -> None:
    """Rejects paths in shell or URL notation, and suggests the path they mean."""
    if _HOME.match(path):
        meant = _HOME.sub(lambda _home: str(Path.home()), path, count=1)
    elif _FILE_URL.match(path):
        from urllib.parse import unquote

        meant = unquote(_FILE_URL.sub("", path))
    else:
        return
    meant = posixpath.normpath(meant)
    try:
        beneath = strip_root(meant, spellings)
    except OSError:
        raise OutsideSandboxError(
            f"The path {path!r} means {meant!r}, which is outside of the root {spellings[0]!r}.",
            next_actions=["Give a path inside the root, relative to it."],
        ) from None
    if _HOME.match(beneath):
        beneath = f"./{beneath}"
    raise InvalidArgumentsError(
        f"The path {path!r} is not read as a shell or a browser would; it means {meant!r}.",
        suggestions=[beneath],
        next_actions=[f"Give {beneath!r}, relative to the root."],
    )


@contextlib.contextmanager
def explained(path: str, root: Path) -> Iterator[None]:
    """Converts system errors to errors that name the path and what to do."""
    try:
        yield
    except EXPLAINABLE as error:
        raise explanation(error, path, root) from error


def explanation(error: Exception, path: str, root: Path) -> ToolError:
    """Returns the tool error for one of `EXPLAINABLE`, with the path and what to do."""
    if isinstance(error, ProtectedPathError):
        return PermissionDeniedError(
            f"The path {path!r} is protected ({error}); tools may not use it this way.",
            next_actions=["Ask the user to make this change."],
        )
    code, reason = errno.EXDEV, ""
    if isinstance(error, OSError):
        code, reason = error.errno or 0, error.strerror or str(error)
    kind, message, advice = _ERRORS.get(code, _OTHERWISE)
    words = {"path": path, "root": str(root), "reason": reason, "length": len(path)}
    return kind(message.format(**words), next_actions=[advice])
