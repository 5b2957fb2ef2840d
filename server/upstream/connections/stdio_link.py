"""Links over stdio: another server as a program that this process starts and ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import mcp_types as types
from mcp.client._transport import TransportStreams  # of public signatures
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from server.transport.jsonrpc import Incoming, Outgoing, encoded
from server.transport.pipes import PipeWriter, lines_of
from server.upstream.connections.flow import Flow, Tail
from server.upstream.connections.link import MOST_BYTES, Link, said_last
from tools.core.errors import UnavailableError
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.launching.program import SupervisedProcess
from tools.sandbox.processes.models import Prepared

FLUSH_SECONDS = 0.3
"""How long messages that were accepted may take to reach a program that is to end."""

LEAVE_SECONDS = 1.0
"""How long a program may take to end once its standard input is closed."""

TERMINATE_SECONDS = 0.5
"""How long it may take once it was told to terminate."""

EXPLAIN_SECONDS = 1.0
"""How long its end may come after that of its output."""

_SIGNALLED = 128
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{1,100}")')
_SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Program:
    """What is started.

    Attributes:
        command: The program, by its name or its path.
        args: Its arguments.
        env: Its variables.
        cwd: Where it is started.
    """

    command: str
    args: Sequence[str]
    env: Mapping[str, str]
    cwd: Path

    def prepared(self) -> Prepared:
        """What the launcher takes."""
        if os.sep in self.command:
            path: str | None = str(self.cwd / Path(self.command).expanduser())
        else:
            path = shutil.which(self.command, path=self.env.get("PATH", os.defpath))
        if path is None:
            raise UnavailableError(
                f"the command {self.command!r} was not found: install it, or give its path"
            )
        return Prepared(argv=(path, *self.args), cwd=str(self.cwd), environment=self.env)


class StdioLink(Link):
    """A program whose standard input and output carry the protocol.

    Args:
        program: What is started.
        launcher: What starts it, and ends it with everything that it has started.
        errors: Takes what it writes to its standard error.
    """

    def __init__(self, program: Program, launcher: Launcher, errors: Tail) -> None:
        super().__init__()
        self._program = program
        self._launcher = launcher
        self._errors = errors
        self._exit_code: int | None = None
        self._left = anyio.Event()
        self._unfit = ""

    @property
    def last_words(self) -> str:
        """The last that it wrote to its standard error."""
        return " | ".join(self._errors.last)

    async def explain(self) -> str:
        """How it ended, with the last that it wrote to its standard error."""
        if self._unfit:
            return self._unfit
        if not self.ended.is_set():
            return ""
        with anyio.move_on_after(EXPLAIN_SECONDS):
            await self._left.wait()
        if self._exit_code is None:
            return "closed its output"
        return _ending(self._exit_code) + said_last(self)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Starts the program; it has ended, with everything that it started, at the end."""
        running, entry = await self._start()
        writer = PipeWriter(entry)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._hear, running.stderr)
                group.start_soon(self._write, writer)
                group.start_soon(self._wait, running)
                try:
                    yield Incoming(self._read(running.stdout)), Outgoing(partial(_say, writer))
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._stop(running, entry, writer)
                    group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await running.aclose()

    async def _start(self) -> tuple[SupervisedProcess, int]:
        readable, entry = os.pipe()
        try:
            running = await self._launcher.start(self._program.prepared(), stdin=readable)
        except BaseException:
            os.close(entry)
            raise
        finally:
            os.close(readable)
        return running, entry

    async def _stop(self, running: SupervisedProcess, entry: int, writer: PipeWriter) -> None:
        """As the protocol has it: its input is closed, it is told to end, it is ended."""
        with anyio.move_on_after(FLUSH_SECONDS):
            await writer.drained()
        anyio.notify_closing(entry)
        os.close(entry)
        with anyio.move_on_after(LEAVE_SECONDS) as patience:
            await running.wait()
        if not patience.cancelled_caught:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGTERM)
        with anyio.move_on_after(TERMINATE_SECONDS):
            await running.wait()

    async def _wait(self, running: SupervisedProcess) -> None:
        self._exit_code = await running.wait()
        self._left.set()

    async def _read(self, descriptor: int) -> AsyncGenerator[SessionMessage]:
        """What the program writes, message by message, as fast as is fair to others."""
        flow = Flow()
        with suppress(anyio.ClosedResourceError, OSError):
            async for line in lines_of(descriptor, MOST_BYTES):
                if len(line) > MOST_BYTES:
                    self._unfit = f"sent a message of more than {MOST_BYTES >> 20} MB"
                    return
                self.received += len(line)
                if (item := self._message(line)) is not None:
                    yield item
                await flow.next()

    def _message(self, line: bytes) -> SessionMessage | None:
        """The message of a line; None for what is none, as programs print many things."""
        if not line.strip(_SPACE):
            return None
        try:
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValidationError as error:
            named = _ID.search(line) if b'"jsonrpc"' in line else None
            if named is None:
                self._errors.take(line)
                return None
            number = named[1].decode(errors="replace").strip('"')
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            failure = types.ErrorData(
                code=types.PARSE_ERROR,
                message=f"its answer is not a message of the protocol: {reason}",
            )
            request_id = number if named[1].startswith(b'"') else int(number)
            return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=failure))

    async def _hear(self, descriptor: int) -> None:
        """Sends what the program writes to its standard error to the log."""
        with suppress(anyio.ClosedResourceError, OSError):
            async for line in lines_of(descriptor, Tail.LONGEST * 4):
                self._errors.take(line)
                await self._errors.flow.next()

    async def _write(self, writer: PipeWriter) -> None:
        """Writes what the program was too slow for, until it listens no more."""
        with suppress(OSError, anyio.ClosedResourceError):
            await writer.run()
        self.ended.set()


async def _say(writer: PipeWriter, item: SessionMessage) -> None:
    await writer.write(encoded(item.message))


def _ending(exit_code: int) -> str:
    if exit_code > _SIGNALLED:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(exit_code - _SIGNALLED).name}"
    return f"exited with code {exit_code}"
