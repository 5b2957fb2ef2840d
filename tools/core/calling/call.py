"""Carries a call through the call path: its data, its turn and deadline, and its outcome."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import anyio

from tools.core.audit.redact import Find, SecretArguments
from tools.core.context import RequestContext
from tools.core.elicitation.asker import Deadline
from tools.core.errors import DeadlineError, InvalidArgumentsError, ToolFailedError
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, ToolSpec

if TYPE_CHECKING:
    from tools.core.client import Approval
    from tools.core.toolset import ToolSet
    from tools.policy.calls import Containment, Decision
    from tools.policy.matching import PlaceRules


CANCELLED = "cancelled"
"""The outcome of a call that was cancelled before it was answered."""


def _unconfined() -> Containment:
    from tools.policy.calls import Containment  # an author's own server has no policy

    return Containment.NONE


@dataclass(slots=True)
class Permission:
    """The decisions about one call; empty until the policy judged it."""

    decision: Decision | None = None
    approval: Approval | None = None
    places: PlaceRules | None = None  # the policy's rules for the files it opens, or None
    # Returns whether the policy allows a URL to which the call is redirected.
    reach: Callable[[str], bool] | None = None
    passed_on: bool = False  # whether it made another call, which is judged and logged itself
    holds: Callable[[], bool] = lambda: True
    # Judges it again, in the context in which it runs.
    renew: Callable[[RequestContext], Awaitable[None]] | None = None
    # How strictly the programs it runs are confined.
    containment: Containment = field(default_factory=_unconfined)
    # Path rules that cannot be enforced on its programs, with the reason.
    unheld: Mapping[str, str] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()  # those of them that a user agreed to run without


@dataclass(slots=True)
class Call:
    """A call in progress."""

    name: str  # as the caller used it
    # The caller's, unchecked; once the tool is found, under its schema's names and completed by it.
    arguments: Any
    context: RequestContext
    find: Find = lambda _name: None
    found: ToolSpec | None = None  # the tool; None until it is found, or if it does not exist
    # The other tool of ours whose name the caller used, for a call that means this one elsewhere.
    named: ToolSpec | None = None
    checked: dict[str, Any] = field(default_factory=dict)  # the validated arguments
    shown: str = ""  # what approval questions show instead of the arguments, if not empty
    permission: Permission = field(default_factory=Permission)
    began: float = field(default_factory=time.time)  # Unix seconds
    clock: float = field(default_factory=time.perf_counter)  # the same moment, to measure durations
    id: str = field(default_factory=lambda: os.urandom(8).hex())  # in the audit log
    _secrets: SecretArguments | None = None

    @property
    def secrets(self) -> SecretArguments:
        """The secrets among the arguments."""
        if self._secrets is None:
            self._secrets = SecretArguments(self.found, self.arguments, self.find)
        return self._secrets

    @property
    def spec(self) -> ToolSpec:
        """The tool, after it was found."""
        return cast("ToolSpec", self.found)


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call and its outcome, in the form that may be logged."""

    call: Call
    name: str  # the name used by the caller, without secrets
    arguments: Mapping[str, Any]  # its arguments, without secrets; empty if they were not an object
    result: ToolResult | None  # its result; None if it was cancelled
    seconds: float

    @property
    def spec(self) -> ToolSpec | None:
        """The tool; None if it does not exist."""
        return self.call.found

    @property
    def outcome(self) -> str:
        """The outcome for the audit log."""
        if self.result is None:
            return CANCELLED
        return str(self.result.structured["error_type"]) if self.result.is_error else "ok"

    @property
    def remembered_outcome(self) -> str:
        """The outcome for memory, in which a failed program counts as a failure."""
        effects = frozenset() if self.spec is None else self.spec.effects
        runs = not effects.isdisjoint({Effect.EXECUTE, Effect.EXTERNAL})  # others only report it
        failed = runs and self.outcome == "ok" and self.result and self.result.tells_failure
        return ToolFailedError.error_type if failed else self.outcome


CHARACTERS_PER_TOKEN = 4
UNLIMITED = 100_000
"""Characters of a page if results have no limit."""


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """How many tokens of a result a model gets; 0 sets no limit.

    Attributes:
        tokens: The limit of all others.
        tools: Those of single tools, which come first; then those of tool sets.
    """

    tokens: int = 4_000
    tools: Mapping[str, int] = field(default_factory=dict)

    def of(self, tool: str, tool_set: ToolSet | None) -> int:
        """Returns the limit in characters."""
        own = None if tool_set is None else tool_set.result_tokens
        return self.tools.get(tool, self.tokens if own is None else own) * CHARACTERS_PER_TOKEN

    def page(self, tool: str, tool_set: ToolSet | None) -> int:
        """Returns the characters of one page of a tool that pages by itself."""
        return self.of(tool, tool_set) or UNLIMITED

    def exceeded(self, result: ToolResult, call: Call) -> int:
        """Returns the limit that a result exceeds, in characters; 0 if it exceeds none."""
        limit = self.of(call.spec.name, call.context.tool_set)
        if not limit or call.spec.is_proxy:  # the parts of a proxy's result were fitted
            return 0
        return limit if result.size(both=call.spec.source != "builtin") > limit else 0


MOST_DEPTH = 8
"""Maximum nesting depth of calls: a function may call itself."""

PARALLEL_READS = 16
"""Maximum parallel reads of one scope and source."""

PARALLEL_WRITES = 4
"""Maximum parallel writes of one scope and source, each of another user."""

PARALLEL_UPSTREAM = 64
"""Maximum parallel calls of one other server, which schedules them itself and may ask the user."""

