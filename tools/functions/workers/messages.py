"""What server and worker send each other: one JSON object a line.

| from | message | meaning |
|---|---|---|
| server | `{"load": {…}}` | the first: what to run, and where (Load) |
| worker | `{"loaded": {…}}` | the answer to it: what it offers, or why that is nothing (Loaded) |
| server | `{"call": n, "key", "arguments", "identity", "bound"}` | use an offer |
| server | `{"call": n, "key", "completed", "identity", "bound"}` | complete an argument of it |
| server | `{"cancel": n}` | stop that call |
| worker | `{"progress": n, "done", "total", "message"}` | how far a call is |
| worker | `{"tell": n, "level", "text"}` | what its client should hear |
| worker | `{"changed": n, "uri"}` | that a resource changed |
| worker | `{"ask": n, "id": k, …}` | what a call asks for: `form`, `prompt`, `roots`, `tool` |
| worker | `{"withdraw": n, "id": k}` | that nobody waits for that any more |
| server | `{"answer": k, …}` | the answer to it: a `value`, or a `failure` |
| worker | `{"log": level, "text"}` | what the server's log should have |
| worker | `{"result": n, …}` | the end of a call, a cancelled one too |
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tools.core.errors import DeclinedError, ToolError
from tools.functions.workers.bounds import OF_FILES, Bounds, TooLongError

Message = dict[str, Any]

MOST_OPEN = 64
"""What one call may ask for at once."""

LONGEST_TOLD = 10_000
"""Characters of what a call tells while it runs; more is cut."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file or one of its functions is not what its author means it to be.

    Attributes:
        text: What is wrong and what to change.
        line: Where in the file, from 1; None where it is no place in it.
        column: Where in the line, from 1.
    """

    text: str
    line: int | None = None
    column: int | None = None

    def at(self, path: Path) -> str:
        """Returns the problem behind its place, as compilers write it."""
        place = [str(path), *(str(each) for each in (self.line, self.column) if each is not None)]
        return f"{':'.join(place)}: {self.text}"


@dataclass(frozen=True, slots=True)
class Load:
    """What a worker runs.

    Attributes:
        path: The file, for tracebacks and imports beside it.
        source: Its text, which may be older than the file.
        kind: Whether its functions are called, or it runs as a whole, once.
        root: The directory that the functions work in; empty for none.
        root_identity: Its device and inode, which it has to have still.
        protected: Paths closed to the sandbox that functions are given.
        read_only: Paths closed to its writes.
        memory_bytes: Memory that the process may have.
        store: How the stored context is opened (StoreOptions); None where the file may not have it.
        no_store: Why it may not, and what to change; else empty.
    """

    path: str
    source: str
    kind: Literal["functions", "program"] = "functions"
    root: str = ""
    root_identity: tuple[int, int] | None = None
    protected: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    memory_bytes: int = 0
    store: Message | None = None
    no_store: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of loading a file.

    Attributes:
        offers: What it offers, as `encode_offer` writes it; None where the file as a whole failed.
        problems: Why it failed, or what of it cannot be offered.
        files: What it imported from beside it: what a change of means a new version.
    """

    offers: list[Message] | None
    problems: list[Problem]
    files: list[str]


def encode(message: Message, bounds: Bounds = OF_FILES) -> bytes:
    """Returns a message as its line.

    Raises:
        TooLongError: If it is more than the bounds allow.
        ValueError: If an integer in it has more digits than Python writes.
        RecursionError: If it is nested too deeply.
    """
    return bounds.encode(message)


async def lines(chunks: AsyncIterable[bytes], bounds: Bounds) -> AsyncIterator[bytes]:
    """Yields the lines of a stream, which comes in pieces of any size, until its end.

    Raises:
        TooLongError: If one is longer than the bounds allow.
    """
    begun = bytearray()
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            yield bytes(begun + part) if begun else part
            begun.clear()
        begun += rest
        if len(begun) > bounds.longest:
            raise TooLongError(f"{bounds.longest:,} bytes")


def decode_loaded(message: Message) -> Loaded:
    """Returns what came of loading."""
    loaded = message["loaded"]
    return Loaded(**{**loaded, "problems": [Problem(**each) for each in loaded["problems"]]})


def encode_error(error: ToolError) -> Message:
    """Returns what a function is told of a failure."""
    return {
        "error_type": error.error_type,
        "message": error.message,
        "suggestions": list(error.suggestions),
        "next_actions": list(error.next_actions),
        "dismissed": error.dismissed if isinstance(error, DeclinedError) else None,
    }


def decode_error(sent: Message) -> ToolError:
    """Returns the failure as a function gets it."""
    message, next_actions = sent["message"], sent["next_actions"]
    if sent["dismissed"] is not None:
        return DeclinedError(message, dismissed=sent["dismissed"], next_actions=next_actions)
    kinds = [each for each in ToolError.__subclasses__() if "error_type" in vars(each)]
    kind = next(each for each in kinds if each.error_type == sent["error_type"])
    return kind(message, suggestions=sent["suggestions"], next_actions=next_actions)
