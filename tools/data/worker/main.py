"""The worker: answers requests of the server, until that hangs up."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from .failures import (
    AllRowsError,
    MissingPackageError,
    NotHereError,
    OperatorError,
    RecipeError,
    UnreadableError,
)

_LONGEST_ERROR, _LONGEST_MESSAGE = 2_000, 10_000  # characters

# In the texts of errors of operators that need FFmpeg, and of those that fetch something.
_FFMPEG = re.compile(
    r"directory: 'ff(?:mpeg|probe)'|Backend ffmpeg not|load libtorchcodec|libsamplerate not"
)
_OFFLINE = re.compile(
    r"connection|resolve|network|offline|unreachable|LocalEntryNotFound", re.IGNORECASE
)


class Channel:
    """Both ways to the server, JSON lines on stdin; anything else that reads stdin finds it empty.

    To cancel a call, the server kills this process.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=os.dup(0))
        with Path(os.devnull).open("rb") as empty:
            os.dup2(empty.fileno(), 0)
        self._lines = self._socket.makefile("rb")
        self._turn = threading.Lock()

    def receive(self) -> dict[str, Any] | None:
        """Waits for the next message; returns None when the server has hung up."""
        line = self._lines.readline()
        message: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
        return message

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message."""
        line = json.dumps(message).encode() + b"\n"
        with self._turn:
            self._socket.sendall(line)


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
    while (message := channel.receive()) is not None:
        if "call" in message:  # in a thread, as the process ends when the server hangs up
            threading.Thread(target=_answer, args=(channel, message), daemon=True).start()


def _answer(channel: Channel, message: dict[str, Any]) -> None:
    number = message["call"]

    def report(done: int, total: int, text: str) -> None:
        progress = {"progress": number, "done": float(done), "total": float(total)}
        channel.send({**progress, "message": text[:_LONGEST_MESSAGE]})

    try:
        from .inspecting import look, make
        from .running import name_files, run

        run_reporting = partial(run, report=report)
        do: dict[str, Callable[[dict[str, Any]], dict[str, Any]]]
        do = {"look": look, "make": make, "name_files": name_files, "run": run_reporting}
        structured, is_error = do[message["do"]](message), False
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is the answer
        structured, is_error = _failure_of(error, message["source"]), True
    answer = {"result": number, "structured": structured, "is_error": is_error}
    channel.send({**answer, "text": "", "media": [], "blocks": []})


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
