"""Suspended requests: calls that continue while their client must answer, retry or poll.

Servers of the older protocols ask during a call. Clients of protocol 2026-07-28 are asked by
ending the call, and retry it with the answers. Meanwhile the call continues here. The client
identifies it by an unguessable name, which is valid only for exactly the same call by the same
user in the same conversation. Only answers are taken from the client. The questions of a call that
became a job wait here too, for the client that next polls it.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import mcp_types as types
from anyio.abc import TaskGroup

from server.mcp.elicitation.questions import (
    ANSWER_SECONDS,
    GONE,
    WRONG_KIND,
    Answer,
    Context,
    Relay,
    can_ask,
    fits,
)
from server.mcp.elicitation.rounds import Round
from server.mcp.visible import visible
from storage.models import Identity
from tools.core.calling.nested import Background
from tools.core.client import AnswersAwaitedError, ProgressReporter
from tools.core.elicitation.asker import Capability
from tools.core.errors import UnavailableError
from tools.core.result import ToolResult

MOST = 16
"""Maximum number of suspended calls per user; the oldest is dropped first."""

RETURN_SECONDS = 600.0
"""Time for a client to return, as long as a user may take."""

ALONE_SECONDS = 3_600.0
"""Time for a question of a call that continues alone."""

TOGETHER = 0.02
"""Seconds without new questions after which a round is complete."""

AWAITED_CHARACTERS = 300
"""Length of a question in text for clients that cannot be asked."""

OutcomeT = TypeVar("OutcomeT")


class SuspendedRequest:
    """The calls and questions of a request until its client retries it, or polls its job.

    A server's question does not name the call that caused it, so questions belong to the whole
    request: any waiting call forwards them to the client.
    """

    def __init__(self, identity: Identity, digest: str) -> None:
        self.identity = identity
        self.digest = digest  # binds it to the call and the conversation
        # Results of its finished calls by name; these are not repeated.
        self.finished: dict[str, ToolResult] = {}
        # Missing client capabilities, by the messages given to its functions.
        self.missing: dict[str, Capability] = {}
        self.runs: dict[str, SuspendedRun[Any]] = {}  # its running calls by name
        self.changed = anyio.Event()  # set when there is news for waiting calls
        self.expiry = anyio.CancelScope()  # cancelled when its client returns
        self.is_away = False  # whether its client was told to poll, and is asked when it does
        self._open: list[_OpenQuestion] = []
        self._names: set[str] = set()
        self._brought: dict[str, types.InputResponse] = {}
        self._ended = False

    async def ask(self, request: types.InputRequest, name: str = "") -> Answer | None:
        """Returns the client's answer, now or when it returns; None if it will not answer.

        A name is a key for an answer given in advance. It is valid for one question, so that no
        answer is used twice.
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
            with anyio.move_on_after(ALONE_SECONDS):
                await question.closed.wait()
        finally:
            self._open.remove(question)
        return question.answer

    async def ask_all(
        self, questions: Mapping[str, types.InputRequest], *, are_named: bool
    ) -> dict[str, Answer]:
        """Returns the answers to questions that the client gets together."""
        answers: dict[str, Answer] = {}

        async def ask(key: str, question: types.InputRequest) -> None:
            answers[key] = await self.ask(question, key if are_named else "") or GONE

        async with anyio.create_task_group() as group:
            for key, question in questions.items():
                group.start_soon(ask, key, question)
        return answers

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
            question.close(answer if fits(question.request, answer) else WRONG_KIND)
        return [each.key for each in answered]

    @property
    def open_questions(self) -> dict[str, types.InputRequest]:
        """The unanswered questions, by their keys."""
        return {each.key: each.request for each in self._open if not each.closed.is_set()}

    @property
    def awaits(self) -> str:
        """The unanswered questions as text; empty if there are none."""
        return "; ".join(map(_words, self.open_questions.values()))

    async def put(self, relay: object) -> bool:
        """Asks the client of another call, which polls; returns whether it answered anything.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then retries its call.
        """
        if not isinstance(relay, Relay):
            return False
        asked = self.open_questions.items()
        questions = {key: each for key, each in asked if can_ask(relay.capabilities, each)}
        if not questions:
            return False
        answers = await relay.ask(questions, seconds=ANSWER_SECONDS)
        given = {
            key: each for key, each in answers.items() if not isinstance(each, types.ErrorData)
        }
        return bool(self.answer(given))

    async def settled(self) -> None:
        """Waits until no further questions arrive: simultaneous ones are asked in one round."""
        known = -1
        while known != len(self._open):
            known = len(self._open)
            await anyio.sleep(TOGETHER)

    def add_to(self, this_round: Round) -> None:
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
        for run in self.runs.values():
            run.cancel()
        self.runs.clear()
        for question in self._open:
            question.close(None)


