"""Defines the limits of messages between server and worker."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tools.core.errors import ToolFailedError

MARK_BYTES = 64
"""Maximum memory of the value at each JSON mark, in addition to its text."""


class TooLongError(ToolFailedError):
    """A message exceeds its limits."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"At most {what} can pass between the server and a function at once.",
            next_actions=["Pass less in one call, or the path of a file."],
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a message; 0 sets none.

    Attributes:
        longest: Bytes.
        heaviest: Bytes of memory after decoding.
        deepest: Nested lists and objects.
    """

    longest: int
    heaviest: int = 0
    deepest: int = 0

    def encode(self, message: dict[str, Any]) -> bytes:
        """Encodes a message as a line; ASCII, so that unpaired surrogates pass too.

        Raises:
            ValueError: If an integer in it has more digits than Python writes.
        """
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self._check(line)
        self._check_depth(line, message)
        return line

    def decode(self, line: bytes) -> dict[str, Any]:
        """Decodes the message of a line."""
        self._check(line)
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError("It is not an object.")  # noqa: TRY004  # like other invalid messages
        self._check_depth(line, message)
        return message

    def _check(self, line: bytes) -> None:
        if len(line) > self.longest:
            raise TooLongError(f"{self.longest:,} bytes")
        if self.heaviest and weight(line) > self.heaviest:
            raise TooLongError(f"{self.heaviest // MARK_BYTES:,} values")

    def _check_depth(self, line: bytes, message: dict[str, Any]) -> None:
        if not self.deepest or line.count(b"[") + line.count(b"{") <= self.deepest:
            return
        level: list[Any] = [message]
        for _ in range(self.deepest):
            level = [child for each in level for child in _children(each)]
            if not level:
                return
        raise TooLongError(f"{self.deepest} nested lists and objects")


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def weight(line: bytes) -> int:
    """Returns the maximum memory of a decoded message, counting marks inside texts too."""
    return len(line) + MARK_BYTES * sum(line.count(mark) for mark in (b",", b":", b"[", b"{"))


OF_FILES = Bounds(longest=64_000_000)
"""Limits between the server and the user's own functions."""

OF_CELLS = Bounds(longest=8_000_000, heaviest=64_000_000, deepest=100)
"""Limits for messages from a cell, which runs an agent's code."""
