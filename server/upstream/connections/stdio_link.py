"""Links over stdio: another server as a program that this process starts and stops."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import mcp_types as types
from mcp.client._transport import TransportStreams  # of public signatures
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from server.transport.jsonrpc import Flow, Incoming, Outgoing, PipeWriter, encoded, lines_of
from server.upstream.connections.link import MOST_BYTES, Link, last_words_text
from server.upstream.connections.server_log import ServerLog
from tools.sandbox.processes.lasting import LastingProcesses
from tools.sandbox.processes.launching.launcher import SupervisedProcess
from tools.sandbox.processes.output import Program

FLUSH_SECONDS = 0.3
"""Time for pending messages to reach a program before it is stopped."""

LEAVE_SECONDS = 1.0
"""Time for a program to exit after its standard input is closed."""

TERMINATE_SECONDS = 0.5
"""Time for it to exit after SIGTERM."""

EXPLAIN_SECONDS = 1.0
"""Time between the end of its output and its exit."""

RELEASE_SECONDS = 0.2
"""Time for the errors that a program prints about our probe."""

_PROBE = "server/discover"
_SIGNALLED = 128
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{1,100}")')
_SPACE = b" \t\r\n"

Running = SupervisedProcess | Program
Start = Callable[[int], Awaitable[Running]]
"""Starts a program with a descriptor as its standard input."""


class StdioLink(Link):
    """A program that speaks the protocol on its standard input and output."""

    def __init__(self, start: Start, errors: ServerLog, confined: LastingProcesses | None) -> None:
        super().__init__()
        self._start_program = start
        self._errors = errors
        self._confined = confined
        self._running: Running | None = None
        self._exit_code: int | None = None
        self._left = anyio.Event()
        self._answered = anyio.Event()
        self._unfit = ""

    @property
    def last_words(self) -> str:
        """The last lines of its standard error."""
        return " | ".join(self._errors.last)

    async def explain(self) -> str:
        """Returns how it exited, with the last lines of its standard error."""
        if self._unfit:
            return self._unfit
        if not self.ended.is_set():
            return ""
        with anyio.move_on_after(EXPLAIN_SECONDS):
            await self._left.wait()
        if self._exit_code is None:
            return "closed its output"
        return _ending(self._exit_code) + self._why() + last_words_text(self)

    def refusals(self, errors: str) -> tuple[str, ...]:
        """Returns what its confinement refused, by the errors of a call and its last lines."""
        if self._confined is None or not isinstance(self._running, Program):
            return ()
        return self._confined.refusals(self._running, f"{self.last_words}\n{errors}")

    def _why(self) -> str:
        """Returns what its confinement had to do with its end."""
        if self._confined is None or not isinstance(self._running, Program):
            return ""
        tail, running = "\n".join(self._errors.last), self._running
        notes = running.notes or self._confined.explain(running, self._exit_code or 1, tail)
        return f" ({' '.join(notes).rstrip('.')})" if notes else ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Starts the program; stops it and all its child processes at the end."""
        running, entry = await self._start()
        writer = PipeWriter(entry)

        async def send(item: SessionMessage) -> None:
            if isinstance(item.message, types.JSONRPCRequest) and item.message.method == _PROBE:
                self._errors.hold()
            await writer.write(encoded(item.message))

        try:
            self._running = running
            async with anyio.create_task_group() as group:
                self._errors.begin(running.pid)
                group.start_soon(self._hear, running.stderr)
                group.start_soon(self._release)
                group.start_soon(self._write, writer)
                group.start_soon(self._wait, running)
                try:
                    yield Incoming(self._read(running.stdout)), Outgoing(send)
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._stop(running, entry, writer)
                    group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await running.aclose()
            code = self._exit_code
            self._errors.end("stopped" if code is None else _ending(code))

    async def _start(self) -> tuple[Running, int]:
        readable, entry = os.pipe()
        try:
            running = await self._start_program(readable)
        except BaseException:
            os.close(entry)
            raise
        finally:
            os.close(readable)
        return running, entry

    async def _stop(self, running: Running, entry: int, writer: PipeWriter) -> None:
        """Stops it as the protocol requires: closes its input, terminates it, kills it."""
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

    async def _wait(self, running: Running) -> None:
        self._exit_code = await running.wait()
        self._left.set()

    async def _read(self, descriptor: int) -> AsyncGenerator[SessionMessage]:
        """Yields the program's messages at a limited rate."""
        flow = Flow()
        try:
            async for line in lines_of(descriptor, MOST_BYTES):
                if len(line) > MOST_BYTES:
                    self._unfit = f"sent a message of more than {MOST_BYTES >> 20} MB"
                    return
                self.received += len(line)
                if (item := self._message(line)) is not None:
                    if isinstance(item.message, types.JSONRPCResponse):
                        self._answered.set()
                    yield item
                await flow.next()
        except (anyio.ClosedResourceError, OSError):
            return
        finally:
            self.ended.set()

    def _message(self, line: bytes) -> SessionMessage | None:
        """Parses a line; returns None for other output, as programs print many things."""
        if not line.strip(_SPACE):
            return None
        try:
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValidationError as error:
            named = _ID.search(line) if b'"jsonrpc"' in line else None
            if named is None:
                self._errors.take(line)
                return None
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            failure = types.ErrorData(
                code=types.PARSE_ERROR, message=f"its answer is not a valid message: {reason}"
            )
            text = named[1].decode(errors="replace")
            request_id = text.strip('"') if text.startswith('"') else int(text)
            return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=failure))

    async def _hear(self, descriptor: int) -> None:
        """Keeps the program's standard error."""
        with suppress(anyio.ClosedResourceError, OSError):
            async for line in lines_of(descriptor, ServerLog.LONGEST * 4):
                self._errors.take(line)
                await self._errors.flow.next()

    async def _release(self) -> None:
        """Keeps what the program printed during the handshake, once that has succeeded."""
        await self._answered.wait()
        await anyio.sleep(RELEASE_SECONDS)
        self._errors.release()

    async def _write(self, writer: PipeWriter) -> None:
        """Writes what the program was too slow for, until it stops reading."""
        with suppress(OSError, anyio.ClosedResourceError):
            await writer.run()
        self.ended.set()


def _ending(exit_code: int) -> str:
    if exit_code > _SIGNALLED:
        with suppress(ValueError):
            return f"was killed by {signal.Signals(exit_code - _SIGNALLED).name}"
    return f"exited with code {exit_code}"
