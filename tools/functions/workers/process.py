"""Manages the process of a worker on the server's side."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from tools.functions.workers import bootstrap
from tools.functions.workers.bounds import OF_FILES, Bounds
from tools.functions.workers.messages import Message


class WorkerProcess(Protocol):
    """A process, and its connection to the server.

    Attributes:
        is_confined: Whether it can be killed without time to finish, since it has no lasting
            effects.
    """

    bounds: Bounds
    is_confined: bool

    @property
    def incoming(self) -> AsyncIterable[bytes]:
        """Its messages to the server, in chunks of any size."""

    def checked(self, message: Message) -> Message:
        """Returns the message if the process may send it."""

    async def send(self, line: bytes) -> None:
        """Sends the process a line; does nothing if it has ended."""

    async def hang_up(self) -> None:
        """Signals that nothing more will be sent."""

    async def read_output(self, sink: Callable[[bytes], None]) -> None:
        """Passes on everything it prints, until it closes its output."""

    def read_printed(self, sink: Callable[[bytes], None]) -> None:
        """Passes on what it has printed so far, if the result must not overtake its output."""

    async def wait(self) -> object:
        """Waits until it has ended."""

    async def kill(self) -> None:
        """Kills it and its children."""

    def ending(self) -> str:
        """Describes how it ended, to follow its name."""

    async def aclose(self) -> None:
        """Kills it and closes the connection."""


class OwnProcess:
    """An unconfined process that the server starts itself, for the user's own functions."""

    bounds = OF_FILES
    is_confined = False

    def __init__(self, process: Process) -> None:
        self._process = process
        self.incoming = cast("ByteReceiveStream", process.stdout)

    @classmethod
    async def start(cls, python: Path, root: str, variables: Mapping[str, str]) -> OwnProcess:
        """Starts the process."""
        process = await anyio.open_process(
            [python, "-P", bootstrap.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=root,
            env=variables,
            start_new_session=True,  # so that its children can be killed with it
        )
        return cls(process)

    def checked(self, message: Message) -> Message:
        """Returns the message unchecked, since the user wrote the code."""
        return message

    async def send(self, line: bytes) -> None:
        """Sends the process a line; does nothing if it has ended."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await cast("ByteSendStream", self._process.stdin).send(line)

    async def hang_up(self) -> None:
        """Closes its stdin."""
        await cast("ByteSendStream", self._process.stdin).aclose()

    async def read_output(self, sink: Callable[[bytes], None]) -> None:
        """Passes on its stderr, which also receives its stdout."""
        async for chunk in cast("ByteReceiveStream", self._process.stderr):
            sink(chunk)

    def read_printed(self, sink: Callable[[bytes], None]) -> None:
        """Does nothing, since the log need not be in step with results."""

    async def wait(self) -> object:
        """Waits until it has ended."""
        return await self._process.wait()

    async def kill(self) -> None:
        """Kills it and its children."""
        with suppress(ProcessLookupError, PermissionError):  # PermissionError: a zombie on macOS
            os.killpg(self._process.pid, signal.SIGKILL)

    def ending(self) -> str:
        """Describes how it ended."""
        code = self._process.returncode
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    async def aclose(self) -> None:
        """Kills it if it still runs, and closes its pipes."""
        await self._process.aclose()
