"""Connects a worker to a confined process, and validates what it sends: it may send anything."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal, Self

import anyio
from anyio.abc import SocketStream
from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from tools.core.errors import ErrorType
from tools.functions.workers.messages import LONGEST_TOLD, OF_CONFINED, Message
from tools.functions.workers.process import Sink
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.output import Program, read_output, read_rest
from tools.sandbox.processes.processes import Processes

MOST_A_SECOND = 16_000_000  # maximum bytes read from one code worker within a second
LEAST = 3_200  # the minimum size that each message counts for in this limit
SIGNALLED = 128  # exit codes above this are signals, as in a shell


_EXACTLY = with_config(ConfigDict(strict=True, extra="forbid"))

Told = Annotated[str, Field(max_length=LONGEST_TOLD)]
Number = Annotated[int, Field(ge=0, lt=2**53)]


@_EXACTLY
class _Problem(TypedDict):
    text: str
    line: int | None
    column: int | None


@_EXACTLY
class _LoadedFunctions(TypedDict):
    offers: list[dict[str, Any]] | None
    problems: list[_Problem]
    files: list[str]


@_EXACTLY
class _Loaded(TypedDict):
    loaded: _LoadedFunctions


@_EXACTLY
class _Progress(TypedDict):
    progress: Number
    done: Annotated[float, Field(allow_inf_nan=False)]
    total: Annotated[float, Field(allow_inf_nan=False)] | None
    message: Told | None


@_EXACTLY
class _Tell(TypedDict):
    tell: Number
    level: Annotated[str, Field(max_length=20)]
    text: Told


@_EXACTLY
class _Ask(TypedDict):
    ask: Number
    id: Number
    tool: Annotated[str, Field(max_length=200)]
    arguments: dict[str, Any]


@_EXACTLY
class _Withdraw(TypedDict):
    withdraw: Number
    id: Number


@_EXACTLY
class _Media(TypedDict):
    kind: Literal["image", "audio"]
    data: str
    mime_type: str


@_EXACTLY
class _Failure(TypedDict):
    error_type: ErrorType
    message: str
    suggestions: list[str]
    next_actions: list[str]


@_EXACTLY
class _Success(TypedDict):
    result: Number
    structured: dict[str, Any]
    text: str
    is_error: Literal[False]
    media: list[_Media]
    blocks: list[str | _Media]


@_EXACTLY
class _Failed(TypedDict):
    result: Number
    structured: _Failure
    text: str
    is_error: Literal[True]
    media: Annotated[list[Any], Field(max_length=0)]
    blocks: Annotated[list[Any], Field(max_length=0)]


_SHAPES: dict[str, Any] = {
    "loaded": _Loaded,
    "progress": _Progress,
    "tell": _Tell,
    "ask": _Ask,
    "withdraw": _Withdraw,
    "result": _Success | _Failed,
}
"""The form of each message, by its first key."""


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_SHAPES[kind])


def _check_form(message: Message) -> Message:
    """Returns a message if a code worker may send it; raises a ValueError for another form."""
    kind = next(iter(message), "")
    if kind not in _SHAPES:
        raise ValueError(f"It sent {kind[:40]!r}, which is not a valid message.")
    taken: Message = _adapter(kind).validate_python(message)
    return taken


class ConfinedProcess:
    """A confined, untrusted process."""

    bounds = OF_CONFINED
    is_confined = True
    checked = staticmethod(_check_form)

    def __init__(self, program: Program, stream: SocketStream) -> None:
        self._program = program
        self._stream = stream
        self._turn = anyio.Lock()
        self._exit_code = 0
        self._is_closed = False
        self._has_hung_up = False

    @classmethod
    async def start(cls, processes: Processes, command: Command) -> Self:
        """Starts the process."""
        ours, its = socket.socketpair()
        stream = await SocketStream.from_socket(ours)
        try:
            with its:
                program = await processes.start(replace(command, channel=its.fileno()))
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        return cls(program, stream)

    @property
    def has_ended(self) -> bool:
        """Returns whether all its processes have ended."""
        return self._program.has_ended

    @property
    async def incoming(self) -> AsyncIterator[bytes]:
        """Its messages to the server, read more slowly if it sends too much."""
        left = MOST_A_SECOND
        began = anyio.current_time()
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it was killed
            async for chunk in self._stream:
                yield chunk
                left -= len(chunk) + LEAST * chunk.count(b"\n")
                if left < 0:
                    await anyio.sleep_until(began + 1)
                    left, began = MOST_A_SECOND, anyio.current_time()

    async def send(self, line: bytes) -> None:
        """Sends the process a line; does nothing if it has ended or was hung up on."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with self._turn:
                if not self._has_hung_up:
                    await self._stream.send(line)

    async def hang_up(self) -> None:
        """Signals that nothing more will be sent."""
        self._has_hung_up = True
        with suppress(OSError):
            await self._stream.send_eof()

    async def read_output(self, sink: Sink) -> None:
        """Passes on everything it prints."""
        await read_output(self._program, sink, sink)

    def read_printed(self, sink: Sink) -> None:
        """Passes on what it has printed so far."""
        if not self._is_closed:
            read_rest(self._program, sink, sink)

    async def wait(self) -> object:
        """Waits until all its processes have ended."""
        self._exit_code = await self._program.wait()
        return self._exit_code

    async def kill(self) -> None:
        """Kills it and everything it started."""
        await self._program.kill()

    def ending(self) -> str:
        """Describes how it ended."""
        code = self._exit_code
        is_killed = code > SIGNALLED
        how = signal.Signals(code - SIGNALLED).name if is_killed else f"exit code {code}"
        said = " ".join(["", *(f"({note})" for note in self._program.notes)])
        return f"{'was killed by' if is_killed else 'ended with'} {how}{said.rstrip()}"

    async def aclose(self) -> None:
        """Kills it and closes the connection."""
        self._is_closed = True
        await anyio.aclose_forcefully(self._stream)
        await self._program.aclose()
