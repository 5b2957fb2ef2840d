"""Upstreams: other servers with their connections and listings."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, TypeVar

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.shared.inbound import x_mcp_header_map
from pydantic import BaseModel

from server.mcp.profiles import limits_of
from server.mcp.sessions import may_be_shared
from server.upstream.connections.connect import Opener
from server.upstream.connections.connection import Connection
from server.upstream.connections.link import SignInRequiredError, problem_of, sign_in_advice
from server.upstream.connections.listing import Listing
from tools.core.errors import ToolError, UnavailableError

FIRST_DELAY = 1.0
"""Seconds before the first retry."""

LONGEST_DELAY = 60.0

SIGN_IN_SECONDS = 1.0
"""Time between looks at whether a person has signed in."""

STEADY = 60.0
"""Seconds of uptime after which earlier failures are forgotten."""

AnswerT = TypeVar("AnswerT")
MessageT = TypeVar("MessageT", bound=BaseModel)

_logger = logging.getLogger("toolcrib")


class State(StrEnum):
    """Whether a server can be used."""

    OFF = "off"
    """Not needed yet."""
    STARTING = "starting"
    UP = "up"
    DOWN = "down"


_UNLISTED = {
    State.OFF: "was not needed yet",
    State.STARTING: "is being started",
    State.UP: "did not list its offers",
    State.DOWN: "cannot be reached",
}


class Backoff:
    """Doubles the delay between retries, with jitter to avoid simultaneous ones."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        spread: Callable[[], float] = random.random,  # from 0 to 1
    ) -> None:
        self._clock = clock
        self._spread = spread
        self._failures = 0
        self._next_try = 0.0

    @property
    def remaining(self) -> float:
        """Seconds until the next try; 0 if it is due."""
        return max(0.0, self._next_try - self._clock())

    def failed(self, lived: float = 0.0) -> None:
        """Records that the server could not be reached, or ended after it lived so many seconds.

        It is retried at once after a long uptime or its first end.
        """
        if lived >= STEADY:
            self._failures = 0
        at_once = lived > 0 and not self._failures
        delay = 0.0 if at_once else min(LONGEST_DELAY, FIRST_DELAY * 2**self._failures)
        self._failures = min(self._failures + 1, 16)  # far beyond the longest delay
        self._next_try = self._clock() + delay * (0.5 + self._spread() / 2)


class _Attempt:
    """One attempt to connect, awaited by any number of callers, or for one call alone."""

    def __init__(self, session_id: str, *, is_for_call: bool) -> None:
        self.session_id = session_id
        self.is_for_call = is_for_call
        self.is_wanted = True
        self.done = anyio.Event()
        self.connection: Connection | None = None
        self.problem = "is no longer run by this process"


