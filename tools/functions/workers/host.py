"""Runs a worker process: loads one function file and serves its calls."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

import anyio
from anyio.abc import TaskGroup

from storage.locks import made_once
from storage.models import Identity
from tools.core.audit.redact import SecretArguments
from tools.core.client import NoReply, Prompt, Refusal, Reply
from tools.core.context import Grant, Link, Origin, RequestContext
from tools.core.elicitation.asker import Filled, Form, LogLevel, Peer, Root
from tools.core.errors import ToolFailedError, UnavailableError, as_tool_error
from tools.core.machine import first_use
from tools.core.offered import PromptSpec, ResourceSpec
from tools.core.result import ToolResult, decode_result, encode_result
from tools.core.spec import ToolScope, ToolSpec
from tools.functions.workers.channel import Channel, ended_error
from tools.functions.workers.loading import load
from tools.functions.workers.messages import LONGEST_TOLD, Load, Loaded, Message, TooLongError
from tools.functions.workers.offers import (
    Offer,
    encode_contents,
    encode_messages,
    encode_offer,
    key_of,
)
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes.kernel.process import die_with_parent

if TYPE_CHECKING:  # opened on first use
    from storage.library import Library

GRACE = 2.0  # seconds that functions have to finish after the server has hung up


def main(channel: Channel) -> None:
    """Serves the server at the other end of a channel until it hangs up."""
    if sys.platform == "linux":
        die_with_parent()
    order = channel.first()
    logger = logging.getLogger("toolcrib")
    logger.addHandler(_ServerLogHandler(channel))
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
        async for message in channel.messages():
            calls.take(message)
        group.cancel_scope.cancel()
        timer = threading.Timer(GRACE, os._exit, (1,))
        timer.daemon = True
        timer.start()
    calls.close()


class _ServerLogHandler(logging.Handler):
    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        self._channel.send({"log": record.levelno, "text": self.format(record)})


class _Calls:
    def __init__(self, offers: list[Offer], load: Load, channel: Channel, group: TaskGroup) -> None:
        self._offers = {key_of(offer): offer for offer in offers}
        self._tools = {offer.name: offer for offer in offers if isinstance(offer, ToolSpec)}
        self._sandbox = (
            Sandbox(
                Path(load.root),
                protected=tuple(map(Path, load.protected)),
                read_only=tuple(map(Path, load.read_only)),
                expected=None if load.root_identity is None else (*load.root_identity,),
            )
            if load.root
            else None
        )
        self._store = load.store
        self._channel = channel
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
            self._channel.send({"result": number, **answer})
        except TooLongError as error:
            self._channel.send({"result": number, **_failure(error, name)})
        except (ValueError, RecursionError) as error:
            failure = ToolFailedError(f"{name} returned a value that JSON cannot express: {error}.")
            self._channel.send({"result": number, **_failure(failure, name)})

    async def _answer(self, message: Message) -> Message:
        async def report(done: float, total: float | None, text: str | None) -> None:
            said = None if text is None else text[:LONGEST_TOLD]
            sent = {"progress": message["call"], "done": done, "total": total, "message": said}
            self._channel.send(sent)
            await anyio.lowlevel.checkpoint()

        kind, name = message["key"]
        offer = self._offers[kind, name]
        peer = ServerPeer(self._channel, message["call"])
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
        return _failure(error, name, SecretArguments(find(name), message["arguments"], find).text)


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


CURRENT: ContextVar[ServerPeer] = ContextVar("CURRENT")  # the peer of the call that runs here


class ServerPeer(Peer):
    """A call's client, its model and the other tools, all reached through the server."""

    kind = "server"
    at_once = 1
    state = ""

    def __init__(self, channel: Channel, call: int) -> None:
        self._channel = channel
        self._call = call
        RUNNING.add(self)

    def end(self) -> None:
        """Ends the call: its remaining and later questions fail."""
        RUNNING.discard(self)
        self._channel.questions.end(self._call)

    async def _ask(self, what: Message, *, in_turn: bool = False) -> Any:  # noqa: ANN401  # decoded JSON
        if self not in RUNNING:
            raise ended_error()
        questions = self._channel.questions
        ask = questions.ask_in_turn if in_turn else questions.ask
        return await ask(self._call, what)

    async def fill(self, tool: str, form: Form) -> Filled:  # noqa: ARG002  # known to the server
        """Shows a form to the client's user and returns the response."""
        return Filled(**await self._ask({"form": asdict(form)}))

    async def roots(self, tool: str) -> list[Root]:  # noqa: ARG002  # the same
        """Returns the directories that the client works in."""
        return [Root(**each) for each in await self._ask({"roots": True})]

    async def log(self, tool: str, level: LogLevel, text: str) -> None:  # noqa: ARG002  # the same
        """Asks the server to log a message for the client."""
        self._channel.send({"tell": self._call, "level": level, "text": text[:LONGEST_TOLD]})
        await anyio.lowlevel.checkpoint()

    async def changed(self, uri: str) -> None:
        """Asks the server to announce that a resource changed."""
        self._channel.send({"changed": self._call, "uri": uri})
        await anyio.lowlevel.checkpoint()

    async def ask(
        self,
        prompts: Sequence[Prompt],
        *,
        state: str,  # noqa: ARG002  # the call is not repeated
    ) -> list[Reply | Refusal | NoReply]:
        """Returns a reply to each prompt."""
        return [Reply(**await self._ask({"prompt": asdict(each)})) for each in prompts]

    async def call(self, _context: object, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Calls another tool; the server knows the context."""
        return decode_result(await self.answer(name, arguments))

    async def answer(
        self, name: str, arguments: Mapping[str, Any], *, in_turn: bool = False
    ) -> Message:
        """Returns another tool's encoded result; `in_turn` waits for its turn to ask."""
        asked = {"tool": name, "arguments": arguments}
        answer: Message = await self._ask(asked, in_turn=in_turn)
        return answer


RUNNING: WeakSet[ServerPeer] = WeakSet()  # the peers of all running calls


def current_peer() -> ServerPeer:
    """Returns the peer of the call that runs here, or of the only one in an unrelated thread."""
    peer = CURRENT.get(None)
    running = [peer] if peer else list(RUNNING)
    if len(running) == 1:
        return running[0]
    raise UnavailableError(
        "This thread does not belong to a running call, or could belong to several.",
        next_actions=["Start it with contextvars.copy_context().run, or use asyncio.to_thread."],
    )
