"""Suspended calls: their server waits for an answer, and their client has to make the call again.

A server of the older protocols asks in the middle of its call; a client of protocol 2026-07-28 is
asked by ending the call, and makes it again with the answers. Meanwhile the call goes on here. What
the client brings back names it, by a number that nobody guesses; it counts only for the very same
call of the same person in the same conversation, and what else comes back is the answers alone.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext

from server.mcp.asking.channels import Channel, fits
from server.mcp.asking.rounds import Round
from storage.models import Identity
from tools.core.asking.deadline import PausableDeadline
from tools.core.asking.peer import Capability
from tools.core.client import ProgressReporter
from tools.core.errors import UnavailableError
from tools.core.result import ToolResult

MOST = 16
"""Calls of one person that may wait at once; the one that waits longest gives way."""

RETURN_SECONDS = 600.0
"""How long a client may take to come back, as long as a person may think."""

ANSWER_SECONDS = 3_600.0
"""How long a question of a call that goes on alone may be open."""

TOGETHER = 0.02
"""Seconds after which nothing more of what is asked at once is to come."""

OutcomeT = TypeVar("OutcomeT")


class SuspendedRequest:
    """What is kept of a call until its client makes it again.

    A question of another server does not say in which of the calls within this one it is asked, so
    questions belong to the whole: whoever waits hands them to the client.

    Args:
        identity: Whose call it is.
        digest: What it is bound to: the call, and the conversation.

    Attributes:
        finished: Results of calls that it made, by their names; they are not made twice.
        missing: What its client would have to offer, by the messages that its functions were given.
        calls: The calls of other servers that go on, by their names within it.
        changed: Set once there is something new for those who wait.
        expiry: Cancelled when its client is back.
        is_away: Whether its client was told to look again, and is asked by whoever does.
    """

    def __init__(self, identity: Identity, digest: str) -> None:
        self.identity = identity
        self.digest = digest
        self.finished: dict[str, ToolResult] = {}
        self.missing: dict[str, Capability] = {}
        self.calls: dict[str, SuspendedCall[Any]] = {}
        self.changed = anyio.Event()
        self.expiry = anyio.CancelScope()
        self.is_away = False
        self._open: list[_OpenQuestion] = []
        self._names: set[str] = set()
        self._brought: dict[str, types.InputResponse] = {}
        self._ended = False

    async def ask(
        self, request: types.InputRequest, name: str = ""
    ) -> types.InputResponse | types.ErrorData | None:
        """What the client answers when it comes back, or has brought; None if it will not.

        Args:
            request: What it is asked.
            name: By which it may answer before it is asked; empty where it must not. It counts
                for one question, so that no answer is taken for that to another.
        """
        if self._ended:
            return None
        key = secrets.token_hex(16)
        if name and name not in self._names:
            self._names.add(name)
            key, brought = name, self._brought.pop(name, None)
            if brought is not None and fits(request, brought):
                return brought
        question = _OpenQuestion(request, key)
        self._open.append(question)
        self.wake()
        try:
            with anyio.move_on_after(ANSWER_SECONDS):
                await question.closed.wait()
        finally:
            self._open.remove(question)
        return question.answer

    def take(self, answers: types.InputResponses) -> None:
        """Hands on what the client has brought."""
        self._brought = dict(answers)
        for key in self.answer(answers):
            del self._brought[key]

    def answer(self, answers: types.InputResponses) -> list[str]:
        """Hands on what answers open questions, and returns their keys."""
        answered = [each for each in self._open if each.key in answers and not each.closed.is_set()]
        for question in answered:
            answer = answers[question.key]
            question.close(answer if fits(question.request, answer) else _WRONG_KIND)
        return [each.key for each in answered]

    @property
    def open_questions(self) -> dict[str, types.InputRequest]:
        """What nobody has answered, by the keys under which it can be."""
        return {each.key: each.request for each in self._open if not each.closed.is_set()}

    @property
    def asks(self) -> bool:
        """Whether there is anything that nobody has answered."""
        return bool(self.open_questions)

    async def settled(self) -> None:
        """Waits until nothing more is asked: what is asked at once is asked in one round."""
        known = -1
        while known != len(self._open):
            known = len(self._open)
            await anyio.sleep(TOGETHER)

    def put(self, this_round: Round) -> None:
        """Has the client asked what nobody has answered."""
        for each in self._open:
            if not each.closed.is_set():
                each.key = this_round.ask_apart(each.key, each.request)

    def wake(self) -> None:
        """Has everybody look who waits."""
        self.changed.set()
        self.changed = anyio.Event()

    def end(self) -> None:
        """Gives up whatever of it goes on."""
        self._ended = True
        for call in self.calls.values():
            call.cancel()
        self.calls.clear()
        for question in self._open:
            question.close(None)


class _OpenQuestion:
    """A question that waits for its answer."""

    def __init__(self, request: types.InputRequest, key: str) -> None:
        self.request = request
        self.key = key
        self.closed = anyio.Event()
        self.answer: types.InputResponse | types.ErrorData | None = None

    def close(self, answer: types.InputResponse | types.ErrorData | None) -> None:
        self.answer = answer
        self.closed.set()


_WRONG_KIND = types.ErrorData(
    code=types.INTERNAL_ERROR, message="The client's answer does not fit this question."
)


class SuspendedCall(Generic[OutcomeT]):
    """A call that goes on while its client is away.

    Attributes:
        ctx: The request that waits for it now; None while the client is away.
        capabilities: What the client can be asked.
        ask: Asks the client when it comes back; gives None if it will not.
    """

    def __init__(self, request: SuspendedRequest, ctx: ServerRequestContext[Any, Any]) -> None:
        self.ctx: ServerRequestContext[Any, Any] | None = ctx
        self.capabilities = ctx.session.client_capabilities
        self.ask = request.ask
        self._request = request
        self._scope = anyio.CancelScope()
        self._report: ProgressReporter | None = None
        self._outcome: OutcomeT | None = None
        self._error: Exception | None = None

    async def run(self, work: Callable[[], Awaitable[OutcomeT]]) -> None:
        """Does the work; what comes of it is kept for whoever waits."""
        with self._scope:
            try:
                self._outcome = await work()
            except Exception as error:  # noqa: BLE001  # it is raised where the call is awaited
                self._error = error
        if self._scope.cancelled_caught:
            self._error = UnavailableError("The call was given up.")
        self._request.wake()

    def channel(self, deadline: PausableDeadline) -> Channel:
        """The channel to its client, for whoever works on it until a deadline."""
        return _SuspendedChannel(self, deadline)

    async def report(self, done: float, total: float | None, message: str | None) -> None:
        """Tells the request that waits how far the call is."""
        if self._report is not None:
            await self._report(done, total, message)

    async def result(
        self,
        ctx: ServerRequestContext[Any, Any],
        report: ProgressReporter,
        this_round: Round,
    ) -> OutcomeT | None:
        """What comes of the call; None if the client is asked first, and has to come back."""
        self.ctx, self._report = ctx, report
        try:
            while self._outcome is None:
                if self._error is not None:
                    raise self._error
                if self._request.is_away or not self._request.asks:
                    await self._request.changed.wait()
                    continue
                await self._request.settled()
                if self._outcome is None and self._error is None and self._request.asks:
                    self._request.put(this_round)
                    return None
        except anyio.get_cancelled_exc_class():
            self.cancel()
            raise
        finally:
            self.ctx = self._report = None
        return self._outcome

    def cancel(self) -> None:
        """Gives it up, which its server is told."""
        self._scope.cancel()


class _SuspendedChannel:
    """Asks a client that is away, or is asked by ending its request."""

    def __init__(self, call: SuspendedCall[Any], deadline: PausableDeadline) -> None:
        self.capabilities = call.capabilities
        self.deadline = deadline
        self._call = call

    @property
    def ctx(self) -> ServerRequestContext[Any, Any] | None:
        return self._call.ctx

    async def ask(
        self, request: types.InputRequest
    ) -> types.InputResponse | types.ErrorData | None:
        with self.deadline.paused():
            return await self._call.ask(request)


class SuspendedRequests:
    """Keeps calls whose clients have to come back.

    Attributes:
        seconds: How long one may take to.
    """

    def __init__(self) -> None:
        self.seconds = RETURN_SECONDS
        self._group: TaskGroup | None = None
        self._suspended: OrderedDict[str, SuspendedRequest] = OrderedDict()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Has calls go on; at the end they are given up."""
        async with anyio.create_task_group() as group:
            self._group = group
            yield
            self._group = None
            group.cancel_scope.cancel()

    def start(self, call: SuspendedCall[OutcomeT], work: Callable[[], Awaitable[OutcomeT]]) -> None:
        """Begins a call."""
        self._running.start_soon(call.run, work)

    def resume(self, name: str, identity: Identity, digest: str) -> SuspendedRequest:
        """What was suspended of a call, or what may be of one that is new.

        Args:
            name: What the client brought back; empty for a call that is new.
            identity: Whose call it is.
            digest: What it is bound to.
        """
        if not name:
            return SuspendedRequest(identity, digest)
        found = self._suspended.get(name)
        if found is None or (found.identity, found.digest) != (identity, digest):
            raise UnavailableError(
                "These answers come too late: the call that asked for them was given up, or"
                " Toolcrib was restarted. What it had done until then is done.",
                next_actions=["Look at what it did, then make the call again, without answers."],
            )
        del self._suspended[name]
        found.expiry.cancel()
        return found

    def keep(self, request: SuspendedRequest) -> str:
        """Keeps it until the client comes back or its time is over; returns its name, if any."""
        if not (request.calls or request.finished):
            return ""
        own = [name for name, each in self._suspended.items() if each.identity == request.identity]
        for name in own[: max(len(own) - MOST + 1, 0)]:
            self._drop(name)
        name = secrets.token_urlsafe(16)
        self._suspended[name] = request
        request.expiry = anyio.CancelScope()
        self._running.start_soon(self._expire, name, request)
        return name

    @property
    def _running(self) -> TaskGroup:
        if self._group is None:
            raise UnavailableError("No call can wait for answers now: Toolcrib is ending.")
        return self._group

    async def _expire(self, name: str, request: SuspendedRequest) -> None:
        with request.expiry:
            await anyio.sleep(self.seconds)
            self._drop(name)

    def _drop(self, name: str) -> None:
        dropped = self._suspended.pop(name, None)
        if dropped is not None:
            dropped.expiry.cancel()
            dropped.end()
