"""Suspended calls: wait for answers while their client must retry the call.

Servers of the older protocols ask during a call. Clients of protocol 2026-07-28 are asked by
ending the call, and retry it with the answers. Meanwhile the call continues here. The client
identifies it by an unguessable name, which is valid only for exactly the same call by the same
user in the same conversation. Only answers are taken from the client.
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

from server.mcp.elicitation.channels import Channel, fits
from server.mcp.elicitation.rounds import Round
from storage.models import Identity
from tools.core.calling.call import PausableDeadline
from tools.core.client import ProgressReporter
from tools.core.elicitation.asker import Capability
from tools.core.errors import UnavailableError
from tools.core.result import ToolResult

MOST = 16
"""Maximum number of suspended calls per user; the oldest is dropped first."""

RETURN_SECONDS = 600.0
"""Time for a client to return, as long as a user may take."""

ANSWER_SECONDS = 3_600.0
"""Time for a question of a call that continues alone."""

TOGETHER = 0.02
"""Seconds without new questions after which a round is complete."""

OutcomeT = TypeVar("OutcomeT")


class SuspendedRequest:
    """The state of a call until its client retries it.

    A server's question does not name the call that caused it, so questions belong to the whole
    request: any waiting call forwards them to the client.

    Args:
        digest: Binds it to the call and the conversation.

    Attributes:
        finished: Results of its finished calls by name; these are not repeated.
        missing: Missing client capabilities, by the messages given to its functions.
        calls: Its running calls to other servers, by name.
        changed: Set when there is news for waiting calls.
        expiry: Cancelled when its client returns.
        is_away: Whether its client was told to poll, and is asked when it does.
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
        """Returns the client's answer, now or when it returns; None if it will not answer.

        Args:
            name: A key for an answer given in advance; empty to forbid that. It is valid for one
             question, so that no answer is used twice.
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
        """Passes on the client's answers."""
        self._brought = dict(answers)
        for key in self.answer(answers):
            del self._brought[key]

    def answer(self, answers: types.InputResponses) -> list[str]:
        """Passes answers to open questions; returns their keys."""
        answered = [each for each in self._open if each.key in answers and not each.closed.is_set()]
        for question in answered:
            answer = answers[question.key]
            question.close(answer if fits(question.request, answer) else _WRONG_KIND)
        return [each.key for each in answered]

    @property
    def open_questions(self) -> dict[str, types.InputRequest]:
        """The unanswered questions, by their keys."""
        return {each.key: each.request for each in self._open if not each.closed.is_set()}

    @property
    def asks(self) -> bool:
        """Whether there are unanswered questions."""
        return bool(self.open_questions)

    async def settled(self) -> None:
        """Waits until no further questions arrive: simultaneous ones are asked in one round."""
        known = -1
        while known != len(self._open):
            known = len(self._open)
            await anyio.sleep(TOGETHER)

    def put(self, this_round: Round) -> None:
        """Adds the unanswered questions to a round."""
        for each in self._open:
            if not each.closed.is_set():
                each.key = this_round.ask_apart(each.key, each.request)

    def wake(self) -> None:
        """Wakes all waiting calls."""
        self.changed.set()
        self.changed = anyio.Event()

    def end(self) -> None:
        """Cancels all its running calls."""
        self._ended = True
        for call in self.calls.values():
            call.cancel()
        self.calls.clear()
        for question in self._open:
            question.close(None)


class _OpenQuestion:
    """An unanswered question."""

    def __init__(self, request: types.InputRequest, key: str) -> None:
        self.request = request
        self.key = key
        self.closed = anyio.Event()
        self.answer: types.InputResponse | types.ErrorData | None = None

    def close(self, answer: types.InputResponse | types.ErrorData | None) -> None:
        self.answer = answer
        self.closed.set()


_WRONG_KIND = types.ErrorData(
    code=types.INTERNAL_ERROR, message="The client's answer has the wrong type."
)


class SuspendedCall(Generic[OutcomeT]):
    """A call that continues while its client is away."""

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
        """Does the work and keeps the outcome for the waiting request."""
        with self._scope:
            try:
                self._outcome = await work()
            except Exception as error:  # noqa: BLE001  # raised again by result()
                self._error = error
        if self._scope.cancelled_caught:
            self._error = UnavailableError("The call was cancelled.")
        self._request.wake()

    def channel(self, deadline: PausableDeadline) -> Channel:
        """Returns the channel to its client, for a server working on it until a deadline."""
        return _SuspendedChannel(self, deadline)

    async def report(self, done: float, total: float | None, message: str | None) -> None:
        """Reports progress to the waiting request."""
        if self._report is not None:
            await self._report(done, total, message)

    async def result(
        self, ctx: ServerRequestContext[Any, Any], report: ProgressReporter, this_round: Round
    ) -> OutcomeT | None:
        """Waits for the outcome; returns None if the client must answer first and return."""
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
        """Cancels the call, and with it the request to its server."""
        self._scope.cancel()


class _SuspendedChannel:
    """Asks a client that is away, or that is asked by ending its request."""

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
    """Keeps calls until their clients return."""

    def __init__(self) -> None:
        self.seconds = RETURN_SECONDS
        self._group: TaskGroup | None = None
        self._suspended: OrderedDict[str, SuspendedRequest] = OrderedDict()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs calls in the background; cancels them at the end."""
        async with anyio.create_task_group() as group:
            self._group = group
            yield
            self._group = None
            group.cancel_scope.cancel()

    def start(self, call: SuspendedCall[OutcomeT], work: Callable[[], Awaitable[OutcomeT]]) -> None:
        """Starts a call in the background."""
        self._running.start_soon(call.run, work)

    def resume(self, name: str, identity: Identity, digest: str) -> SuspendedRequest:
        """Returns the suspended state of a call, or new state for a new call."""
        if not name:
            return SuspendedRequest(identity, digest)
        found = self._suspended.get(name)
        if found is None or (found.identity, found.digest) != (identity, digest):
            raise UnavailableError(
                "These answers come too late: the call that asked for them was cancelled, or"
                " Toolcrib was restarted. Side effects up to that point remain.",
                next_actions=["Check its side effects, then repeat the call without answers."],
            )
        del self._suspended[name]
        found.expiry.cancel()
        return found

    def keep(self, request: SuspendedRequest) -> str:
        """Keeps a request until its client returns or it expires; returns its name, if any."""
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
            raise UnavailableError("No call can wait for answers: Toolcrib is shutting down.")
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