class _OpenQuestion:
    """An unanswered question."""

    def __init__(self, request: types.InputRequest, key: str) -> None:
        self.request = request
        self.key = key
        self.closed = anyio.Event()
        self.answer: Answer | None = None

    def close(self, answer: Answer | None) -> None:
        self.answer = answer
        self.closed.set()


def _words(request: types.InputRequest) -> str:
    """Describes a question for clients that cannot answer it."""
    match request:
        case types.ElicitRequest(params=params):
            said = params.message
        case types.CreateMessageRequest():
            said = "a question to the client's model"
        case _:
            said = "which directories the client works in"
    return visible(said)[:AWAITED_CHARACTERS]


class SuspendedRun(Relay, Background[OutcomeT]):
    """A call within a request, which continues while its client is away and runs only once."""

    def __init__(self, request: Relay, suspended: SuspendedRequest) -> None:
        super().__init__()
        self._suspended = suspended
        self._waiting: Context | None = None
        self._report: ProgressReporter | None = None
        self.is_modern = request.is_modern
        self.capabilities = request.capabilities
        self.offers_forms = request.offers_forms
        self.offers_sampling = request.offers_sampling
        self.meta = request.meta
        self.wants_progress = request.wants_progress
        self.client = request.client
        self._request = request

    @property
    def is_away(self) -> bool:
        """Whether its client was told to poll a job, and is asked when it does."""
        return self._suspended.is_away

    @property
    def level(self) -> types.LoggingLevel | None:
        """The minimum log level that its client wants; None if it set none."""
        return self._request.level

    def waiting(self) -> Context | None:
        """Returns the request that waits for the call; None while its client is away."""
        return None if self.is_away else self._waiting

    def note_client(self) -> object:
        """Records its client, for questions of other servers."""
        return self._request.note_client()

    def note_missing(self, capability: Capability, message: str) -> None:
        """Records a missing client capability and the message given to the function."""
        self._request.note_missing(capability, message)

    async def changed(self, uri: str) -> None:
        """Notifies subscribers that a resource changed."""
        await self._request.changed(uri)

    async def ask(
        self,
        questions: Mapping[str, types.InputRequest],
        *,
        seconds: float,  # noqa: ARG002  # its client may take as long as it is away
        state: str | None = None,  # noqa: ARG002  # only requests have one
    ) -> Mapping[str, Answer]:
        """Returns its client's answers."""
        return await self._suspended.ask_all(questions, are_named=True)

    async def ask_one(self, question: types.InputRequest) -> Answer | None:
        """Returns its client's answer to a server's question; None if the client is gone."""
        return await self._suspended.ask(question)

    async def report(self, done: float, total: float | None, message: str | None) -> None:
        """Reports progress to the waiting request."""
        if self._report is not None:
            await self._report(done, total, message)

    async def result(self, ctx: Context, report: ProgressReporter, this_round: Round) -> OutcomeT:
        """Waits for the outcome in a request.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then retries the request.
        """
        suspended = self._suspended
        self._waiting, self._report = ctx, report
        try:
            while not self.ended.is_set():
                if suspended.is_away or not suspended.open_questions:
                    await suspended.changed.wait()
                    continue
                await suspended.settled()
                is_asked = bool(suspended.open_questions) and not suspended.is_away
                if is_asked and not self.ended.is_set():
                    suspended.add_to(this_round)
                    raise AnswersAwaitedError("The client must answer first.")
        except anyio.get_cancelled_exc_class():
            self.cancel()
            raise
        finally:
            self._waiting = self._report = None
        if self.outcome is None:
            raise self.error or UnavailableError("The call was cancelled.")
        return self.outcome

    def wake(self) -> None:
        """Wakes the waiting request."""
        self._suspended.wake()


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

    def start(self, run: SuspendedRun[OutcomeT], work: Callable[[], Awaitable[OutcomeT]]) -> None:
        """Starts a call in the background."""
        self._running.start_soon(run.run, work)

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
        if not (request.runs or request.finished):
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
