"""The worker process: loads one function file, runs what the server calls, and dies alone."""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import cast

import anyio
from anyio.abc import TaskGroup

from storage.models import Identity
from tools.core.context import RequestContext
from tools.core.errors import ToolFailedError, as_tool_error
from tools.core.result import ToolResult
from tools.core.spec import ToolSpec
from tools.functions.loading import load
from tools.functions.messages import (
    Load,
    Loaded,
    Message,
    TooLongError,
    decoded,
    encode,
    encode_result,
    encode_spec,
)
from tools.functions.questions import Questions, ServerPeer
from tools.sandbox.files.sandbox import Sandbox

__all__ = ["main"]

Send = Callable[[Message], None]

CHUNK = 1 << 20
"""Bytes that are read at once."""
GRACE = 2.0
"""Seconds that functions have to end after the server has hung up."""
PR_SET_PDEATHSIG = 1
"""Linux, prctl(2): the signal that the process gets when its parent dies."""


def main() -> None:
    """Serves the server at the other end of stdin and stdout until it hangs up."""
    _die_with_parent()
    incoming, outgoing = _take_channel()
    send = partial(_send, outgoing, threading.Lock())
    logger = logging.getLogger("toolcrib")
    logger.addHandler(_ServerLogHandler(send))
    logger.propagate = False  # to what the author logs with
    with open(incoming, "rb", closefd=False) as first:
        order = Load(**json.loads(first.readline())["load"])
    _limit_memory(order.memory_bytes)
    anyio.run(anyio.lowlevel.checkpoint)  # imports what the author may have modules named like
    found = load(Path(order.path), order.source)  # outside the event loop: it may run its own
    tools = None if found.specs is None else list(map(encode_spec, found.specs))
    send({"loaded": asdict(Loaded(tools, found.problems, found.files))})
    if found.specs is not None:
        anyio.run(_serve, incoming, partial(_Calls, found.specs, order, send))


async def _serve(incoming: int, calls_in: Callable[[TaskGroup], _Calls]) -> None:
    async with anyio.create_task_group() as group:
        calls = calls_in(group)
        async for message in decoded(_chunks(incoming)):
            calls.take(message)
        group.cancel_scope.cancel()
        _end_at_last()


class _ServerLogHandler(logging.Handler):
    """Sends what our own modules log to the server's log."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send({"log": record.levelno, "text": self.format(record)})


class _Calls:
    """The calls in progress, each in a task of its own."""

    def __init__(self, specs: list[ToolSpec], load: Load, send: Send, group: TaskGroup) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._sandbox = Sandbox(
            Path(load.root),
            protected=tuple(map(Path, load.protected)),
            read_only=tuple(map(Path, load.read_only)),
        )
        self._send = send
        self._questions = Questions(send)
        self._group = group
        self._scopes: dict[int, anyio.CancelScope] = {}

    def take(self, message: Message) -> None:
        if "cancel" in message:
            if scope := self._scopes.get(message["cancel"]):
                scope.cancel()
        elif "answer" in message:
            self._questions.take(message)
        else:
            self._scopes[message["call"]] = anyio.CancelScope()
            self._group.start_soon(self._run, message)

    async def _run(self, message: Message) -> None:
        number, name = message["call"], message["name"]
        # Nobody reads this of a call that the server cancelled, but functions cancel tasks too.
        result = ToolResult.failure(ToolFailedError(f"{name} was cancelled from within its file."))
        try:
            with suppress(asyncio.CancelledError), self._scopes[number]:
                result = await self._result(message)
        finally:
            del self._scopes[number]
            self._answer(number, name, result)

    def _answer(self, number: int, name: str, result: ToolResult) -> None:
        try:
            self._send(encode_result(number, result))
        except TooLongError as error:
            self._send(encode_result(number, ToolResult.failure(error)))
        except (ValueError, RecursionError) as error:
            failure = ToolFailedError(f"{name} returned what JSON cannot say: {error}.")
            self._send(encode_result(number, ToolResult.failure(failure)))

    async def _result(self, message: Message) -> ToolResult:
        async def report(done: float, total: float | None, text: str | None) -> None:
            self._send({"progress": message["call"], "done": done, "total": total, "message": text})
            await anyio.lowlevel.checkpoint()

        spec = self._specs[message["name"]]
        peer = ServerPeer(self._questions, message["call"])
        context = RequestContext(
            Identity(**message["identity"]),
            report,
            self._sandbox,
            _call=peer.call,
            sampler=peer,
            peer=peer,
            tool=spec.name,
        )
        try:
            return await spec.invoke(spec.validate(message["arguments"]), context)
        except MemoryError:
            return ToolResult.failure(
                ToolFailedError(
                    f"{spec.name} needs more memory than its process may have.",
                    next_actions=["Ask for less in one call, or raise functions.memory_mb."],
                )
            )
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  # its caller's answer
            return ToolResult.failure(as_tool_error(error, spec.name))


async def _chunks(incoming: int) -> AsyncIterator[bytes]:
    while True:
        await anyio.wait_readable(incoming)
        chunk = os.read(incoming, CHUNK)
        if not chunk:
            return
        yield chunk


def _send(outgoing: int, turn: threading.Lock, message: Message) -> None:
    line = memoryview(encode(message))
    with turn:  # threads log
        while line:
            line = line[os.write(outgoing, line) :]


def _take_channel() -> tuple[int, int]:
    """Keeps stdin and stdout for the server; what the functions print goes to stderr, the log."""
    incoming, outgoing = os.dup(0), os.dup(1)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    cast("TextIOWrapper", sys.stdout).reconfigure(line_buffering=True, errors="backslashreplace")
    return incoming, outgoing


def _limit_memory(most: int) -> None:
    """Lets an allocation fail here before the machine runs out of memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if most and (hard == resource.RLIM_INFINITY or most < hard):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _end_at_last() -> None:
    """Ends the process even if a function in a thread of it does not."""
    timer = threading.Timer(GRACE, os._exit, (1,))
    timer.daemon = True
    timer.start()


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
