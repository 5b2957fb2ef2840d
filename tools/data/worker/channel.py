"""The worker's end of the channel to the server: JSON lines on the socket that is its stdin."""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any

_PIECE = 65_536
LONGEST_TOLD = 10_000
"""Characters of what a call tells."""


class CancelledError(Exception):
    """The server does not want the result any more."""


class Channel:
    """Both ways to the server; whatever else reads stdin finds it empty."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=os.dup(0))
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        self._begun = b""
        self._turn = threading.Lock()

    def receive(self) -> dict[str, Any] | None:
        """Waits for the next message; None when there is none any more."""
        while b"\n" not in self._begun:
            piece = self._socket.recv(_PIECE)
            if not piece:
                return None
            self._begun += piece
        line, self._begun = self._begun.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
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
        """Has it end at its next step."""
        self._cancelled.set()

    def check(self) -> None:
        """Goes on."""
        if self._cancelled.is_set():
            raise CancelledError

    def report(self, done: float, total: float | None, message: str) -> None:
        """Tells how far it is, and goes on."""
        self.check()
        self._channel.send(
            {
                "progress": self.number,
                "done": float(done),
                "total": None if total is None else float(total),
                "message": message[:LONGEST_TOLD],
            }
        )

    def end(self, structured: dict[str, Any], *, is_error: bool) -> None:
        """Says what came of it."""
        self._channel.send(
            {
                "result": self.number,
                "structured": structured,
                "text": "",
                "is_error": is_error,
                "media": [],
                "blocks": [],
            }
        )
