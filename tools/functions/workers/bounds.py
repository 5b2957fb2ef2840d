"""What one message between server and worker may be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tools.core.errors import ToolFailedError

MARK_BYTES = 64
"""Memory that the value behind each mark of JSON takes at most, beside its text."""


class TooLongError(ToolFailedError):
    """A message is more than its bounds allow.

    Args:
        what: What it is more than.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"At most {what} can pass between the server and a function at once.",
            next_actions=["Pass less in one call, or the path of a file."],
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one message may be; 0 sets no bound.

    Attributes:
        longest: Bytes.
        heaviest: Bytes of memory that it takes when it is read.
        deepest: Lists and objects in each other.
    """

    longest: int
    heaviest: int = 0
    deepest: int = 0

    def encode(self, message: dict[str, Any]) -> bytes:
        """Returns a message as its line; ASCII, so that half of a surrogate pair passes too.

        Raises:
            TooLongError: If it is more than the bounds allow.
            ValueError: If an integer in it has more digits than Python writes.
            RecursionError: If it is nested too deeply.
        """
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self._check(line)
        self._check_depth(line, message)
        return line

    def decode(self, line: bytes) -> dict[str, Any]:
        """Returns the message of a line.

        Raises:
            TooLongError: If it is more than the bounds allow.
            ValueError: If it is no JSON, or no object.
            RecursionError: If it is nested too deeply.
        """
        self._check(line)
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError("It is no object.")  # noqa: TRY004  # as other JSON that is no message
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
        raise TooLongError(f"{self.deepest} lists and objects in each other")


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def weight(line: bytes) -> int:
    """Returns how much memory a message takes at most, marks in its texts counted too."""
    return len(line) + MARK_BYTES * sum(line.count(mark) for mark in (b",", b":", b"[", b"{"))


OF_FILES = Bounds(longest=64_000_000)
"""Between the server and functions of the user's own."""

OF_CELLS = Bounds(longest=8_000_000, heaviest=64_000_000, deepest=100)
"""From a cell, where an agent wrote what is sent."""
