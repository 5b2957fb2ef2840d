"""What the server is told of a failure: its kind, what was wrong, and what to do next."""

from __future__ import annotations

import re
from typing import Any

LONGEST = 2_000
"""Characters of an error's text."""

MISSING = re.compile(r"MissingPackageError: (\S+)")
"""How a missing package shows in a traceback."""

_FFMPEG = re.compile(
    r"directory: 'ff(?:mpeg|probe)'|Backend ffmpeg not|load libtorchcodec|libsamplerate not"
)
"""What is in the texts of errors of those who need FFmpeg."""

_OFFLINE = re.compile(
    r"connection|resolve|network|offline|unreachable|LocalEntryNotFound", re.IGNORECASE
)
"""What is in the texts of errors of those who wanted to fetch something."""


class RecipeError(Exception):
    """The recipe or its data is wrong."""

    def __init__(self, message: str, action: str = "Correct the recipe and run it again.") -> None:
        super().__init__(message)
        self.action = action


class UnreadableError(RecipeError):
    """What a recipe reads cannot be read: why not, and what to do next."""


class AllRowsError(Exception):
    """An operator failed with rows, and left none: what it said of the first."""


class MissingPackageError(ImportError):
    """An operator wants a package that is not installed."""


class NotHereError(Exception):
    """The confinement does not let `dj-process` run."""


class OperatorError(Exception):
    """An operator failed."""

    def __init__(self, operator: str, cause: BaseException) -> None:
        super().__init__(f"{operator}: {type(cause).__name__}: {cause}")
        self.operator = operator
        self.cause = cause


def failure_of(error: BaseException, source: str) -> dict[str, Any]:
    """Returns the failure that an exception is."""
    cause = error.cause if isinstance(error, OperatorError) else error
    named = f"The operator {error.operator}" if isinstance(error, OperatorError) else "The recipe"
    said = f"{type(cause).__name__}: {cause}"
    if isinstance(cause, UnreadableError):
        return _failure("invalid_arguments", f"{source} cannot be read: {cause}", cause.action)
    if isinstance(cause, RecipeError):
        return _failure("invalid_arguments", str(cause), cause.action)
    if lacks := _lacks(cause, named, said):
        return _failure("unavailable", *lacks)
    return _failure(
        "tool_failed",
        f"{named} failed: {said}" if isinstance(error, OperatorError) else said,
    )


def _lacks(cause: BaseException, named: str, said: str) -> tuple[str, ...]:
    """What is not there, and what to do then; empty where nothing is missing."""
    if isinstance(cause, MissingPackageError):
        return (
            f"{named} needs a package that is not installed here: {cause}.",
            "Leave the operator out.",
            "Ask the user to run `toolcrib data setup --full`.",
        )
    if isinstance(cause, NotHereError):
        return str(cause), "Ask the user to install bubblewrap (`toolcrib doctor` says how)."
    if isinstance(cause, MemoryError):
        return (
            f"{named} needs more memory than it may have.",
            "Split the data set.",
            "Ask the user to raise system.memory_mb.",
        )
    if _FFMPEG.search(said):
        return (
            f"{named} needs FFmpeg or a library that comes with it, which are not here: {said}",
            "Leave the operator out, or give it video_backend: av if it takes that.",
            "Ask the user to install FFmpeg.",
        )
    if isinstance(cause, OSError | AllRowsError) and _OFFLINE.search(said):
        return (
            f"{named} wants to fetch something, and runs without a network: {said}",
            "Leave the operator out, or give it a path to what it needs.",
        )
    return ()


def _failure(kind: str, message: str, *actions: str) -> dict[str, Any]:
    return {
        "error_type": kind,
        "message": message[:LONGEST],
        "suggestions": [],
        "next_actions": list(actions),
    }
