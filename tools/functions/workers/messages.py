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

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tools.core.errors import DeclinedError, ToolError
from tools.functions.workers.bounds import OF_FILES, Bounds, TooLongError

Message = dict[str, Any]

MOST_OPEN = 64
"""Maximum open questions of one call."""

LONGEST_TOLD = 10_000
"""Maximum characters of a message during a call that are passed on."""


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
    """A task for a worker.

    Attributes:
        source: Its text, which may be older than the file.
        root: The directory that the functions work in; empty for none.
        store: How to open the stored context (StoreOptions); None if the file may not have it.
        no_store: Why it may not, and what to change, or "".
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
    """The result of loading a file.

    Attributes:
        offers: Its offers, encoded by `encode_offer`; None if the file as a whole failed.
        files: Files in its directory that it imported: a change of one means a new version.
    """

    offers: list[Message] | None
    problems: list[Problem]
    files: list[str]


def encode(message: Message, bounds: Bounds = OF_FILES) -> bytes:
    """Encodes a message as a line."""
    return bounds.encode(message)


async def lines(chunks: AsyncIterable[bytes], bounds: Bounds) -> AsyncIterator[bytes]:
    """Yields the lines of a stream that arrives in chunks of any size."""
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