MadeT = TypeVar("MadeT")
Lending = Callable[[], AbstractAsyncContextManager[None]]


class PausableDeadline:
    """A call's deadline, which pauses with its `outer` one while a user answers a question."""

    def __init__(self, seconds: float, outer: Deadline | None = None) -> None:
        # A scope cancelled at the deadline; the code that waits for the work enters it.
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
        self._outer = outer
        self._left = seconds
        self._open_questions = 0

    def renew(self, seconds: float) -> None:
        """Extends the deadline to at least so many seconds from now."""
        self._left = max(self._left, seconds)
        if not self._open_questions:
            left_at = anyio.current_time() + seconds
            self.scope.deadline = max(self.scope.deadline, left_at)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pauses the deadline while a question is open; questions may overlap."""
        if not self._open_questions:
            self._left = self.scope.deadline - anyio.current_time()
            self.scope.deadline = math.inf
        self._open_questions += 1
        try:
            with ExitStack() as stack:
                if self._outer is not None:
                    stack.enter_context(self._outer.paused())
                yield
        finally:
            self._open_questions -= 1
            if not self._open_questions:
                self.scope.deadline = anyio.current_time() + self._left


async def in_time(
    name: str,
    seconds: float,  # its time limit, not counting the time for questions to the user
    context: RequestContext,
    work: Callable[[RequestContext], Awaitable[MadeT]],
    *,
    meanwhile: Lending = nullcontext,  # a context entered while a question is open
) -> MadeT:
    """Runs a tool's work until its deadline."""
    deadline = PausableDeadline(seconds, context.deadline)
    running = context.running(name, deadline, partial(_waiting, deadline, meanwhile))
    with deadline.scope:
        return await work(running)
    raise DeadlineError(
        f"{name} did not finish within its {seconds:g} seconds and was stopped.",
        next_actions=["Ask for less in one call, or call again later."],
    )


def check_depth(name: str, context: RequestContext) -> None:
    """Rejects a call nested in too many others."""
    if context.depth > MOST_DEPTH:
        raise InvalidArgumentsError(
            f"{name} was not called: it is nested in {MOST_DEPTH} calls already. A tool that calls"
            " itself must stop at some point."
        )


def may_last(
    spec: ToolSpec, arguments: Mapping[str, Any], find: Callable[[str], ToolSpec | None]
) -> bool:
    """Returns whether a call may become a job: a call of such a tool, or of a proxy for one."""
    if not spec.is_proxy:
        return spec.may_become_job
    several: Iterable[Any] = arguments.get("calls", ())
    names = [arguments.get("name", ""), *(each.name for each in several)]
    return any(found.may_become_job for found in map(find, names) if found is not None)


@asynccontextmanager
async def _waiting(deadline: PausableDeadline, meanwhile: Lending) -> AsyncIterator[None]:
    with deadline.paused():
        async with meanwhile():
            yield


class Turns:
    """Hands out turns in the order of requests, so that no call starves.

    The reads of one scope and source share a number of slots. Writes share one; those of stored
    context share one per user, so that a user with many of them does not delay the others. A read
    never waits for a write: storage gives each read a consistent state, and files are replaced
    atomically.
    """

    def __init__(self) -> None:
        self._reads: defaultdict[tuple[ToolScope, str], anyio.Semaphore] = defaultdict(
            lambda: anyio.Semaphore(PARALLEL_READS)
        )
        self._writes: defaultdict[tuple[ToolScope, str, str], anyio.Semaphore] = defaultdict(
            lambda: anyio.Semaphore(1)
        )
        self._writers = anyio.Semaphore(PARALLEL_WRITES)  # of stored context
        self._upstream: defaultdict[str, anyio.Semaphore] = defaultdict(
            lambda: anyio.Semaphore(PARALLEL_UPSTREAM)
        )

    def of(self, spec: ToolSpec, user_id: str) -> Turn:
        """Returns the turn of a user's call of this tool; the call runs within `async with`."""
        if spec.scope is ToolScope.MCP:
            return Turn(self._upstream[spec.source])
        if Effect.WRITE in spec.effects:
            if spec.scope is ToolScope.CONTEXT:  # the record keeps users apart
                return Turn(self._writes[spec.scope, spec.source, user_id], self._writers)
            return Turn(self._writes[spec.scope, spec.source, ""])
        return Turn(self._reads[spec.scope, spec.source])


class Turn:
    """A call's slots, which it releases while it waits for calls of its own.

    No call holds a slot while it waits for another call, so calls cannot deadlock.
    """

    def __init__(self, *places: anyio.Semaphore) -> None:
        self._places = places
        self._held = False
        self._waiting = 0
        self._retaking = anyio.Lock()

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self._give_back()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Releases the slot while the call waits for a nested call or a question.

        A call cancelled meanwhile does not take the slot again.
        """
        self._waiting += 1
        self._give_back()
        failure: Exception | None = None
        try:
            yield
        except Exception as error:  # noqa: BLE001  # raised again below; the call may catch it
            failure = error
        finally:
            self._waiting -= 1
        await self._retake()
        if failure is not None:
            raise failure

    async def _retake(self) -> None:
        async with self._retaking:
            if self._held or self._waiting:
                return
            await self._take()
            if self._waiting:  # another nested call began meanwhile
                self._give_back()

    async def _take(self) -> None:
        with ExitStack() as taken:
            for place in self._places:
                await place.acquire()
                taken.callback(place.release)
            taken.pop_all()
        self._held = True

    def _give_back(self) -> None:
        if self._held:
            self._held = False
            for place in self._places:
                place.release()
