"""The process of a worker, as the server holds it: what it is sent, says and prints."""

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
    """A process, and the two ways between it and the server.

    Attributes:
        bounds: What a message of it may be.
        is_confined: Whether it is given no time to end: nothing that it does matters any more.
    """

    bounds: Bounds
    is_confined: bool

    @property
    def said(self) -> AsyncIterable[bytes]:
        """What it says to the server, in pieces of any size."""

    def checked(self, message: Message) -> Message:
        """Returns a message of it.

        Raises:
            ValueError: If it may send none that looks like this.
        """

    async def send(self, line: bytes) -> None:
        """Sends it a line; nobody takes it where it has ended."""

    async def hang_up(self) -> None:
        """Lets it know that nothing more is sent."""

    async def read_output(self, sink: Callable[[bytes], None]) -> None:
        """Hands on what it prints, until it prints nothing any more."""

    def read_printed(self, sink: Callable[[bytes], None]) -> None:
        """Hands on what it has printed so far, where its answer may not come before that."""

    async def wait(self) -> object:
        """Waits until it has ended."""

    async def kill(self) -> None:
        """Ends it with its children."""

    def ending(self) -> str:
        """How it ended, behind its name."""

    async def aclose(self) -> None:
        """Ends it, and closes what leads to it."""


class OwnProcess:
    """One that the server starts itself, as free as the server: for the user's own functions."""

    bounds = OF_FILES
    is_confined = False

    def __init__(self, process: Process) -> None:
        self._process = process
        self.said = cast("ByteReceiveStream", process.stdout)

    @classmethod
    async def start(cls, python: Path, root: str, variables: Mapping[str, str]) -> OwnProcess:
        """Starts it.

        Args:
            python: The interpreter.
            root: Where it starts.
            variables: Its environment.
        """
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
        """Returns a message of it: its author is the user."""
        return message

    async def send(self, line: bytes) -> None:
        """Sends it a line; nobody takes it where it has ended."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await cast("ByteSendStream", self._process.stdin).send(line)

    async def hang_up(self) -> None:
        """Closes its stdin."""
        await cast("ByteSendStream", self._process.stdin).aclose()

    async def read_output(self, sink: Callable[[bytes], None]) -> None:
        """Hands on what it writes to stderr, to which its stdout goes too."""
        async for chunk in cast("ByteReceiveStream", self._process.stderr):
            sink(chunk)

    def read_printed(self, sink: Callable[[bytes], None]) -> None:
        """Leaves that to the log."""

    async def wait(self) -> object:
        """Waits until it has ended."""
        return await self._process.wait()

    async def kill(self) -> None:
        """Kills it and its children."""
        with suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS, of a zombie
            os.killpg(self._process.pid, signal.SIGKILL)

    def ending(self) -> str:
        """How it ended."""
        code = self._process.returncode
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    async def aclose(self) -> None:
        """Kills it where it runs, and closes its pipes."""
        await self._process.aclose()
