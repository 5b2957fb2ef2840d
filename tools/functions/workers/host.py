"""Runs a worker process: loads one function file and serves its calls."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio.abc import TaskGroup

from storage.locks import made_once
from storage.models import Identity
from tools.core.audit.secret_arguments import SecretTools
from tools.core.browsing.prompt import PromptSpec
from tools.core.browsing.resource import ResourceSpec
from tools.core.context import Grant, Link, Origin, RequestContext
from tools.core.errors import ToolFailedError, as_tool_error
from tools.core.machine import first_use
from tools.core.result import ToolResult, encode_result
from tools.core.spec import ToolScope, ToolSpec
from tools.functions.workers.bounds import TooLongError
from tools.functions.workers.channel import Channel
from tools.functions.workers.loading import load
from tools.functions.workers.memory import limit_memory
from tools.functions.workers.messages import (
    LONGEST_TOLD,
    Load,
    Loaded,
    Message,
)
from tools.functions.workers.offers import (
    Offer,
    encode_contents,
    encode_messages,
    encode_offer,
    key_of,
)
from tools.functions.workers.peer import CURRENT, ServerPeer
from tools.functions.workers.questions import Questions
from tools.sandbox.files.sandbox import Sandbox

if TYPE_CHECKING:  # opened on first use
    from storage.library import Library

Send = Callable[[Message], None]

GRACE = 2.0
"""Seconds that functions have to finish after the server has hung up."""
PR_SET_PDEATHSIG = 1
"""Linux, prctl(2): the signal that the process gets when its parent dies."""


def main(channel: Channel) -> None:
    """Serves the server at the other end of a channel until it hangs up."""
    _die_with_parent()
    order = channel.first()
    limit_memory(order.memory_bytes)
    logger = logging.getLogger("toolcrib")
    logger.addHandler(_ServerLogHandler(channel.send))
    logger.propagate = False  # not to the author's log handlers
    serve(channel, order)


def serve(channel: Channel, order: Load, given: Mapping[str, object] | None = None) -> None:
    """Loads a file of functions and serves calls until the server hangs up.

    `given`: names that the file has without an import.
    """
    anyio.run(anyio.lowlevel.checkpoint)  # imports modules whose names the author may reuse
    # Outside the event loop, since the file may run its own.
    found = load(Path(order.path), order.source, order.no_store, given)
    offers = None if found.offers is None else list(map(encode_offer, found.offers))
    channel.send({"loaded": asdict(Loaded(offers, found.problems, found.files))})
    if found.offers is not None:
        anyio.run(_serve, channel, partial(_Calls, found.offers, order, channel))


async def _serve(channel: Channel, calls_in: Callable[[TaskGroup], _Calls]) -> None:
    async with anyio.create_task_group() as group:
        calls = calls_in(group)
        async for message in channel.messages(calls.questions):
            calls.take(message)
        group.cancel_scope.cancel()
        _end_at_last()
    calls.close()


class _ServerLogHandler(logging.Handler):
    """Sends our own modules' log records to the server's log."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send({"log": record.levelno, "text": self.format(record)})


class _Calls:
    """The calls in progress, each in its own task."""

    def __init__(self, offers: list[Offer], load: Load, channel: Channel, group: TaskGroup) -> None:
        self._offers = {key_of(offer): offer for offer in offers}
        self._tools = {offer.name: offer for offer in offers if isinstance(offer, ToolSpec)}
        self._secrets = SecretTools()
        self._sandbox = _sandbox(load) if load.root else None
        self._store = load.store
        self._send = channel.send
        self.questions = Questions(channel.send, channel.during)
        self._group = group
        self._scopes: dict[int, anyio.CancelScope] = {}

    @made_once
    def library(self) -> Library:
        """The stored context; only permitted files have tools that get it."""
        from tools.functions.workers.store import StoreOptions

        return StoreOptions.decode(cast("Message", self._store)).open()

    def close(self) -> None:
        if "library" in vars(self):
            self.library.close()

    def take(self, message: Message) -> None:
        if "cancel" in message:
            if scope := self._scopes.get(message["cancel"]):
                scope.cancel()
        else:
            self._scopes[message["call"]] = anyio.CancelScope()
            self._group.start_soon(self._run, message)

    async def _run(self, message: Message) -> None:
        number, name = message["call"], message["key"][1]
        # Nobody reads this for a call that the server cancelled, but functions cancel tasks too.
        answer = _failure(ToolFailedError(f"{name} was cancelled from within its file."), name)
        try:
            with suppress(asyncio.CancelledError), self._scopes[number]:
                answer = await self._answer(message)
        finally:
            del self._scopes[number]
            self._end(number, name, answer)

    def _end(self, number: int, name: str, answer: Message) -> None:
        try:
            self._send({"result": number, **answer})
        except TooLongError as error:
            self._send({"result": number, **_failure(error, name)})
        except (ValueError, RecursionError) as error:
            failure = ToolFailedError(f"{name} returned a value that JSON cannot express: {error}.")
            self._send({"result": number, **_failure(failure, name)})

    async def _answer(self, message: Message) -> Message:
        async def report(done: float, total: float | None, text: str | None) -> None:
            said = None if text is None else text[:LONGEST_TOLD]
            self._send({"progress": message["call"], "done": done, "total": total, "message": said})
            await anyio.lowlevel.checkpoint()

        kind, name = message["key"]
        offer = self._offers[kind, name]
        peer = ServerPeer(self.questions, message["call"])
        CURRENT.set(peer)
        context = RequestContext(
            Origin(Identity(**message["identity"]), bound=message["bound"]),
            Link(report, sampler=peer, peer=peer),
            Grant(sandbox=self._sandbox, call=peer.call),
            tool=offer.name,
        )
        try:
            if isinstance(offer, ToolSpec) and offer.scope is ToolScope.CONTEXT:
                context = replace(
                    context, grant=replace(context.grant, library=await first_use(self, "library"))
                )
            if "completed" in message and not isinstance(offer, ToolSpec):
                argument, typed, given = message["completed"]
                return {"values": await offer.complete(argument, typed, given, context)}
            return await _run_offer(offer, message["arguments"], context)
        except MemoryError:
            error: BaseException = ToolFailedError(
                f"{name} needs more memory than its process may have.",
                next_actions=["Ask for less in one call, or raise functions.memory_mb."],
            )
        except (Exception, SystemExit, KeyboardInterrupt) as raised:  # noqa: BLE001  # the caller gets it as a failure
            error = raised
        finally:
            peer.end()
        if kind != "tool":
            return _failure(error, name, str)
        find = self._tools.get
        return _failure(error, name, self._secrets.of(find(name), message["arguments"], find).text)


def _sandbox(load: Load) -> Sandbox:
    return Sandbox(
        Path(load.root),
        protected=tuple(map(Path, load.protected)),
        read_only=tuple(map(Path, load.read_only)),
        expected=None if load.root_identity is None else (*load.root_identity,),
    )


async def _run_offer(offer: Offer, given: Mapping[str, Any], context: RequestContext) -> Message:
    arguments = offer.validate(given)
    match offer:
        case ResourceSpec():
            return encode_contents(await offer.read(arguments, context))
        case PromptSpec():
            return encode_messages(await offer.render(arguments, context))
    return encode_result(await offer.invoke(arguments, context))


def _failure(error: BaseException, name: str, hide: Callable[[str], str] = str) -> Message:
    return encode_result(ToolResult.failure(as_tool_error(error, name, hide)))


def _end_at_last() -> None:
    timer = threading.Timer(GRACE, os._exit, (1,))
    timer.daemon = True
    timer.start()


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
