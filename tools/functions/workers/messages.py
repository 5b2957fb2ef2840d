"""Defines the messages between server and worker: one JSON object per line.

| from | message | meaning |
|---|---|---|
| server | `{"load": {…}}` | the first message: what to run, and where (Load) |
| worker | `{"loaded": {…}}` | its answer: the offers, or why there are none (Loaded) |
| server | `{"call": n, "key", "arguments", "identity", "bound"}` | use an offer |
| server | `{"call": n, "key", "completed", "identity", "bound"}` | complete an argument of it |
| server | `{"cancel": n}` | cancel that call |
| worker | `{"progress": n, "done", "total", "message"}` | progress of a call |
| worker | `{"tell": n, "level", "text"}` | a log message for the client |
| worker | `{"changed": n, "uri"}` | a resource changed |
| worker | `{"ask": n, "id": k, …}` | a question: `form`, `prompt`, `roots`, `tool` |
| worker | `{"withdraw": n, "id": k}` | the question is withdrawn |
| server | `{"answer": k, …}` | its answer: a `value`, or a `failure` |
| worker | `{"log": level, "text"}` | an entry for the server's log |
| worker | `{"result": n, …}` | the end of a call, even a cancelled one |
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from tools.core.errors import DeclinedError, ToolError, ToolFailedError

MARK_BYTES = 64  # maximum memory of the value at each JSON mark, in addition to its text


class TooLongError(ToolFailedError):
    """A message exceeds its limits."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"At most {what} can pass between the server and a function at once.",
            next_actions=["Pass less in one call, or the path of a file."],
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a message; 0 sets none."""

    longest: int  # bytes
    heaviest: int = 0  # bytes of memory after decoding
    deepest: int = 0  # nested lists and objects

    def encode(self, message: dict[str, Any]) -> bytes:
        """Encodes a message as a line; ASCII, so that unpaired surrogates pass too."""
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
        level: list[object] = [message]
        for _ in range(self.deepest):
            objects = (list(each.values()) for each in level if isinstance(each, dict))
            lists = (each for each in level if isinstance(each, list))
            level = [*chain.from_iterable((*objects, *lists))]
            if not level:
                return
        raise TooLongError(f"{self.deepest} nested lists and objects")


def weight(line: bytes) -> int:
    """Returns the maximum memory of a decoded message, counting marks inside texts too."""
    return len(line) + MARK_BYTES * sum(line.count(mark) for mark in (b",", b":", b"[", b"{"))


OF_FILES = Bounds(longest=64_000_000)  # limits between the server and the user's own functions

OF_CONFINED = Bounds(longest=8_000_000, heaviest=64_000_000, deepest=100)
"""Limits for messages from a code worker, which runs an agent's code."""


Message = dict[str, Any]

MOST_OPEN = 64  # maximum open questions of one call
LONGEST_TOLD = 10_000  # maximum characters of a message during a call that are passed on


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a file or of one of its functions."""

    text: str
    line: int | None = None
    column: int | None = None

    def at(self, path: Path) -> str:
        """Formats the problem after its location, as compilers do."""
        place = [str(path), *(str(each) for each in (self.line, self.column) if each is not None)]
        return f"{':'.join(place)}: {self.text}"


@dataclass(frozen=True, slots=True)
class Load:
    """A task for a worker."""

    path: str
    source: str  # its text, which may be older than the file
    kind: Literal["functions", "program"] = "functions"
    root: str = ""  # the directory that the functions work in; empty for none
    root_identity: tuple[int, int] | None = None
    protected: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    memory_bytes: int = 0
    # How to open the stored context (StoreOptions); None if the file may not have it.
    store: Message | None = None
    no_store: str = ""  # why it may not, and what to change, or ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of loading a file."""

    # Its offers, encoded by `encode_offer`; None if the file as a whole failed.
    offers: list[Message] | None
    problems: list[Problem]
    files: list[str]  # files in its directory that it imported: a change of one means a new version


class Lines:
    """Splits a stream, which arrives in chunks of any size, into lines."""

    def __init__(self, bounds: Bounds) -> None:
        self._longest = bounds.longest
        self._begun = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yields the lines that end in a chunk."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            yield bytes(self._begun + part) if self._begun else part
            self._begun.clear()
        self._begun += rest
        if len(self._begun) > self._longest:
            raise TooLongError(f"{self._longest:,} bytes")


def decode_loaded(message: Message) -> Loaded:
    """Decodes the result of loading."""
    loaded = message["loaded"]
    return Loaded(**{**loaded, "problems": [Problem(**each) for each in loaded["problems"]]})


def encode_error(error: ToolError) -> Message:
    """Encodes a failure for a function."""
    return {
        "error_type": error.error_type,
        "message": error.message,
        "suggestions": list(error.suggestions),
        "next_actions": list(error.next_actions),
        "dismissed": error.dismissed if isinstance(error, DeclinedError) else None,
    }


def decode_error(sent: Message) -> ToolError:
    """Decodes a failure for a function."""
    message, next_actions = sent["message"], sent["next_actions"]
    if sent["dismissed"] is not None:
        return DeclinedError(message, dismissed=sent["dismissed"], next_actions=next_actions)
    kinds = [each for each in ToolError.__subclasses__() if "error_type" in vars(each)]
    kind = next(each for each in kinds if each.error_type == sent["error_type"])
    return kind(message, suggestions=sent["suggestions"], next_actions=next_actions)
