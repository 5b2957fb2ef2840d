"""The worker's end of the channel to the server: JSON lines on the socket that is its stdin."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

_LONGEST_MESSAGE = 10_000


class CancelledError(Exception):
    """The server no longer wants the result."""


class Channel:
    """Both ways to the server; anything else that reads stdin finds it empty."""

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


class Call:
    """One call that runs."""

    def __init__(self, number: int, channel: Channel) -> None:
        self.number = number
        self._channel = channel
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Makes the call end at its next step."""
        self._cancelled.set()

    def check(self) -> None:
        """Raises CancelledError if the call was cancelled."""
        if self._cancelled.is_set():
            raise CancelledError

    def report(self, done: float, total: float | None, message: str) -> None:
        """Reports progress."""
        self.check()
        progress = {"progress": self.number, "done": float(done), "total": total and float(total)}
        self._channel.send({**progress, "message": message[:_LONGEST_MESSAGE]})

    def end(self, structured: dict[str, Any], *, is_error: bool) -> None:
        """Sends the answer."""
        answer = {"result": self.number, "structured": structured, "is_error": is_error}
        self._channel.send({**answer, "text": "", "media": [], "blocks": []})
