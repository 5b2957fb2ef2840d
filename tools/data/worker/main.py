"""The worker: answers requests of the server, until that hangs up."""

from __future__ import annotations

import re
import threading
from typing import Any

from .channel import Call, Channel
from .failures import (
    AllRowsError,
    MissingPackageError,
    NotHereError,
    OperatorError,
    RecipeError,
    UnreadableError,
)

_LONGEST_ERROR = 2_000

# In the texts of errors of operators that need FFmpeg, and of those that fetch something.
_FFMPEG = re.compile(
    r"directory: 'ff(?:mpeg|probe)'|Backend ffmpeg not|load libtorchcodec|libsamplerate not"
)
_OFFLINE = re.compile(
    r"connection|resolve|network|offline|unreachable|LocalEntryNotFound", re.IGNORECASE
)


def main(on_cluster: bool) -> None:
    """Loads Data-Juicer, which takes seconds, and answers requests.

    For runs on a cluster, a program of its own loads it.
    """
    channel = Channel()
    channel.receive()  # what to load, of which nothing is meant for this worker
    if not on_cluster:
        from .preparing import prepare

        prepare()
    channel.send({"loaded": {"offers": [], "problems": [], "files": []}})
    calls: dict[int, Call] = {}
    while (message := channel.receive()) is not None:
        if "cancel" not in message:
            call = calls[message["call"]] = Call(message["call"], channel)
            threading.Thread(target=_answer, args=(call, message, calls), daemon=True).start()
        elif (cancelled := calls.get(message["cancel"])) is not None:
            cancelled.cancel()


def _answer(call: Call, message: dict[str, Any], calls: dict[int, Call]) -> None:
    try:
        from .inspecting import look, make
        from .running import name_files, run

        do = {"look": look, "make": make, "name_files": name_files, "run": run}[message["do"]]
        structured = do(message, call)
        is_error = False
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is the answer
        structured, is_error = _failure_of(error, message["source"]), True
    del calls[call.number]
    call.end(structured, is_error=is_error)


def _failure_of(error: BaseException, source: str) -> dict[str, Any]:
    kind, message, *actions = _explain(error, source)
    return {
        "error_type": kind,
        "message": message[:_LONGEST_ERROR],
        "suggestions": [],
        "next_actions": actions,
    }


def _explain(error: BaseException, source: str) -> tuple[str, ...]:
    """Returns the kind of a failure, what is wrong, and what to do next."""
    cause, name, failed = error, "The recipe", ""
    if isinstance(error, OperatorError):
        cause, name = error.cause, f"The operator {error.operator}"
        failed = f"{name} failed: "
    text = f"{type(cause).__name__}: {cause}"
    if isinstance(cause, UnreadableError):
        return "invalid_arguments", f"{source} cannot be read: {cause}", cause.action
    if isinstance(cause, RecipeError):
        return "invalid_arguments", str(cause), cause.action
    if lacking := _explain_lack(cause, name, text):
        return "unavailable", *lacking
    return "tool_failed", f"{failed}{text}"


def _explain_lack(cause: BaseException, name: str, text: str) -> tuple[str, ...]:
    """Returns what is missing, and what to do next; empty where nothing is missing."""
    if isinstance(cause, MissingPackageError):
        return (
            f"{name} needs a package that is not installed here: {cause}.",
            "Leave the operator out.",
            "Ask the user to run `toolcrib data setup --full`.",
        )
    if isinstance(cause, NotHereError):
        return str(cause), "Ask the user to install bubblewrap (`toolcrib doctor` says how)."
    if isinstance(cause, MemoryError):
        return (
            f"{name} needs more memory than it may have.",
            "Split the data set.",
            "Ask the user to raise system.memory_mb.",
        )
    if _FFMPEG.search(text):
        return (
            f"{name} needs FFmpeg or a library that comes with it, which are not here: {text}",
            "Leave the operator out, or give it video_backend: av if it takes that.",
            "Ask the user to install FFmpeg.",
        )
    if isinstance(cause, OSError | AllRowsError) and _OFFLINE.search(text):
        return (
            f"{name} wants to fetch something, and runs without a network: {text}",
            "Leave the operator out, or give it a path to what it needs.",
        )
    return ()