class Upstream:
    """Another server."""

    def __init__(self, opener: Opener, home: str, command: str) -> None:
        self.name = opener.server
        self.settings = opener.settings
        self.listing: Listing | None = None  # what it last offered, perhaps to an earlier process
        self.state = State.OFF
        self.problem = ""  # why it is unreachable, as the rest of a sentence
        self.settled = anyio.Event()  # it was listed, has a cached listing, or is unreachable
        self.listed = anyio.Event()  # this process has tried to list it
        self.backoff = Backoff()
        self.keeping: anyio.CancelScope | None = None  # the task that keeps its listing current
        self.connections: dict[str, Connection] = {}  # by conversation
        self._of_calls: set[Connection] = set()  # each for one call alone
        self.limits = limits_of(f"servers.{self.name}", self.settings)
        self._headed: tuple[types.Tool, ...] = ()
        self._refused_sign_in: str | None = None  # the sign-in with which it required another
        self._is_signing_in = False
        self._opener = opener
        self._home = home
        self._command = command
        self._group: TaskGroup | None = None
        self._attempts: dict[object, _Attempt] = {}  # by conversation, or by call
        self._opened = anyio.Event()

    @property
    def why_unlisted(self) -> str:
        """Why there is no listing, as the rest of a sentence; empty if there is one."""
        return "" if self.listing is not None else self.problem or _UNLISTED[self.state]

    @property
    def home(self) -> Connection | None:
        """The connection for listings; None if none is open."""
        for session_id in (self._home, *reversed(self.connections)):
            found = self.connections.get(session_id)
            if found is not None and found.is_open:
                return found
        return None

    @property
    def all_connections(self) -> list[Connection]:
        """All its connections, those of single calls too."""
        return [*self.connections.values(), *self._of_calls]

    def run_in(self, group: TaskGroup) -> None:
        """Sets the task group in which its connections run."""
        self._group = group
        self.keeping = anyio.CancelScope()

    def offers(self, listing: Listing) -> None:
        """Stores a new listing."""
        self.listing = listing
        tools = listing.tools if self.settings.url else ()
        self._headed = tuple(each for each in tools if x_mcp_header_map(each.input_schema))
        for connection in self.connections.values():
            if connection.is_open and connection.is_modern:
                connection.sends_headers_of(self._headed)

    async def connection(self, session_id: str) -> Connection:
        """Returns the connection of a conversation, opening it if necessary.

        It is that of this process if conversations share it, or each call connects by itself.
        """
        if self.settings.sessions == "shared" or self._connects_per_call(session_id):
            session_id = self._home
        found = self.connections.get(session_id)
        if found is not None and found.is_open:
            if not found.callbacks.outdated:
                return found
            del self.connections[session_id]
            await found.retire()
        attempt = self._attempts.get(session_id)
        if attempt is None:
            attempt = self._start_attempt(session_id)
        return await self._outcome(attempt)

    def end(self, session_id: str) -> None:
        """Closes the connection of a conversation that has ended, once no call uses it."""
        if (attempt := self._attempts.get(session_id)) is not None:
            attempt.is_wanted = False
        found = self.connections.pop(session_id, None)
        if found is not None and self._group is not None:
            self._group.start_soon(found.retire)

    def stop(self) -> None:
        """Opens no more connections, and closes each once no call uses it."""
        group, self._group = self._group, None
        if self.keeping is not None:
            self.keeping.cancel()
        for attempt in self._attempts.values():
            attempt.is_wanted = False
        for each in self.all_connections:
            if group is not None:
                group.start_soon(each.retire)

    async def ask(
        self, session_id: str | None, question: Callable[[Connection], Awaitable[AnswerT]]
    ) -> AnswerT:
        """Sends a request in a conversation; repeats it once if the server has lost the session.

        Without a conversation it is sent on behalf of this process.
        """
        session_id = self._home if session_id is None else session_id
        if self._connects_per_call(session_id):
            return await self._ask_apart(session_id, question)
        connection = await self.connection(session_id)
        try:
            async with connection.used():
                return await question(connection)
        except ToolError:
            if not connection.link.is_forgotten:
                raise
        await connection.closed.wait()
        connection = await self.connection(session_id)
        async with connection.used():
            return await question(connection)

    async def request(
        self, session_id: str | None, request: types.Request[Any, Any], kind: type[MessageT]
    ) -> MessageT:
        """Sends a request that the server answers in time, and without questions; see `ask`."""
        with anyio.fail_after(self.settings.start_timeout + self.settings.timeout):
            return await self.ask(
                session_id, lambda connection: connection.session.send_request(request, kind)
            )

    async def next_connection(self, *, starts: bool) -> Connection:
        """Waits for a connection for listings; unless it starts one, until another caller does."""
        if starts:
            return await self.connection(self._home)
        while (found := self.home) is None:
            await self._opened.wait()
            self._opened = anyio.Event()
        return found

    async def sign_in(self, show: Callable[[str], Awaitable[object]]) -> bool:
        """Signs in to the server, unless another call does; returns whether that succeeded.

        Args:
            show: Shows the address of the page to a person.
        """
        if self._is_signing_in:
            return False
        self._is_signing_in = True
        try:
            account = await self._opener.account()
            await account.sign_in(show)
        except Exception as error:  # noqa: BLE001  # it ends in many ways, all with the same result
            reason = await problem_of(error, None)
            _logger.warning("The sign-in to the server %r %s.", self.name, reason)
            return False
        finally:
            self._is_signing_in = False
        return True

    async def due(self) -> None:
        """Waits until the next try: until a person has signed in, if that is required."""
        while self._is_signed_out():  # noqa: ASYNC110  # another process signs in
            await anyio.sleep(SIGN_IN_SECONDS)
        await anyio.sleep(self.backoff.remaining)

    def _is_signed_out(self) -> bool:
        return self._refused_sign_in == self._opener.sign_in_version()

    def close_idle(self) -> None:
        """Closes the connections of conversations that seem to have ended."""
        for connection in self._idle():
            if time.monotonic() - connection.last_used >= self.settings.idle_timeout:
                connection.close()

    def _idle(self) -> list[Connection]:
        """Returns unused connections, the longest idle first."""
        idle = [
            each
            for session_id, each in self.connections.items()
            if (session_id != self._home or self.settings.lazy) and not each.is_busy
        ]
        return sorted(idle, key=lambda each: each.last_used)

    def _connects_per_call(self, session_id: str) -> bool:
        """Returns whether each call of a conversation has its own connection."""
        if session_id == self._home or self.settings.sessions == "shared":
            return False
        return self.settings.sessions == "per_call" or may_be_shared(session_id)

    async def _ask_apart(
        self, session_id: str, question: Callable[[Connection], Awaitable[AnswerT]]
    ) -> AnswerT:
        """Sends a request on a connection of its own."""
        attempt = self._start_attempt(session_id, is_for_call=True)
        try:
            connection = await self._outcome(attempt)
            async with connection.used():
                return await question(connection)
        finally:
            attempt.is_wanted = False
            if attempt.connection is not None:
                attempt.connection.close()

    async def _outcome(self, attempt: _Attempt) -> Connection:
        await attempt.done.wait()
        if attempt.connection is None:
            raise self._unavailable(attempt.problem)
        return attempt.connection

    def _make_room(self) -> None:
        """Closes the connection that was idle longest if there are as many as there may be."""
        others = len(self._of_calls) + len(self._attempts)
        others += sum(each != self._home for each in self.connections)
        if others < self.settings.max_connections:
            return
        idle = [each for each in self._idle() if each.session_id != self._home]
        if not idle:
            raise self._unavailable(f"is busy with {others} conversations, its max_connections")
        del self.connections[idle[0].session_id]
        idle[0].close()

    def _start_attempt(self, session_id: str, *, is_for_call: bool = False) -> _Attempt:
        """Starts to connect, independent of the caller's cancellation."""
        if self._group is None:
            raise UnavailableError(f"The server {self.name!r} is not run by this process.")
        if self._is_signed_out() or self.backoff.remaining:
            raise self._unavailable(self.problem)
        if session_id != self._home:
            self._make_room()
        attempt = _Attempt(session_id, is_for_call=is_for_call)
        key = attempt if is_for_call else session_id
        self._attempts[key] = attempt
        self._group.start_soon(self._try, key, attempt, self._group)
        return attempt

    async def _try(self, key: object, attempt: _Attempt, group: TaskGroup) -> None:
        if self.state is not State.UP:
            self.state, self.problem = State.STARTING, ""
        version = self._opener.sign_in_version()
        try:
            connection = await self._opener.open(attempt.session_id, group)
        except SignInRequiredError as error:  # not retried until a person has signed in
            attempt.problem = error.message
            self._refused_sign_in = version
            self.state, self.problem = State.DOWN, error.message
        except UnavailableError as error:
            attempt.problem = error.message
            self.backoff.failed()
            self.state, self.problem = State.DOWN, error.message
        else:
            attempt.connection = connection
            if attempt.is_for_call:
                self._of_calls.add(connection)
            else:
                self.connections[attempt.session_id] = connection
            if connection.is_modern:
                connection.sends_headers_of(self._headed)
            self.state, self.problem = State.UP, ""
            self._refused_sign_in = None
            group.start_soon(self._watch, connection)
            if not attempt.is_for_call:
                self._opened.set()
            if not attempt.is_wanted:
                connection.close()
        finally:
            del self._attempts[key]
            attempt.done.set()

    async def _watch(self, connection: Connection) -> None:
        """Records the end of a connection."""
        await connection.closed.wait()
        self._of_calls.discard(connection)
        if self.connections.get(connection.session_id) is connection:
            del self.connections[connection.session_id]
        if not connection.problem:
            return
        if not connection.link.is_forgotten:
            self.backoff.failed(connection.lived)
        if self.home is None:
            self.state, self.problem = State.DOWN, connection.problem
        _logger.warning("The server %r %s.", self.name, connection.problem)

    def _unavailable(self, problem: str) -> UnavailableError:
        if self._is_signed_out():
            return SignInRequiredError(
                f"The server {self.name!r} {problem}.",
                next_actions=sign_in_advice(self.name, self._command),
            )
        again = ""
        if wait := self.backoff.remaining:
            again = f" The next try is in {math.ceil(wait)} s."
        return UnavailableError(
            f"The server {self.name!r} {problem}.{again}",
            next_actions=[
                f"Ask the user to run `{self._command} servers`, which shows their state."
            ],
        )
